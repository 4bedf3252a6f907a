//! The whole proxy, from socket to socket.
//!
//! Clients and upstreams here are raw sockets that see every byte, because the
//! promise is about bytes. Each test is a story: an upstream that behaves in
//! some way, a proxy before it, a client that looks.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::format_push_string,
    clippy::print_stdout,
    clippy::print_stderr,
    missing_docs
)]

#[path = "../cluster/mod.rs"]
mod cluster;
#[path = "../recordings/mod.rs"]
mod recordings;
mod support;

mod admin;
mod bulk;
mod claude_code;
mod clients;
mod compressed;
mod credentials;
mod drain;
mod early;
mod economy;
mod faults;
mod framing;
mod freeze;
mod headers;
mod http2_listener;
mod http2_upstream;
mod identity;
mod journal;
mod limits;
mod observed;
mod page;
mod patience;
mod random;
mod replicas;
mod reuse;
mod streaming;
mod streams;
mod summaries;
mod tls;
mod views;
mod watching;
