use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertifiedKey, PublicKeyData, generate_simple_self_signed};
use ring::digest::{SHA256, digest};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::WebError;

/// TLS for one server: a certificate of its own, HTTP/2 as the only protocol offered.
pub(super) struct Tls {
    pub(super) acceptor: TlsAcceptor,
    /// SHA-256 of the certificate's SubjectPublicKeyInfo in base64, by which a browser can be told to accept this one (as in
    /// RFC 7469, section 2.4).
    pub(super) key_pin: String,
}

impl Tls {
    /// Makes a key and a self-signed certificate for `address`. `ring` as the cryptography, as it needs nothing but a C compiler.
    pub(super) fn new(address: IpAddr) -> Result<Self, WebError> {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed([address.to_string()])
            .map_err(|error| WebError::Tls(format!("make a certificate: {error}")))?;
        let pin = digest(&SHA256, &signing_key.subject_public_key_info());
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).map_err(|error| WebError::Tls(error.into()))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![cert.into()], key))
            .map_err(|error| WebError::Tls(error.to_string()))?;
        // A client that can't speak it is turned away in the handshake (RFC 7301, section 3.2).
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), key_pin: STANDARD.encode(pin) })
    }
}
