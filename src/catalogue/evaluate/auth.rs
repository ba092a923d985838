//! The checks of authorization: the refusal itself, the documents it leads to, and how far the way in was found.

use serde_json::{Map, Value};
use url::Url;

use super::{Bench, Told, missing, outside, pass};
use crate::catalogue::documents::{self, document, is_loopback, same, strings};
use crate::catalogue::heard::Heard;
use crate::catalogue::id::CheckId;
use crate::catalogue::rule::{Revision, Rule};
use crate::catalogue::situation::{Situation, address};
use crate::catalogue::status::{Missing, Outside, Status};
use crate::challenge::challenges;
use crate::exchange::{Exchange, Fault, Leg, Reply};
use crate::hint;
use crate::names::names;
use crate::outcome::{Detail, Hint, Refusal, Turn};

names! {
    /// How far a client finds the way in from a 401.
    pub enum Discovery {
        /// The challenge leads to resource metadata, and those to an authorization server's.
        Full = "oauth_full",
        /// The resource metadata are at a well-known address; the challenge does not name them.
        WellKnownOnly = "oauth_prm_wellknown_only",
        /// The challenge names resource metadata that cannot be had.
        HeaderBroken = "oauth_header_broken_prm",
        /// The resource metadata are there, and no authorization server's were found.
        NoServer = "oauth_no_as_metadata",
        /// A challenge that leads to no resource metadata.
        OtherChallenge = "www_auth_other",
        /// No challenge.
        Bare = "bare_401",
    }
}

/// A document that was found, and where.
struct Found<'a> {
    exchange: &'a Exchange,
    members: Map<String, Value>,
}

fn found<'a>(situation: &Situation<'a>, leg: Leg) -> Option<Found<'a>> {
    situation.legs(leg).find_map(|exchange| {
        document(exchange)
            .ok()
            .map(|members| Found { exchange, members })
    })
}

/// The address the challenge names, where it names one.
fn named(situation: &Situation<'_>) -> Option<String> {
    situation
        .bearer()?
        .param("resource_metadata")
        .map(str::to_owned)
}

/// Whether a document stands where the challenge says.
fn is_named(situation: &Situation<'_>, exchange: &Exchange) -> bool {
    let here = situation.gate().and_then(address);
    match (here, named(situation)) {
        (Some(here), Some(named)) => here
            .join(&named)
            .is_ok_and(|it| it.as_str() == exchange.request.url),
        _ => false,
    }
}

/// How far the way in was found. `None` where there is no 401, or it was not looked for.
pub(super) fn discovered(situation: &Situation<'_>) -> Option<Discovery> {
    let gate = situation.gate()?.answer()?;
    situation.legs(Leg::ResourceMetadata).next()?;
    let resource = found(situation, Leg::ResourceMetadata);
    let by_name = resource
        .as_ref()
        .is_some_and(|it| is_named(situation, it.exchange));
    let server = found(situation, Leg::IssuerMetadata).is_some();
    Some(match (named(situation).is_some(), resource.is_some()) {
        (true, _) if !by_name => Discovery::HeaderBroken,
        (_, true) if !server => Discovery::NoServer,
        (true, _) => Discovery::Full,
        (false, true) => Discovery::WellKnownOnly,
        (false, false) if gate.header("www-authenticate").is_some() => Discovery::OtherChallenge,
        (false, false) => Discovery::Bare,
    })
}

