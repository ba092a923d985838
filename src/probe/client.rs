//! The HTTP client of all probes: it goes the way that was found, and marks how far an exchange has come.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use reqwest::{Client, ClientBuilder};

use super::phases::{PHASES, Phases};
use super::{Limits, OnLeaving};
use crate::exchange::{Fault, LocalFault};
use crate::resolve;

/// Marks the start of a TLS handshake, and keeps no session: every probe shakes hands anew.
#[derive(Debug)]
struct NoSessions;

impl rustls::client::ClientSessionStore for NoSessions {
    fn set_kx_hint(&self, _: rustls::pki_types::ServerName<'static>, _: rustls::NamedGroup) {}
    fn kx_hint(&self, _: &rustls::pki_types::ServerName<'_>) -> Option<rustls::NamedGroup> {
        let _ = PHASES.try_with(|phases| phases.mark(&phases.connected));
        None
    }
    fn set_tls12_session(
        &self,
        _: rustls::pki_types::ServerName<'static>,
        _: rustls::client::Tls12ClientSessionValue,
    ) {
    }
    fn tls12_session(
        &self,
        _: &rustls::pki_types::ServerName<'_>,
    ) -> Option<rustls::client::Tls12ClientSessionValue> {
        None
    }
    fn remove_tls12_session(&self, _: &rustls::pki_types::ServerName<'static>) {}
    fn insert_tls13_ticket(
        &self,
        _: rustls::pki_types::ServerName<'static>,
        _: rustls::client::Tls13ClientSessionValue,
    ) {
    }
    fn take_tls13_ticket(
        &self,
        _: &rustls::pki_types::ServerName<'static>,
    ) -> Option<rustls::client::Tls13ClientSessionValue> {
        None
    }
}

/// Notices that a server asks for a certificate, and has none to give.
#[derive(Debug)]
struct NoCertificate;

impl rustls::client::ResolvesClientCert for NoCertificate {
    fn resolve(
        &self,
        _: &[&[u8]],
        _: &[rustls::SignatureScheme],
    ) -> Option<Arc<rustls::sign::CertifiedKey>> {
        let _ = PHASES.try_with(|phases| phases.certificate_asked.store(true, Ordering::Relaxed));
        None
    }
    fn has_certs(&self) -> bool {
        false
    }
}

/// A request's body, which marks when the request is written: the connection is ready then. The client asks whether
/// there is a body as it writes the first line, and never before.
pub(super) struct Written {
    pub(super) left: Option<Bytes>,
    pub(super) phases: Arc<Phases>,
    pub(super) on_leaving: Option<OnLeaving>,
}

impl HttpBody for Written {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.left.take().map(|all| Ok(Frame::data(all))))
    }

    fn is_end_stream(&self) -> bool {
        if self.phases.mark(&self.phases.ready)
            && let Some(on_leaving) = &self.on_leaving
        {
            on_leaving();
        }
        self.left.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left.as_ref().map_or(0, |all| all.len() as u64))
    }
}

/// The addresses that were found before, as the HTTP client wants them: it looks up nothing itself.
#[derive(Debug)]
struct Found;

impl reqwest::dns::Resolve for Found {
    fn resolve(&self, _: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let found = PHASES
            .try_with(|phases| phases.addresses.clone())
            .unwrap_or_default();
        Box::pin(std::future::ready(if found.is_empty() {
            Err(resolve::carried(Fault::Local(LocalFault::Instrument)))
        } else {
            let addresses = found.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(addresses) as reqwest::dns::Addrs)
        }))
    }
}

/// A client that takes one way as it was found, keeps no connection, and follows nothing.
pub(super) fn builder(mut tls: rustls::ClientConfig, limits: Limits) -> ClientBuilder {
    tls.resumption = rustls::client::Resumption::store(Arc::new(NoSessions));
    tls.client_auth_cert_resolver = Arc::new(NoCertificate);
    let builder = Client::builder();
    // A connection lives for one exchange under a deadline: this, and the keep-alives below, would each be a system
    // call for nothing.
    #[cfg(target_os = "linux")]
    let builder = builder.tcp_user_timeout(None);
    builder
        .tls_backend_preconfigured(tls)
        .dns_resolver(Arc::new(Found))
        .connect_timeout(limits.connect)
        .redirect(reqwest::redirect::Policy::none())
        .pool_max_idle_per_host(0)
        .tcp_keepalive(None)
        .tcp_keepalive_interval(None)
        .tcp_keepalive_retries(None)
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        // Both are for a recipient to read over (RFC 9112 §5.1, §5.2).
        .http1_allow_obsolete_multiline_headers_in_responses(true)
        .http1_allow_spaces_after_header_name_in_responses(true)
}
