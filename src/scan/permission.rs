//! Whether a site's `robots.txt` lets us ask an endpoint: read once for each origin, in the lane of its site.
//! What such a file says is `robots`'s affair.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;
use url::{Position, Url};

use super::office::Office;
use crate::body;
use crate::exchange::{Answer, BodyEnd, Fault, Leg, LocalFault, Reply};
use crate::inquiry::Ask;
use crate::outcome::Unmeasured;
use crate::redirect::HOPS;
use crate::robots::Rules;

/// What an origin lets us ask.
#[derive(Debug)]
enum Permission {
    /// What these rules do.
    Rules(Rules),
    /// Nothing: what its file says could not be learnt (RFC 9309 §2.3.1.4).
    Unknown(Unmeasured),
}

/// Why an address is not asked.
pub(super) enum Ban {
    /// A rule of its origin's file, in these words.
    Rule(String),
    /// Its origin may have such a rule, and does not tell.
    Unknown(Unmeasured),
    /// The run is being stopped.
    Stopped,
}

/// What came of asking for a file.
enum Asked {
    Answer(Answer),
    /// No request reaches a server there, and none of the inquiry's will.
    Nobody,
    /// No whole answer.
    Unknown(Unmeasured),
    Stopped,
}

/// The permissions of all origins of a run.
#[derive(Debug, Default)]
pub(super) struct Permissions {
    known: Mutex<HashMap<String, Arc<OnceCell<Permission>>>>,
}

impl Permissions {
    fn of(&self, origin: &str) -> Arc<OnceCell<Permission>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(origin.to_owned()).or_default())
    }
}

impl Office {
    /// What forbids us to ask an address, where something does.
    pub(super) async fn forbidden(
        &self,
        permissions: &Permissions,
        endpoint: u32,
        url: &Url,
    ) -> Option<Ban> {
        let origin = url[..Position::BeforePath].to_owned();
        let cell = permissions.of(&origin);
        // What was not read because the run is being stopped is not kept.
        let read = cell.get_or_try_init(|| self.read_permission(endpoint, url));
        match read.await {
            Ok(Permission::Rules(rules)) => rules
                .forbids(&url[Position::BeforePath..Position::AfterQuery])
                .map(|rule| Ban::Rule(rule.to_owned())),
            Ok(Permission::Unknown(why)) => Some(Ban::Unknown(*why)),
            Err(ban) => Some(ban),
        }
    }

    /// Reads a file. One that there is not forbids nothing (RFC 9309 §2.3.1.3), and neither does one behind more
    /// redirects than are followed (§2.3.1.2).
    async fn read_permission(&self, endpoint: u32, url: &Url) -> Result<Permission, Ban> {
        let open = Permission::Rules(Rules::default());
        let Ok(mut at) = url.join("/robots.txt") else {
            return Ok(open);
        };
        for _ in 0..=HOPS {
            let answer = match self.robots(endpoint, &at).await {
                Asked::Answer(answer) => answer,
                Asked::Nobody => return Ok(open),
                Asked::Unknown(why) => return Ok(Permission::Unknown(why)),
                Asked::Stopped => return Err(Ban::Stopped),
            };
            match answer.status {
                200..=299 => {
                    let read = body::read(&answer);
                    return Ok(Permission::Rules(Rules::read(read.text.as_bytes())));
                }
                // A server that has enough of us says nothing of its file, as one that fails does.
                429 | 500.. => return Ok(Permission::Unknown(Unmeasured::SitePaused)),
                301 | 302 | 303 | 307 | 308 => {
                    let target = answer.header("location").and_then(|it| at.join(it).ok());
                    match target.filter(|it| matches!(it.scheme(), "http" | "https")) {
                        Some(target) => at = target,
                        None => return Ok(open),
                    }
                }
                _ => return Ok(open),
            }
        }
        Ok(open)
    }

    /// Asks for `robots.txt`.
    async fn robots(&self, endpoint: u32, url: &Url) -> Asked {
        let lane = self.lane(url);
        let ask = Ask {
            attempt: 0,
            // It is no evidence about the endpoint, so it is not written.
            leg: Leg::Robots,
            request: self.terms.identity.text(url),
            wait_ms: 0,
            half_time: true,
            version: self.terms.version.clone(),
        };
        let exchanges = self.ask(endpoint, &ask, url, &lane).await;
        let Some(exchange) = exchanges.and_then(|it| it.into_iter().next()) else {
            return Asked::Stopped;
        };
        match exchange.reply {
            Reply::Answer(answer) if matches!(answer.end, BodyEnd::Broken(_)) => {
                Asked::Unknown(Unmeasured::SitePaused)
            }
            Reply::Answer(answer) => Asked::Answer(answer),
            Reply::Fault(Fault::Dns(_) | Fault::PrivateAddress(_) | Fault::Excluded) => {
                Asked::Nobody
            }
            Reply::Fault(Fault::Local(LocalFault::Interrupted)) => Asked::Stopped,
            Reply::Fault(Fault::Local(_)) => Asked::Unknown(Unmeasured::InstrumentError),
            Reply::Fault(_) => Asked::Unknown(Unmeasured::SitePaused),
        }
    }
}