impl Bench<'_> {
    pub(super) fn about_gate(&self, rule: &Rule) -> Told {
        let told = match rule.id {
            CheckId::AuthRefusalIs401 => self.refusal_is_401(rule),
            CheckId::AuthWwwAuthenticate => self.challenged(rule),
            CheckId::AuthResourceMetadataParam => self.metadata_param(rule),
            CheckId::AuthScopeParam
            | CheckId::AuthNoErrorWithoutCreds
            | CheckId::AuthNoOfflineAccess => self.bearer_param(rule),
            CheckId::TlsHttps => self.https(rule),
            CheckId::PrmFetch => self.fetched(rule),
            CheckId::PrmResourceMatch | CheckId::PrmAuthorizationServers => self.resource(rule),
            CheckId::AsMetadata => self.issuer_fetched(rule),
            _ => self.issuer(rule),
        };
        told.unwrap_or_else(|told| told)
    }

    fn gate(&self) -> Result<&Exchange, Told> {
        if let Some(gate) = self.situation.gate() {
            return Ok(gate);
        }
        match self.situation.blank() {
            Some(why @ (Missing::TimedOut | Missing::NoMessage | Missing::NotAsked)) => {
                Err(missing(why))
            }
            _ => Err(outside(Outside::Gate)),
        }
    }

    fn refusal_is_401(&self, rule: &Rule) -> Result<Told, Told> {
        let situation = self.situation;
        if situation.gate().is_some() {
            return Ok(pass(discovered(situation).map_or("", Discovery::name)));
        }
        let status = situation.opening.as_ref().map_or(0, |it| it.answer.status);
        match &situation.reading.detail {
            Detail::Refusal(Refusal::InsufficientScope) => {}
            Detail::Refusal(_) => {
                let answer = situation.decided.and_then(Exchange::answer);
                let challenged = answer.is_some_and(|it| it.header("www-authenticate").is_some());
                if challenged {
                    let seen = "HTTP 403 with a challenge".to_owned();
                    return Ok(Self::held(rule, Err(seen)));
                }
            }
            Detail::Redirect(status, Some(Turn::Login)) => {
                return Ok((Status::Warn, format!("HTTP {status} to a login page")));
            }
            _ => {}
        }
        if let Some(error) = situation.opening.as_ref().and_then(Heard::error) {
            if matches!(error.get("code").and_then(Value::as_i64), Some(401)) {
                let seen = format!("code 401 under HTTP {status}");
                return Ok(Self::held(rule, Err(seen)));
            }
            let text = error.get("message").and_then(Value::as_str);
            if text.and_then(hint::family) == Some(Hint::AuthLike) {
                let seen = format!("a JSON-RPC error under HTTP {status} asks for credentials");
                return Ok((Status::Warn, seen));
            }
        }
        self.gate().map(|_| pass(""))
    }

    fn challenged(&self, rule: &Rule) -> Result<Told, Told> {
        let gate = self.gate()?.answer();
        let lines = gate.into_iter().flat_map(|it| it.all("www-authenticate"));
        let (found, _) = challenges(lines);
        let schemes: Vec<&str> = found.iter().map(|it| it.scheme.as_str()).collect();
        Ok(Self::held(
            rule,
            if schemes.is_empty() {
                Err("no challenge can be read".to_owned())
            } else {
                Ok(schemes.join(", "))
            },
        ))
    }

    fn metadata_param(&self, rule: &Rule) -> Result<Told, Told> {
        self.gate()?;
        if let Some(named) = named(self.situation) {
            return Ok(pass(named));
        }
        let wellknown = found(self.situation, Leg::ResourceMetadata).is_some();
        let has_bearer = self.situation.bearer().is_some();
        if !has_bearer && !wellknown {
            return Err(outside(Outside::Scheme));
        }
        if !self.situation.is_since(Revision::V2025_11) {
            return Ok(Self::held(rule, Err("resource_metadata is missing".into())));
        }
        if wellknown {
            return Ok(pass("at a well-known address"));
        }
        if self.situation.legs(Leg::ResourceMetadata).next().is_none() {
            return Err(self.undiscovered());
        }
        let seen = "neither in the challenge nor at a well-known address".to_owned();
        Ok(Self::held(rule, Err(seen)))
    }

    fn bearer_param(&self, rule: &Rule) -> Result<Told, Told> {
        self.gate()?;
        let bearer = self
            .situation
            .bearer()
            .ok_or_else(|| outside(Outside::Scheme))?;
        let scope = bearer.param("scope");
        let seen = match (rule.id, bearer.param("error")) {
            (CheckId::AuthScopeParam, _) => scope.map_or_else(
                || Err("scope is missing".to_owned()),
                |it| Ok(it.to_owned()),
            ),
            (CheckId::AuthNoErrorWithoutCreds, None) => Ok(String::new()),
            (CheckId::AuthNoErrorWithoutCreds, Some(error)) => Err(format!("error is {error:?}")),
            _ => {
                let resource = found(self.situation, Leg::ResourceMetadata);
                let supported = resource
                    .as_ref()
                    .map(|it| strings(it.members.get("scopes_supported")))
                    .unwrap_or_default();
                let asked = scope.unwrap_or_default().split(' ');
                if asked.chain(supported).any(|it| it == "offline_access") {
                    Err("offline_access is asked for".to_owned())
                } else {
                    Ok(String::new())
                }
            }
        };
        Ok(Self::held(rule, seen))
    }

    fn https(&self, rule: &Rule) -> Result<Told, Told> {
        if matches!(
            self.situation.reading.detail,
            Detail::Redirect(_, Some(Turn::Downgrade))
        ) {
            let seen = "a redirect leads from https to http".to_owned();
            return Ok(Self::held(rule, Err(seen)));
        }
        let here = address(self.gate()?).unwrap_or_else(|| self.target.url.clone());
        if is_loopback(&here) {
            return Err(outside(Outside::Transport));
        }
        Ok(Self::held(
            rule,
            if here.scheme() == "https" {
                Ok(String::new())
            } else {
                Err("the endpoint is gated and served over http".to_owned())
            },
        ))
    }

    /// Why the documents were not asked for.
    fn undiscovered(&self) -> Told {
        let for_checks = self
            .situation
            .exchanges
            .iter()
            .any(|it| it.leg.is_for_checks());
        missing(if for_checks {
            Missing::Budget
        } else {
            Missing::NotAsked
        })
    }

    /// Whether the server takes part in OAuth: it sends a Bearer challenge, or has resource metadata.
    fn is_oauth(&self) -> bool {
        self.situation.bearer().is_some() || found(self.situation, Leg::ResourceMetadata).is_some()
    }

    fn fetched(&self, rule: &Rule) -> Result<Told, Told> {
        let endpoint = address(self.gate()?).ok_or_else(|| missing(Missing::NotAsked))?;
        let mut tried = self.situation.legs(Leg::ResourceMetadata).peekable();
        let name = named(self.situation);
        let places = documents::of_resource(&endpoint, name.as_deref());
        let is_refused = name
            .as_deref()
            .is_some_and(|it| endpoint.join(it).map_or(true, |it| !places.contains(&it)));
        if is_refused {
            let seen = "the challenge names no address that may be asked".to_owned();
            return Ok(Self::held(rule, Err(seen)));
        }
        if tried.peek().is_none() {
            return Err(if self.is_oauth() {
                self.undiscovered()
            } else {
                outside_or(self.undiscovered(), self.situation)
            });
        }
        let resource = found(self.situation, Leg::ResourceMetadata);
        let seen = match &resource {
            Some(it) if name.is_none() || is_named(self.situation, it.exchange) => {
                Ok(it.exchange.request.url.clone())
            }
            Some(it) => Err(format!(
                "not where the challenge says, but at {}",
                it.exchange.request.url
            )),
            None if name.is_some() => {
                let first = tried.next().map(document);
                let why = first.and_then(Result::err).unwrap_or_default();
                Err(format!("where the challenge says: {why}"))
            }
            None if !self.is_oauth() => return Err(outside(Outside::Scheme)),
            None => {
                let asked = tried.map(|it| it.request.url.as_str());
                let all_asked = asked.count() >= places.len();
                if !all_asked {
                    return Err(missing(Missing::Budget));
                }
                Err("at no well-known address".to_owned())
            }
        };
        Ok(Self::held(rule, seen))
    }

    /// The resource metadata, or why there are none.
    fn resource_metadata(&self) -> Result<Found<'_>, Told> {
        self.gate()?;
        if let Some(found) = found(self.situation, Leg::ResourceMetadata) {
            return Ok(found);
        }
        if self.situation.legs(Leg::ResourceMetadata).next().is_none() {
            return Err(self.undiscovered());
        }
        Err(if self.is_oauth() {
            missing(Missing::Basis)
        } else {
            outside(Outside::Scheme)
        })
    }

    fn resource(&self, rule: &Rule) -> Result<Told, Told> {
        let found = self.resource_metadata()?;
        if rule.id == CheckId::PrmAuthorizationServers {
            let servers = strings(found.members.get("authorization_servers"));
            return Ok(Self::held(
                rule,
                match servers.first() {
                    Some(first) => Ok((*first).to_owned()),
                    None => Err("authorization_servers names none".to_owned()),
                },
            ));
        }
        let here = address(self.gate()?).ok_or_else(|| missing(Missing::Basis))?;
        let place = Url::parse(&found.exchange.request.url).ok();
        let wanted = if is_named(self.situation, found.exchange) {
            here
        } else {
            place
                .and_then(|place| documents::resource_of(&here, &place))
                .unwrap_or(here)
        };
        let seen = match found.members.get("resource").and_then(Value::as_str) {
            None => Err("resource is missing".to_owned()),
            Some(resource) if same(resource, wanted.as_str()) => Ok(String::new()),
            Some(resource) => Err(format!(
                "resource is {resource:?}, not {:?}",
                wanted.as_str()
            )),
        };
        Ok(Self::held(rule, seen))
    }

    fn issuer_fetched(&self, rule: &Rule) -> Result<Told, Told> {
        let resource = self.resource_metadata()?;
        let issuers = strings(resource.members.get("authorization_servers"));
        let Some(issuer) = issuers.first() else {
            return Err(missing(Missing::Basis));
        };
        if let Some(found) = found(self.situation, Leg::IssuerMetadata) {
            return Ok(pass(found.exchange.request.url.clone()));
        }
        let here = address(self.gate()?).ok_or_else(|| missing(Missing::Basis))?;
        let places = documents::of_issuer(issuer, &here);
        if places.is_empty() {
            let seen = format!("{issuer:?} is no address that may be asked");
            return Ok(Self::held(rule, Err(seen)));
        }
        let tried: Vec<&Exchange> = self.situation.legs(Leg::IssuerMetadata).collect();
        if tried.len() < places.len() {
            return Err(self.undiscovered());
        }
        // A host that cannot be reached from here says nothing of what it publishes.
        if tried.iter().all(|it| it.answer().is_none()) {
            let is_late = |it: &&Exchange| matches!(it.reply, Reply::Fault(Fault::Deadline(_)));
            let late = tried.iter().copied().any(|it| is_late(&it));
            return Err(missing(if late {
                Missing::TimedOut
            } else {
                Missing::NoMessage
            }));
        }
        Ok(Self::held(
            rule,
            Err(format!("at no well-known address of {issuer}")),
        ))
    }

    fn issuer(&self, rule: &Rule) -> Result<Told, Told> {
        let resource = self.resource_metadata()?;
        let found = found(self.situation, Leg::IssuerMetadata).ok_or_else(|| {
            let asked = self.situation.legs(Leg::IssuerMetadata).next().is_some();
            if asked {
                missing(Missing::Basis)
            } else {
                self.undiscovered()
            }
        })?;
        let issuers = strings(resource.members.get("authorization_servers"));
        let seen = issuer_member(rule.id, &found.members, issuers.first().copied());
        Ok(Self::held(rule, seen))
    }
}

