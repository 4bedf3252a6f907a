//! The sessions that are in memory: every question looks at all marks.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{Kept, Memory, later};
use crate::engine::ids::LineageId;
use crate::store::sessions::{Behind, SessionRow, Sessions};
use crate::store::{Answer, Collected, MarkRow, rule};

impl Kept {
    /// All of them, those used last first.
    fn sessions(&self) -> Vec<SessionRow> {
        let mut sessions: HashMap<LineageId, SessionRow> = HashMap::new();
        for mark in self.marks.values().flatten() {
            let held = sessions.entry(mark.lineage).or_insert_with(|| SessionRow {
                newest: mark.clone(),
                marks: 0,
            });
            held.marks += 1;
            if rule::recency(mark) > rule::recency(&held.newest) {
                mark.clone_into(&mut held.newest);
            }
        }
        let mut sessions: Vec<_> = sessions.into_values().collect();
        sessions.sort_by_key(|held| Reverse((held.newest.seen_at, held.newest.lineage)));
        sessions
    }
}

impl Sessions for Memory {
    fn list(&self, behind: Option<Behind>, limit: u32) -> Answer<'_, Vec<SessionRow>> {
        later(move || {
            let mut sessions = self.kept().sessions();
            if let Some(behind) = behind {
                sessions.retain(|held| (held.newest.seen_at, held.newest.lineage) < behind);
            }
            sessions.truncate(limit as usize);
            Ok(sessions)
        })
    }

    fn marks_of(&self, lineage: LineageId, limit: u32) -> Answer<'_, Vec<MarkRow>> {
        later(move || {
            let kept = self.kept();
            let marks = kept.marks.values().flatten();
            let mut own: Vec<_> = marks.filter(|mark| mark.lineage == lineage).collect();
            own.sort_by(|a, b| rule::recency(b).cmp(&rule::recency(a)));
            Ok(own.into_iter().take(limit as usize).cloned().collect())
        })
    }

    fn named<'a>(&'a self, beginning: &'a str, limit: u32) -> Answer<'a, Vec<LineageId>> {
        later(move || {
            let Some((first, last)) = rule::named(beginning) else {
                return Ok(Vec::new());
            };
            let sessions = self.kept().sessions();
            let all = sessions.iter().map(|held| held.newest.lineage);
            let found = all.filter(|name| (first..=last).contains(name));
            Ok(found.take(limit as usize).collect())
        })
    }

    fn forget(&self, lineage: LineageId) -> Answer<'_, u64> {
        later(move || {
            let mut done = Collected::default();
            self.kept()
                .remove(|mark| mark.lineage == lineage, &mut done);
            Ok(done.marks)
        })
    }
}
