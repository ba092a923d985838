//! Foreign errors -> `Fault`, by type, never by text. The one place that knows what `reqwest`, `hyper`,
//! `h2`, `rustls` and the operating system call their failures.

use std::error::Error;
use std::io::{self, ErrorKind};

use rustls::{AlertDescription, CertificateError};

use crate::exchange::{ConnectFault, DnsFault, Drop, Fault, LocalFault, Stage, TlsFault};

/// How far a connection had come when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reached {
    /// The name was being resolved.
    Resolving,
    /// The TCP connection was being made.
    Connecting,
    /// The TLS handshake was under way.
    Handshake,
    /// The request was on its way, or the answer awaited.
    Asked,
    /// The body was being read.
    Body,
}

/// A fault of ours that goes through somebody else's error type and comes back: see `resolve`.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("{0:?}")]
pub struct Carried(pub Fault);

/// Every cause of an error, outermost first, looking inside `io::Error` too: its `source()` skips the error it wraps.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&it| {
        match it.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => it.source(),
        }
    })
    // No chain is this long; a cycle would be.
    .take(32)
}

fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    causes(error).find_map(|it| it.downcast_ref())
}

/// Places a failed request on the way to its answer. The earliest stage wins.
#[must_use]
pub fn fault(error: &reqwest::Error, reached: Reached) -> Fault {
    if let Some(Carried(fault)) = find::<Carried>(error) {
        return *fault;
    }
    if causes(error)
        .filter_map(|it| it.downcast_ref::<io::Error>())
        .any(is_exhaustion)
    {
        return Fault::Local(LocalFault::Exhausted);
    }
    if let Some(found) = find::<rustls::Error>(error) {
        return Fault::Tls(tls(found));
    }
    if error.is_timeout() {
        return deadline(reached);
    }
    if let Some(found) = find::<h2::Error>(error)
        && !found.is_io()
    {
        return Fault::Dropped(if found.is_reset() {
            Drop::H2StreamReset
        } else {
            Drop::H2GoAway
        });
    }
    if let Some(found) = find::<hyper::Error>(error) {
        if found.is_parse_too_large() {
            return Fault::Dropped(Drop::HeadersOverLimit);
        }
        if found.is_parse() {
            return Fault::Dropped(Drop::HttpMalformed);
        }
        if found.is_incomplete_message() || found.is_canceled() {
            return Fault::Dropped(if reached == Reached::Body {
                Drop::IncompleteBody
            } else {
                Drop::EmptyReply
            });
        }
    }
    let kind = causes(error)
        .filter_map(|it| it.downcast_ref::<io::Error>())
        .map(io::Error::kind)
        .find(|kind| *kind != ErrorKind::Other);
    by_kind(kind, reached)
}

fn by_kind(kind: Option<ErrorKind>, reached: Reached) -> Fault {
    match (reached, kind) {
        (Reached::Resolving, _) => Fault::Dns(DnsFault::ServFail),
        (Reached::Connecting | Reached::Handshake, Some(ErrorKind::TimedOut)) => deadline(reached),
        (Reached::Connecting, Some(ErrorKind::ConnectionRefused)) => {
            Fault::Connect(ConnectFault::Refused)
        }
        (Reached::Connecting, Some(ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted)) => {
            Fault::Connect(ConnectFault::Reset)
        }
        (
            Reached::Connecting,
            Some(
                ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable | ErrorKind::NetworkDown,
            ),
        ) => Fault::Connect(ConnectFault::NoRoute),
        (Reached::Connecting, _) => Fault::Connect(ConnectFault::Other),
        (
            Reached::Handshake,
            Some(ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted),
        ) => Fault::Tls(TlsFault::Reset),
        (Reached::Handshake, Some(ErrorKind::UnexpectedEof)) => Fault::Tls(TlsFault::Closed),
        (Reached::Handshake, _) => Fault::Tls(TlsFault::Other),
        (Reached::Asked, Some(ErrorKind::UnexpectedEof)) => Fault::Dropped(Drop::EmptyReply),
        (Reached::Asked, _) => Fault::Dropped(Drop::BeforeResponse),
        (
            Reached::Body,
            Some(ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted),
        ) => Fault::Dropped(Drop::MidBody),
        (Reached::Body, Some(ErrorKind::InvalidData | ErrorKind::InvalidInput)) => {
            Fault::Dropped(Drop::HttpMalformed)
        }
        (Reached::Body, _) => Fault::Dropped(Drop::IncompleteBody),
    }
}

/// The deadline passed: what were we waiting for?
#[must_use]
pub fn deadline(reached: Reached) -> Fault {
    match reached {
        Reached::Resolving => Fault::Dns(DnsFault::Timeout),
        Reached::Connecting => Fault::Deadline(Stage::Connect),
        Reached::Handshake => Fault::Deadline(Stage::Tls),
        Reached::Asked => Fault::Deadline(Stage::FirstByte),
        Reached::Body => Fault::Deadline(Stage::Body),
    }
}

/// No descriptor, port or buffer left on this machine: EMFILE, ENFILE, EADDRNOTAVAIL, ENOBUFS, ENOMEM.
pub(crate) fn is_exhaustion(error: &io::Error) -> bool {
    error.kind() == ErrorKind::AddrNotAvailable
        || error.kind() == ErrorKind::OutOfMemory
        || (cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24)))
        || (cfg!(target_os = "linux") && error.raw_os_error() == Some(105))
}

fn tls(error: &rustls::Error) -> TlsFault {
    match error {
        rustls::Error::InvalidCertificate(why) => certificate(why),
        rustls::Error::AlertReceived(
            AlertDescription::ProtocolVersion | AlertDescription::InsufficientSecurity,
        )
        | rustls::Error::PeerIncompatible(_) => TlsFault::ProtocolVersion,
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            TlsFault::ClientCertRequired
        }
        rustls::Error::AlertReceived(_) => TlsFault::Alert,
        rustls::Error::InvalidMessage(_) => TlsFault::NotTls,
        rustls::Error::NoCertificatesPresented => TlsFault::BadCertificate,
        _ => TlsFault::Other,
    }
}

fn certificate(error: &CertificateError) -> TlsFault {
    match error {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsFault::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            TlsFault::NotYetValid
        }
        CertificateError::UnknownIssuer => TlsFault::UnknownIssuer,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            TlsFault::WrongHost
        }
        CertificateError::Revoked => TlsFault::Revoked,
        // A certificate that signed itself as an authority, used as a server's.
        CertificateError::Other(other)
            if other.0.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity) =>
        {
            TlsFault::UnknownIssuer
        }
        _ => TlsFault::BadCertificate,
    }
}
