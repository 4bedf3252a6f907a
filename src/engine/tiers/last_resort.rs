//! What is given up when all else is not enough for a view to be sent at all.
//!
//! Old messages have been hidden by then, as many as the settings give. First the
//! newest results are trimmed, harder and harder; then the tail is as short as it
//! can be; then every result that is still shown is trimmed, because what loads
//! tools cannot be hidden, and holds back all that stands behind it.

use std::collections::HashSet;

use super::Survey;
use crate::engine::reduce::{Draft, Orders};
use crate::engine::split::Split;
use crate::engine::trim::Keep;

/// What is kept at either end of a result, in steps.
const STEPS: [usize; 3] = [8_000, 2_000, 500];

impl Survey<'_> {
    /// A draft by these orders that can be sent, or the smallest there is.
    pub(super) fn last_resort(&self, mut orders: Orders, fits: u64) -> Option<Draft> {
        let before: u64 = self.weights.messages.iter().sum();
        let size = |draft: &Option<Draft>| draft.as_ref().map_or(before, |draft| draft.weight);
        let newest = self.conversation.last_assistant().unwrap_or(0);
        let (wish, least) = (orders.split.clone(), Split::default());
        // How much stays is a wish, and only what can be sent is of any use: if
        // it is not the newest results, older words of the tail have to go.
        let stages = [
            (wish, newest),
            (least.clone(), newest),
            (least, self.conversation.head()),
        ];
        let mut draft = self.reduce(&orders);
        for (split, from) in stages {
            if size(&draft) <= fits {
                break;
            }
            if orders.split != split {
                orders.split = split;
                draft = self.reduce(&orders);
            }
            for left in STEPS {
                if size(&draft) <= fits {
                    break;
                }
                draft = self.shortened(&orders, from, left);
            }
        }
        draft
    }

    /// With so much left at either end of every result from a message on that is
    /// not cleared.
    fn shortened(&self, orders: &Orders, from: usize, left: usize) -> Option<Draft> {
        let mut orders = orders.clone();
        let cleared = orders.replacements.iter().filter(|order| !order.trims);
        let cleared: HashSet<_> = cleared.map(|order| order.place).collect();
        let mut trims = self.trims(from..self.conversation.len(), &|_| Keep {
            max_chars: left * 3,
            head: left,
            tail: left,
        });
        trims.retain(|trim| !cleared.contains(&trim.place));
        orders.replacements.extend(trims);
        self.reduce(&orders)
    }
}
