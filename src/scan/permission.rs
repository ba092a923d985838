//! Whether a site's `robots.txt` lets us ask an endpoint: read once for each origin, in the lane of its site.
//! What such a file says is `robots`'s affair.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;
use url::{Position, Url};

use super::Office;
use crate::body;
use crate::exchange::{Answer, Exchange, Leg};
use crate::inquiry::Ask;
use crate::redirect::HOPS;
use crate::robots::Rules;

/// What an origin lets us ask.
#[derive(Debug)]
enum Permission {
    /// What these rules do.
    Rules(Rules),
    /// Nothing: the file could not be had, for this reason (RFC 9309 §2.3.1.4).
    Nothing(String),
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
    pub(super) async fn forbidden(&self, endpoint: u32, url: &Url) -> Option<String> {
        let permissions = self.permissions.as_ref()?;
        let origin = url[..Position::BeforePath].to_owned();
        let cell = permissions.of(&origin);
        let permission = cell
            .get_or_init(|| async { self.read_permission(endpoint, url).await })
            .await;
        match permission {
            Permission::Rules(rules) => rules
                .forbids(&url[Position::BeforePath..Position::AfterQuery])
                .map(str::to_owned),
            Permission::Nothing(why) => Some(why.clone()),
        }
    }

    async fn read_permission(&self, endpoint: u32, url: &Url) -> Permission {
        let open = Permission::Rules(Rules::default());
        let Ok(mut at) = url.join("/robots.txt") else {
            return open;
        };
        for _ in 0..=HOPS {
            let Some(answer) = self.robots(endpoint, &at).await else {
                // Where nobody answers there is nothing to keep to; the probe will say what it meets.
                return open;
            };
            match answer.status {
                200..=299 => {
                    let read = body::read(&answer);
                    return Permission::Rules(Rules::read(read.text.as_bytes()));
                }
                500.. => return Permission::Nothing(format!("robots.txt: HTTP {}", answer.status)),
                301 | 302 | 303 | 307 | 308 => {
                    let target = answer.header("location").and_then(|it| at.join(it).ok());
                    match target.filter(|it| matches!(it.scheme(), "http" | "https")) {
                        Some(target) => at = target,
                        None => return open,
                    }
                }
                // There is none (RFC 9309 §2.3.1.3).
                _ => return open,
            }
        }
        open
    }

    /// The answer to a GET of `robots.txt`; `None` where there was none.
    async fn robots(&self, endpoint: u32, url: &Url) -> Option<Answer> {
        let lane = self.lane(url);
        let ask = Ask {
            attempt: 0,
            // Another document beside the endpoint. It is no evidence about the endpoint, so it is not written.
            leg: Leg::ResourceMetadata,
            request: self.terms.identity.text(url),
            wait_ms: 0,
            half_time: true,
            version: self.terms.version.clone(),
        };
        let exchanges = self.ask(endpoint, &ask, url, &lane).await?;
        let exchange = exchanges.first()?;
        Exchange::answer(exchange).cloned()
    }
}
