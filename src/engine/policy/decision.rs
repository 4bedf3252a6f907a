//! What was decided about a request, why, and by which numbers.
//!
//! It goes into logs, metrics and whatever else asks, so that nobody has to guess
//! why a pass was made, or why none was.

use super::Trigger;
use super::rates::Pico;

/// What was decided, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The view stays as it is.
    Rest(Rest),
    /// A pass is made.
    Pass(Pass),
}

/// Why a view stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// It is small enough.
    Calm,
    /// Nothing has changed much since the last look.
    Looked,
    /// What could go is too little.
    TooLittle {
        /// Tokens that could go.
        frees: u64,
    },
    /// It would cost more than it saves.
    DoesNotPay {
        /// The best that could be gained.
        gain: Pico,
    },
    /// It may well pay, but too much would be lost if it did not.
    TooMuchAtStake {
        /// What could be lost.
        loss: Pico,
        /// What may be lost.
        stake: Pico,
    },
    /// The accounts have not reached what a pass costs.
    NotDue,
    /// A summary would pay more than anything that can be done at once.
    Prepares,
    /// There is room until the model's turn ends.
    Waits,
    /// Passes are refilled at once: another would not last either.
    Thrash,
}

impl Rest {
    /// Whether the view was looked over, so that there is no point in another
    /// look before it has grown.
    pub fn has_looked(self) -> bool {
        match self {
            Self::TooLittle { .. }
            | Self::DoesNotPay { .. }
            | Self::TooMuchAtStake { .. }
            | Self::NotDue
            | Self::Prepares => true,
            Self::Calm | Self::Looked | Self::Waits | Self::Thrash => false,
        }
    }
}

/// A pass to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// What started it.
    pub trigger: Trigger,
    /// Which items of the offer go, by index, in order.
    pub take: Vec<usize>,
    /// What it closes.
    pub closes: Closes,
    /// The size it must come down to by other means, if these are not enough.
    pub must_reach: Option<u64>,
    /// Passes do not last: only what is needed to fit is done.
    pub thrash: bool,
    /// The numbers it was decided by.
    pub numbers: Numbers,
}

/// What a pass closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closes {
    /// Nothing.
    Nothing,
    /// What the summary stands for that lies ready.
    Summary,
    /// The turns before those that the journal style keeps.
    OldTurns,
    /// More than these, because what it should keep is too large.
    More,
}

/// The numbers of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers {
    /// Tokens of the view before.
    pub size: u64,
    /// Tokens that go.
    pub frees: u64,
    /// Tokens that are written once more.
    pub rewrites: u64,
    /// What it gains over the horizon, in pico-dollars.
    pub gain: Pico,
    /// Requests that were reckoned with.
    pub horizon: u32,
}
