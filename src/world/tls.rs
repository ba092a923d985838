//! A certificate authority of its own, leaf certificates good and bad, and handshakes that fail on purpose.
//! What is said once a session stands is left to `serve`.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

use super::serve::{drain, reset, until_left};
use crate::names::names;

names! {
    /// What a server shows of itself.
    pub enum Credential {
        /// A certificate that is in order.
        Good = "good",
        /// One that has expired.
        Expired = "expired",
        /// One that is not valid yet.
        NotYetValid = "not_yet_valid",
        /// One for another name.
        WrongHost = "wrong_host",
        /// One that signs itself.
        SelfSigned = "self_signed",
        /// One whose issuer is not shown.
        MissingIntermediate = "missing_intermediate",
    }
}

names! {
    /// What a server does instead of a handshake.
    pub enum Rudeness {
        /// Nothing.
        Stall = "stall",
        /// It answers the `ClientHello` in plain HTTP.
        NotTls = "not_tls",
        /// It resets the connection.
        Reset = "reset",
    }
}

/// How a connection begins on the server's side.
#[derive(Debug, Clone)]
pub(super) enum Opening {
    /// With a request.
    Plain,
    /// With a handshake.
    Handshake(Arc<ServerConfig>),
    /// With a handshake that ends badly.
    Rude(Rudeness),
    /// With a fatal alert: the version of its record, and its number (RFC 8446 §6).
    Alert([u8; 2], u8),
    /// With a handshake for HTTP/2, a SETTINGS frame, and then this frame.
    Http2(Arc<ServerConfig>, Vec<u8>),
}

/// Issues certificates for the names directly under one domain.
pub(super) struct Authority {
    domain: String,
    issuer: Issuer<'static, KeyPair>,
    root: CertificateDer<'static>,
    pem: String,
    provider: Arc<CryptoProvider>,
}

impl Authority {
    /// A new authority, with a key that nobody else has.
    pub(super) fn new(domain: &str) -> anyhow::Result<Self> {
        let (params, key) = (signer("mcp-census loopback CA"), KeyPair::generate()?);
        let root = params.self_signed(&key)?;
        Ok(Self {
            domain: domain.to_owned(),
            issuer: Issuer::new(params, key),
            pem: root.pem(),
            root: root.into(),
            provider: Arc::new(aws_lc_rs::default_provider()),
        })
    }

    /// The root to trust.
    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    /// What the TLS words of the case format mean; `None` for a word that is not known.
    pub(super) fn opening(&self, word: &str) -> anyhow::Result<Option<Opening>> {
        if let Some(credential) = Credential::named(word) {
            return Ok(Some(Opening::Handshake(self.config(credential)?)));
        }
        if let Some(rudeness) = Rudeness::named(word) {
            return Ok(Some(Opening::Rude(rudeness)));
        }
        Ok(match word {
            "client_cert_required" => Some(Opening::Handshake(self.demanding()?)),
            // No library here speaks TLS 1.0; this is what such a server says to a newer client.
            "tls1.0" => Some(Opening::Alert([3, 1], 70)),
            _ => word
                .strip_prefix("alert:")
                .and_then(alert)
                .map(|number| Opening::Alert([3, 3], number)),
        })
    }

    /// What the HTTP/2 words of the case format mean; `None` for a word that is not known.
    pub(super) fn http2(&self, word: &str) -> anyhow::Result<Option<Opening>> {
        let Some((kind, name)) = word.split_once(':') else {
            return Ok(None);
        };
        let Some(code) = (0_u8..)
            .zip(H2_ERRORS)
            .find_map(|(code, it)| (it == name).then_some(code))
        else {
            return Ok(None);
        };
        let frame = match kind {
            // RFC 9113 §6.4: four bytes, type 3, stream 1, the code.
            "rst_stream" => vec![0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, code],
            // §6.8: eight bytes, type 7, stream 0, the last stream that was heard of (none), the code.
            "goaway" => vec![0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, code],
            _ => return Ok(None),
        };
        let mut config = ServerConfig::clone(&*self.config(Credential::Good)?);
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Some(Opening::Http2(Arc::new(config), frame)))
    }

    /// A server with such a certificate.
    pub(super) fn config(&self, credential: Credential) -> anyhow::Result<Arc<ServerConfig>> {
        let (chain, key) = self.issue(credential)?;
        let config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key.into())
            .with_context(|| format!("no server with a certificate that is {credential}"))?;
        Ok(Arc::new(config))
    }

    /// A server that wants a certificate of its client.
    fn demanding(&self) -> anyhow::Result<Arc<ServerConfig>> {
        let (chain, key) = self.issue(Credential::Good)?;
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone())?;
        let verifier = WebPkiClientVerifier::builder_with_provider(
            Arc::new(roots),
            Arc::clone(&self.provider),
        );
        let config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier.build()?)
            .with_single_cert(chain, key.into())?;
        Ok(Arc::new(config))
    }

    fn issue(
        &self,
        credential: Credential,
    ) -> anyhow::Result<(Vec<CertificateDer<'static>>, PrivatePkcs8KeyDer<'static>)> {
        let name = match credential {
            Credential::WrongHost => "elsewhere.example.test".to_owned(),
            Credential::Good
            | Credential::Expired
            | Credential::NotYetValid
            | Credential::SelfSigned
            | Credential::MissingIntermediate => format!("*.{}", self.domain),
        };
        let mut params = CertificateParams::new(vec![name])?;
        params
            .distinguished_name
            .push(DnType::CommonName, credential.name());
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let leaf = match credential {
            Credential::Good | Credential::WrongHost => params.signed_by(&key, &self.issuer)?,
            Credential::Expired => {
                params.not_before = date_time_ymd(2023, 1, 1);
                params.not_after = date_time_ymd(2024, 1, 1);
                params.signed_by(&key, &self.issuer)?
            }
            Credential::NotYetValid => {
                params.not_before = date_time_ymd(4000, 1, 1);
                params.signed_by(&key, &self.issuer)?
            }
            Credential::SelfSigned => params.self_signed(&key)?,
            Credential::MissingIntermediate => {
                let between = signer("mcp-census loopback intermediate");
                params.signed_by(&key, &Issuer::new(between, KeyPair::generate()?))?
            }
        };
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Ok((vec![leaf.into()], key))
    }
}

