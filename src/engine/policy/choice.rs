//! What can go from a view, and which of it should.
//!
//! A change writes everything behind it once more, so what matters is where the
//! first one stands: for every place at which a pass could begin, what may go
//! from there on is added up, best first, until the floor is reached, and a
//! place with a good gain is taken. What the agent has no more use for goes in
//! any case; of the rest, the oldest goes first.

use super::rates::{Cache, Pico, Rates, gain};

/// The most places at which a pass is tried to begin.
const PLACES: usize = 48;
/// By what part a gain may be smaller for the sake of what is newer.
const NEARLY: Pico = 5;

/// Something that can go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// The first message that changes.
    pub message: usize,
    /// Tokens that are saved.
    pub frees: u64,
    /// The agent has no more use for it: it was superseded, or stands elsewhere.
    pub useless: bool,
    /// It shows a file that the agent works on: it goes only where it must.
    pub in_hand: bool,
    /// Pictures in it.
    pub images: usize,
    /// How likely it is to be needed again.
    pub need: Need,
}

/// How likely a result is to be needed again. Measured on recordings: the chance
/// per request falls with age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Need {
    /// The chance at the age of one request, in thousandths.
    pub hazard: u32,
    /// Requests since it arrived.
    pub age: u32,
}

impl Need {
    /// The chance that it is needed with the next request, in millionths.
    pub fn now(self) -> u32 {
        self.hazard.saturating_mul(1_000) / self.age.max(1)
    }

    /// The chance that it is needed within this many further requests, in
    /// thousandths.
    pub fn within(self, requests: u32) -> u64 {
        let age = f64::from(self.age.max(1));
        let sum = ((age + f64::from(requests)) / age).ln() * f64::from(self.hazard);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small positive number"
        )]
        let thousandths = sum.min(1_000.0) as u64;
        thousandths
    }
}

/// All that can go, in order of place, and what stands behind each place.
#[derive(Debug, Clone, Default)]
pub struct Offer {
    /// What can go.
    pub items: Vec<Item>,
    /// Tokens of the view from each message on; one more than there are
    /// messages.
    pub behind: Vec<u64>,
    /// Tokens of thinking from each message on that a change there would cost.
    pub thinking: Vec<u64>,
    /// Pictures in the view.
    pub images: usize,
    /// A summary that lies ready.
    pub closing: Option<Closing>,
    /// What a summary could stand for that nobody has written yet, with what it
    /// would save.
    pub closable: Option<Closing>,
    /// Tokens of the segments, which are written again if the cache does not
    /// hold them.
    pub segments: u64,
    /// What the journal style could hide: the turns before those it keeps.
    pub old_turns: Option<Closing>,
    /// More than these, to come down to the floor.
    pub more: Option<Closing>,
    /// The messages up to which the cache can still be read, in order. A change
    /// goes on from the last of them before it.
    pub living: Vec<usize>,
}

/// A segment that would take the place of some messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Closing {
    /// The first message it stands for.
    pub from: usize,
    /// The message after the last.
    pub to: usize,
    /// Tokens that are saved.
    pub frees: u64,
    /// Nothing else may change with it.
    pub alone: bool,
    /// Tokens of the messages as the client has them, about.
    pub raw: u64,
}

/// What a gain is reckoned with.
#[derive(Debug, Clone, Copy)]
pub struct Worth {
    /// What tokens cost.
    pub rates: Rates,
    /// The state of the cache.
    pub cache: Cache,
    /// Further requests.
    pub horizon: u32,
}

/// What a choice must keep to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Tokens above the floor.
    pub excess: u64,
    /// The most that may be lost, should there be no further request.
    pub allowance: Option<Pico>,
    /// Tokens that must be freed.
    pub at_least: u64,
}

/// What was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chosen {
    /// Items, by index, in order of place.
    pub take: Vec<usize>,
    /// Tokens that go, thinking included.
    pub frees: u64,
    /// Tokens that are written once more.
    pub rewrites: u64,
    /// What it gains.
    pub gain: Pico,
    /// Tokens of thinking that are lost with it.
    pub thinking: u64,
}

impl Chosen {
    /// What is lost, should there be no request after this one.
    pub(super) fn loss(&self, worth: &Worth) -> Pico {
        let now = gain(&worth.rates, worth.cache, self.frees, self.rewrites, 1);
        -now
    }
}

impl Offer {
    /// Everything that can go.
    pub(super) fn all(&self, worth: &Worth) -> Chosen {
        self.chosen((0..self.items.len()).collect(), worth)
    }

    /// What comes of taking these, which are in order of place.
    fn chosen(&self, take: Vec<usize>, worth: &Worth) -> Chosen {
        let first = take.first().and_then(|index| self.items.get(*index));
        match first.map(|item| item.message) {
            Some(first) => self.changed(first, first, 0, take, worth),
            None => Chosen::default(),
        }
    }

