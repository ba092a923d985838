//! How an endpoint's inquiry is pursued: each request in its lane, what came back heeded and handed to the writer,
//! and this machine's own shortages waited out. What to ask is `inquiry`'s affair; which endpoints, `scan`'s.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use url::Url;

use super::issuers::Issuers;
use super::ledger::Pen;
use super::permission::{Ban, Permissions};
use super::{Headers, Stop};
use crate::exchange::{Answer, ConnectFault, Exchange, Fault, Leg, LocalFault, Reply};
use crate::inquiry::{self, Ask, Next, Terms};
use crate::lanes::Done;
use crate::outcome::{Unmeasured, Verdict};
use crate::probe::Prober;
use crate::progress::Counts;
use crate::resolve;
use crate::road::{Lane, Road};
use crate::store::{Refused, Skipped};
use crate::tally::operator;
use crate::target::{Secrets, Suffixes, Target, scatter};
use crate::watch::Watch;

/// How long the run waits when this machine has first run short of descriptors, ports or network; twice as long
/// each further time.
const SHORTAGE_WAIT: Duration = Duration::from_millis(250);

/// When waiting has become as long as this, the shortage is taken for what it is.
const LONGEST_SHORTAGE_WAIT: Duration = Duration::from_secs(16);

/// An endpoint's inquiry, as far as it has come.
pub(super) struct Inquiry<'a> {
    target: &'a Target,
    so_far: Vec<Exchange>,
}

/// What inquiries that have begun have heard so far, by the place of their target.
pub(super) type Begun = HashMap<u32, Vec<Exchange>>;

/// How the pursuit of an inquiry ended for now.
enum Pursuit {
    /// Everything was asked.
    Complete(Verdict),
    /// A confirmation is to come, once the lane's other targets have been asked.
    Later,
    /// The run is being stopped.
    Stopped,
    /// The site has refused so often that it is left alone.
    SiteClosed,
    /// The site's `robots.txt` says no, in these words.
    Forbidden(String),
    /// It is left alone.
    Left(Unmeasured),
}

/// How many requests each site was sent. Sites are many, so they are counted by a hash of their names.
#[derive(Debug, Default)]
pub(super) struct Asked {
    counts: HashMap<u64, u64>,
    /// The site that was sent the most, the first by name of several.
    pub(super) most: Option<(String, u64)>,
}

impl Asked {
    fn count(&mut self, site: &str) {
        let count = self.counts.entry(scatter(site, 0)).or_default();
        *count += 1;
        let leads = |(name, most): &(String, u64)| (*count, Reverse(site)) > (*most, Reverse(name));
        if self.most.as_ref().is_none_or(leads) {
            self.most = Some((site.to_owned(), *count));
        }
    }
}

/// What every inquiry of a run shares.
pub(super) struct Office {
    pub(super) prober: Prober,
    pub(super) headers: Headers,
    pub(super) terms: Terms,
    pub(super) stop: Stop,
    pub(super) counts: Arc<Counts>,
    pub(super) ledger: Pen,
    pub(super) unfinished: AtomicBool,
    pub(super) targets: Vec<Target>,
    /// What is known of those that are to be taken up again.
    pub(super) begun: Mutex<Begun>,
    /// Those that a closed site has left.
    pub(super) rested: Mutex<Vec<u32>>,
    /// Whether those have been taken up again.
    pub(super) last_chance: AtomicBool,
    pub(super) asked: Mutex<Asked>,
    /// Answers that have come, from anyone.
    pub(super) answers: AtomicU64,
    /// What this machine was short of for too long.
    pub(super) halted_by: Mutex<Option<LocalFault>>,
    pub(super) road: Arc<Road>,
    pub(super) suffixes: Suffixes,
    /// What sites let us ask, where the run keeps to that.
    pub(super) permissions: Option<Permissions>,
    /// The suffixes beside the public list.
    pub(super) added: Vec<String>,
    /// Tells when the instrument itself is in doubt.
    pub(super) watch: Arc<Watch>,
    /// What authorization servers said of themselves.
    pub(super) issuers: Issuers,
}

