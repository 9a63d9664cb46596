//! TLS for a connection: which certificates are accepted, and the handshake. It sends no client
//! certificate.

use std::io::{Error, ErrorKind, Result as IoResult};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use holdup_recording::files;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// Which servers are accepted.
pub(crate) enum Trust<'a> {
    /// All: encrypted, without checking the certificate.
    All,
    /// Those with a certificate of a trusted authority.
    Authority {
        /// The file of certificates to trust instead of the machine's.
        file: Option<&'a Path>,
        /// The address's parameter that names the file.
        parameter: &'static str,
        /// Whether the certificate may be for another host name.
        any_name: bool,
    },
}

/// Whether a connection is encrypted, and how far the certificate is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tls {
    #[default]
    Off,
    /// Encrypted, without checking the certificate.
    Any,
    /// With a certificate for this host name that is signed by the authority in this file, or by one
    /// that the machine trusts.
    Verify(Option<PathBuf>),
}

impl Tls {
    /// Which servers it accepts; none without encryption. `parameter` names the file in addresses.
    pub(crate) fn trust(&self, parameter: &'static str) -> Option<Trust<'_>> {
        match self {
            Self::Off => None,
            Self::Any => Some(Trust::All),
            Self::Verify(file) => Some(Trust::Authority { file: file.as_deref(), parameter, any_name: false }),
        }
    }
}

/// The client side of an encrypted connection to `host`, or why it cannot be made.
pub(super) fn client(host: &str, trust: &Trust<'_>) -> Result<ClientConnection, String> {
    let provider = Arc::new(ring::default_provider());
    let (chain, any_name) = match trust {
        Trust::All => (None, false),
        Trust::Authority { file, parameter, any_name } => {
            let roots = roots(*file, parameter)?;
            let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build();
            (Some(chain.map_err(|error| error.to_string())?), *any_name)
        }
    };
    let verifier = Verifier { provider: Arc::clone(&provider), chain, any_name };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(|_| format!("{host} is not a valid TLS server name"))?;
    ClientConnection::new(Arc::new(config), name).map_err(|error| error.to_string())
}

/// Performs the handshake over a socket that has a time limit for each read; a server that sends
/// it in drops is given up at `deadline`.
pub(super) fn shake_hands(
    mut client: ClientConnection,
    stream: &mut TcpStream,
    deadline: Instant,
) -> IoResult<ClientConnection> {
    loop {
        while client.wants_write() {
            client.write_tls(stream)?;
        }
        if !client.is_handshaking() {
            return Ok(client);
        }
        if Instant::now() > deadline {
            return Err(Error::from(ErrorKind::TimedOut));
        }
        match client.read_tls(stream) {
            Ok(0) => return Err(Error::other("the server closed the connection in the TLS handshake")),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => drop(read?),
        }
        if let Err(error) = client.process_new_packets() {
            // Tells the server why, if it can.
            let _ = client.write_tls(stream);
            return Err(Error::new(ErrorKind::InvalidData, error));
        }
    }
}

fn roots(file: Option<&Path>, parameter: &str) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    if let Some(path) = file {
        let wrong = |why: String| format!("{parameter}={}: {why}", path.display());
        let text = files::read(path, files::SMALL_BYTES).map_err(|error| wrong(error.to_string()))?;
        for certificate in CertificateDer::pem_slice_iter(&text) {
            let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
            store.add(certificate).map_err(|error| wrong(error.to_string()))?;
        }
        return if store.is_empty() { Err(wrong("it holds no certificate in PEM form".to_owned())) } else { Ok(store) };
    }
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if store.is_empty() {
        return Err(format!("no trusted certificates on this machine; add {parameter}=PATH"));
    }
    Ok(store)
}

/// Verifies the server's certificate as far as required.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// None accepts any certificate.
    chain: Option<Arc<WebPkiServerVerifier>>,
    any_name: bool,
}

impl Verifier {
    /// Where any certificate is accepted, a signature by it proves nothing: old kinds of certificates, whose
    /// signatures cannot be read, are as good.
    fn signed(
        &self,
        verify: impl FnOnce(&WebPkiSupportedAlgorithms) -> Result<HandshakeSignatureValid, rustls::Error>,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if self.chain.is_none() {
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify(&self.provider.signature_verification_algorithms)
    }
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
        match chain.verify_server_cert(end_entity, intermediates, name, ocsp, now) {
            // The chain check ends with the name, so this error means the chain is valid.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.any_name => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed(|known| verify_tls12_signature(message, certificate, signature, known))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed(|known| verify_tls13_signature(message, certificate, signature, known))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
