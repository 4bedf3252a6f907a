//! Longhaul: a reverse proxy that keeps long agent sessions inside their
//! context window.
//!
//! # The life of a request
//!
//! ```text
//! client > server > split > identify > measure > decide > render > upstream > relay > client
//!                               |                    |                           |
//!                             store           pass, commit                observe > store
//!                                                    |                           |
//!                                                    +------- compactor ---------+
//! ```
//!
//! [`server::exchange`] tells it as a list of steps and is the only file that
//! knows all the others; [`views`] is the part between the body and what goes
//! upstream, and [`compactor`] makes the summaries that views show, mostly while
//! nobody waits. `POST /v1/messages` and its token count are taken in whole, because
//! what they say decides what is forwarded; every other request streams through
//! in both directions. A view is the client's own bytes with a few stretches
//! replaced ([`wire::splice`]) by what an overlay holds ([`engine::overlay`]).
//!
//! # The layers
//!
//! | kind | modules | may do |
//! |---|---|---|
//! | pure | [`wire`], [`engine`] | values in, values out: no I/O, clock or randomness |
//! | shell | [`server`], [`admin`], [`views`], [`compactor`], [`recall`], [`store`], [`upstream`] | I/O, no decisions |
//! | edge | [`app`], [`cli`], [`config`], [`metrics`], [`replay`], [`demo`] | wiring; a replay runs an app against the simulator, a demo shows one |
//! | apart | [`sim`] | the simulated upstream: written from the API's facts, knows nothing of the proxy |
//!
//! Pure code imports no shell, the shell imports no edge but the validated
//! configuration and the metrics, and the simulator imports nothing of the
//! proxy, so that it can judge it. `tests/tidy` checks this.
//!
//! # What always holds
//!
//! - What Longhaul does not understand passes unchanged, in both directions.
//! - The same history renders to the same bytes, for ever.
//! - A request that would have succeeded without us succeeds with us.
//! - An answer that breaks off upstream breaks off for the client too.
//! - Upstream is fixed by configuration; no request can choose another.
//! - Content and credentials are never logged.

pub mod admin;
pub mod app;
pub mod bounded;
pub mod cli;
pub mod clock;
pub mod compactor;
pub mod config;
pub mod demo;
pub mod engine;
pub mod metrics;
pub mod recall;
pub mod replay;
pub mod server;
pub mod sim;
pub mod store;
pub mod upstream;
pub mod views;
pub mod wire;