impl Office {
    /// Pursues an inquiry until it is complete, or wants to be taken up again later. So many of its lane are left.
    pub(super) async fn pursue(&self, place: u32, left: usize) -> Done<u32> {
        let target = self.target(place);
        let home = self.lane(&target.url);
        home.expects(left);
        let endpoint = target.endpoint;
        let so_far = self.begun().remove(&place).unwrap_or_default();
        let mut inquiry = Inquiry { target, so_far };
        let pursuit = {
            let asking = pin!(self.ask_all(&mut inquiry, &home));
            unwinding(asking).await
        };
        match pursuit {
            Ok(Pursuit::Complete(verdict)) => self.counts.finish(verdict),
            Ok(Pursuit::Later) => {
                self.begun().insert(place, inquiry.so_far);
                return Done::Again(place);
            }
            Ok(Pursuit::Stopped) => {
                self.unfinished.store(true, Ordering::Relaxed);
                return Done::Finished;
            }
            Ok(Pursuit::SiteClosed) if !self.last_chance.load(Ordering::Relaxed) => {
                self.begun().insert(place, inquiry.so_far);
                self.rested
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(place);
                return Done::Finished;
            }
            Ok(Pursuit::SiteClosed) => self.leave(endpoint, Unmeasured::SitePaused).await,
            Ok(Pursuit::Forbidden(refused)) => {
                self.ledger.add(&Refused { refused, endpoint }).await;
                self.counts.finish(Verdict::Unprobeable);
            }
            Ok(Pursuit::Left(why)) => self.leave(endpoint, why).await,
            // A panic of ours says nothing of the endpoint.
            Err(()) => self.leave(endpoint, Unmeasured::InstrumentError).await,
        }
        Done::Finished
    }

    /// What closed sites have left, with their sites opened again.
    pub(super) fn give_another_chance(&self) -> Vec<u32> {
        let rested =
            std::mem::take(&mut *self.rested.lock().unwrap_or_else(PoisonError::into_inner));
        self.last_chance.store(true, Ordering::Relaxed);
        for place in &rested {
            self.lane(&self.target(*place).url).relax();
        }
        rested
    }

    pub(super) fn target(&self, place: u32) -> &Target {
        &self.targets[place as usize]
    }

