//! Which credentials upstream has accepted lately.
//!
//! A credential is known by a digest of it and of the upstream it was sent to,
//! never by itself. That it was accepted is written down with what was learned,
//! so that it survives a restart and replicas share it; a replica that has not
//! heard of a credential asks the store with each request until it has.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, StatusCode};

use super::Views;
use super::learned::Note;
use super::prepare::Prepared;
use crate::engine::credential::{Proof, is_due_for_renewal, is_recent};
use crate::store::Moment;

/// The most credentials that are remembered.
const CREDENTIALS: usize = 100_000;
/// The start of a note's key.
const KEY: &str = "accepted:";
/// The headers that make up a credential.
const HEADERS: [&str; 3] = ["authorization", "x-api-key", "anthropic-workspace-id"];

/// The digest of a credential, as text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CredentialDigest(String);

/// The credential of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Its digest; none: the request is this process's own.
    pub digest: Option<CredentialDigest>,
    /// Whether upstream has accepted it lately.
    pub is_accepted: bool,
    /// What the tenant is noted under, where credentials decide on it.
    pub tenant: Option<String>,
}

impl Credential {
    /// That of a request which needs nobody's consent.
    pub fn own() -> Self {
        Self {
            digest: None,
            is_accepted: true,
            tenant: None,
        }
    }
}

/// When a credential was accepted last, and when that was written down.
#[derive(Debug, Clone, Copy)]
struct Acceptance {
    at: Moment,
    noted: Moment,
}

/// The credentials that upstream has accepted.
#[derive(Default)]
pub struct Credentials {
    held: Mutex<HashMap<String, Acceptance>>,
    /// When upstream has rejected others: what was written down before that, and
    /// may still be read, does not count.
    rejected: Mutex<HashMap<String, Moment>>,
}

impl CredentialDigest {
    /// The digest of what these headers say, for this upstream. Sending none at
    /// all is a credential like any other.
    pub fn from_headers(upstream: &str, headers: &HeaderMap) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("longhaul accepted credential 1");
        let mut add = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        add(upstream.as_bytes());
        for name in HEADERS {
            let values = headers.get_all(name);
            add(&(values.iter().count() as u64).to_le_bytes());
            for value in values {
                add(value.as_bytes());
            }
        }
        let hash = hasher.finalize().to_hex();
        Self(hash.as_str().chars().take(32).collect())
    }

    /// The key of its note.
    fn key(&self) -> String {
        format!("{KEY}{}", self.0)
    }
}

impl Credentials {
    fn held(&self) -> MutexGuard<'_, HashMap<String, Acceptance>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rejected(&self) -> MutexGuard<'_, HashMap<String, Moment>> {
        self.rejected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes back what was written down. What is too old is left out.
    pub fn restore(&self, notes: &[Note], now: Moment) {
        for (key, value) in notes {
            let Some(digest) = key.strip_prefix(KEY) else {
                continue;
            };
            let Some(at) = value.parse().ok().filter(|at| is_recent(*at, now.0)) else {
                continue;
            };
            let at = Moment(at);
            let rejected = self.rejected().get(digest).copied();
            if rejected.is_some_and(|rejected| at <= rejected) {
                continue;
            }
            self.insert(digest, Acceptance { at, noted: at }, now);
        }
    }

    fn insert(&self, digest: &str, acceptance: Acceptance, now: Moment) {
        let mut held = self.held();
        if held.len() >= CREDENTIALS && !held.contains_key(digest) {
            held.retain(|_, held| is_recent(held.at.0, now.0));
            // Whoever goes is accepted again by the next answer.
            let longest_ago = held.iter().min_by_key(|(_, held)| held.at);
            let longest_ago = longest_ago.map(|(digest, _)| digest.clone());
            if let Some(digest) = longest_ago.filter(|_| held.len() >= CREDENTIALS) {
                held.remove(&digest);
            }
        }
        held.insert(digest.to_owned(), acceptance);
    }

    /// Whether a credential was accepted lately.
    pub fn is_accepted(&self, digest: &CredentialDigest, now: Moment) -> bool {
        let held = self.held();
        held.get(&digest.0)
            .is_some_and(|held| is_recent(held.at.0, now.0))
    }

    /// A credential was accepted; what is to be written down, if anything.
    pub fn accept(&self, digest: &CredentialDigest, now: Moment) -> Option<Note> {
        let before = self.held().get(&digest.0).map(|held| held.noted);
        let is_due = before.is_none_or(|noted| is_due_for_renewal(noted.0, now.0));
        let noted = before.filter(|_| !is_due).unwrap_or(now);
        self.rejected().remove(&digest.0);
        self.insert(&digest.0, Acceptance { at: now, noted }, now);
        is_due.then(|| (digest.key(), now.0.to_string()))
    }

    /// A credential was rejected; what is to be written down, if it was accepted
    /// before.
    pub fn reject(&self, digest: &CredentialDigest, now: Moment) -> Option<Note> {
        self.held().remove(&digest.0)?;
        let mut rejected = self.rejected();
        if rejected.len() >= CREDENTIALS {
            let oldest = rejected.iter().min_by_key(|(_, at)| **at);
            let oldest = oldest.map(|(digest, _)| digest.clone());
            oldest.and_then(|digest| rejected.remove(&digest));
        }
        rejected.insert(digest.0.clone(), now);
        Some((digest.key(), String::new()))
    }
}

impl Views {
    /// The credential of a request with these headers.
    pub async fn credential(&self, headers: &HeaderMap) -> Credential {
        let upstream = self.config.upstream.to_string();
        let digest = CredentialDigest::from_headers(&upstream, headers);
        let mut is_accepted = self.credentials.is_accepted(&digest, self.now());
        if !is_accepted {
            // Another process that shares the store may have seen it accepted.
            let keys = [digest.key()];
            let notes = self.timed("learned", self.store.learned_of(&keys)).await;
            self.credentials
                .restore(&notes.unwrap_or_default(), self.now());
            is_accepted = self.credentials.is_accepted(&digest, self.now());
        }
        Credential {
            digest: Some(digest),
            is_accepted,
            tenant: self.tenants.note_key(headers),
        }
    }

