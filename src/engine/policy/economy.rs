//! Which pass the bill asks for.
//!
//! Each way to make a view smaller has a price today: what it writes once more,
//! the summary that it needs, thinking that is lost with it, and what it may cost
//! to fetch again what it forgets. It is due when the account of its means has
//! reached that times the factor of the aim, and when the session stays within a
//! twentieth of what it would have cost without us, should this be its last
//! request. Where it makes this very request cheaper, because nothing is cached any
//! more, it is due at once. Of several that are due the one with the most left over
//! is taken.

use super::Situation;
use super::account::{Finding, Means};
use super::choice::{Chosen, Closing, Item, Offer, Worth};
use super::decision::{Closes, Rest};
use super::rates::{Cache, Pico, Rates};
use crate::config::{Model, Price, Prices};
use std::time::Duration;

/// In thousandths: how often something that is needed again is fetched again,
/// where a digest is left of it. Agents mostly go on with what they see, perhaps one
/// time in five; where memory and money pull apart, memory goes first, so twice that.
const FETCHED: Pico = 500;
/// By how much less is fetched again behind a summary that the API has made of
/// everything it hides, thinking included.
const OWN_SUMMARY: Pico = 6;
/// Tokens of the call that fetches it.
const CALL: Pico = 250;

/// What this request and the next ones cost, and what may be spent.
#[derive(Debug, Clone, Default)]
pub struct Bill {
    /// Tokens of system and tools, and of what of ours stands between messages.
    pub base: u64,
    /// Newest tokens that a pass leaves alone.
    pub keep: u64,
    /// Tokens of the view that the request before has left in the cache; none:
    /// not known.
    pub cached: Option<u64>,
    /// Tokens that earlier passes keep out of the view.
    pub removed: u64,
    /// What is known of the model; none: its prices are not known.
    pub model: Option<Model>,
    /// How long its cache lives.
    pub lifetime: Option<Duration>,
    /// What a summary costs; none: none can be written now.
    pub summaries: Option<Summaries>,
    /// How many times its price an account must have reached for a pass to be due.
    pub factor: u32,
    /// Only what is of no more use goes, and what costs nothing.
    pub faithful: bool,
    /// How much more than usual the agent fetches again what passes removed, in
    /// percent; a hundred: as usual.
    pub fetches: u32,
    /// Cached content was made worthless by something else than time.
    pub invalidated: bool,
}

/// What a summary costs, by who writes it.
#[derive(Debug, Clone, Default)]
pub struct Summaries {
    /// Another model, from a record of what it sums up.
    pub other: Option<Model>,
    /// The conversation's own, on what it has cached.
    pub own: Option<Model>,
    /// Tokens of a summary.
    pub output: u64,
}

impl Summaries {
    /// What a summary of a span costs, in a view of this size; both in tokens.
    fn price(&self, span: u64, view: u64) -> Pico {
        let other = prices(self.other.as_ref(), span);
        let other = other.map(|p| times(span, p.input) + times(self.output, p.output));
        let own = prices(self.own.as_ref(), view);
        let own = own.map(|p| times(view, p.read) + times(self.output, p.output));
        other.into_iter().chain(own).min().unwrap_or(0)
    }

    /// What the API's own summary costs: the tokens of the whole view, those behind
    /// what it sums up, and those of what it sums up that are in no cache.
    fn price_of_own(&self, view: u64, (behind, uncached): (u64, u64)) -> Pico {
        let summed = view.saturating_sub(behind);
        let uncached = uncached.min(summed);
        prices(self.own.as_ref(), summed).map_or(0, |p| {
            let read = times(summed - uncached, p.read);
            times(uncached, p.input) + read + times(self.output, p.output)
        })
    }
}

/// A model's prices for a prompt of this size; the usual ones, if they are not
/// known.
fn prices(model: Option<&Model>, prompt: u64) -> Option<Prices> {
    model.map(|model| model.prices(prompt).unwrap_or(Prices::USUAL))
}

fn times(tokens: u64, price: Price) -> Pico {
    Pico::from(tokens) * Pico::from(price.pico_dollars_per_token())
}

/// One way to make a view smaller, and what it costs.
struct Way {
    chosen: Chosen,
    closes: Closes,
    /// The part of its means' account that stands for what goes.
    account: Pico,
    /// What this request costs more with it.
    extra: Pico,
    /// What it may cost to fetch again what it forgets.
    forgetting: Pico,
    /// It can be done at once.
    ready: bool,
}

impl Way {
    /// The balance from which on it is due.
    fn needed(&self, situation: &Situation) -> Pico {
        situation.factor() * (self.extra + self.forgetting)
    }

    fn is_due(&self, situation: &Situation) -> bool {
        let pays = self.account >= self.needed(situation) && self.extra <= situation.allowance();
        self.is_enough(situation) && ((self.ready && self.extra <= 0) || pays)
    }