    fn begun(&self) -> MutexGuard<'_, Begun> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lane(&self, url: &Url) -> Arc<Lane> {
        let site = self.suffixes.site(url);
        self.road.lane(&site, operator(&site, &self.added))
    }

    /// Writes what the watch has found, before anything that was found later.
    pub(super) async fn write_news(&self) {
        for doubt in self.watch.news() {
            self.ledger.add(&doubt).await;
        }
    }

    /// Leaves an endpoint unmeasured.
    pub(super) async fn leave(&self, endpoint: u32, skipped: Unmeasured) {
        self.counts.finish(Verdict::Unmeasured);
        self.ledger.add(&Skipped { skipped, endpoint }).await;
    }

    async fn ask_all(&self, inquiry: &mut Inquiry<'_>, home: &Arc<Lane>) -> Pursuit {
        let (endpoint, url) = (inquiry.target.endpoint, &inquiry.target.url);
        let headers = self.headers.of(endpoint);
        let secrets = Secrets::of(url).and_headers(headers);
        let mut first = true;
        loop {
            let mut ask = match inquiry::next(inquiry.target, &inquiry.so_far, &self.terms) {
                Next::Done(verdict) => return Pursuit::Complete(verdict),
                Next::Ask(ask) => ask,
                // Taken up again: now it is later.
                Next::Later(ask) if first => ask,
                Next::Later(_) => return Pursuit::Later,
            };
            self.watch.ready(&self.stop.soft).await;
            let opens = ask.attempt > inquiry.so_far.last().map_or(0, |it| it.attempt)
                || inquiry.so_far.is_empty();
            if self.stop.soft.is_cancelled() && opens {
                return Pursuit::Stopped;
            }
            if home.is_closed() && opens {
                return Pursuit::SiteClosed;
            }
            if let Some(permissions) = &self.permissions
                && inquiry.so_far.is_empty()
                && let Some(ban) = Box::pin(self.forbidden(permissions, endpoint, url)).await
            {
                return match ban {
                    Ban::Rule(rule) => Pursuit::Forbidden(rule),
                    Ban::Unknown(why) => Pursuit::Left(why),
                    Ban::Stopped => Pursuit::Stopped,
                };
            }
            first = false;
            if ask.wait_ms > 0 {
                tokio::time::sleep(Duration::from_millis(ask.wait_ms)).await;
            }
            add_headers(&mut ask, url, headers);
            // With headers of the operator's, an answer may be for this endpoint alone.
            let exchanges = if ask.leg == Leg::IssuerMetadata && headers.is_empty() {
                let asked = self.ask(endpoint, &ask, url, home);
                // Boxed, because it is rare and large.
                Box::pin(self.issuers.asked_once(endpoint, &ask, asked)).await
            } else {
                self.ask(endpoint, &ask, url, home).await
            };
            let Some(exchanges) = exchanges else {
                return Pursuit::Stopped;
            };
            for exchange in exchanges {
                self.watch.note(&exchange);
                self.write_news().await;
                self.ledger.add(&shown(&exchange, &secrets)).await;
                inquiry.so_far.push(exchange);
            }
        }
    }

    /// Sends one request in its lane, and heeds what its site says of the pace. Where this machine has run short
    /// of something, the whole run waits and the request is sent again: what is ours is no verdict on anyone. Where
    /// that lasts, the run is halted, and `None` comes of the request.
    pub(super) async fn ask(
        &self,
        endpoint: u32,
        ask: &Ask,
        home: &Url,
        lane: &Arc<Lane>,
    ) -> Option<Vec<Exchange>> {
        let mut wait = SHORTAGE_WAIT;
        let answers = self.answers.load(Ordering::Relaxed);
        loop {
            let to = if ask.request.url == home.as_str() {
                Some(home.clone())
            } else {
                Url::parse(&ask.request.url).ok()
            };
            let way = self.prober.find(to).await;
            // A redirect can lead to another site: it is asked in that site's lane.
            let elsewhere = way
                .to
                .as_ref()
                .filter(|to| to.host() != home.host())
                .map(|to| self.lane(to));
            let lane = elsewhere.as_ref().unwrap_or(lane);
            // A name that leads nowhere costs its site no request, and needs no turn.
            let place = match way.first() {
                Some(address) => {
                    let began = tokio::time::Instant::now();
                    let place = self.road.turn(lane, Some(address)).await;
                    self.watch.meters.waits.observe(began.elapsed());
                    Some(place)
                }
                None => None,
            };
            self.note_asked(lane);
            self.counts.start_request();
            self.watch.meters.start_request();
            let follow = || self.road.follow(lane, way.first());
            let on_leaving = self.road.on_leaving(lane);
            let exchanges = (self.prober)
                .send(endpoint, ask, &way, on_leaving, follow)
                .await;
            self.counts.end_request();
            self.watch.meters.end_request();
            drop(place);
            let others_answer = self.answers.load(Ordering::Relaxed) > answers;
            let short = exchanges
                .iter()
                .find_map(|it| shortage(&it.reply, others_answer, resolve::has_network));
            let Some(short) = short else {
                for exchange in &exchanges {
                    self.heed(exchange, lane);
                }
                return Some(exchanges);
            };
            if wait > LONGEST_SHORTAGE_WAIT && self.watch.doubt_now() {
                // Who keeps watch waits, and gives up in its own time.
                self.watch.ready(&self.stop.soft).await;
                wait = SHORTAGE_WAIT;
            }
            if wait > LONGEST_SHORTAGE_WAIT || self.stop.soft.is_cancelled() {
                *self
                    .halted_by
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = Some(short);
                self.stop.soft.cancel();
                return None;
            }
            self.road.hold(wait);
            tokio::time::sleep(wait).await;
            wait *= 2;
        }
    }

    /// Takes a site's word that it has enough for now.
    fn heed(&self, exchange: &Exchange, lane: &Lane) {
        let Some(answer) = exchange.answer() else {
            return;
        };
        self.answers.fetch_add(1, Ordering::Relaxed);
        if matches!(answer.status, 429 | 503) {
            lane.pause(retry_after(answer, exchange.started_at));
        } else if exchange.leg != Leg::Close {
            lane.relax();
        }
    }

    fn note_asked(&self, lane: &Lane) {
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .count(lane.site());
    }
}

/// Adds an endpoint's headers to a request, where it goes to the endpoint's own origin. Ours stay as they are.
fn add_headers(ask: &mut Ask, home: &Url, headers: &[(String, String)]) {
    if headers.is_empty()
        || !Url::parse(&ask.request.url).is_ok_and(|url| url.origin() == home.origin())
    {
        return;
    }
    for (name, value) in headers {
        if !ask.request.has_header(name) {
            ask.request.headers.push((name.clone(), value.clone()));
        }
    }
}

