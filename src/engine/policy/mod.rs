//! When to make a view smaller, and by how much: values in, a decision out.
//!
//! A pass is worth making only if it pays. To change a view at some place writes
//! everything behind it once more, and saves what was removed on every later
//! request; with reads at a fortieth of the price of input the break-even can be
//! dozens of requests away. How long a session goes on is not known. So what
//! carrying old content costs is added up, and a pass is made when that has
//! reached a multiple of what the pass costs, at any size of the view, and only if
//! the session stays within a twentieth of what it would have cost without us,
//! should this be its last request. When the cache has gone cold, tidying up is
//! free. Past the hard watermark a pass must be made, the cheapest that reaches the
//! floor. Where an operator has set a first watermark, passes are made from there
//! on instead, if they gain over the requests that are to be expected.
//!
//! | question | module |
//! |---|---|
//! | what does a change cost and save | `rates` |
//! | what has the lineage been through | `course` |
//! | how much will come | `recent` |
//! | what can go, and which of it | `choice` |
//! | what goes without a summary | `lighter` |
//! | which pass the bill asks for | `account`, `economy` |
//! | whether the stable prefix is kept for an hour | `longer` |
//! | what goes in the journal style | `journal` |
//! | what was decided, and why | `decision` |

mod account;
mod choice;
mod course;
mod decision;
mod economy;
mod journal;
mod lighter;
mod longer;
mod rates;
mod recent;

pub use account::{Accounts, Finding, Means};
pub use choice::{Chosen, Closing, Item, Need, Offer, Worth};
pub use course::Course;
pub use decision::{Closes, Decision, Numbers, Pass, Rest};
pub use economy::{Bill, Summaries};
pub use longer::{LongPrefix, surcharge};
pub use rates::{Age, Cache, Pico, Rates, gain};
pub use recent::{Recent, Sizes};

use lighter::lighter;

/// The fewest requests that are reckoned with, and the most.
const HORIZON: (u32, u32) = (8, 200);

/// Sizes in tokens at which something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermarks {
    /// From here on results may go although the accounts do not ask for it; none:
    /// only the accounts decide.
    pub clear_at: Option<u64>,
    /// The same for summaries.
    pub summarize_at: Option<u64>,
    /// From here on something must go.
    pub hard_at: u64,
    /// What a pass comes down to.
    pub floor: u64,
}

/// Somebody asks for a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// A person or an agent.
    Manual,
    /// Upstream, by refusing what is too long.
    Reactive,
    /// The client, which wants results cleared; this many tokens, or none.
    Client {
        /// Tokens that must go, if any do.
        at_least: u64,
    },
}

/// Everything that a decision goes by.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Situation {
    /// Tokens of the view as it is.
    pub size: u64,
    /// Tokens that the reply and what follows it should come to.
    pub expected: u64,
    /// The view has more bytes than may be sent.
    pub too_many_bytes: bool,
    /// The watermarks of the usable window.
    pub watermarks: Watermarks,
    /// The state of the cache.
    pub cache: Cache,
    /// What tokens cost.
    pub rates: Rates,
    /// What this request and the next ones cost, and what may be spent.
    pub bill: Bill,
    /// What the lineage has been through.
    pub course: Course,
    /// Requests of the lineage so far.
    pub requests: u32,
    /// Further requests to reckon with, if that is fixed.
    pub horizon: Option<u32>,
    /// Tokens that a pass must free to be worth it.
    pub at_least: u64,
    /// Refills in a row that are thrash.
    pub thrash_limit: u32,
    /// Somebody asks for a pass.
    pub asked: Option<Ask>,
    /// Another model was asked before.
    pub switched: bool,
    /// What is changed now might not last: only what must be changed is.
    pub waits: bool,
    /// A summary lies ready; `Some(true)`: of what was left out without one.
    pub ready: Option<bool>,
    /// It is the API's own, which spoils no thinking and is taken at once.
    pub native: bool,
    /// Such a one is under way: nothing that it is made from may change.
    pub still: bool,
    /// The model is in the middle of its turn.
    pub in_loop: bool,
    /// A change would spoil thinking that cannot be left out before the model's
    /// turn ends.
    pub binds_in_loop: bool,
    /// There is too little for a summary.
    pub spares: bool,
    /// Old turns are left to the journal, and nothing is summed up.
    pub journal: bool,
    /// More turns are shown than that style keeps.
    pub beyond: bool,
}

/// What started a pass: a label of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// The size of the view.
    Budget,
    /// Another model, with a smaller window, or the client's own wish.
    Structural,
    /// The cache has gone cold.
    Temporal,
    /// Upstream refused a view as too long.
    Reactive,
    /// Somebody asked for it.
    Manual,
    /// What was left out without an account of it can have one now.
    Heal,
}

