//! Whom we trust: the public roots, bundled so that a verdict does not depend on the machine, and any that were added.

use std::sync::Arc;

use anyhow::{Context as _, bail};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// A TLS client that trusts the bundled roots and these, offers HTTP/2 and HTTP/1.1, and has no certificate of its own.
///
/// # Errors
/// When a root cannot be read.
pub fn client_config(extra_roots: &[String]) -> anyhow::Result<ClientConfig> {
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    for pem in extra_roots {
        let mut found = 0;
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            roots
                .add(certificate.context("cannot read the certificate")?)
                .context("cannot trust the certificate")?;
            found += 1;
        }
        if found == 0 {
            bail!("no certificate in PEM form");
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("cannot set up TLS")?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
