//! Unfolds a compressed body, with its room taken before there is anything in it.
//!
//! How long a body gets is not known before it is unfolded, and what it says of
//! that itself need not be true. So it is unfolded twice: first only to count, with
//! the memory of a decoder and nothing else, then into a buffer of the right size.
//! In between nothing is held but the body itself, so that bodies which do not all
//! fit come one after another.

use bytes::Bytes;

use super::limits::Limits;
use super::respond::Failure;
use super::room::Room;
use crate::wire::encoding::Coding;
use crate::wire::unfold::{Stopped, Unfolding, working_memory};

/// Unfolding rests after this many bytes.
const REST_AFTER: usize = 1 << 20;
/// What is unfolded at once.
const UNFOLD_STEP: usize = 64 << 10;

/// What a body says once it is unfolded; `None` if it does not unfold.
pub(super) async fn unfold(
    coding: Coding,
    body: &[u8],
    limits: &Limits,
    room: &Room,
) -> Result<Option<Bytes>, Failure> {
    let limit = limits.body_bytes;
    let Some(memory) = working_memory(coding, body) else {
        return Ok(None);
    };
    // Given back before more is asked for, so that nobody waits while holding it.
    let mut share = room.share(limits.buffer_wait);
    share.cover(memory).await?;
    let measured = measure(coding, body, limit).await;
    drop(share);
    let length = match measured {
        Ok(length) => length,
        Err(Stopped::Broken) => return Ok(None),
        Err(Stopped::Burst) => return Err(Failure::DecodedTooLarge { limit }),
    };
    let mut share = room.share(limits.buffer_wait);
    share.cover(length.saturating_add(memory)).await?;
    let Some(buffer) = fill(coding, body, length).await else {
        return Ok(None);
    };
    share.shrink(buffer.capacity());
    Ok(Some(share.hold(buffer)))
}

/// How long a body gets, without keeping it.
async fn measure(coding: Coding, body: &[u8], limit: u64) -> Result<usize, Stopped> {
    let mut unfolding = Unfolding::begin(coding, body)?;
    let mut piece = vec![0; UNFOLD_STEP];
    let (mut length, mut rested) = (0, 0);
    loop {
        match unfolding.read(&mut piece)? {
            0 => return Ok(length),
            count => length += count,
        }
        if length as u64 > limit {
            return Err(Stopped::Burst);
        }
        rest(length, &mut rested).await;
    }
}

/// Unfolds a body whose length is known.
async fn fill(coding: Coding, body: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut unfolding = Unfolding::begin(coding, body).ok()?;
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(length).ok()?;
    buffer.resize(length, 0);
    let (mut filled, mut rested) = (0, 0);
    while filled < length {
        let end = length.min(filled + UNFOLD_STEP);
        match unfolding.read(buffer.get_mut(filled..end)?) {
            Ok(count @ 1..) => filled += count,
            Ok(0) | Err(_) => return None,
        }
        rest(filled, &mut rested).await;
    }
    Some(buffer)
}

/// Lets the other connections of this thread go on now and then.
async fn rest(done: usize, rested: &mut usize) {
    if done > *rested + REST_AFTER {
        *rested = done;
        tokio::task::yield_now().await;
    }
}
