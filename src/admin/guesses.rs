//! Slows down those who try admin tokens.
//!
//! An address that has sent wrong tokens waits before its next token is looked
//! at, right or wrong: if only wrong ones were slow, whoever guesses could give
//! up after a moment and know the answer. The wait doubles with each wrong token
//! up to a few seconds and ends some time after the last one, so an operator who
//! shares the address with an attacker is slowed down but never locked out.
//! Requests without a token do not wait.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Wrong tokens that cost nothing: people mistype.
const FREE: u32 = 3;
/// The first wait.
const FIRST: Duration = Duration::from_millis(100);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(5);
/// How long after its last wrong token an address is forgotten.
const FORGET: Duration = Duration::from_mins(5);
/// The most addresses that are remembered.
const ADDRESSES: usize = 1024;

/// Wrong tokens by address.
#[derive(Debug, Default)]
pub struct Guesses(Mutex<HashMap<IpAddr, Wrong>>);

#[derive(Debug, Clone, Copy)]
struct Wrong {
    count: u32,
    last: Instant,
}

impl Guesses {
    /// How long the next token from an address waits.
    pub fn delay(&self, from: IpAddr, now: Instant) -> Duration {
        let known = self.lock().get(&network(from)).copied();
        known
            .filter(|wrong| !wrong.is_over(now))
            .map_or(Duration::ZERO, |wrong| delay_after(wrong.count))
    }

    /// Counts a wrong token; returns how many the address has sent.
    pub fn count(&self, from: IpAddr, now: Instant) -> u32 {
        let from = network(from);
        let mut known = self.lock();
        if known.len() >= ADDRESSES && !known.contains_key(&from) {
            known.retain(|_, wrong| !wrong.is_over(now));
            let oldest = known.iter().min_by_key(|(_, wrong)| wrong.last);
            let oldest = oldest.map(|(from, _)| *from);
            if let (true, Some(oldest)) = (known.len() >= ADDRESSES, oldest) {
                known.remove(&oldest);
            }
        }
        let wrong = known.entry(from).or_insert(Wrong {
            count: 0,
            last: now,
        });
        if wrong.is_over(now) {
            wrong.count = 0;
        }
        wrong.count = wrong.count.saturating_add(1);
        wrong.last = now;
        wrong.count
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Wrong>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wrong {
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) >= FORGET
    }
}

/// The wait after this many wrong tokens.
fn delay_after(wrong: u32) -> Duration {
    match wrong.checked_sub(FREE) {
        None => Duration::ZERO,
        Some(doublings) => {
            let factor = 1u32.checked_shl(doublings).unwrap_or(u32::MAX);
            FIRST.saturating_mul(factor).min(LONGEST)
        }
    }
}

/// The address that is counted: IPv6 customers get networks of 64 bits.
fn network(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(own) if !own.is_loopback() => {
            let mask = u128::from(u64::MAX) << 64;
            IpAddr::V6(Ipv6Addr::from_bits(own.to_bits() & mask))
        }
        own => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn the_wait_doubles_after_a_few_wrong_tokens_and_stays_bearable() {
        let rows = [
            (0, 0),
            (2, 0),
            (3, 100),
            (4, 200),
            (6, 800),
            (9, 5_000),
            (40, 5_000),
            (u32::MAX, 5_000),
        ];
        for (wrong, expected) in rows {
            assert_eq!(
                delay_after(wrong),
                Duration::from_millis(expected),
                "{wrong}"
            );
        }
    }

    #[test]
    fn an_address_waits_for_its_own_guesses_until_they_are_forgotten() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        for expected in 1..=4 {
            assert_eq!(guesses.count(FROM, now), expected);
        }
        assert_eq!(guesses.delay(FROM, now), Duration::from_millis(200));
        let other = "192.0.2.7".parse().unwrap();
        assert_eq!(guesses.delay(other, now), Duration::ZERO);
        assert_eq!(guesses.delay(FROM, now + FORGET), Duration::ZERO);
        assert_eq!(guesses.count(FROM, now + FORGET), 1);
    }

    #[test]
    fn one_ipv6_network_is_one_address() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        for host in 1..=3 {
            let from = format!("2001:db8::{host}").parse().unwrap();
            guesses.count(from, now);
        }
        let (same, other) = ("2001:db8::9".parse().unwrap(), "2001:db8:0:1::9".parse());
        assert_eq!(guesses.delay(same, now), FIRST);
        assert_eq!(guesses.delay(other.unwrap(), now), Duration::ZERO);
    }

    #[test]
    fn no_more_addresses_are_remembered_than_there_is_room_for() {
        let (guesses, now) = (Guesses::default(), Instant::now());
        for number in 0..4 * u32::try_from(ADDRESSES).unwrap() {
            let from = IpAddr::from(number.to_be_bytes());
            guesses.count(from, now + Duration::from_millis(number.into()));
        }
        assert!(guesses.lock().len() <= ADDRESSES);
    }
}