    /// Whether it frees enough to be worth a pass.
    fn is_enough(&self, situation: &Situation) -> bool {
        self.chosen.frees >= situation.at_least.max(1)
    }

    fn left_over(&self, situation: &Situation) -> Pico {
        self.account - situation.factor() * self.extra
    }
}

impl Situation {
    /// How many times its price an account must have reached for a pass to be due.
    fn factor(&self) -> Pico {
        self.bill.factor.max(1).into()
    }

    /// Whether the accounts decide, and no watermark.
    pub fn by_accounts(&self) -> bool {
        self.watermarks.clear_at.is_none() && !self.journal
    }

    /// Whether what is asked for can wait for its summary.
    pub fn awaits_summary(&self) -> bool {
        self.by_accounts() && self.bill.summaries.is_some()
    }

    /// Tokens outside of the working set.
    pub fn outside(&self) -> u64 {
        self.size.saturating_sub(self.working_set())
    }

    /// What a pass comes down to, segments included.
    pub fn working_set(&self) -> u64 {
        self.bill.base.saturating_add(self.bill.keep)
    }

    /// Whether nothing is cached of the view, so that a change costs nothing.
    pub fn is_free(&self) -> bool {
        let invalidated = self.by_accounts() && self.bill.invalidated;
        self.cache == Cache::Cold || (self.cache == Cache::Warm && invalidated)
    }

    /// Whether a look over the view may find something due.
    pub(super) fn deserves_look(&self, grown: bool) -> bool {
        let enough = self.outside() >= self.at_least.max(1);
        let cold = self.cache == Cache::Cold;
        let free = self.is_free() || self.cache == Cache::Unused;
        let ready = self.ready.is_some() && self.course.preparing;
        let accounts = &self.course.accounts;
        let look = accounts.deserves_look(self.outside(), self.at_least);
        enough && (cold || ready || (free && grown) || look)
    }

    /// The rates of a view of some size.
    fn rates_at(&self, size: u64) -> Rates {
        let prices = self
            .bill
            .model
            .as_ref()
            .and_then(|model| model.prices(size));
        prices.map_or(self.rates, |prices| Rates::new(&prices, self.bill.lifetime))
    }

    /// What a prompt of this size costs when `written` tokens of it are written to
    /// the cache and the rest is read.
    fn prompt(&self, size: u64, written: u64) -> Pico {
        let rates = self.rates_at(size);
        let times = |tokens: u64, rate: u64| Pico::from(tokens) * Pico::from(rate);
        match self.cache {
            Cache::Unused => times(size, rates.input),
            _ if self.is_free() => times(size, rates.write),
            _ => {
                let written = written.min(size);
                times(written, rates.write) + times(size - written, rates.read)
            }
        }
    }

    /// What the prompt costs as it is.
    fn as_is(&self) -> Pico {
        let cached = self.bill.cached.unwrap_or(self.size);
        self.prompt(self.size, self.size.saturating_sub(cached))
    }

    /// What a pass may cost, should this be the last request.
    pub(super) fn allowance(&self) -> Pico {
        let as_is = self.as_is();
        let rate = match self.cache {
            Cache::Unused => self.rates.input,
            _ if self.is_free() => self.rates.write,
            _ => self.rates.read,
        };
        let without = as_is + Pico::from(self.bill.removed) * Pico::from(rate);
        self.course.allowance(as_is, without)
    }

    /// What this request costs more with a change.
    fn extra(&self, chosen: &Chosen) -> Pico {
        let left = self.size.saturating_sub(chosen.frees);
        let lost = Pico::from(chosen.thinking) * Pico::from(self.rates.input);
        self.prompt(left, chosen.rewrites) - self.as_is() + lost
    }

    /// The same of the request after this one.
    fn extra_later(&self, chosen: &Chosen) -> Pico {
        let later = Self {
            cache: match self.cache {
                Cache::Unused => Cache::Unused,
                _ => Cache::Warm,
            },
            bill: Bill {
                invalidated: false,
                cached: None,
                ..self.bill.clone()
            },
            ..self.clone()
        };
        later.extra(chosen)
    }

