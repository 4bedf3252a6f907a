//! Opening the store: what is wrong with the address is an error, a database
//! that is not there yet is not.
//!
//! A proxy and its database are often started together, and a database may be
//! away for a while whenever it likes. So one that does not answer is waited for
//! a little and then looked for again with every question, while requests are
//! served without. A wrong address, a wrong password, a standby or tables of a
//! newer version will not get better by waiting: whoever starts the proxy is
//! told at once.

use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;

use super::PostgresStore;
use super::desk::{Desk, Use};
use super::lane::Lane;
use super::trouble::Trouble;
use crate::store::{Opened, Report, StoreError};

/// How long a database that does not answer is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often it is asked meanwhile.
const PAUSE: Duration = Duration::from_millis(200);

/// Why a database cannot be used as it is.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL is not one.
    #[error("store.url: {0}")]
    Url(String),
    /// The database refuses, or is not one to be used.
    #[error("store.url: {0}")]
    Unusable(Trouble),
    /// There is no thread to be had.
    #[error("cannot start the thread of the store: {0}")]
    Thread(std::io::Error),
}

/// Opens the store at a URL, with at most so many connections; `timeout` is the
/// longest that a request waits for any one answer. An empty database gets its
/// tables.
pub async fn open(url: &str, connections: u32, timeout: Duration) -> Result<Opened, OpenError> {
    let desk = Desk::new(options(url)?, connections, Use::Keeping);
    reach(Lane::start(desk, timeout)).await
}

/// The same for whoever only looks: a database without tables is not the one
/// that was meant, and the right to read is enough.
pub async fn look(url: &str, connections: u32, timeout: Duration) -> Result<Opened, OpenError> {
    let desk = Desk::new(options(url)?, connections, Use::Looking);
    reach(Lane::start(desk, timeout)).await
}

async fn reach(lane: std::io::Result<Lane>) -> Result<Opened, OpenError> {
    let lane = lane.map_err(OpenError::Thread)?;
    let until = Instant::now() + PATIENCE;
    let mut reports = Vec::new();
    loop {
        let looked = lane.try_run(PATIENCE * 2, async |_: &mut _| Ok(())).await;
        let why = match looked {
            Ok(Ok(())) => break,
            Ok(Err(trouble)) if !trouble.may_pass() => return Err(OpenError::Unusable(trouble)),
            Ok(Err(trouble)) => trouble.to_string(),
            Err(StoreError::Slow(_)) => "it does not answer".to_owned(),
            Err(error) => error.to_string(),
        };
        if Instant::now() >= until {
            reports.push(Report::OutOfReach { why });
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    reports.iter().for_each(Report::log);
    Ok(Opened {
        store: Arc::new(PostgresStore { lane }),
        reports,
    })
}

/// How to connect. Nothing is asked of the session at its start but what every
/// pooler understands, and statements, which contain content, are not logged.
fn options(url: &str) -> Result<PgConnectOptions, OpenError> {
    let options = PgConnectOptions::from_str(url);
    // The error may repeat the password.
    let options = options.map_err(|_| {
        OpenError::Url("not a usable address: postgres://user:password@host:port/database".into())
    })?;
    let named = options.get_application_name().is_some();
    let options = options
        .extra_float_digits(None)
        .statement_cache_capacity(0)
        .disable_statement_logging();
    Ok(if named {
        options
    } else {
        options.application_name("longhaul")
    })
}
