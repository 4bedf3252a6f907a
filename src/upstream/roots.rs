//! Whom to trust: the system's certificate authorities, else the bundled ones.
//!
//! The system's store comes first because operators add their own authorities
//! there (`SSL_CERT_FILE` and `SSL_CERT_DIR` are honoured). A slim container has
//! none at all; there the set that browsers use, compiled in, takes its place.

use rustls::{ClientConfig, RootCertStore};

/// A TLS client configuration without application protocols chosen yet.
pub fn client_config() -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    let (added, ignored) = roots.add_parsable_certificates(system.certs);
    if added == 0 {
        roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
        tracing::debug!("no certificate authorities on this system, using the bundled ones");
    } else if ignored > 0 {
        tracing::debug!(
            ignored,
            "some of the system's certificate authorities cannot be read"
        );
    }
    ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth()
}
