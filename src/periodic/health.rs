//! Whether the instrument itself is well, by the last answers: where most of them are our own faults, what comes in says
//! nothing of the endpoints. Asking controls and holding the run back is `watch`'s affair.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

use crate::exchange::{ConnectFault, DnsFault, Exchange, Fault, LocalFault, Reply};

/// Answers that are looked at.
pub const WINDOW: usize = 20;

/// Our own faults among them that are too many: more than three in four. Lists have dead names of their own, which
/// come one by one.
const TOO_MANY: usize = 15;

/// Whether a fault can be our own: the name server, the network, this machine. A name that does not exist is not.
#[must_use]
pub const fn is_ours(exchange: &Exchange) -> bool {
    matches!(
        exchange.reply,
        Reply::Fault(
            Fault::Dns(DnsFault::ServFail | DnsFault::Timeout)
                | Fault::Connect(ConnectFault::NoRoute)
                | Fault::Local(
                    LocalFault::Exhausted | LocalFault::NoNetwork | LocalFault::Instrument
                )
        )
    )
}

/// The last answers, as far as they tell of the instrument.
#[derive(Debug, Clone, Default)]
pub struct Recent {
    /// When each began, and whether its fault was ours.
    answers: VecDeque<(Timestamp, bool)>,
}

impl Recent {
    /// Takes an answer in, and says since when the instrument is in doubt, if it is.
    pub fn note(&mut self, exchange: &Exchange) -> Option<Timestamp> {
        if self.answers.len() == WINDOW {
            self.answers.pop_front();
        }
        self.answers
            .push_back((exchange.started_at, is_ours(exchange)));
        let ours = || self.answers.iter().filter(|(_, ours)| *ours);
        if ours().count() < TOO_MANY {
            return None;
        }
        ours().map(|(at, _)| *at).min()
    }

    /// Forgets them: what comes now is seen with fresh eyes.
    pub fn clear(&mut self) {
        self.answers.clear();
    }
}

/// The times at which the instrument was in doubt: what was exchanged then says nothing of anyone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Doubts {
    /// From when to when, both included; without an end where none was written.
    times: Vec<(Timestamp, Option<Timestamp>)>,
}

impl Doubts {
    /// The instrument is in doubt since.
    pub fn began(&mut self, since: Timestamp) {
        self.times.push((since, None));
    }

    /// It is well again.
    pub fn ended(&mut self, at: Timestamp) {
        for (_, end) in &mut self.times {
            end.get_or_insert(at);
        }
    }

    /// Whether an exchange, or a part of it, falls into one.
    #[must_use]
    pub fn cover(&self, exchange: &Exchange) -> bool {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "an exchange takes seconds, and a cast saturates"
        )]
        let took = SignedDuration::from_millis(exchange.timing.total_ms.unwrap_or(0.0) as i64);
        let (from, until) = (
            exchange.started_at,
            exchange.started_at.saturating_add(took),
        );
        let until = until.unwrap_or(from);
        self.times
            .iter()
            .any(|(began, ended)| *began <= until && ended.is_none_or(|it| from <= it))
    }

    /// The attempts that no doubt touches.
    #[must_use]
    pub fn sound(&self, exchanges: &[Exchange]) -> Vec<Exchange> {
        let doubted: Vec<u8> = exchanges
            .iter()
            .filter(|it| self.cover(it))
            .map(|it| it.attempt)
            .collect();
        exchanges
            .iter()
            .filter(|it| !doubted.contains(&it.attempt))
            .cloned()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(second: i64, reply: Reply) -> Exchange {
        let url = "https://a.example/mcp".parse().unwrap();
        Exchange {
            endpoint: 0,
            attempt: 0,
            leg: crate::exchange::Leg::Initialize,
            started_at: Timestamp::from_second(second).unwrap(),
            request: crate::mcp::Identity { contact: None }
                .initialize(&url, crate::mcp::ASKED_VERSION),
            reply,
            timing: crate::exchange::Timing::default(),
            connection: crate::exchange::Connection::default(),
        }
    }

    #[test]
    fn an_attempt_that_a_doubt_touches_is_not_sound() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut doubts = Doubts::default();
        doubts.began(at(10));
        let fault = || Reply::Fault(Fault::Dns(DnsFault::Timeout));
        assert!(doubts.cover(&exchange(11, fault())), "it has not ended");
        doubts.ended(at(20));
        let mut long = exchange(8, fault());
        long.timing.total_ms = Some(2500.0);
        let later = Exchange {
            attempt: 1,
            ..exchange(30, fault())
        };
        assert!(
            !doubts.cover(&exchange(9, fault())) && !doubts.cover(&later) && doubts.cover(&long)
        );
        assert_eq!(doubts.sound(&[long, later.clone()]), [later]);
    }

    #[test]
    fn most_of_the_last_answers_have_to_be_our_own_faults() {
        let ours = Reply::Fault(Fault::Dns(DnsFault::ServFail));
        let theirs = Reply::Fault(Fault::Dns(DnsFault::NxDomain));
        let mut recent = Recent::default();
        for second in 0..100 {
            assert_eq!(
                recent.note(&exchange(second, theirs.clone())),
                None,
                "dead names are the list's"
            );
        }
        for second in 100..114 {
            assert_eq!(recent.note(&exchange(second, ours.clone())), None);
        }
        assert_eq!(
            recent.note(&exchange(114, ours.clone())),
            Timestamp::from_second(100).ok()
        );
        recent.clear();
        assert_eq!(recent.note(&exchange(115, ours)), None);
    }
}