    /// What comes of the summary that lies ready. Everything behind it is
    /// written once more, so what is of no use goes with it, and of the rest as
    /// much as it takes to free so much.
    pub(super) fn closing(&self, worth: &Worth, excess: u64) -> Option<Chosen> {
        let closing = self.closing?;
        Some(self.closed(closing, worth, excess))
    }

    /// The same of any segment.
    pub(super) fn closed(&self, closing: Closing, worth: &Worth, excess: u64) -> Chosen {
        let Closing {
            from,
            to,
            frees,
            alone,
            ..
        } = closing;
        if alone {
            // Nor does it spoil any thinking.
            return self.changed(from, usize::MAX, frees, Vec::new(), worth);
        }
        let take = self.until(to, excess.saturating_sub(frees));
        self.changed(from, to, frees, take, worth)
    }

    /// What comes of a change at a message, where so much is freed besides what
    /// is taken; the messages from `kept` on are still shown.
    fn changed(
        &self,
        first: usize,
        kept: usize,
        besides: u64,
        take: Vec<usize>,
        worth: &Worth,
    ) -> Chosen {
        let items = || take.iter().filter_map(|index| self.items.get(*index));
        let images: usize = items().map(|item| item.images).sum();
        // Whether a prompt holds pictures at all is part of what is cached.
        let before = self.living.iter().rev().find(|end| **end < first);
        let before = before.filter(|_| images == 0 || images < self.images);
        let from = before.map_or(0, |end| end + 1);
        let ours = if before.is_some() { 0 } else { self.segments };
        let at = |sums: &[u64], at: usize| sums.get(at).copied().unwrap_or(0);
        let thinking = at(&self.thinking, kept);
        let taken: u64 = items().map(|item| item.frees).sum();
        let frees = taken + besides + thinking;
        let rewrites = (at(&self.behind, from) + ours).saturating_sub(frees);
        // What the model thought must be thought again, or told: its worth is
        // put at the price of telling it.
        let lost = Pico::from(thinking) * Pico::from(worth.rates.input);
        Chosen {
            gain: gain(&worth.rates, worth.cache, frees, rewrites, worth.horizon) - lost,
            take,
            frees,
            rewrites,
            thinking,
        }
    }

    /// The items of messages from here on, the best first, until so much is
    /// freed. What is of no more use goes all; of the rest goes first what is least
    /// likely to be needed, and files in hand last.
    fn until(&self, from: usize, excess: u64) -> Vec<usize> {
        let begin = self.items.partition_point(|item| item.message < from);
        let mut items: Vec<(usize, &Item)> = self.items.iter().enumerate().skip(begin).collect();
        items.sort_by_key(|(index, item)| (!item.useless, item.in_hand, item.need.now(), *index));
        let mut freed = 0_u64;
        let mut taken = Vec::new();
        for (index, item) in items {
            let spared = item.in_hand && excess == u64::MAX;
            if !item.useless && (freed >= excess || spared) {
                continue;
            }
            freed = freed.saturating_add(item.frees);
            taken.push(index);
        }
        taken.sort_unstable();
        taken
    }

    /// What comes of clearing everything from a message on; `useless`: only what
    /// the agent has no more use for.
    pub(super) fn cleared_from(&self, from: usize, useless: bool, worth: &Worth) -> Chosen {
        let items = self.items.iter().enumerate();
        let fits = |(_, item): &(usize, &Item)| {
            let goes = item.useless || !(useless || item.in_hand);
            item.message >= from && goes
        };
        let take = items.filter(fits).map(|(index, _)| index).collect();
        self.chosen(take, worth)
    }

    /// Tokens behind the messages up to here, and of these the ones that no entry
    /// of the cache ends behind.
    pub(super) fn up_to(&self, to: usize) -> (u64, u64) {
        let living = self.living.iter().rev().find(|end| **end < to);
        let from = living.map_or(0, |end| end + 1);
        let behind = |at: usize| self.behind.get(at).copied().unwrap_or(0);
        (behind(to), behind(from).saturating_sub(behind(to)))
    }

    /// Places at which a pass may begin, evenly over what can go.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> {
        let step = self.items.len().div_ceil(PLACES).max(1);
        self.items.iter().step_by(step).map(|item| item.message)
    }
}

/// The choice that gains most, of those that keep to the limits. What is newer
/// is more likely to be looked at again, so an earlier place is taken where it
/// gains nearly as much.
pub(super) fn best(offer: &Offer, worth: &Worth, limits: &Limits) -> Option<Chosen> {
    let affordable = |chosen: &Chosen| {
        let loss = || chosen.loss(worth);
        limits.allowance.is_none_or(|most| loss() <= most.max(0))
    };
    let fitting: Vec<Chosen> = offer
        .places()
        .map(|from| offer.chosen(offer.until(from, limits.excess), worth))
        .filter(|chosen| !chosen.take.is_empty() && chosen.frees >= limits.at_least)
        .filter(affordable)
        .collect();
    let most = fitting.iter().map(|chosen| chosen.gain).max()?;
    let nearly = most - most.abs() / NEARLY;
    fitting.into_iter().find(|chosen| chosen.gain >= nearly)
}
