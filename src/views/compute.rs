//! Computing that would hold up the streams of a worker, beside the workers.
//!
//! As many things at once as there are cores, the others in turn. More at once
//! would finish no sooner, and much later where many sessions come together: what
//! counts tokens keeps its scratch memory in a pool that all threads share, and
//! makes it anew for every single word while another thread holds the pool and
//! does not get to run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use tokio::sync::Semaphore;

use super::Fault;

/// Bodies from this size on are looked at on a thread of their own, so that the
/// streams of this one go on meanwhile: about half a millisecond of work.
pub(super) const LARGE: usize = 2 << 20;

/// Not fewer, so that one that takes long does not hold up all others.
const LEAST_AT_ONCE: usize = 2;

static TURNS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(at_once()));

fn at_once() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    cores.max(LEAST_AT_ONCE)
}

/// Computes, on a thread of its own if there is much to compute. A panic is a
/// mistake of ours and must not become the client's.
pub(super) async fn compute<T: Send + 'static>(
    size: usize,
    what: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    let outcome = if size < LARGE {
        catch_unwind(AssertUnwindSafe(work)).ok()
    } else {
        let turn = TURNS.acquire().await;
        let work = move || {
            // Whoever waits may go away; the turn is over when the work is.
            let _turn = turn;
            work()
        };
        tokio::task::spawn_blocking(work).await.ok()
    };
    outcome.ok_or(Fault::Bug(what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[tokio::test]
    async fn however_many_come_together_no_more_are_computed_at_once_than_there_are_cores() {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let each = |_| {
            let (now, most) = (now.clone(), most.clone());
            tokio::spawn(compute(LARGE, "test", move || {
                let together = now.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(together, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(2));
                now.fetch_sub(1, Ordering::SeqCst);
            }))
        };
        let all: Vec<_> = (0..64).map(each).collect();
        for one in all {
            one.await.unwrap().unwrap();
        }
        assert!((1..=at_once()).contains(&most.load(Ordering::SeqCst)));
    }

    #[tokio::test]
    async fn a_panic_costs_a_turn_and_nothing_else() {
        for _ in 0..at_once() * 2 {
            let failed = compute(LARGE, "test", || panic!("on purpose")).await;
            assert!(matches!(failed, Err(Fault::Bug("test"))));
        }
        assert_eq!(compute(LARGE, "test", || 7).await.ok(), Some(7));
    }
}