impl Trigger {
    /// The label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Structural => "structural",
            Self::Temporal => "temporal",
            Self::Reactive => "reactive",
            Self::Manual => "manual",
            Self::Heal => "heal",
        }
    }
}

/// How much a pass is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urge {
    /// It must be made, down to this size.
    Must(u64),
    /// Everything that may go shall go.
    All,
    /// The same, if it frees so many tokens.
    AllOf(u64),
    /// It costs nothing now.
    Free,
    /// The summary that lies ready is taken.
    Swap,
    /// It is taken if that pays.
    SwapIfItPays,
    /// It is made if it pays.
    IfItPays,
    /// It is made if the accounts say that one is due.
    IfDue,
}

impl Situation {
    /// Tokens the conversation is about to have.
    pub fn projected(&self) -> u64 {
        self.size.saturating_add(self.expected)
    }

    /// Whether the view is, or is about to be, past the first watermark.
    pub fn is_full(&self) -> bool {
        let clear_at = self.watermarks.clear_at;
        clear_at.is_some_and(|clear_at| self.projected() >= clear_at)
    }

    /// Whether it has been, and no pass has brought it down to the floor.
    fn presses(&self) -> bool {
        self.is_full() || (self.course.latched && self.size > self.watermarks.floor)
    }

    fn worth(&self) -> Worth {
        Worth {
            rates: self.rates,
            cache: self.cache,
            horizon: self.horizon(),
        }
    }

    /// Requests to reckon with: about as many as there have been.
    fn horizon(&self) -> u32 {
        let (least, most) = HORIZON;
        self.horizon
            .unwrap_or_else(|| self.requests.clamp(least, most))
    }

    /// What starts a pass, if anything does, and how much it is wanted. This
    /// looks at nothing but numbers, so that an ordinary request costs nothing.
    pub fn urge(&self) -> Result<(Trigger, Urge), Rest> {
        let Watermarks { hard_at, floor, .. } = self.watermarks;
        let thrash = self.course.thrashes(self.thrash_limit);
        let target = if thrash && !self.too_many_bytes {
            hard_at
        } else {
            floor
        };
        let grown = self.size.saturating_sub(self.course.looked_at) >= self.at_least.max(1);
        let full = self.presses();
        let moves = self.moves();
        match self.asked {
            Some(Ask::Manual) => return Ok((Trigger::Manual, Urge::All)),
            // What was refused must be smaller, however long that lasts.
            Some(Ask::Reactive) => return Ok((Trigger::Reactive, Urge::Must(floor))),
            Some(Ask::Client { .. }) | None => {}
        }
        // What is at the target already does not become smaller by another pass,
        // however much is about to come.
        let is_over = self.projected() >= hard_at && self.size > target;
        let over = is_over || self.too_many_bytes;
        match () {
            () if over && self.switched => Ok((Trigger::Structural, Urge::Must(target))),
            () if over => Ok((Trigger::Budget, Urge::Must(target))),
            () if let Some(Ask::Client { at_least }) = self.asked => {
                Ok((Trigger::Structural, Urge::AllOf(at_least)))
            }
            () if self.waits => Err(Rest::Waits),
            () if thrash && full => Err(Rest::Thrash),
            () if let Some(urge) = self.swaps() => Ok(urge),
            () if self.still => Err(Rest::Waits),
            () if self.binds_in_loop && (full || moves || self.is_free()) => Err(Rest::Waits),
            () if self.by_accounts() && self.deserves_look(grown) => {
                let trigger = if self.is_free() {
                    Trigger::Temporal
                } else {
                    Trigger::Budget
                };
                Ok((trigger, Urge::IfDue))
            }
            () if self.by_accounts() => Err(Rest::Calm),
            () if self.cache == Cache::Cold => Ok((Trigger::Temporal, Urge::Free)),
            () if (full || moves) && grown => Ok((Trigger::Budget, Urge::IfItPays)),
            () if full || moves => Err(Rest::Looked),
            () => Err(Rest::Calm),
        }
    }

    /// What must be reached by whatever means. Messages that nobody has summed up
    /// are worth more than the way to the floor: where a summary has made room,
    /// or none can be made of so little, they stay for as long as there is room.
    fn to_reach(&self, target: u64, closes: Closes) -> u64 {
        let refused = self.too_many_bytes || self.asked == Some(Ask::Reactive);
        if (closes != Closes::Nothing || self.spares) && !refused {
            let room = self.watermarks.hard_at.saturating_sub(self.expected);
            target.max(room)
        } else {
            target
        }
    }

