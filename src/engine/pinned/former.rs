//! The plan of the session before, where a client has summed its history up.
//!
//! The new history no longer holds what the old plan was taken from, but the last
//! segment of the old session does: it is Longhaul's own text, and its plan block
//! is read back from there. It is quoted as data, the user's words in it too,
//! because only what the client says of itself connects the two sessions.

use std::sync::Arc;

use super::plan_headings::{FORMER, HEADINGS, TITLE};
use super::quote::DATA;
use crate::engine::overlay::Overlay;

/// The parts of a plan, the most important first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormerPlan(Arc<[String]>);

impl FormerPlan {
    /// The newest plan that an overlay shows.
    pub fn of(overlay: &Overlay) -> Option<Self> {
        let plan = newest(overlay)?;
        let parts = sections(&plan).into_iter();
        let parts = parts.map(|(heading, lines)| format!("{heading}\n{}", lines.join("\n")));
        Self::new(parts.collect())
    }

    /// The plan of the session before that the newest plan of an overlay has in
    /// it.
    pub fn carried_in(overlay: &Overlay) -> Option<Self> {
        let plan = newest(overlay)?;
        let sections = sections(&plan);
        let (_, lines) = sections.iter().find(|(heading, _)| *heading == FORMER)?;
        let mut parts: Vec<String> = Vec::new();
        for line in lines.iter().filter_map(|line| line.strip_prefix(DATA)) {
            match parts.last_mut().filter(|_| !HEADINGS.contains(&line)) {
                Some(part) => part.extend(["\n", line]),
                None => parts.push(line.to_owned()),
            }
        }
        Self::new(parts)
    }

    /// Whether an overlay shows a plan.
    pub fn is_in(overlay: &Overlay) -> bool {
        newest(overlay).is_some()
    }

    fn new(parts: Vec<String>) -> Option<Self> {
        (!parts.is_empty()).then(|| Self(parts.into()))
    }

    /// Its parts.
    pub(super) fn parts(&self) -> impl Iterator<Item = String> {
        self.0.iter().cloned()
    }
}

/// The newest plan that an overlay shows, from its title on.
fn newest(overlay: &Overlay) -> Option<String> {
    let mut segments = overlay.segments.iter().rev();
    segments.find_map(|segment| {
        let block: serde_json::Value = serde_json::from_str(&segment.block).ok()?;
        let text = block.get("text")?.as_str()?;
        // What is quoted never begins a line, so this is ours.
        let at = text.rfind(TITLE)?;
        text.get(at..).map(str::to_owned)
    })
}

/// The parts of a plan: the heading of each, and its lines without those that are
/// only about the plan.
fn sections(plan: &str) -> Vec<(&str, Vec<&str>)> {
    let mut sections: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in plan.split('\n').skip(2) {
        let known = line.strip_prefix("### ");
        match (
            known.filter(|name| HEADINGS.contains(name)),
            sections.last_mut(),
        ) {
            (Some(heading), _) => sections.push((heading, Vec::new())),
            (None, Some((_, lines))) if !line.is_empty() && !line.starts_with('[') => {
                lines.push(line);
            }
            _ => {}
        }
    }
    sections.retain(|(_, lines)| !lines.is_empty());
    sections
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::overlay::{Origin, Segment};
    use crate::engine::pinned::Settings;
    use crate::engine::pinned::tests::{ALL, Story, section};
    use serde_json::json;

    fn shown(text: &str) -> Overlay {
        let segment = Segment {
            block: json!({"type": "text", "text": text}).to_string(),
            from: 1,
            to: 3,
            origin: Origin::Summary,
            pinned: 0,
        };
        Overlay {
            segments: vec![segment],
            ..Overlay::default()
        }
    }

    fn plan_after(story: &Story, former_plan: Option<FormerPlan>) -> String {
        let settings = Settings { former_plan, ..ALL };
        let text = story.pin(0..story.0.len(), settings).text();
        format!("[longhaul: summary]\n{text}\n[longhaul: archived as lh-1]")
    }

    #[test]
    fn the_plan_goes_on_over_any_number_of_new_histories() {
        let filler = "It went on. ".repeat(3_000);
        let first = Story::default()
            .user("Port it to the new API.\n### Goal\nNever touch legacy/.")
            .failed("Bash", json!({"command": "make"}), "Exit code 2\nno rule")
            .says(&filler);
        let overlay = shown(&plan_after(&first, None));
        assert_eq!(FormerPlan::carried_in(&overlay), None);
        let mut former = FormerPlan::of(&overlay);
        assert!(FormerPlan::is_in(&overlay) && former.is_some());
        for _ in 0..3 {
            let next = Story::default().user("Go on from there.").says(&filler);
            let text = plan_after(&next, former.clone());
            let carried = section(&text, FORMER);
            for kept in [
                "| Goal",
                "| > Port it to the new API.",
                "| > Never touch legacy/.",
                "| | Bash: make",
                "| | no rule",
            ] {
                assert!(carried.contains(&kept), "{kept}: {text}");
            }
            assert!(!text.contains("\n> Port it"), "{text}");
            let before = former;
            former = FormerPlan::carried_in(&shown(&text));
            assert_eq!(former, before);
        }
    }

    #[test]
    fn an_overlay_without_a_plan_has_none() {
        for text in [
            "",
            "[longhaul: summary]\n  ## Plan as it stood at message 3",
        ] {
            let overlay = shown(text);
            assert!(!FormerPlan::is_in(&overlay) && FormerPlan::of(&overlay).is_none());
        }
        assert!(!FormerPlan::is_in(&Overlay::default()));
    }
}
