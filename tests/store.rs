//! The store: one suite over every home, then what only files can suffer.
//!
//! The rules come first and run over memory, SQLite and PostgreSQL alike; random
//! sequences hold them against each other. Then races, requests that go away, damaged
//! files, killed processes and power cuts.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "helpers of tests say what they expect, as tests do"
)]

#[path = "cluster/mod.rs"]
mod cluster;
#[path = "store/journal_support.rs"]
mod journal_support;
#[path = "store/support.rs"]
mod support;

#[path = "store/archiving.rs"]
mod archiving;
#[path = "store/background.rs"]
mod background;
#[path = "store/branches.rs"]
mod branches;
#[path = "store/cancelled.rs"]
mod cancelled;
#[path = "store/collecting.rs"]
mod collecting;
#[path = "store/copying.rs"]
mod copying;
#[path = "store/damage.rs"]
mod damage;
#[path = "store/database.rs"]
mod database;
#[path = "store/entries.rs"]
mod entries;
#[path = "store/forgetting.rs"]
mod forgetting;
#[path = "store/formats.rs"]
mod formats;
#[path = "store/guarded.rs"]
mod guarded;
#[path = "store/journal_model.rs"]
mod journal_model;
#[path = "store/journal_speed.rs"]
mod journal_speed;
#[path = "store/journal_trouble.rs"]
mod journal_trouble;
#[path = "store/killed.rs"]
mod killed;
#[path = "store/leases.rs"]
mod leases;
#[path = "store/model.rs"]
mod model;
#[path = "store/permissions.rs"]
mod permissions;
#[path = "store/postgres.rs"]
mod postgres;
#[path = "store/power.rs"]
mod power;
#[path = "store/races.rs"]
mod races;
#[path = "store/rules.rs"]
mod rules;
#[path = "store/sessions.rs"]
mod sessions;
#[path = "store/speed.rs"]
mod speed;
#[path = "store/vanished.rs"]
mod vanished;
