//! Small values with rules of their own: where the store is, which variable
//! holds a secret, how tenants are told apart.
//!
//! A store's URL may hold a password, so it prints masked everywhere; the one
//! place that connects asks for it by name.

use super::database;
use super::secret::mask;
use http::HeaderName;
use std::fmt;
use std::str::FromStr;

/// Why a text was refused; what is accepted is said by its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not in an accepted form")]
pub struct BadName;

/// Where marks, overlays and the journal are kept.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// Files in the data folder.
    Sqlite,
    /// Nothing survives a restart.
    Memory,
    /// A Postgres server, shared by replicas.
    Postgres(PostgresUrl),
}

/// The address of a Postgres database, which may hold a password.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(String);

impl PostgresUrl {
    /// The URL with its password, for connecting. Never print it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl StoreUrl {
    /// What keeps it from being used, by the part at fault and without a password.
    pub fn wrong(&self) -> Option<String> {
        match self {
            Self::Sqlite | Self::Memory => None,
            Self::Postgres(url) => database::wrong(&url.0),
        }
    }
}

impl FromStr for StoreUrl {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        match text {
            "sqlite" => Ok(Self::Sqlite),
            "memory" => Ok(Self::Memory),
            _ => ["postgres://", "postgresql://"]
                .iter()
                .find_map(|scheme| text.strip_prefix(scheme))
                .filter(|rest| !rest.is_empty())
                .map(|_| Self::Postgres(PostgresUrl(text.to_owned())))
                .ok_or(BadName),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite => formatter.write_str("sqlite"),
            Self::Memory => formatter.write_str("memory"),
            Self::Postgres(url) => formatter.write_str(&mask(&url.0)),
        }
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&mask(&self.0))
    }
}

/// The name of an environment variable that holds a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableName(String);

impl VariableName {
    /// The name itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for VariableName {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        let starts_well = !text.starts_with(|first: char| first.is_ascii_digit());
        let plain = text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        (!text.is_empty() && starts_well && plain)
            .then(|| Self(text.to_owned()))
            .ok_or(BadName)
    }
}

impl fmt::Display for VariableName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// How requests are told apart by whom they belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TenantBy {
    /// Nobody on a loopback listener, the credential elsewhere.
    Auto,
    /// The organization and workspace behind the credential.
    Credential,
    /// The value of this request header.
    Header(HeaderName),
    /// All requests belong to one tenant.
    None,
}

impl FromStr for TenantBy {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        match text {
            "auto" => Ok(Self::Auto),
            "credential" => Ok(Self::Credential),
            "none" => Ok(Self::None),
            _ => text
                .strip_prefix("header:")
                .and_then(|name| name.parse().ok())
                .map(Self::Header)
                .ok_or(BadName),
        }
    }
}

impl fmt::Display for TenantBy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => formatter.write_str("auto"),
            Self::Credential => formatter.write_str("credential"),
            Self::Header(name) => write!(formatter, "header:{name}"),
            Self::None => formatter.write_str("none"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_sqlite_memory_or_postgres() {
        for (text, fine) in [
            ("sqlite", true),
            ("memory", true),
            ("postgres://host/db", true),
            ("postgresql://host/db", true),
            ("postgres://", false),
            ("mysql://host/db", false),
            ("", false),
        ] {
            assert_eq!(text.parse::<StoreUrl>().is_ok(), fine, "{text}");
        }
    }

    #[test]
    fn a_store_url_prints_without_its_password() {
        let url: StoreUrl = "postgres://me:s3cret@host/db".parse().unwrap();
        assert_eq!(url.to_string(), "postgres://me:***@host/db");
        assert!(!format!("{url:?}").contains("s3cret"));
        let StoreUrl::Postgres(url) = url else {
            panic!("a PostgreSQL URL was read as something else");
        };
        assert_eq!(url.reveal(), "postgres://me:s3cret@host/db");
        assert!(!format!("{url:?}").contains("s3cret"));
    }

    #[test]
    fn a_pasted_key_is_not_a_variable_name() {
        for (text, fine) in [
            ("LONGHAUL_ADMIN_TOKEN", true),
            ("_x9", true),
            ("9x", false),
            ("sk-ant-api03", false),
            ("", false),
        ] {
            assert_eq!(text.parse::<VariableName>().is_ok(), fine, "{text}");
        }
    }

    #[test]
    fn tenants_by_header_need_a_valid_header_name() {
        for (text, shown) in [
            ("auto", Some("auto")),
            ("credential", Some("credential")),
            ("none", Some("none")),
            ("header:X-Team", Some("header:x-team")),
            ("header:", None),
            ("header:a b", None),
            ("team", None),
        ] {
            let by = text.parse::<TenantBy>().ok().map(|by| by.to_string());
            assert_eq!(by.as_deref(), shown, "{text}");
        }
    }
}
