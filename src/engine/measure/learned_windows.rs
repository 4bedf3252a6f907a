//! What refusals and answers teach about the size of a window, and which window
//! counts.
//!
//! Upstream says the size of a window only when it refuses a prompt, and what it
//! says may hold for one account and not for the next, or not be true at all. So
//! a claim belongs to one [`WindowKey`]: upstream, model, account, and whether
//! the long-context beta was asked for. It never outweighs an answer:
//!
//! | the claim | counts |
//! |---|---|
//! | is smaller than a prompt that was answered | no |
//! | is less than a quarter of the table's window | once a view under it was answered after a refusal |
//! | is anything else | at once |
//! | is older than it is trusted | no: the next large prompt is the probe |
//!
//! A probe that is answered removes the claim; one that is refused renews it, for
//! twice as long if a view under it had been answered. A claim that was never
//! confirmed starts from the beginning.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Windows that upstream can be believed about.
const BELIEVABLE: std::ops::RangeInclusive<u64> = 1_000..=100_000_000;
/// A claim below this part of the table's window must be confirmed first.
const DOUBTFUL: u64 = 4;
/// How long a new claim is trusted, in milliseconds.
const TRUSTED: i64 = 60 * 60 * 1_000;
/// How often that time doubles at most: up to five days and eight hours.
const DOUBLINGS: u32 = 7;
/// The largest answered prompt is stored again when it has grown by this part.
const GROWTH: u64 = 64;
/// The most keys that are remembered; beyond it the least recently used goes.
const KEYS: usize = 10_000;

/// Whose window it is.
#[derive(Debug, Clone, Copy)]
pub enum Account<'a> {
    /// A tenant that is known by name.
    Tenant(&'a str),
    /// Whoever holds the credential with this digest.
    Credential([u8; 32]),
}

/// What a window is learned for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WindowKey([u8; 16]);

impl WindowKey {
    /// The key of an upstream, a model and an account. `long` if a long context
    /// was asked for by a beta.
    pub fn new(upstream: &str, model: &str, account: Account<'_>, long: bool) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("longhaul learned window 1");
        let mut add = |part: &[u8]| {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        };
        add(upstream.as_bytes());
        add(model.as_bytes());
        match account {
            Account::Tenant(tenant) => {
                add(b"tenant");
                add(tenant.as_bytes());
            }
            Account::Credential(digest) => {
                add(b"credential");
                add(&digest);
            }
        }
        add(&[u8::from(long)]);
        let mut key = [0; 16];
        hasher.finalize_xof().fill(&mut key);
        Self(key)
    }

    /// From the text that it is written as.
    pub fn from_text(text: &str) -> Option<Self> {
        let number = u128::from_str_radix(text, 16).ok()?;
        let key = Self(number.to_be_bytes());
        (key.to_string() == text).then_some(key)
    }
}

impl fmt::Display for WindowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for WindowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WindowKey({self})")
    }
}

/// What is known of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LearnedWindow {
    /// Tokens of the largest prompt that was answered.
    answered: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    claim: Option<Claim>,
}

/// What a refusal said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Claim {
    window: u64,
    /// A view under it was answered after a refusal.
    confirmed: bool,
    /// How often a probe was refused.
    renewed: u32,
    /// When it was made or renewed, in milliseconds since 1970.
    at: i64,
}

impl Claim {
    fn has_lapsed(&self, now: i64) -> bool {
        let trusted = TRUSTED << self.renewed.min(DOUBLINGS);
        // A clock that was set back must not keep it for ever.
        now.abs_diff(self.at) >= trusted.unsigned_abs()
    }
}

impl LearnedWindow {
    /// From the stored form.
    pub fn from_text(text: &str) -> Option<Self> {
        let found: Self = serde_json::from_str(text).ok()?;
        let claim = found
            .claim
            .filter(|claim| BELIEVABLE.contains(&claim.window));
        Some(Self { claim, ..found })
    }

    /// The stored form.
    pub fn to_text(self) -> String {
        serde_json::to_string(&self).unwrap_or_default()
    }

    /// The window that counts, given the one in the table.
    pub fn window(&self, table: u64, now: i64) -> u64 {
        let counts = |claim: &Claim| {
            let plausible = claim.window >= table / DOUBTFUL || claim.confirmed;
            plausible && claim.window >= self.answered && !claim.has_lapsed(now)
        };
        self.claim
            .filter(counts)
            .map_or(table, |claim| claim.window)
    }

