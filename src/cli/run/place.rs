//! How a command is told where the proxy is, and what it would have used else.
//!
//! `ANTHROPIC_BASE_URL` is what the official SDKs, Claude Code and most others
//! read. Some clients prefer a variable of their own where it is set, so that one
//! is changed too, but never set anew. The variables of other providers stay as
//! they are: their requests would end at the wrong API.

use std::net::SocketAddr;

use crate::config::Upstream;

/// Where clients look for the address of the API, the usual one first.
const NAMES: [&str; 3] = [
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_API_URL",
    "ANTHROPIC_API_BASE",
];
/// What some clients expect at the end of the address and others add themselves.
const VERSION: &str = "/v1";
/// Who may be reached without a proxy, in both spellings.
const DIRECT: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Why the environment does not say which API is meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPlace {
    /// No address, or one that cannot be used.
    #[error(
        "{0} is not an address that can be forwarded to: set it to one such as https://api.anthropic.com, or say --upstream"
    )]
    Unusable(&'static str),
    /// Two of them.
    #[error("{0} and {1} name different APIs: say with --upstream which one is meant")]
    Different(&'static str, &'static str),
}

/// The API that a command with this environment would use, if it says so.
pub fn named(environment: &[(String, String)]) -> Result<Option<String>, BadPlace> {
    let mut found: Option<(&str, Upstream)> = None;
    for name in NAMES {
        let Some(value) = value(environment, name) else {
            continue;
        };
        let place = place(value).parse::<Upstream>();
        let place = place.map_err(|_| BadPlace::Unusable(name))?;
        match &found {
            Some((before, other)) if *other != place => {
                return Err(BadPlace::Different(before, name));
            }
            Some(_) => {}
            None => found = Some((name, place)),
        }
    }
    Ok(found.map(|(_, place)| place.to_string()))
}

/// The variables that lead a command to the proxy. An address keeps the ending
/// that the command's client is used to.
pub fn variables(environment: &[(String, String)], proxy: SocketAddr) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    for name in NAMES {
        let before = value(environment, name);
        if before.is_none() && name != NAMES[0] {
            continue;
        }
        let has_version =
            before.is_some_and(|before| place(before) != before.trim_end_matches('/'));
        let ending = if has_version { VERSION } else { "" };
        variables.push((name.to_owned(), format!("http://{proxy}{ending}")));
    }
    let is_proxy = |name: &str| {
        let upper = name.to_ascii_uppercase();
        upper.ends_with("_PROXY") && upper != DIRECT[0]
    };
    // A proxy of the network must not be asked for this machine.
    if environment
        .iter()
        .any(|(name, value)| is_proxy(name) && !value.is_empty())
    {
        let host = proxy.ip().to_string();
        let [first, second] = DIRECT.map(|name| value(environment, name));
        // Programs differ in which spelling they read, so neither may lack what
        // the other has.
        for (name, before) in DIRECT.into_iter().zip([first.or(second), second.or(first)]) {
            let direct = match before {
                // Everybody, which programs only understand where it stands alone.
                Some(everybody) if everybody.trim() == "*" => everybody.to_owned(),
                Some(before) => format!("{before},{host}"),
                None => host.clone(),
            };
            variables.push((name.to_owned(), direct));
        }
    }
    variables
}

/// An address without the ending that only some clients expect.
fn place(value: &str) -> &str {
    let value = value.trim_end_matches('/');
    value.strip_suffix(VERSION).unwrap_or(value)
}

fn value<'a>(environment: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut set = environment.iter();
    let (_, value) = set.find(|(known, value)| known == name && !value.is_empty())?;
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Set<'a> = &'a [(&'a str, &'a str)];

    fn environment(set: Set<'_>) -> Vec<(String, String)> {
        let set = set.iter();
        set.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn the_api_is_the_one_that_the_client_would_use() {
        for (set, expected) in [
            (&[][..], Ok(None)),
            (&[("ANTHROPIC_BASE_URL", "")], Ok(None)),
            (&[("OPENAI_BASE_URL", "https://a.b")], Ok(None)),
            (
                &[("ANTHROPIC_BASE_URL", "https://a.b/")],
                Ok(Some("https://a.b")),
            ),
            (
                &[("ANTHROPIC_API_URL", "https://a.b/v1")],
                Ok(Some("https://a.b")),
            ),
            (
                &[
                    ("ANTHROPIC_BASE_URL", "http://a.b/x/v1/"),
                    ("ANTHROPIC_API_URL", "http://a.b/x"),
                ],
                Ok(Some("http://a.b/x")),
            ),
            (
                &[
                    ("ANTHROPIC_BASE_URL", "http://a.b"),
                    ("ANTHROPIC_API_URL", "http://a.c"),
                ],
                Err(BadPlace::Different(
                    "ANTHROPIC_BASE_URL",
                    "ANTHROPIC_API_URL",
                )),
            ),
            (
                &[("ANTHROPIC_BASE_URL", "https://me:secret@a.b")],
                Err(BadPlace::Unusable("ANTHROPIC_BASE_URL")),
            ),
        ] {
            let expected = expected.map(|place: Option<&str>| place.map(str::to_owned));
            assert_eq!(named(&environment(set)), expected, "{set:?}");
        }
    }

    #[test]
    fn a_command_is_led_to_the_proxy_and_to_nothing_else() {
        let rows: [(Set, Set); 7] = [
            (
                &[("OPENAI_BASE_URL", "https://a.b")],
                &[("ANTHROPIC_BASE_URL", "http://127.0.0.1:7")],
            ),
            (
                &[
                    ("ANTHROPIC_BASE_URL", "https://a.b/v1"),
                    ("ANTHROPIC_API_URL", "https://a.b"),
                ],
                &[
                    ("ANTHROPIC_BASE_URL", "http://127.0.0.1:7/v1"),
                    ("ANTHROPIC_API_URL", "http://127.0.0.1:7"),
                ],
            ),
            (
                &[("https_proxy", "http://p:1"), ("NO_PROXY", "corp")],
                &[
                    ("ANTHROPIC_BASE_URL", "http://127.0.0.1:7"),
                    ("NO_PROXY", "corp,127.0.0.1"),
                    ("no_proxy", "corp,127.0.0.1"),
                ],
            ),
            (
                &[("HTTP_PROXY", "http://p:1"), ("no_proxy", "corp")],
                &[
                    ("ANTHROPIC_BASE_URL", "http://127.0.0.1:7"),
                    ("NO_PROXY", "corp,127.0.0.1"),
                    ("no_proxy", "corp,127.0.0.1"),
                ],
            ),
            (
                &[
                    ("HTTP_PROXY", "http://p:1"),
                    ("NO_PROXY", "upper"),
                    ("no_proxy", "lower"),
                ],
                &[
                    ("ANTHROPIC_BASE_URL", "http://127.0.0.1:7"),
                    ("NO_PROXY", "upper,127.0.0.1"),
                    ("no_proxy", "lower,127.0.0.1"),
                ],
            ),
            (
                &[("all_proxy", "http://p:1"), ("NO_PROXY", "*")],
                &[
                    ("ANTHROPIC_BASE_URL", "http://127.0.0.1:7"),
                    ("NO_PROXY", "*"),
                    ("no_proxy", "*"),
                ],
            ),
            (
                &[("no_proxy", "corp")],
                &[("ANTHROPIC_BASE_URL", "http://127.0.0.1:7")],
            ),
        ];
        for (set, expected) in rows {
            let told = variables(&environment(set), ([127, 0, 0, 1], 7).into());
            assert_eq!(told, environment(expected), "{set:?}");
        }
    }
}
