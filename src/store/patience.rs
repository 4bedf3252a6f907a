//! How long an answer of the store is waited for.
//!
//! The clock goes on while the thread that waits is itself held up: by the
//! vocabulary that the first count after a start needs, by a machine with too
//! much to do, by whoever stops the process for a while. The store may have
//! answered meanwhile, and to give it up would cost a conversation its view. So
//! patience has parts, each of which begins when the end of the one before was
//! noticed: however long the thread stood still, only one of them is gone.

use std::pin::pin;
use std::time::Duration;

use tokio::time::timeout;

use super::StoreError;

const PARTS: u32 = 10;

/// Waits for an answer, as long as it does not take too long.
pub(super) async fn within<T>(
    patience: Duration,
    answer: impl Future<Output = T>,
) -> Result<T, StoreError> {
    let mut answer = pin!(answer);
    for _ in 0..PARTS {
        if let Ok(answer) = timeout(patience / PARTS, answer.as_mut()).await {
            return Ok(answer);
        }
    }
    Err(StoreError::Slow(patience))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;
    use tokio::task::yield_now;

    const PATIENCE: Duration = Duration::from_millis(50);

    /// As after a start, when one request loads the vocabulary while others look
    /// for their marks: each would have gone without its overlay.
    #[tokio::test]
    async fn a_thread_that_was_held_up_still_takes_the_answer() {
        let answer = within(PATIENCE, async {
            // Connected, and then asked.
            for _ in 0..4 {
                yield_now().await;
            }
            7
        });
        let held_up = async { std::thread::sleep(PATIENCE * 2) };
        let (answer, ()) = tokio::join!(answer, held_up);
        assert!(matches!(answer, Ok(7)), "{answer:?}");
    }

    #[tokio::test]
    async fn an_answer_that_does_not_come_is_given_up_when_patience_ends() {
        let begun = Instant::now();
        let answer = within(PATIENCE, std::future::pending::<()>()).await;
        assert!(matches!(answer, Err(StoreError::Slow(PATIENCE))));
        assert!(begun.elapsed() >= PATIENCE);
    }
}
