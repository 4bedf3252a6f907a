//! What carrying old content has cost a session so far, one account a means.
//!
//! Rent or buy: every request pays to read what a pass could remove. The account
//! of a means adds that up, and a pass is due when the account has reached some
//! times what the pass costs. Without knowing how long a session goes on, this comes
//! near to what somebody who knew would pay.
//!
//! What can be removed is found by a look over the whole view, which is too much
//! work for every request. Between two looks it is estimated: what a view grows
//! by pushes as much out of the working set. The next look is taken when the
//! account has reached what the last one found to be needed; where it found
//! nothing that could be done, when the view has grown by enough to change that.

use serde::{Deserialize, Serialize};

use super::rates::Pico;

/// In thousandths: how much of what leaves the working set can be cleared, until
/// a look has shown it.
const CLEARABLE: u64 = 700;

/// In percent: how much an account must have grown for another look.
const GROWN: u64 = 10;

/// Stands for what no balance reaches: the last look found nothing to do.
const OUT_OF_REACH: u64 = u64::MAX;

/// One means of making a view smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// Results give way to stubs.
    Clearing,
    /// Old messages give way to a segment.
    Closing,
}

/// The accounts of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Accounts {
    clearing: Account,
    closing: Account,
    /// Tokens outside of the working set at the last look.
    outside: u64,
    /// There has been a look.
    looked: bool,
}

/// The account of one means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Account {
    /// What carrying has cost, in pico-dollars.
    balance: u64,
    /// Tokens that the means could remove at the last look.
    removable: u64,
    /// The balance at the last look.
    seen: u64,
    /// The balance at which a pass would have been due then, or [`OUT_OF_REACH`].
    needed: u64,
}

/// What a look over a view has found of one means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Finding {
    /// Tokens that could be removed.
    pub removable: u64,
    /// The balance at which a pass would be due; none: none can be made now.
    pub needed: Option<Pico>,
}

impl Accounts {
    fn of(&self, means: Means) -> &Account {
        match means {
            Means::Clearing => &self.clearing,
            Means::Closing => &self.closing,
        }
    }

    /// What carrying what the means could remove has cost.
    pub fn balance(&self, means: Means) -> Pico {
        self.of(means).balance.into()
    }

    /// The part of a balance that stands for some of the tokens that could go.
    pub fn share(&self, means: Means, tokens: u64, of: u64) -> Pico {
        let tokens = tokens.min(of);
        self.balance(means) * Pico::from(tokens) / Pico::from(of.max(1))
    }

    /// Tokens that a means could remove, given those outside of the working set.
    pub fn removable(&self, means: Means, outside: u64) -> u64 {
        let grown = outside.saturating_sub(self.outside);
        let grown = match means {
            Means::Closing => grown,
            Means::Clearing if self.looked && self.outside > 0 => {
                let share = self.clearing.removable.min(self.outside);
                scaled(grown, share.max(self.outside / 4), self.outside)
            }
            Means::Clearing => scaled(grown, CLEARABLE, 1_000),
        };
        let left = self.of(means).removable.saturating_add(grown);
        left.min(outside)
    }

    /// A request was answered that paid this much for each token it carried.
    pub fn carried(&mut self, outside: u64, price: u64) {
        for means in [Means::Clearing, Means::Closing] {
            let paid = self.removable(means, outside).saturating_mul(price);
            let account = self.of_mut(means);
            account.balance = account.balance.saturating_add(paid);
        }
    }

    /// Whether a look over the view may find something due, given the tokens
    /// outside of the working set and the least that is worth a pass.
    pub fn deserves_look(&self, outside: u64, at_least: u64) -> bool {
        let grown = outside.saturating_sub(self.outside) >= at_least.max(1);
        let due = |account: &Account| account.deserves_look(grown);
        !self.looked || due(&self.clearing) || due(&self.closing)
    }

    /// Notes what a look has found.
    pub fn looked(&mut self, outside: u64, clearing: Finding, closing: Finding) {
        (self.outside, self.looked) = (outside, true);
        self.clearing.looked(clearing);
        self.closing.looked(closing);
    }

    /// A pass has removed this much: what it stood for is paid.
    pub fn removed(&mut self, tokens: u64, outside: u64) {
        for means in [Means::Clearing, Means::Closing] {
            let account = self.of_mut(means);
            let gone = tokens.min(account.removable);
            account.balance -= scaled(account.balance, gone, account.removable.max(1));
            account.removable -= gone;
            account.seen = account.balance;
        }
        self.outside = outside;
    }

    /// Something was paid for that brought nothing.
    pub fn wasted(&mut self, means: Means, cost: Pico) {
        let account = self.of_mut(means);
        let cost = u64::try_from(cost.max(0)).unwrap_or(u64::MAX);
        account.balance = account.balance.saturating_sub(cost);
    }

