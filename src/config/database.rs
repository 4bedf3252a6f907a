//! What is wrong with the address of a database, by the part that is at fault.
//!
//! A URL is a form that people rarely write by hand, and a password is what they
//! put into it as it is. The driver says no more than that it does not like the
//! whole, so each part is looked at here, in words that never repeat what stands
//! in it: what looks like a port may be a password.

use sqlx::postgres::PgConnectOptions;
use std::net::IpAddr;

/// How encryption can be asked for.
const MODES: [&str; 6] = [
    "disable",
    "allow",
    "prefer",
    "require",
    "verify-ca",
    "verify-full",
];
const PORT: &str = "its port is no number up to 65535";
const FORM: &str =
    "not a usable address: one looks like postgres://user:password@host:port/database";

/// What is wrong with a `postgres://` URL, if anything is.
pub(super) fn wrong(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, after) = rest.split_at(end);
    let port = port(authority);
    let bad_port = port.is_some_and(|port| port.parse::<u16>().is_err());
    let (path, query) = after.split_once('?').unwrap_or((after, ""));
    let is_cut = !authority.contains('@')
        && authority.contains(':')
        && (path.contains('@') || bad_port && query.contains('@'));
    if !is_cut && url.parse::<PgConnectOptions>().is_ok() {
        return None;
    }
    let parameters = query.split('&').filter_map(|it| it.split_once('='));
    let mut parameters = parameters.filter_map(|(name, value)| parameter(name, value));
    Some(match () {
        () if is_cut => "the user or the password holds a letter that ends it: \
                         write / as %2F, ? as %3F, # as %23, @ as %40 and % as %25"
            .to_owned(),
        () if bad_port => PORT.to_owned(),
        () => parameters.next().unwrap_or_else(|| FORM.to_owned()),
    })
}

/// What stands behind the host.
fn port(authority: &str) -> Option<&str> {
    let host = authority.rsplit_once('@');
    let host = host.map_or(authority, |(_, host)| host);
    let after = host.rsplit_once(']').map_or(host, |(_, after)| after);
    let (_, port) = after.rsplit_once(':')?;
    (!port.is_empty()).then_some(port)
}

/// What is wrong with a parameter, if anything is.
fn parameter(name: &str, value: &str) -> Option<String> {
    match name {
        "sslmode" | "ssl-mode" if !MODES.contains(&value) => {
            Some(format!("{name} must be one of {}", MODES.join(", ")))
        }
        "port" if value.parse::<u16>().is_err() => Some(PORT.to_owned()),
        "hostaddr" if value.parse::<IpAddr>().is_err() => Some(format!("{name} is no IP address")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_at_fault_is_named_and_no_password_is_repeated() {
        let escape = Some("the user or the password holds a letter that ends it");
        for (url, start) in [
            ("postgres://host/db", None),
            ("postgres://me:s3cret@host:5433/db?sslmode=require", None),
            ("postgres://me:s3%2Fcret@[::1]:5433/db", None),
            ("postgres://me:s3@cret@host/db", None),
            ("postgresql://host:5432?user=me@there", None),
            ("postgres://%2Frun%2Fpostgresql/db", None),
            ("postgres:///db?host=/run/postgresql", None),
            ("postgres://me:s3/cret@host/db", escape),
            ("postgres://me:5432/cret@host/db", escape),
            ("postgres://me:s3?cret@host/db", escape),
            ("postgres://me:s3#cret@host/db", escape),
            ("postgres://me:s3cret@host:x/db", Some("its port is no")),
            ("postgres://host:99999/db", Some("its port is no")),
            ("postgres://host/db?port=x", Some("its port is no")),
            (
                "postgres://me:s3cret@host/db?sslmode=zzz",
                Some("sslmode must be one of disable, "),
            ),
            ("postgres://host/db?hostaddr=x", Some("hostaddr is no")),
            ("postgres://me:%ff@host/db", Some("not a usable address")),
            ("postgres://a b/db", Some("not a usable address")),
        ] {
            let found = wrong(url);
            let fits = match (&found, start) {
                (None, None) => true,
                (Some(found), Some(start)) => found.starts_with(start),
                _ => false,
            };
            assert!(fits, "{url}: {found:?}");
            assert!(!found.unwrap_or_default().contains("cret"), "{url}");
        }
    }
}
