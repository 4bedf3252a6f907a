//! Encryption on the listener, for those who need it.
//!
//! Certificate and key are PEM files that are read once, at start. HTTP/2 is
//! offered first; a client that knows only HTTP/1.1 gets that.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// Why the listener cannot be encrypted.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read as PEM.
    #[error("cannot read {path}: {source}: it must be a PEM file")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: rustls::pki_types::pem::Error,
    },
    /// Certificate and key do not go together.
    #[error("certificate and key cannot be used: {0}")]
    Pair(#[from] rustls::Error),
}

/// An acceptor for these files.
pub fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let mut config = server_config(certificate, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// A configuration for these files, without application protocols.
pub fn server_config(certificate: &Path, key: &Path) -> Result<ServerConfig, TlsError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        move |source| TlsError::File { path, source }
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(unreadable(certificate))?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(unreadable(key))?;
    Ok(ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)?)
}
