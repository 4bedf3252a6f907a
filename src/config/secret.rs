//! Hiding credentials in what is printed.
//!
//! Anything the configuration shows, in a mistake or in `check`, goes through
//! here first. In doubt more is hidden: an unescaped `/` or `#` in a password
//! must not cut the masking short, and neither must an address that is mistyped.

const MASK: &str = "***";
/// Parameters of a URL whose values say nothing secret; all others may.
const HARMLESS: [&str; 7] = [
    "application_name",
    "connect_timeout",
    "dbname",
    "host",
    "port",
    "sslmode",
    "user",
];

/// The text with the passwords of any URL in it replaced by `***`.
pub(super) fn mask(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return mask_mistyped(text);
    };
    let shown = match rest.rsplit_once('@') {
        Some((credentials, place)) => {
            let user = credentials.split_once(':').map(|(user, _)| user);
            match user {
                Some(user) => format!("{user}:{MASK}@{}", mask_parameters(place)),
                None => format!("{MASK}@{}", mask_parameters(place)),
            }
        }
        None => mask_parameters(rest),
    };
    format!("{scheme}://{shown}")
}

/// Whether this is meant to be the address of a database, well written or not.
pub(crate) fn names_database(text: &str) -> bool {
    // As a file has it, with its quotes.
    let text = text.trim_start_matches(['"', '\'', ' ']);
    let scheme = text.split(':').next().unwrap_or_default();
    let is = |name: &str| scheme.eq_ignore_ascii_case(name);
    text.contains(':') && (is("postgres") || is("postgresql"))
}

/// What is not a URL may have been meant as one.
fn mask_mistyped(text: &str) -> String {
    let (scheme, rest) = text.split_once(':').unwrap_or((text, ""));
    match rest.rsplit_once('@') {
        _ if names_database(text) => format!("{scheme}:{MASK}"),
        Some((_, place)) => format!("{scheme}:{MASK}@{}", mask_parameters(place)),
        None => text.to_owned(),
    }
}

fn mask_parameters(place: &str) -> String {
    let Some((path, query)) = place.split_once('?') else {
        return place.to_owned();
    };
    let parameters: Vec<String> = query
        .split('&')
        .map(|parameter| match parameter.split_once('=') {
            Some((name, _)) if !HARMLESS.contains(&name) => format!("{name}={MASK}"),
            _ => parameter.to_owned(),
        })
        .collect();
    format!("{path}?{}", parameters.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_urls_are_never_shown() {
        for (text, shown) in [
            ("postgres://host/db", "postgres://host/db"),
            ("postgres:/me:s3cret@host/db", "postgres:***"),
            ("\"postgres:/me:s3cret@host/db\"", "\"postgres:***"),
            ("Postgresql:me:s3cret", "Postgresql:***"),
            ("postgres:/h/db?password=s3cret", "postgres:***"),
            ("postgres//me:s3cret@host/db", "postgres//me:***@host/db"),
            ("me:s3cret@host/db", "me:***@host/db"),
            ("12:30", "12:30"),
            ("postgres://me:s3cret@host/db", "postgres://me:***@host/db"),
            (
                "postgres://me:s/3#c?r@t@host/db",
                "postgres://me:***@host/db",
            ),
            ("https://token@host/", "https://***@host/"),
            (
                "postgres://h/db?user=me&password=s3cret&sslmode=require",
                "postgres://h/db?user=me&password=***&sslmode=require",
            ),
            ("https://host/x?key=s3cret", "https://host/x?key=***"),
            ("plain text", "plain text"),
        ] {
            assert_eq!(mask(text), shown);
        }
    }
}
