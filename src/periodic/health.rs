//! Whether the instrument itself is well, by the last answers: where most of them are our own faults, what comes in says
//! nothing of the endpoints. Asking controls and holding the run back is `watch`'s affair.

use std::collections::VecDeque;

use jiff::Timestamp;

use crate::exchange::{ConnectFault, DnsFault, Exchange, Fault, LocalFault, Reply};

/// Answers that are looked at.
pub const WINDOW: usize = 20;

/// Our own faults among them that are too many: more than three in four. Lists have dead names of their own, which
/// come one by one.
const TOO_MANY: usize = 15;

/// Whether a fault can be our own: the name server, the network, this machine. A name that does not exist is not.
#[must_use]
pub const fn is_ours(exchange: &Exchange) -> bool {
    match exchange.reply {
        Reply::Fault(Fault::Dns(DnsFault::ServFail | DnsFault::Timeout) | Fault::Connect(ConnectFault::NoRoute)) => true,
        Reply::Fault(Fault::Local(LocalFault::Exhausted | LocalFault::NoNetwork | LocalFault::Instrument)) => true,
        Reply::Fault(_) | Reply::Answer(_) => false,
    }
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
        self.answers.push_back((exchange.started_at, is_ours(exchange)));
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
            request: crate::mcp::Identity { contact: None }.initialize(&url, crate::mcp::ASKED_VERSION),
            reply,
            timing: crate::exchange::Timing::default(),
            connection: crate::exchange::Connection::default(),
        }
    }

    #[test]
    fn most_of_the_last_answers_have_to_be_our_own_faults() {
        let ours = Reply::Fault(Fault::Dns(DnsFault::ServFail));
        let theirs = Reply::Fault(Fault::Dns(DnsFault::NxDomain));
        let mut recent = Recent::default();
        for second in 0..100 {
            assert_eq!(recent.note(&exchange(second, theirs.clone())), None, "dead names are the list's");
        }
        for second in 100..114 {
            assert_eq!(recent.note(&exchange(second, ours.clone())), None);
        }
        assert_eq!(recent.note(&exchange(114, ours.clone())), Timestamp::from_second(100).ok());
        recent.clear();
        assert_eq!(recent.note(&exchange(115, ours)), None);
    }
}