    /// Whether a prompt of this size was answered before.
    pub fn was_answered_at(&self, tokens: u64) -> bool {
        tokens > 0 && self.answered >= tokens
    }

    /// Upstream refused a prompt and said that this is the window. Whether that
    /// changes anything.
    pub fn refused(&mut self, window: u64, now: i64) -> bool {
        if !BELIEVABLE.contains(&window) {
            return false;
        }
        let new = Claim {
            window,
            confirmed: false,
            renewed: 0,
            at: now,
        };
        let claim = match self.claim {
            None => new,
            Some(held) if held.window == window && !held.has_lapsed(now) => held,
            Some(held) if held.window == window && held.confirmed => Claim {
                renewed: held.renewed.saturating_add(1),
                at: now,
                ..held
            },
            // What was answered under a smaller window is under this one too.
            Some(held) => Claim {
                confirmed: held.confirmed && held.window < window && !held.has_lapsed(now),
                ..new
            },
        };
        self.claim.replace(claim) != Some(claim)
    }

    /// A prompt of this size was answered, after refusals that claimed this
    /// window, if there were any. Whether that changes the claim.
    pub fn answered(&mut self, tokens: u64, claimed: Option<u64>) -> bool {
        self.answered = self.answered.max(tokens);
        let before = self.claim;
        self.claim = before.filter(|claim| claim.window >= tokens);
        if let Some(claim) = &mut self.claim {
            claim.confirmed |= claimed == Some(claim.window);
        }
        self.claim != before
    }

    /// Takes in what another process knows.
    pub fn merge(&mut self, other: &Self) {
        self.answered = self.answered.max(other.answered);
        self.claim = match (self.claim, other.claim) {
            (Some(own), Some(theirs)) if own.window == theirs.window => Some(Claim {
                confirmed: own.confirmed || theirs.confirmed,
                renewed: own.renewed.max(theirs.renewed),
                at: own.at.max(theirs.at),
                ..own
            }),
            (Some(own), Some(theirs)) if theirs.at > own.at => Some(theirs),
            (own, theirs) => own.or(theirs),
        };
    }
}

/// Everything that was learned about windows, by key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LearnedWindows {
    windows: BTreeMap<WindowKey, Entry>,
    uses: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Entry {
    known: LearnedWindow,
    /// The largest answered prompt, as it was last stored.
    stored: u64,
    used: u64,
}

impl LearnedWindows {
    /// What is known of a key.
    pub fn get(&self, key: &WindowKey) -> LearnedWindow {
        self.windows
            .get(key)
            .map_or_else(LearnedWindow::default, |entry| entry.known)
    }

    fn entry(&mut self, key: WindowKey) -> &mut Entry {
        self.uses += 1;
        let used = self.uses;
        if self.windows.len() >= KEYS && !self.windows.contains_key(&key) {
            let oldest = self.windows.iter().min_by_key(|(_, entry)| entry.used);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                self.windows.remove(&oldest);
            }
        }
        let entry = self.windows.entry(key).or_default();
        entry.used = used;
        entry
    }

    /// Takes in what was stored.
    pub fn merge(&mut self, key: WindowKey, stored: &str) {
        let Some(stored) = LearnedWindow::from_text(stored) else {
            return;
        };
        let entry = self.entry(key);
        entry.known.merge(&stored);
        entry.stored = entry.stored.max(stored.answered);
    }

    /// A refusal claimed a window; what is to be stored, if anything is.
    pub fn refused(&mut self, key: WindowKey, window: u64, now: i64) -> Option<String> {
        let entry = self.entry(key);
        let changed = entry.known.refused(window, now);
        changed.then(|| entry.mark_stored())
    }

    /// A prompt was answered, see [`LearnedWindow::answered`]; what is to be
    /// stored, if anything is.
    pub fn answered(
        &mut self,
        key: WindowKey,
        tokens: u64,
        claimed: Option<u64>,
    ) -> Option<String> {
        let entry = self.entry(key);
        let changed = entry.known.answered(tokens, claimed);
        let grown = entry.known.answered > entry.stored.saturating_add(entry.stored / GROWTH);
        (changed || grown).then(|| entry.mark_stored())
    }
}

impl Entry {
    fn mark_stored(&mut self) -> String {
        self.stored = self.known.answered;
        self.known.to_text()
    }
}

#[cfg(test)]
#[path = "learned_windows_tests.rs"]
mod tests;