    /// Whether a summary that lies ready is taken.
    fn swaps(&self) -> Option<(Trigger, Urge)> {
        if self.native {
            return Some((Trigger::Budget, Urge::Swap));
        }
        let heals = self.ready.filter(|_| !self.binds_in_loop)?;
        let cold = self.cache == Cache::Cold;
        match () {
            () if self.course.compacting => Some((Trigger::Manual, Urge::Swap)),
            () if heals && (cold || !self.in_loop) => Some((Trigger::Heal, Urge::Swap)),
            () if cold => Some((Trigger::Temporal, Urge::Swap)),
            () if self.is_due() => Some((Trigger::Budget, Urge::SwapIfItPays)),
            () => None,
        }
    }

    /// Whether the conversation is about to be past the watermark from which on
    /// summaries are prepared.
    pub fn is_due(&self) -> bool {
        let summarize_at = self.watermarks.summarize_at;
        summarize_at.is_some_and(|summarize_at| self.projected() >= summarize_at)
    }

    /// Whether a summary should be prepared, given how much could go without
    /// one: the conversation is about to need it, and nothing lighter will do.
    pub fn prepares(&self, clearable: u64) -> bool {
        self.is_due()
            && self.size.saturating_sub(clearable) > self.watermarks.floor
            && !self.course.thrashes(self.thrash_limit)
            && self.will_be_full()
    }

    /// Whether the conversation will be over the hard watermark within the
    /// horizon, if it goes on growing as it did.
    fn will_be_full(&self) -> bool {
        let each = self.size / u64::from(self.requests.max(1));
        let later = each.saturating_mul(self.horizon().into());
        self.projected().saturating_add(later) >= self.watermarks.hard_at
    }
}

/// Decides about one request.
pub fn decide(situation: &Situation, offer: &Offer) -> Decision {
    match situation.urge() {
        Err(rest) => Decision::Rest(rest),
        Ok((trigger, urge)) => match settle(situation, offer, urge) {
            Err(rest) => Decision::Rest(rest),
            Ok((chosen, closes)) => Decision::Pass(Pass {
                trigger,
                closes,
                must_reach: match urge {
                    _ if closes == Closes::Summary && situation.native => None,
                    Urge::Must(target) => Some(situation.to_reach(target, closes)),
                    // What somebody asks for waits for its summary, if one can be
                    // had: nothing is left out without one.
                    Urge::All if situation.awaits_summary() => None,
                    Urge::All => Some(situation.to_reach(situation.watermarks.floor, closes)),
                    Urge::AllOf(_)
                    | Urge::Free
                    | Urge::IfItPays
                    | Urge::IfDue
                    | Urge::Swap
                    | Urge::SwapIfItPays => None,
                },
                thrash: matches!(urge, Urge::Must(_))
                    && situation.course.thrashes(situation.thrash_limit),
                numbers: Numbers {
                    size: situation.size,
                    frees: chosen.frees,
                    rewrites: chosen.rewrites,
                    gain: chosen.gain,
                    horizon: situation.horizon(),
                },
                take: chosen.take,
            }),
        },
    }
}

/// What goes, if the urge is satisfied with it, and whether a summary takes the
/// place of what it sums up. Lighter means go first: a summary is taken where
/// they do not come down to the floor.
fn settle(situation: &Situation, offer: &Offer, urge: Urge) -> Result<(Chosen, Closes), Rest> {
    let worth = situation.worth();
    if urge == Urge::IfDue {
        return economy::settle(situation, offer, &worth);
    }
    let lighter = lighter(situation, offer, urge, &worth);
    if situation.journal {
        return journal::settle(situation, offer, urge, &worth, lighter);
    }
    let target = match urge {
        Urge::Must(target) => target,
        Urge::All if situation.by_accounts() => situation.working_set(),
        _ => situation.watermarks.floor,
    };
    let reaches = |chosen: &Chosen| situation.size.saturating_sub(chosen.frees) <= target;
    let wanted = match urge {
        Urge::AllOf(_) | Urge::Free | Urge::IfItPays | Urge::IfDue => false,
        Urge::Swap => true,
        Urge::Must(_) | Urge::All if situation.native => true,
        Urge::Must(_) | Urge::All | Urge::SwapIfItPays => !lighter.as_ref().is_ok_and(reaches),
    };
    let excess = situation.size.saturating_sub(target);
    let summary = wanted.then(|| offer.closing(&worth, excess)).flatten();
    let lighter = lighter.map(|chosen| (chosen, Closes::Nothing));
    let Some(summary) = summary else {
        return lighter;
    };
    let pays = summary.gain > 0 || situation.will_be_full();
    if urge == Urge::SwapIfItPays && !pays {
        return lighter;
    }
    Ok((summary, Closes::Summary))
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod policy_tests;