    /// Upstream has answered a conversation: what that proves of its credential.
    /// With the first proof everything is recorded that had to wait for it.
    pub async fn answered(&self, prepared: &mut Prepared, status: StatusCode) {
        let Some(digest) = prepared.credential.digest.clone() else {
            return;
        };
        // Counting may be done by whoever stands before upstream.
        if prepared.counts {
            return;
        }
        match Proof::from_status(status.as_u16()) {
            Proof::Accepted => {
                if let Some(note) = self.credentials.accept(&digest, self.now()) {
                    let tenant = prepared.credential.tenant.as_deref();
                    self.note(tenant.and_then(|key| self.tenants.note(key)));
                    self.note([note]);
                }
                if !std::mem::replace(&mut prepared.credential.is_accepted, true) {
                    self.record_deferred(prepared).await;
                    if let Some(window) = prepared.claimed {
                        self.learn_claim(prepared, window).await;
                    }
                }
            }
            Proof::Rejected => self.note(self.credentials.reject(&digest, self.now())),
            Proof::None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 60 * 60 * 1_000;

    fn digest(rows: &[(&'static str, &str)]) -> CredentialDigest {
        let mut headers = HeaderMap::new();
        for (name, value) in rows {
            headers.append(*name, value.parse().unwrap());
        }
        CredentialDigest::from_headers("https://api.example", &headers)
    }

    #[test]
    fn credentials_are_told_apart_and_not_shown() {
        let all = [
            digest(&[]),
            digest(&[("x-api-key", "secret")]),
            digest(&[("authorization", "secret")]),
            digest(&[("x-api-key", "secret"), ("x-api-key", "")]),
            CredentialDigest::from_headers("https://other.example", &HeaderMap::new()),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!format!("{one:?}").contains("secret"));
            assert!(all[..at].iter().all(|other| other != one), "{at}");
        }
        let others = [("x-api-key", "secret"), ("user-agent", "x")];
        assert_eq!(digest(&others), all[1], "only the credential counts");
    }

    #[test]
    fn an_acceptance_survives_a_restart_and_expires() {
        let (credentials, key) = (Credentials::default(), digest(&[("x-api-key", "a")]));
        let now = Moment(HOUR);
        assert!(!credentials.is_accepted(&key, now));
        let note = credentials.accept(&key, now).unwrap();
        assert_eq!(credentials.accept(&key, now), None, "written once an hour");
        assert!(credentials.is_accepted(&key, now));
        assert!(credentials.accept(&key, Moment(2 * HOUR)).is_some());
        let restored = Credentials::default();
        restored.restore(std::slice::from_ref(&note), now);
        assert!(restored.is_accepted(&key, Moment(now.0 + 23 * HOUR)));
        assert!(!restored.is_accepted(&key, Moment(now.0 + 24 * HOUR)));
        let late = Credentials::default();
        late.restore(&[note], Moment(now.0 + 24 * HOUR));
        assert!(!late.is_accepted(&key, Moment(now.0 + 24 * HOUR)));
    }

    #[test]
    fn a_rejected_credential_is_forgotten_everywhere() {
        let (credentials, key) = (Credentials::default(), digest(&[]));
        assert_eq!(credentials.reject(&key, Moment(4)), None);
        let accepted = credentials.accept(&key, Moment(5)).unwrap();
        let rejected = credentials.reject(&key, Moment(6)).unwrap();
        assert_eq!(accepted.0, rejected.0, "one note takes the other's place");
        assert!(!credentials.is_accepted(&key, Moment(6)));
        credentials.restore(std::slice::from_ref(&accepted), Moment(6));
        assert!(
            !credentials.is_accepted(&key, Moment(6)),
            "it was not written over yet"
        );
        credentials.restore(&[(accepted.0, "7".to_owned())], Moment(7));
        assert!(
            credentials.is_accepted(&key, Moment(7)),
            "another replica has seen it accepted since"
        );
        let restored = Credentials::default();
        restored.restore(&[rejected], Moment(5));
        assert!(!restored.is_accepted(&key, Moment(5)));
    }
}
