//! How large things have recently been: replies, and what each tool returns.
//!
//! A projection goes by a high quantile of these, not by the limit a request
//! names, which may be a hundred times what is ever written. Few are kept,
//! because they are stored with every mark.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How many sizes are kept of each.
const KEPT: usize = 8;
/// How many tools are told apart.
const TOOLS: usize = 12;
/// The longest name of a tool that is kept.
const NAME: usize = 64;

/// Recent sizes in tokens, the newest last.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sizes(Vec<u32>);

impl Sizes {
    /// Adds one, and forgets the oldest.
    pub fn push(&mut self, tokens: u64) {
        if self.0.len() >= KEPT {
            self.0.remove(0);
        }
        self.0.push(u32::try_from(tokens).unwrap_or(u32::MAX));
    }

    /// What nine in ten do not exceed.
    pub fn high(&self) -> u64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let at = (sorted.len() * 9).div_ceil(10).saturating_sub(1);
        sorted.get(at).copied().unwrap_or(0).into()
    }
}

/// What a lineage's replies and tools have recently come to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Recent {
    replies: Sizes,
    tools: BTreeMap<String, Sizes>,
    /// The tools that the last reply called.
    called: Vec<String>,
}

impl Recent {
    /// A reply of so many tokens came, and called these tools.
    pub fn replied(&mut self, tokens: u64, called: impl IntoIterator<Item = String>) {
        self.replies.push(tokens);
        self.called = called.into_iter().take(TOOLS).map(shortened).collect();
    }

    /// A tool returned so many tokens.
    pub fn returned(&mut self, tool: &str, tokens: u64) {
        let tool = shortened(tool.to_owned());
        if !self.tools.contains_key(&tool) && self.tools.len() >= TOOLS {
            return;
        }
        self.tools.entry(tool).or_default().push(tokens);
    }

    /// What the next reply, and the results after it, should come to at most:
    /// as much as recent replies, and as recent results of the tools that are
    /// in use.
    pub fn expected(&self) -> u64 {
        let results = |tool: &String| self.tools.get(tool).map_or(0, Sizes::high);
        let results: u64 = self.called.iter().map(results).sum();
        self.replies.high().saturating_add(results)
    }
}

fn shortened(name: String) -> String {
    if name.chars().count() <= NAME {
        return name;
    }
    name.chars().take(NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_high_quantile_is_not_the_one_giant_among_many() {
        let mut sizes = Sizes::default();
        assert_eq!(sizes.high(), 0);
        for tokens in [100, 100, 100, 100] {
            sizes.push(tokens);
        }
        sizes.push(90_000);
        assert_eq!(sizes.high(), 90_000, "with few it counts");
        for tokens in 0..KEPT {
            sizes.push(tokens as u64);
        }
        assert_eq!(sizes.high(), KEPT as u64 - 1, "and then it is forgotten");
    }

    #[test]
    fn the_tools_in_use_are_expected_to_return_what_they_did() {
        let mut recent = Recent::default();
        recent.returned("Read", 5_000);
        recent.returned("Bash", 300);
        recent.replied(200, ["Bash".to_owned()]);
        assert_eq!(recent.expected(), 500);
        recent.replied(100, ["Read".to_owned(), "Read".to_owned()]);
        assert_eq!(recent.expected(), 10_200);
        recent.replied(100, ["Unknown".to_owned()]);
        assert_eq!(recent.expected(), 200);
    }

    #[test]
    fn neither_names_nor_tools_grow_without_bound() {
        let mut recent = Recent::default();
        for number in 0..1000 {
            recent.returned(&format!("{number}{}", "x".repeat(500)), 1);
        }
        recent.replied(1, (0..1000).map(|number| number.to_string()));
        assert!(serde_json::to_vec(&recent).unwrap().len() < 2_500);
    }
}
