//! `longhaul health`: is the proxy of this container ready?
//!
//! An image that holds one binary has nothing else to ask with. It looks where
//! the same configuration would have the proxy listen, so that a health check
//! needs no arguments. No certificate is checked: none is made out to the
//! loopback address, and nothing is sent that anybody might want.

use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;

use super::{BAD_CONFIGURATION, OverrideArgs};
use crate::config::{Config, load};

/// What is asked for unless the address has a path.
const READY: &str = "/readyz";
/// The most of an answer that is shown.
const SHOWN: usize = 500;

/// Arguments of `longhaul health`.
#[derive(Clone, Default, clap::Args)]
pub struct HealthArgs {
    /// Where to ask, instead of where the configuration says
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// How many seconds to wait
    #[arg(long, value_name = "SECONDS", default_value_t = 3)]
    pub timeout: u64,
    /// What overrides the configuration.
    #[command(flatten)]
    pub overrides: OverrideArgs,
}

/// Asks, prints the answer, and says by the exit code whether it was a good one.
pub async fn run(args: HealthArgs) -> anyhow::Result<ExitCode> {
    let url = match args.url {
        Some(url) => url,
        None => match load(&args.overrides.into_sources()) {
            Ok(loaded) => address(&loaded.config),
            Err(problems) => {
                writeln!(std::io::stderr(), "{problems}")?;
                return Ok(ExitCode::from(BAD_CONFIGURATION));
            }
        },
    };
    let mut url: reqwest::Url = url
        .parse()
        .with_context(|| format!("{url} is no address: expected http://HOST:PORT"))?;
    if url.path() == "/" {
        url.set_path(READY);
    }
    let client = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .tls_danger_accept_invalid_certs(true)
        .timeout(Duration::from_secs(args.timeout))
        .build()
        .context("cannot make a client")?;
    let answer = client.get(url).send().await.context("no answer")?;
    let status = answer.status();
    let text = answer.text().await.unwrap_or_default();
    let text: String = text.trim().chars().take(SHOWN).collect();
    writeln!(std::io::stdout(), "{} {text}", status.as_u16())?;
    Ok(if status.is_success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Where a proxy with this configuration can be asked from beside it.
fn address(config: &Config) -> String {
    let scheme = match config.tls.cert {
        Some(_) => "https",
        None => "http",
    };
    let port = config.listen.port();
    let host = config.listen.host();
    let host = match host.trim_start_matches('[').trim_end_matches(']') {
        // What stands for every address is no address to connect to.
        "0.0.0.0" => Ipv4Addr::LOCALHOST.to_string(),
        "::" => format!("[{}]", Ipv6Addr::LOCALHOST),
        host if host.contains(':') => format!("[{host}]"),
        host => host.to_owned(),
    };
    format!("{scheme}://{host}:{port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_asks_where_the_configuration_listens() {
        for (listen, expected) in [
            ("127.0.0.1:4180", "http://127.0.0.1:4180"),
            ("0.0.0.0:80", "http://127.0.0.1:80"),
            ("[::]:80", "http://[::1]:80"),
            ("[fd00::1]:80", "http://[fd00::1]:80"),
            ("localhost:9", "http://localhost:9"),
        ] {
            let config = Config {
                listen: listen.parse().unwrap(),
                ..Config::default()
            };
            assert_eq!(address(&config), expected);
        }
    }
}
