//! From a body to what is known of its conversation, without asking anybody.
//!
//! One scan and one quick hash over the whole body; the dear hash only over what
//! this process has not seen before. All of it is computing, so it can be done
//! away from the threads that carry streams.

use std::sync::Arc;

use bytes::Bytes;

use super::known::{Known, Place, Remembered};
use crate::engine::bound;
use crate::engine::chain::{self, chain_from};
use crate::engine::conversation::Conversation;
use crate::engine::ids::ChainHash;
use crate::engine::measure::WindowKey;
use crate::engine::request::{Facts, Treatment};
use crate::engine::swift::{Key, Swift, swift};
use crate::wire::body::Body;
use crate::wire::scan::Unclear;

/// A request whose conversation has been looked at.
#[derive(Debug)]
pub struct Recognised {
    /// The client's bytes.
    pub bytes: Bytes,
    /// Where things stand in them.
    pub body: Arc<Body>,
    /// What the request says.
    pub facts: Facts,
    /// How it may be treated.
    pub treatment: Treatment,
    /// Whose it is.
    pub tenant: Arc<str>,
    /// What the size of its window is learned for.
    pub window_key: WindowKey,
    /// One for each message.
    pub swifts: Vec<Swift>,
    /// The newest place this process knows.
    pub known: Option<(usize, Place)>,
    /// The newest mark this process remembers.
    pub remembered: Option<Arc<Remembered>>,
    from: usize,
    hashes: Vec<ChainHash>,
}

/// Why a request is not looked at further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// Its body is not understood.
    #[error(transparent)]
    Unclear(#[from] Unclear),
    /// It names no model.
    #[error("no model")]
    NoModel,
}

impl Recognised {
    /// Looks at a request.
    pub fn new(
        bytes: Bytes,
        tenant: Arc<str>,
        counts: bool,
        key: &Key,
        known: &Known,
    ) -> Result<Self, Unknown> {
        let body = Body::split(&bytes)?;
        let facts = Facts::read(&bytes, &body).ok_or(Unknown::NoModel)?;
        let treatment = Treatment::of(&facts, &body, counts);
        let mut recognised = Self {
            bytes,
            body: Arc::new(body),
            facts,
            treatment,
            tenant,
            window_key: WindowKey::default(),
            swifts: Vec::new(),
            known: None,
            remembered: None,
            from: 0,
            hashes: Vec::new(),
        };
        if treatment != Treatment::Untouched {
            recognised.identify(key, known);
        }
        Ok(recognised)
    }

    fn identify(&mut self, key: &Key, known: &Known) {
        self.swifts = swift(key, &self.tenant, &self.bytes, &self.body);
        (self.known, self.remembered) = known.find(&self.swifts);
        match &self.known {
            Some((at, place)) => {
                self.from = *at;
                let rest = chain_from(place.chain, &self.bytes, &self.body, at + 1);
                self.hashes = [place.chain].into_iter().chain(rest).collect();
            }
            None => self.hashes = self.whole_chain(),
        }
        // Only where a request ends will anybody look for it again.
        if let (Some(swift), Some(hash)) = (self.swifts.last(), self.hashes.last()) {
            known.learn(*swift, *hash);
        }
    }

    /// The chain from the very start.
    pub fn whole_chain(&self) -> Vec<ChainHash> {
        let start = chain::start(&self.tenant);
        chain_from(start, &self.bytes, &self.body, 0)
    }

    /// Takes the chain from the very start.
    pub fn complete(&mut self, hashes: Vec<ChainHash>) {
        self.hashes = hashes;
        self.from = 0;
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.body.messages().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The hashes that are computed, and the message of the first.
    pub fn hashes(&self) -> (usize, &[ChainHash]) {
        (self.from, &self.hashes)
    }

    /// The hash of the whole history.
    pub fn last(&self) -> Option<ChainHash> {
        self.hashes.last().copied()
    }

    /// What references are derived from: the whole history, or at least whose it
    /// is.
    pub fn seed(&self) -> ChainHash {
        self.last().unwrap_or_else(|| chain::start(&self.tenant))
    }

    /// The hash up to a message, if it is computed.
    pub fn hash_at(&self, at: usize) -> Option<ChainHash> {
        self.hashes.get(at.checked_sub(self.from)?).copied()
    }

    /// Which message has this hash.
    pub fn position(&self, hash: ChainHash) -> Option<usize> {
        let at = self.hashes.iter().rposition(|known| *known == hash)?;
        Some(self.from + at)
    }

    /// The message before the newest reply, and the place of what was sent then
    /// if this very reply answered it: see [`bound`].
    pub fn bound(&self) -> Option<(usize, ChainHash)> {
        let (at, call) = bound::newest(&self.conversation())?;
        Some((at, bound::place(self.hash_at(at)?, &call)))
    }

    /// The history, to be asked about.
    pub fn conversation(&self) -> Conversation<'_> {
        Conversation::new(&self.bytes, &self.body)
    }
}