/// Without a challenge it is not known whether there is OAuth; with another scheme there is none.
fn outside_or(unknown: Told, situation: &Situation<'_>) -> Told {
    let answer = situation.gate().and_then(Exchange::answer);
    match answer.and_then(|it| it.header("www-authenticate")) {
        Some(_) => outside(Outside::Scheme),
        None => unknown,
    }
}

/// One member of an authorization server's metadata.
fn issuer_member(
    check: CheckId,
    members: &Map<String, Value>,
    wanted: Option<&str>,
) -> Result<String, String> {
    let is_true = |member: &str| match members.get(member) {
        Some(Value::Bool(true)) => Ok(String::new()),
        Some(other) => Err(format!("{member} is {other}")),
        None => Err(format!("{member} is missing")),
    };
    match check {
        CheckId::AsIssuerMatch => match members.get("issuer").and_then(Value::as_str) {
            None => Err("issuer is missing".to_owned()),
            Some(issuer) if Some(issuer) == wanted => Ok(String::new()),
            Some(issuer) => Err(format!(
                "issuer is {issuer:?}, not {:?}",
                wanted.unwrap_or_default()
            )),
        },
        CheckId::AsPkce => {
            let methods = strings(members.get("code_challenge_methods_supported"));
            if methods.contains(&"S256") {
                Ok(String::new())
            } else if methods.is_empty() {
                Err("code_challenge_methods_supported names none".to_owned())
            } else {
                Err(format!("only {}", methods.join(", ")))
            }
        }
        CheckId::AsHttps => {
            let endpoints = [
                "authorization_endpoint",
                "token_endpoint",
                "registration_endpoint",
            ];
            for name in endpoints {
                let Some(url) = members.get(name).and_then(Value::as_str) else {
                    continue;
                };
                match Url::parse(url) {
                    Ok(url) if url.scheme() == "https" || is_loopback(&url) => {}
                    Ok(_) => return Err(format!("{name} is not https")),
                    Err(_) => return Err(format!("{name} is no address")),
                }
            }
            Ok(String::new())
        }
        CheckId::AsCimd => is_true("client_id_metadata_document_supported"),
        CheckId::AsDcr => Ok(match members.get("registration_endpoint") {
            Some(_) => "registers clients".to_owned(),
            None => "does not register clients".to_owned(),
        }),
        _ => is_true("authorization_response_iss_parameter_supported"),
    }
}
