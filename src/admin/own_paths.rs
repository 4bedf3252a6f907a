//! Which paths mean this process, however they are written.
//!
//! A request for the admin surface may carry the admin token. If its path is
//! almost one of ours (a slash too many, another case, an escape), no route takes
//! it, and forwarding it would give the token to upstream. So every spelling that
//! some server might read as one of our paths counts as ours and is answered
//! here.

/// The first segments of our own paths.
const OWN: [&str; 5] = ["longhaul", "metrics", "mcp", "healthz", "readyz"];
/// How often escapes are undone: an escape may itself be escaped.
const ROUNDS: usize = 4;

/// Whether a path means one of ours.
pub fn is_own(path: &str) -> bool {
    let mut bytes = path.as_bytes().to_vec();
    let mut found = names_own(&bytes);
    for _ in 0..ROUNDS {
        let plain = unescape(&bytes);
        if found || plain == bytes {
            break;
        }
        bytes = plain;
        found = names_own(&bytes);
    }
    found
}

/// Whether the first segment is one of ours, whether or not somebody skips empty
/// segments and follows dots.
fn names_own(path: &[u8]) -> bool {
    let mut depth = 0_usize;
    for segment in path.split(|byte| matches!(byte, b'/' | b'\\')) {
        // What stands behind a semicolon, a question mark or a hash is no name.
        let name = segment
            .split(|byte| matches!(byte, b';' | b'?' | b'#'))
            .next();
        let name = String::from_utf8_lossy(name.unwrap_or_default()).to_lowercase();
        let name = name.trim_matches(|c: char| c.is_whitespace() || c.is_control());
        match name.trim_end_matches('.') {
            "" if name == ".." => depth = depth.saturating_sub(1),
            "" => {}
            name if depth == 0 && OWN.contains(&name) => return true,
            _ => depth += 1,
        }
    }
    false
}

/// Undoes percent escapes; what is none stays.
fn unescape(path: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, behind)) = rest.split_first() {
        let escaped = match (byte, behind) {
            (b'%', [high, low, ..]) => digit(*high).zip(digit(*low)),
            _ => None,
        };
        if let Some((high, low)) = escaped {
            plain.push(high * 16 + low);
            rest = behind.get(2..).unwrap_or_default();
        } else {
            plain.push(byte);
            rest = behind;
        }
    }
    plain
}

fn digit(byte: u8) -> Option<u8> {
    let digit = char::from(byte).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_of_our_paths_are_ours() {
        for path in [
            "/longhaul",
            "/longhaul/sessions",
            "//longhaul/sessions",
            "/Longhaul/sessions",
            "/LONGHAUL",
            "/longhaul%2fsessions",
            "/longhaul%2Fsessions",
            "/longhaul%252fsessions",
            "/%6conghaul/sessions",
            "/%256conghaul/sessions",
            "%2flonghaul/",
            "/longhaul\\sessions",
            "/longhaul;x=1/sessions",
            "/longhaul%3fa",
            "/longhaul%20/sessions",
            "/longhaul%00",
            "/longhaul./sessions",
            "/./longhaul/",
            "/v1/../longhaul/sessions",
            "/v1/%2e%2e/longhaul/sessions",
            "/../longhaul",
            "/longhaul/../v1/messages",
            "/mcp/",
            "/mcp//",
            "/MCP",
            "/mcp/x",
            "/metrics/",
            "/Metrics",
            "/metrics%2f",
            "/healthz/",
            "/readyz/",
        ] {
            assert!(is_own(path), "{path}");
        }
    }

    #[test]
    fn what_upstream_may_have_is_not_ours() {
        for path in [
            "/",
            "",
            "*",
            "/v1/messages",
            "/v1/mcp",
            "/v1/longhaul/x",
            "/mcp-registry/v0/servers",
            "/mcp_servers",
            "/metricsx",
            "/api/metrics",
            "/v1/files/%zz",
            "/v1/files/100%",
        ] {
            assert!(!is_own(path), "{path}");
        }
    }
}