fn signer(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// The number of an alert (RFC 8446 §6).
fn alert(name: &str) -> Option<u8> {
    Some(match name {
        "handshake_failure" => 40,
        "certificate_unknown" => 46,
        "illegal_parameter" => 47,
        "access_denied" => 49,
        "decode_error" => 50,
        "decrypt_error" => 51,
        "protocol_version" => 70,
        "insufficient_security" => 71,
        "internal_error" => 80,
        "missing_extension" => 109,
        "unrecognized_name" => 112,
        "no_application_protocol" => 120,
        _ => return None,
    })
}

/// The error codes of HTTP/2, from 0 (RFC 9113 §7).
const H2_ERRORS: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

/// Performs the server's side of a handshake. Where it fails, the alert that says why has been sent.
pub(super) async fn handshake(
    stream: TcpStream,
    config: Arc<ServerConfig>,
) -> Option<TlsStream<TcpStream>> {
    let accept = tokio_rustls::TlsAcceptor::from(config).accept(stream);
    match accept.into_fallible().await {
        Ok(stream) => Some(stream),
        Err((_, stream)) => {
            drain(stream).await;
            None
        }
    }
}

/// Is rude to a client that wants a handshake.
pub(super) async fn rebuff(mut stream: TcpStream, rudeness: Rudeness) {
    match rudeness {
        Rudeness::Stall => {
            until_left(&mut stream).await;
        }
        Rudeness::NotTls => {
            say(
                stream,
                b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
            )
            .await;
        }
        Rudeness::Reset => {
            hear(&mut stream).await;
            reset(&stream);
        }
    }
}

/// Answers a `ClientHello` with a fatal alert.
pub(super) async fn alarm(stream: TcpStream, [major, minor]: [u8; 2], number: u8) {
    say(stream, &[21, major, minor, 0, 2, 2, number]).await;
}

/// Speaks HTTP/2 up to the frame that ends it.
pub(super) async fn http2(stream: TcpStream, config: Arc<ServerConfig>, frame: &[u8]) {
    const PREFACE: usize = 24;
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const HEADERS: u8 = 1;
    const FRAMES: u8 = 32;
    let Some(mut stream) = handshake(stream, config).await else {
        return;
    };
    let talk = async {
        stream.read_exact(&mut [0; PREFACE]).await?;
        stream.write_all(&SETTINGS).await?;
        // Up to the request: its stream can only be reset once it is there.
        for _ in 0..FRAMES {
            let mut head = [0; 9];
            stream.read_exact(&mut head).await?;
            let [_, high, low, kind, ..] = head;
            let mut payload = vec![0; u16::from_be_bytes([high, low]).into()];
            stream.read_exact(&mut payload).await?;
            if kind == HEADERS {
                break;
            }
        }
        stream.write_all(frame).await?;
        stream.flush().await
    };
    if talk.await.is_ok() {
        // The client should read the frame before the end of the stream.
        let _ = timeout(Duration::from_secs(2), until_left(&mut stream)).await;
    }
}

/// Reads what there is of a `ClientHello`.
async fn hear(stream: &mut TcpStream) {
    let mut hello = vec![0; 16 << 10];
    // A client that says nothing, or has gone, is answered all the same.
    let _ = timeout(Duration::from_secs(10), stream.read(&mut hello)).await;
}

async fn say(mut stream: TcpStream, bytes: &[u8]) {
    hear(&mut stream).await;
    if stream.write_all(bytes).await.is_ok() {
        drain(stream).await;
    }
}
