//! What stands for a result, and for the input of a call, that a pass clears.

use super::{Close, Survey};
use crate::engine::candidates::{Candidate, How, Reason};
use crate::engine::digest::{Kind, Shown, digest, written};
use crate::engine::ids::Reference;
use crate::engine::recall::reference::reference_at;
use crate::engine::recall::telling::Telling;
use crate::engine::reduce::Replacement;
use crate::engine::stub::{self, Cleared};

impl Survey<'_> {
    pub(super) fn archived(
        &self,
        (message, block): (usize, usize),
    ) -> Option<(Reference, &Telling)> {
        let count = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        let telling = self.settings.archives.as_ref()?;
        Some((
            reference_at(self.seed, count(message), count(block)),
            telling,
        ))
    }

    /// What stands for these candidates from now on, and for older ones that give
    /// the room of their digests to them.
    pub(super) fn stubs(&self, take: &[usize], close: Close<'_>) -> Vec<Replacement> {
        let (rooms, given) = self.rooms_for(take, close);
        let mut shown = self.stays_shown(&given);
        let mut stubs = given;
        // The newest first: what it says need not be said again further up.
        for (at, (result, input)) in take.iter().zip(rooms).rev() {
            let Some(candidate) = self.candidates.get(*at) else {
                continue;
            };
            stubs.extend(self.stub(candidate, result, &mut shown));
            stubs.extend(self.input_stub(candidate, input, &mut shown));
        }
        stubs
    }

    fn stub(&self, candidate: &Candidate, room: usize, shown: &mut Shown) -> Option<Replacement> {
        let block = self.conversation.block_at(candidate.result)?;
        let payload = block.payload?.of(self.conversation.bytes());
        let beginning = if candidate.is_error {
            stub::first_lines(payload)
        } else {
            String::new()
        };
        let digest = self.digest_result(candidate, payload, room, shown);
        let with = Cleared {
            tool: &candidate.tool,
            subject: &candidate.subject,
            bytes: payload.len(),
            why: why(candidate.reason),
            beginning: &beginning,
            digest: &digest,
            archived: self.archived(candidate.result),
        }
        .result();
        let tokens = self.weights.of_text(&with);
        let shown = self.weights.block(candidate.result);
        (with.len() < payload.len()).then(|| Replacement {
            place: candidate.result,
            spares: shown.saturating_sub(tokens),
            with,
            trims: false,
        })
    }

    fn input_stub(
        &self,
        candidate: &Candidate,
        room: usize,
        shown: &mut Shown,
    ) -> Option<Replacement> {
        let input = self.input_of(candidate)?;
        let content = self.conversation.bytes().get(input)?;
        let digest = digest(Kind::Written, &written(content), room, shown);
        let with = Cleared {
            tool: &candidate.tool,
            subject: &candidate.subject,
            bytes: content.len(),
            why: "",
            beginning: "",
            digest: &digest,
            archived: self.archived(candidate.used),
        }
        .input();
        let tokens = self.weights.of_text(&with);
        let shown = self.weights.block(candidate.used);
        Some(Replacement {
            place: candidate.used,
            spares: shown.saturating_sub(tokens),
            with,
            trims: false,
        })
    }
}

fn why(reason: Reason) -> &'static str {
    match reason {
        Reason::Superseded { how, .. } => match how {
            How::ReadAgain => "the same was read again later",
            How::WrittenLater => "the file was written anew later",
            How::RunAgain => "the same call was made again later",
        },
        Reason::Duplicate { .. } => "the same content came again later",
        Reason::Old => "it is older than the results still shown",
    }
}
