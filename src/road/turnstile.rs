//! One at a time, the most urgent first; of those as urgent, who came first. Whom it lets through to what is `road`'s
//! affair.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// Lets one through at a time.
#[derive(Debug, Default)]
pub(super) struct Turnstile {
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    is_taken: bool,
    came: u64,
    line: BinaryHeap<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    /// How urgent it is, and as the how-manieth it came.
    rank: (usize, Reverse<u64>),
    turn: oneshot::Sender<Passage>,
}

impl PartialEq for Waiter {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl Eq for Waiter {}

impl PartialOrd for Waiter {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiter {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank.cmp(&other.rank)
    }
}

/// Being through; the next one is let through when it is dropped.
#[derive(Debug)]
pub(super) struct Passage {
    turnstile: Arc<Turnstile>,
    is_handed_on: bool,
}

impl Turnstile {
    /// Waits to be let through.
    pub(super) async fn pass(self: &Arc<Self>, urgency: usize) -> Passage {
        let passage = |turnstile: &Arc<Self>| Passage {
            turnstile: Arc::clone(turnstile),
            is_handed_on: false,
        };
        let turn = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if !waiting.is_taken {
                waiting.is_taken = true;
                return passage(self);
            }
            let (turn, given) = oneshot::channel();
            let rank = (urgency, Reverse(waiting.came));
            waiting.came += 1;
            waiting.line.push(Waiter { rank, turn });
            given
        };
        // The turnstile outlives who waits at it, and hands on to everyone in the line.
        turn.await.unwrap_or_else(|_| passage(self))
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        while !self.is_handed_on {
            let mut waiting = self
                .turnstile
                .waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let Some(next) = waiting.line.pop() else {
                waiting.is_taken = false;
                return;
            };
            drop(waiting);
            let passage = Self {
                turnstile: Arc::clone(&self.turnstile),
                is_handed_on: false,
            };
            match next.turn.send(passage) {
                Ok(()) => self.is_handed_on = true,
                // It has gone away: the next one then.
                Err(mut unused) => unused.is_handed_on = true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_most_urgent_goes_first_and_who_has_gone_away_holds_up_nobody() {
        let turnstile = Arc::new(Turnstile::default());
        let first = turnstile.pass(0).await;
        let passed = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for (name, urgency) in [("a", 1), ("gone", 9), ("b", 7), ("c", 1), ("d", 7)] {
            let (turnstile, passed) = (Arc::clone(&turnstile), Arc::clone(&passed));
            tasks.push(tokio::spawn(async move {
                let _passage = turnstile.pass(urgency).await;
                passed.lock().unwrap().push(name);
            }));
            tokio::task::yield_now().await;
        }
        tasks.remove(1).abort();
        tokio::task::yield_now().await;
        drop(first);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*passed.lock().unwrap(), ["b", "d", "a", "c"]);
        // And it is open again.
        drop(turnstile.pass(0).await);
    }
}