    fn of_mut(&mut self, means: Means) -> &mut Account {
        match means {
            Means::Clearing => &mut self.clearing,
            Means::Closing => &mut self.closing,
        }
    }
}

impl Account {
    /// Whether this account asks for a look, in a view that has grown or not.
    fn deserves_look(&self, grown: bool) -> bool {
        let more = self.seen.saturating_add(self.seen / 100 * GROWN);
        let enough = match self.needed {
            OUT_OF_REACH => grown || self.balance >= self.seen.saturating_mul(2),
            needed => self.balance >= needed.max(more),
        };
        self.balance > 0 && enough
    }

    fn looked(&mut self, finding: Finding) {
        self.removable = finding.removable;
        self.seen = self.balance;
        self.needed = finding.needed.map_or(OUT_OF_REACH, |needed| {
            u64::try_from(needed.max(0)).unwrap_or(OUT_OF_REACH)
        });
    }
}

fn scaled(value: u64, by: u64, of: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(by) / u128::from(of.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked(removable: u64, needed: Pico) -> Accounts {
        let mut accounts = Accounts::default();
        let finding = Finding {
            removable,
            needed: Some(needed),
        };
        accounts.looked(20_000, finding, finding);
        accounts
    }

    #[test]
    fn a_request_only_adds_and_a_look_is_taken_when_enough_has_come_together() {
        let mut accounts = looked(10_000, 5_000_000);
        for _ in 0..4 {
            assert!(!accounts.deserves_look(20_000, 5_000));
            accounts.carried(20_000, 100);
        }
        accounts.carried(20_000, 100);
        assert_eq!(accounts.balance(Means::Clearing), 5_000_000);
        assert!(accounts.deserves_look(20_000, 5_000));
    }

    #[test]
    fn what_the_view_grows_by_leaves_the_working_set() {
        let accounts = looked(10_000, 0);
        assert_eq!(accounts.removable(Means::Closing, 24_000), 14_000);
        assert_eq!(accounts.removable(Means::Clearing, 24_000), 12_000);
        let fresh = Accounts::default();
        assert_eq!(fresh.removable(Means::Closing, 1_000), 1_000);
        assert_eq!(fresh.removable(Means::Clearing, 1_000), 700);
    }

    #[test]
    fn only_what_went_is_taken_from_an_account() {
        let mut accounts = looked(10_000, 0);
        accounts.carried(20_000, 100);
        accounts.removed(2_500, 17_500);
        assert_eq!(accounts.balance(Means::Closing), 750_000);
        assert_eq!(accounts.removable(Means::Closing, 17_500), 7_500);
        accounts.removed(50_000, 0);
        assert_eq!(accounts.balance(Means::Closing), 0);
    }

    #[test]
    fn what_was_spent_for_nothing_must_come_together_again() {
        let mut accounts = looked(10_000, 1_000_000);
        accounts.carried(20_000, 100);
        accounts.wasted(Means::Closing, 900_000);
        assert_eq!(accounts.balance(Means::Closing), 100_000);
        accounts.wasted(Means::Closing, 900_000);
        assert_eq!(accounts.balance(Means::Closing), 0);
    }

    #[test]
    fn a_look_is_not_taken_again_before_something_has_changed() {
        let mut accounts = looked(10_000, 0);
        assert!(
            !accounts.deserves_look(20_000, 5_000),
            "nothing was carried"
        );
        accounts.carried(20_000, 100);
        assert!(accounts.deserves_look(20_000, 5_000));
        let finding = Finding {
            removable: 10_000,
            needed: Some(0),
        };
        for _ in 0..20 {
            accounts.carried(20_000, 100);
        }
        accounts.looked(20_000, finding, finding);
        accounts.carried(20_000, 100);
        assert!(!accounts.deserves_look(20_000, 5_000), "hardly more");
        accounts.carried(20_000, 200);
        assert!(accounts.deserves_look(20_000, 5_000), "a tenth more");
    }

    #[test]
    fn what_could_not_be_done_is_looked_for_when_the_view_has_grown() {
        let mut accounts = looked(10_000, 0);
        accounts.carried(20_000, 100);
        let nothing = Finding {
            removable: 10_000,
            needed: None,
        };
        accounts.looked(20_000, nothing, nothing);
        accounts.carried(24_999, 50);
        assert!(
            !accounts.deserves_look(24_999, 5_000),
            "nothing new to find"
        );
        assert!(accounts.deserves_look(25_000, 5_000), "enough for a pass");
        accounts.carried(20_000, 50);
        assert!(accounts.deserves_look(20_000, 5_000), "carried for long");
    }
}
