//! Where metadata documents stand (RFC 9728, RFC 8414, OpenID discovery), which of those addresses we are willing to
//! ask, and what a good document is. Every address here may be a stranger's choice.

use serde_json::{Map, Value};
use url::{Host, Url};

use crate::body::{self, Content};
use crate::exchange::Exchange;
use crate::redirect;

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const OAUTH: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// Where an endpoint's resource metadata may stand: where the challenge says, else at the well-known address with the
/// endpoint's path, else at the root (2025-11-25 authorization, "Protected Resource Metadata Discovery").
pub(super) fn of_resource(endpoint: &Url, named: Option<&str>) -> Vec<Url> {
    let path = endpoint.path().trim_end_matches('/');
    let mut places: Vec<Url> = named
        .and_then(|it| endpoint.join(it).ok())
        .into_iter()
        .collect();
    places.push(at(endpoint, &format!("{RESOURCE}{path}")));
    places.push(at(endpoint, RESOURCE));
    only_askable(places, endpoint)
}

/// Where an issuer's metadata may stand, in the order of the specification.
pub(super) fn of_issuer(issuer: &str, endpoint: &Url) -> Vec<Url> {
    let Ok(issuer) = Url::parse(issuer) else {
        return Vec::new();
    };
    let path = issuer.path().trim_end_matches('/');
    let mut places = vec![
        at(&issuer, &format!("{OAUTH}{path}")),
        at(&issuer, &format!("{OPENID}{path}")),
    ];
    if !path.is_empty() {
        places.push(at(&issuer, &format!("{path}{OPENID}")));
    }
    only_askable(places, endpoint)
}

/// The identifier that a well-known address was built from, where it is one of this endpoint's.
pub(super) fn resource_of(endpoint: &Url, place: &Url) -> Option<Url> {
    if place.origin() != endpoint.origin() {
        return None;
    }
    let path = place.path().strip_prefix(RESOURCE)?;
    Some(at(endpoint, if path.is_empty() { "/" } else { path }))
}

fn at(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

/// Each address once, and only those that a stranger may send us to: https, or what the endpoint itself is; not from
/// one host to another that is not public; without credentials.
fn only_askable(places: Vec<Url>, endpoint: &Url) -> Vec<Url> {
    let mut kept: Vec<Url> = Vec::new();
    for place in places {
        let is_own = place.scheme() == endpoint.scheme() && place.host() == endpoint.host();
        let is_safe = (place.scheme() == "https" || is_own)
            && place.username().is_empty()
            && place.password().is_none()
            && !redirect::leads_inside(endpoint, &place);
        if is_safe && !kept.contains(&place) {
            kept.push(place);
        }
    }
    kept
}

/// A document as it should be: 200, application/json, one object. Otherwise what is wrong.
pub(super) fn document(exchange: &Exchange) -> Result<Map<String, Value>, String> {
    let Some(answer) = exchange.answer() else {
        return Err("no answer".to_owned());
    };
    if answer.status != 200 {
        return Err(format!("HTTP {}", answer.status));
    }
    let Content::Json(json) = body::read(answer).content else {
        return Err("no JSON".to_owned());
    };
    let Value::Object(members) = json.value else {
        return Err("no JSON object".to_owned());
    };
    if answer.media_type() == "application/json" {
        Ok(members)
    } else {
        Err(format!("labelled {:?}", answer.media_type()))
    }
}

/// Whether two identifiers are the same address. Scheme and host in either case, a default port and an empty path make
/// no difference; a path's end does.
pub(super) fn same(one: &str, other: &str) -> bool {
    one == other
        || matches!((Url::parse(one), Url::parse(other)), (Ok(one), Ok(other)) if one == other)
}

/// Whether an address is on this machine, where OAuth allows http.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

/// The strings of a list.
pub(super) fn strings(value: Option<&Value>) -> Vec<&str> {
    let items = value.and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}
