//! The `anthropic-version` and `anthropic-beta` headers.
//!
//! A version decides which fields exist; a beta unlocks fields. Both belong to
//! the body they came with: a proxy that forwards one without the other gets
//! the refusals below.

use http::HeaderMap;

use super::error::{ApiError, Checked};

/// `anthropic-version`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// `2023-01-01` or `2023-06-01`.
    Classic,
    /// `2026-10-21`: no sampling parameters, stricter blocks.
    October2026,
}

/// The betas that matter to the simulator.
pub mod beta {
    /// On-demand compaction.
    pub const COMPACT_ON_DEMAND: &str = "compact-2026-09-04";
    /// Threshold compaction.
    pub const COMPACT_THRESHOLD: &str = "compact-2026-01-12";
    /// `context_management` with the clear edits.
    pub const CONTEXT_MANAGEMENT: &str = "context-management-2025-06-27";
    /// `thread`.
    pub const THREADS: &str = "message-threads-2026-08-12";
    /// `thinking.block_binding` and `input_transformations`.
    pub const BINDING: &str = "thinking-binding-controls-2026-08-01";
    /// Subscription tokens.
    pub const OAUTH: &str = "oauth-2025-04-20";
    /// Thinking between tool calls in manual mode.
    pub const INTERLEAVED: &str = "interleaved-thinking-2025-05-14";
    /// Output cut at the window instead of a refusal, on older models.
    pub const WINDOW_EXCEEDED: &str = "model-context-window-exceeded-2025-08-26";
}

/// Betas known to the API.
const KNOWN: &[&str] = &[
    beta::COMPACT_ON_DEMAND,
    beta::COMPACT_THRESHOLD,
    beta::CONTEXT_MANAGEMENT,
    beta::THREADS,
    beta::BINDING,
    beta::OAUTH,
    beta::INTERLEAVED,
    beta::WINDOW_EXCEEDED,
    "advanced-tool-use-2025-11-20",
    "advisor-tool-2026-03-01",
    "afk-mode-2026-01-31",
    "auto-mode-classifier-2026-07-16",
    "cache-diagnosis-2026-04-07",
    "cache-keepalive-2026-09-03",
    "claude-code-20250219",
    "claude-code-side-query-2026-09-29",
    "code-execution-2025-08-25",
    "computer-use-2025-11-24",
    "context-1m-2025-08-07",
    "context-hint-2026-04-09",
    "dangerous-tool-use-2026-09-03",
    "effort-2025-11-24",
    "extended-cache-ttl-2025-04-11",
    "fallback-credit-2026-06-01",
    "fast-mode-2026-02-01",
    "files-api-2025-04-14",
    "fine-grained-tool-streaming-2025-05-14",
    "inline-tools-2026-09-15",
    "mcp-client-2025-04-04",
    "mcp-client-2025-11-20",
    "message-batches-2024-09-24",
    "mid-conversation-output-config-2026-07-01",
    "mid-conversation-system-clear-at-2026-08-21",
    "mid-conversation-tool-changes-2026-07-01",
    "output-128k-2025-02-19",
    "per-turn-control-2026-07-01",
    "program-use-case-ids-2026-09-17",
    "prompt-caching-2024-07-31",
    "prompt-caching-evict-2026-05-12",
    "prompt-caching-scope-2026-01-05",
    "redact-thinking-2026-02-12",
    "server-side-fallback-2026-06-01",
    "server-side-fallback-2026-07-01",
    "skills-2025-10-02",
    "structured-outputs-2025-11-13",
    "structured-outputs-2025-12-15",
    "task-budgets-2026-03-13",
    "thinking-display-updates-2026-08-18",
    "thinking-resumption-2026-07-17",
    "thinking-token-count-2026-05-13",
    "timing-2026-09-09",
    "token-counting-2024-11-01",
    "token-efficient-tools-2025-02-19",
    "tool-provenance-2026-10-26",
    "tool-search-tool-2025-10-19",
    "web-fetch-2025-09-10",
    "web-search-2025-03-05",
];

/// The betas of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Betas(Vec<String>);

impl Betas {
    /// All names in the header, known or not.
    pub fn of(headers: &HeaderMap) -> Self {
        let values = headers
            .get_all("anthropic-beta")
            .iter()
            .filter_map(|v| v.to_str().ok());
        let names = values.flat_map(|value| value.split(',')).map(str::trim);
        Self(
            names
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect(),
        )
    }

    /// A set of betas, for tests.
    pub fn new(names: &[&str]) -> Self {
        Self(names.iter().map(|name| (*name).to_owned()).collect())
    }

    /// Whether a beta is asked for.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|beta| beta == name)
    }

    /// Whether any of several betas is asked for.
    pub fn any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.has(name))
    }

    /// Refuses names the API does not know; `refused` are known ones that this
    /// upstream does not support.
    pub fn check(&self, refused: &[&str]) -> Checked {
        let known = |name: &str| KNOWN.contains(&name) && !refused.contains(&name);
        let unknown: Vec<_> = self
            .0
            .iter()
            .filter(|name| !known(name))
            .map(|name| format!("`{name}`"))
            .collect();
        if unknown.is_empty() {
            return Ok(());
        }
        Err(ApiError::invalid(format!(
            "Unexpected value(s) {} for the `anthropic-beta` header. Please consult our \
             documentation at platform.claude.com/docs or try again without the header.",
            unknown.join(", ")
        )))
    }
}

impl Version {
    /// The version of a request.
    pub fn of(headers: &HeaderMap) -> Checked<Self> {
        match headers
            .get("anthropic-version")
            .map(http::HeaderValue::as_bytes)
        {
            Some(b"2023-01-01" | b"2023-06-01") => Ok(Self::Classic),
            Some(b"2026-10-21") => Ok(Self::October2026),
            Some(other) => Err(ApiError::invalid(format!(
                "anthropic-version: \"{}\" is not a valid version",
                String::from_utf8_lossy(other)
            ))),
            None => Err(ApiError::invalid("anthropic-version: header is required")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())])
    }

    /// Fact: an unknown beta is refused with the name in the text.
    #[test]
    fn an_unknown_beta_is_named() {
        let betas = Betas::of(&headers("anthropic-beta", "oauth-2025-04-20, nonsense-1"));
        assert!(betas.has(beta::OAUTH));
        assert_eq!(
            betas.check(&[]).unwrap_err().message,
            "Unexpected value(s) `nonsense-1` for the `anthropic-beta` header. Please consult our \
             documentation at platform.claude.com/docs or try again without the header."
        );
    }

    /// Fact: an upstream without a feature does not know its beta.
    #[test]
    fn a_refused_beta_is_unknown() {
        let betas = Betas::new(&[beta::COMPACT_ON_DEMAND]);
        assert!(betas.check(&[]).is_ok());
        assert!(betas.check(&[beta::COMPACT_ON_DEMAND]).is_err());
    }

    /// Fact: three versions exist; the header is required.
    #[test]
    fn the_version_is_required_and_known() {
        let version = |value| Version::of(&headers("anthropic-version", value));
        assert_eq!(version("2023-06-01").unwrap(), Version::Classic);
        assert_eq!(version("2023-01-01").unwrap(), Version::Classic);
        assert_eq!(version("2026-10-21").unwrap(), Version::October2026);
        assert!(version("2025-01-01").is_err());
        assert_eq!(
            Version::of(&HeaderMap::new()).unwrap_err().message,
            "anthropic-version: header is required"
        );
    }
}
