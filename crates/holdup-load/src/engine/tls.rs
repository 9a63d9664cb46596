//! TLS to the target: which certificates are trusted, and the client side of each connection.

use std::path::Path;
use std::sync::Arc;

use holdup_recording::files;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::scenario::http::Trust;

/// What can go wrong before anything is sent.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file of certificates can't be used.
    #[error("{file}: {why}; expected PEM certificates (-----BEGIN CERTIFICATE-----)")]
    Certificates {
        /// The file as given.
        file: String,
        /// What is wrong.
        why: String,
    },
    /// The machine has no trusted certificates at all.
    #[error("this machine has no trusted certificates ({0}); install ca-certificates, or give --tls-ca FILE")]
    NoRoots(String),
    /// The host name can't be in a certificate.
    #[error("\"{0}\" is not a valid TLS server name: neither a host name nor an address")]
    Name(String),
    /// rustls refused.
    #[error("failed to set up TLS: {0}")]
    Setup(#[from] rustls::Error),
}

/// Creates the client side of connections.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl Tls {
    /// For connections to `host` that will use `protocol` (RFC 7301), if it has a name.
    ///
    /// # Errors
    /// Without trusted certificates, or if `host` is not a valid name.
    pub fn new(trust: &Trust, host: &str, protocol: Option<&[u8]>) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let builder =
            ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
        let (chain, named) = if trust.insecure {
            (None, Vec::new())
        } else {
            let Trusted { store, named } = roots(trust.ca.as_deref())?;
            let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(&provider)).build();
            (Some(chain.map_err(|e| TlsError::NoRoots(e.to_string()))?), named)
        };
        let verifier = Arc::new(Verifier { provider, chain, named });
        let mut config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
        config.alpn_protocols = protocol.map(<[u8]>::to_vec).into_iter().collect();
        // Every connection does a full handshake, like a new user.
        config.resumption = Resumption::disabled();
        let name = ServerName::try_from(host.to_owned()).map_err(|_| TlsError::Name(host.to_owned()))?;
        Ok(Self { config: Arc::new(config), name })
    }

    /// A new connection's client side.
    ///
    /// # Errors
    /// rustls' own.
    pub fn connection(&self) -> Result<Box<ClientConnection>, rustls::Error> {
        let mut connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone())?;
        connection.set_buffer_limit(None);
        Ok(Box::new(connection))
    }
}

/// What is trusted.
struct Trusted {
    store: RootCertStore,
    /// The certificates of the given file.
    named: Vec<CertificateDer<'static>>,
}

fn roots(file: Option<&Path>) -> Result<Trusted, TlsError> {
    let mut store = RootCertStore::empty();
    let mut named = Vec::new();
    if let Some(path) = file {
        let wrong = |why: String| TlsError::Certificates { file: path.display().to_string(), why };
        let pem = files::read(path, files::SMALL_BYTES).map_err(|e| wrong(e.to_string()))?;
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            let certificate = certificate.map_err(|e| wrong(e.to_string()))?;
            store.add(certificate.clone()).map_err(|e| wrong(e.to_string()))?;
            named.push(certificate);
        }
        return if store.is_empty() {
            Err(wrong("no certificate in it".to_owned()))
        } else {
            Ok(Trusted { store, named })
        };
    }
    let found = rustls_native_certs::load_native_certs();
    store.add_parsable_certificates(found.certs);
    if store.is_empty() {
        let why = found.errors.first().map_or_else(|| "none found".to_owned(), ToString::to_string);
        return Err(TlsError::NoRoots(why));
    }
    Ok(Trusted { store, named })
}

/// Verifies the server's certificate; its signatures must be valid in any case.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// None trusts any certificate.
    chain: Option<Arc<WebPkiServerVerifier>>,
    /// Certificates that the user trusts explicitly. For a self-signed authority among them only
    /// the name is checked, because it has no chain.
    named: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        let verified = chain.verify_server_cert(end_entity, intermediates, name, ocsp, now);
        if verified.as_ref().is_err_and(has_signed_itself) && self.named.iter().any(|c| c == end_entity) {
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        verified
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Whether a server presents the certificate of an authority as its own (as `openssl req -x509`
/// makes them).
fn has_signed_itself(error: &rustls::Error) -> bool {
    matches!(error, rustls::Error::InvalidCertificate(CertificateError::Other(other)) if format!("{other:?}").contains("CaUsedAsEndEntity"))
}

/// What is wrong with a certificate, in words.
pub fn in_words(error: &rustls::Error) -> String {
    let rustls::Error::InvalidCertificate(why) = error else { return error.to_string() };
    match why {
        CertificateError::UnknownIssuer => "no trusted CA signed it".to_owned(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => "it is not valid yet".to_owned(),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for another name".to_owned()
        }
        _ if has_signed_itself(error) => "it is self-signed".to_owned(),
        _ => error.to_string(),
    }
}
