//! Where a conversation belongs in the tree of branches, as a pure rule.
//!
//! Every home of the journal looks up the same few things and lets this decide,
//! so that all of them grow the same tree. Only its chain tells where a
//! conversation belongs, and never across tenants. A session's name would not:
//! two that went different ways may have the same one.

use super::{Branch, Trace};
use crate::engine::ids::LineageId;
use crate::store::Moment;

/// The most characters of a label that are kept.
const LABEL: usize = 200;

/// The places of a branch that are kept: the newest so many.
pub const PLACES: u64 = 4_096;

/// How many more there may be before the oldest go.
pub const SLACK: u64 = 512;

/// What is found of a trace.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// The branch that has been at its place.
    pub here: Option<Branch>,
    /// The branch that has been at the newest known place before that, and the
    /// messages there.
    pub from: Option<(Branch, u32)>,
}

/// Where a conversation belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Belongs {
    /// To a branch that has been there.
    There(Branch),
    /// To a branch that has now come to this place.
    Grows(Branch),
    /// To a new branch, which left another one or none.
    Begins(Option<(LineageId, u32)>),
}

/// Where a conversation belongs, given what was found of it.
pub fn belongs(trace: &Trace, found: Found) -> Belongs {
    let ours = |branch: &Branch| branch.tenant == trace.tenant;
    if let Some(branch) = found.here.filter(ours) {
        return Belongs::There(branch);
    }
    let (_, messages) = trace.here;
    if let Some((branch, at)) = found.from.filter(|(branch, _)| ours(branch)) {
        // A fork may be told of before the turn it left: only the session whose
        // branch it is goes on with it, or they would change places.
        if branch.messages == at && at <= messages && branch.lineage == trace.lineage {
            return Belongs::Grows(branch);
        }
        return Belongs::Begins(Some((branch.id, at.min(messages))));
    }
    Belongs::Begins(None)
}

/// The names that a new branch may have: the first that is free.
pub fn names(trace: &Trace) -> impl Iterator<Item = LineageId> {
    let (here, _) = trace.here;
    let next = LineageId::beginning(here.as_bytes());
    let lineage = trace.lineage;
    let further = std::iter::successors(Some(next), move |taken| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"longhaul branch 1\0");
        hasher.update(lineage.as_bytes());
        hasher.update(here.as_bytes());
        hasher.update(taken.as_bytes());
        Some(LineageId::beginning(hasher.finalize().as_bytes()))
    });
    std::iter::once(lineage).chain(further)
}

/// A new branch.
pub fn begin(
    trace: &Trace,
    id: LineageId,
    parent: Option<(LineageId, u32)>,
    now: Moment,
) -> Branch {
    Branch {
        id,
        lineage: trace.lineage,
        tenant: trace.tenant,
        label: label(trace),
        parent,
        messages: trace.here.1,
        began_at: now,
        seen_at: now,
    }
}

/// A branch that was seen again.
pub fn renew(branch: &mut Branch, trace: &Trace, now: Moment) {
    branch.messages = branch.messages.max(trace.here.1);
    branch.seen_at = branch.seen_at.max(now);
    if let Some(label) = label(trace) {
        branch.label = Some(label);
    }
}

/// What a client calls a session, as far as it can be shown on a line.
pub fn label(trace: &Trace) -> Option<String> {
    let label = trace.label.as_deref()?;
    let shown = label.chars().filter(|letter| !letter.is_control());
    let label: String = shown.take(LABEL).collect();
    (!label.is_empty()).then_some(label)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ids::ChainHash;

    fn chain(number: u8) -> ChainHash {
        ChainHash::from_bytes([number; 32])
    }

    fn trace(here: (u8, u32)) -> Trace {
        Trace {
            tenant: chain(0),
            lineage: LineageId::from_bytes([9; 16]),
            label: None,
            from: None,
            through: Vec::new(),
            behind: Vec::new(),
            here: (chain(here.0), here.1),
        }
    }

    fn branch(number: u8, tenant: u8, messages: u32) -> Branch {
        let id = LineageId::from_bytes([number; 16]);
        let mut branch = begin(&trace((1, messages)), id, None, Moment(0));
        branch.tenant = chain(tenant);
        branch
    }

    #[test]
    fn a_conversation_belongs_to_whoever_has_been_there_then_to_what_it_grew_from() {
        let (one, two) = (branch(1, 0, 8), branch(2, 0, 4));
        let foreign = branch(4, 7, 2);
        let mut other = branch(5, 0, 4);
        other.lineage = LineageId::from_bytes([5; 16]);
        let fork = |branch: &Branch, common| Belongs::Begins(Some((branch.id, common)));
        let rows = [
            (Some(&one), Some((&two, 4)), Belongs::There(one.clone())),
            (None, Some((&two, 4)), Belongs::Grows(two.clone())),
            (None, Some((&two, 3)), fork(&two, 3)),
            (None, Some((&one, 8)), fork(&one, 6)),
            (None, Some((&other, 4)), fork(&other, 4)),
            (Some(&other), None, Belongs::There(other.clone())),
            (Some(&foreign), Some((&foreign, 2)), Belongs::Begins(None)),
            (None, None, Belongs::Begins(None)),
        ];
        for (here, from, expected) in rows {
            let found = Found {
                here: here.cloned(),
                from: from.map(|(branch, at)| (branch.clone(), at)),
            };
            assert_eq!(belongs(&trace((5, 6)), found), expected);
        }
    }

    #[test]
    fn names_are_tried_in_an_order_and_never_repeat() {
        let trace = trace((5, 6));
        let names: Vec<_> = names(&trace).take(6).collect();
        assert_eq!(names[0], trace.lineage);
        assert_eq!(names[1], LineageId::from_bytes([5; 16]));
        let distinct: std::collections::HashSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), 6);
    }

    #[test]
    fn a_label_is_one_line_and_short() {
        let rows = [
            (None, None),
            (Some("\0\n"), None),
            (Some("fix\0 the\nbuild"), Some("fix thebuild")),
        ];
        for (given, kept) in rows {
            let mut trace = trace((1, 1));
            trace.label = given.map(str::to_owned);
            assert_eq!(label(&trace).as_deref(), kept);
        }
        let mut trace = trace((1, 1));
        trace.label = Some("\u{e9}".repeat(1_000));
        assert_eq!(label(&trace).unwrap().chars().count(), LABEL);
    }
}