/// What this machine is short of, where an exchange failed for that. An address without a route is the network's
/// doing only where there is no route to anywhere, and nobody else answers.
fn shortage(
    reply: &Reply,
    others_answer: bool,
    has_network: impl Fn() -> bool,
) -> Option<LocalFault> {
    match reply {
        Reply::Fault(Fault::Local(it @ (LocalFault::Exhausted | LocalFault::NoNetwork))) => {
            Some(*it)
        }
        Reply::Fault(Fault::Connect(ConnectFault::NoRoute)) if !others_answer && !has_network() => {
            Some(LocalFault::NoNetwork)
        }
        Reply::Fault(_) | Reply::Answer(_) => None,
    }
}

/// `Retry-After`, in seconds or as a date (RFC 9110 §10.2.3).
pub(crate) fn retry_after(answer: &Answer, now: Timestamp) -> Option<Duration> {
    let value = answer.header("retry-after")?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(value).ok()?;
    Duration::try_from(date.timestamp().duration_since(now)).ok()
}

/// What is written of an exchange: all of it but the target's secrets.
fn shown<'a>(exchange: &'a Exchange, secrets: &Secrets) -> Cow<'a, Exchange> {
    if secrets.is_empty() {
        return Cow::Borrowed(exchange);
    }
    let mut exchange = exchange.clone();
    exchange.request.url = secrets.hide(&exchange.request.url);
    for (_, value) in &mut exchange.request.headers {
        *value = secrets.hide(value);
    }
    if let Reply::Answer(answer) = &mut exchange.reply {
        for (_, value) in &mut answer.headers {
            *value = secrets.hide(value);
        }
        if let Ok(text) = std::str::from_utf8(&answer.body.0) {
            answer.body.0 = secrets.hide(text).into_bytes();
        }
    }
    Cow::Owned(exchange)
}

/// Runs a future, and turns a panic inside it into a value. It is lent, since a future that is handed over takes its
/// room twice.
async fn unwinding<T>(mut future: Pin<&mut impl Future<Output = T>>) -> Result<T, ()> {
    std::future::poll_fn(|cx| {
        match std::panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(_) => std::task::Poll::Ready(Err(())),
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_inside_a_probe_is_a_value() {
        let mut sound = std::future::ready(7);
        assert_eq!(unwinding(Pin::new(&mut sound)).await, Ok(7));
        let fails = async {
            tokio::task::yield_now().await;
            panic!("a defect of ours")
        };
        assert_eq!(unwinding::<()>(pin!(fails)).await, Err(()));
    }

    #[test]
    fn an_inquiry_under_way_takes_little_room() {
        fn room<'a, F: Future>(_: impl Fn(&'a Office, u32, usize) -> F) -> usize {
            size_of::<F>()
        }
        // A thousand are under way at once, and each is touched all the time.
        assert!(room(Office::pursue) < 4096, "{}", room(Office::pursue));
    }

    #[test]
    fn what_this_machine_is_short_of_is_told_from_what_a_host_lacks() {
        let fault = |fault| Reply::Fault(fault);
        let exhausted = fault(Fault::Local(LocalFault::Exhausted));
        let no_route = fault(Fault::Connect(ConnectFault::NoRoute));
        let refused = fault(Fault::Connect(ConnectFault::Refused));
        for (reply, others_answer, network, short) in [
            (&exhausted, true, true, Some(LocalFault::Exhausted)),
            (&no_route, false, false, Some(LocalFault::NoNetwork)),
            (&no_route, false, true, None),
            (&no_route, true, false, None),
            (&refused, false, false, None),
        ] {
            assert_eq!(shortage(reply, others_answer, || network), short);
        }
    }

    #[test]
    fn the_site_asked_most_is_the_first_by_name_of_several() {
        let mut asked = Asked::default();
        for site in [
            "b.example",
            "a.example",
            "c.example",
            "b.example",
            "a.example",
        ] {
            asked.count(site);
        }
        assert_eq!(asked.most, Some(("a.example".to_owned(), 2)));
    }

    #[test]
    fn a_site_says_how_long_to_wait_in_seconds_or_as_a_date() {
        let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        for (value, seconds) in [
            ("7", Some(7)),
            ("Mon, 30 Nov 2026 12:00:09 GMT", Some(9)),
            ("Mon, 30 Nov 2026 11:00:00 GMT", None),
            ("soon", None),
        ] {
            let answer = Answer {
                version: "HTTP/1.1".into(),
                status: 429,
                headers: vec![("retry-after".into(), value.into())],
                body: crate::exchange::Body::default(),
                end: crate::exchange::BodyEnd::Complete,
            };
            assert_eq!(
                retry_after(&answer, now),
                seconds.map(Duration::from_secs),
                "{value}"
            );
        }
    }
}