    /// What it may cost to fetch these again.
    fn forgetting<'a>(&self, items: impl Iterator<Item = &'a Item>, left: u64) -> Pico {
        let rates = self.rates_at(left);
        let rate = |tokens: Pico, rate: u64| tokens * Pico::from(rate);
        let request = rate(left.into(), rates.read) + rate(CALL * 5, rates.input);
        let horizon = self.horizon();
        items
            .filter(|item| !item.useless)
            .map(|item| {
                let needed = Pico::from(item.need.within(horizon));
                let fetch = request + rate(item.frees.into(), rates.write);
                needed * FETCHED * fetch / 1_000_000
            })
            .sum::<Pico>()
            * Pico::from(self.bill.fetches.max(100))
            / 100
    }

    fn way(&self, chosen: Chosen, offer: &Offer, (means, of): (Means, u64), closes: Closes) -> Way {
        let left = self.size.saturating_sub(chosen.frees);
        let taken = chosen.take.iter().filter_map(|at| offer.items.get(*at));
        Way {
            account: self.course.accounts.share(means, chosen.frees, of),
            extra: self.extra(&chosen),
            forgetting: self.forgetting(taken, left),
            ready: true,
            closes,
            chosen,
        }
    }

    /// Clearing, from every place where it could begin.
    fn clearing(&self, offer: &Offer, worth: &Worth) -> Vec<Way> {
        let useless = self.bill.faithful && !self.is_free();
        let all = offer.cleared_from(0, useless, worth).frees;
        let way = |from: usize| {
            let chosen = offer.cleared_from(from, useless, worth);
            self.way(chosen, offer, (Means::Clearing, all), Closes::Nothing)
        };
        let mut ways: Vec<Way> = offer.places().map(way).collect();
        ways.retain(|way| !way.chosen.take.is_empty());
        ways
    }

    /// A segment with clearing behind it.
    fn closing(&self, offer: &Offer, worth: &Worth, closing: Closing) -> Way {
        let chosen = offer.closed(closing, worth, u64::MAX);
        let of = self
            .course
            .accounts
            .removable(Means::Closing, self.outside());
        let of = of.max(chosen.frees);
        let mut way = self.way(chosen, offer, (Means::Closing, of), Closes::Summary);
        let left = self.size.saturating_sub(way.chosen.frees);
        let hidden = offer.items.iter().filter(|item| item.message < closing.to);
        way.forgetting += self.forgetting(hidden, left);
        if closing.alone {
            way.forgetting /= OWN_SUMMARY;
        }
        way
    }

    /// The same with a summary that has to be written first.
    fn closable(&self, offer: &Offer, worth: &Worth) -> Option<Way> {
        let (closing, summaries) = (offer.closable?, self.bill.summaries.as_ref()?);
        let mut way = self.closing(offer, worth, closing);
        // It is taken with a later request, which finds the cache warm.
        way.extra = way.extra.max(self.extra_later(&way.chosen));
        way.extra += if closing.alone {
            summaries.price_of_own(self.size, offer.up_to(closing.to))
        } else {
            summaries.price(closing.raw.max(closing.frees), self.size)
        };
        way.ready = false;
        Some(way)
    }

    fn ways(&self, offer: &Offer, worth: &Worth) -> Vec<Way> {
        let mut ways = self.clearing(offer, worth);
        if self.binds_in_loop {
            // Only the API's own summary leaves thinking as it is.
            ways.clear();
        }
        match offer.closing {
            _ if self.bill.faithful && !self.is_free() => {}
            Some(closing) => ways.push(self.closing(offer, worth, closing)),
            None => ways.extend(self.closable(offer, worth)),
        }
        ways
    }

    /// What a look has found, for the accounts.
    pub fn findings(&self, offer: &Offer) -> (Finding, Finding) {
        let worth = self.worth();
        let ways = self.ways(offer, &worth);
        let of = |closes: Closes, removable: u64| {
            let ways = ways.iter().filter(|way| way.closes == closes);
            // What the whole account must reach for the part of it that stands
            // for this way to be enough.
            let needed = ways.filter(|way| way.is_enough(self)).map(|way| {
                let frees = Pico::from(way.chosen.frees);
                way.needed(self) * Pico::from(removable.max(way.chosen.frees)) / frees
            });
            Finding {
                removable,
                needed: needed.min(),
            }
        };
        let cleared = offer.cleared_from(0, self.bill.faithful, &worth).frees;
        let closing = offer.closing.or(offer.closable).map(|it| it.frees);
        // A summary may have to wait for its place, but not to be made at all.
        let waiting = if self.awaits_summary() {
            self.outside()
        } else {
            0
        };
        let closed = closing.unwrap_or(waiting);
        (of(Closes::Nothing, cleared), of(Closes::Summary, closed))
    }
}

/// What goes, if something is due.
pub(super) fn settle(
    situation: &Situation,
    offer: &Offer,
    worth: &Worth,
) -> Result<(Chosen, Closes), Rest> {
    let ways = situation.ways(offer, worth);
    let due: Vec<Way> = ways
        .into_iter()
        .filter(|way| way.is_due(situation))
        .collect();
    // What makes this very request cheaper need not wait for a summary.
    let free = due.iter().any(|way| way.ready && way.extra <= 0);
    let candidates = due.into_iter().filter(|way| way.ready || !free);
    let best = candidates
        .max_by_key(|way| way.left_over(situation))
        .ok_or(Rest::NotDue)?;
    if best.ready {
        Ok((best.chosen, best.closes))
    } else {
        Err(Rest::Prepares)
    }
}

#[cfg(test)]
#[path = "economy_tests.rs"]
mod tests;
