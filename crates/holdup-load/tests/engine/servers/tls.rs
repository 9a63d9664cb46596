//! TLS on the server's side, with a certificate of its own for 127.0.0.1 and localhost.

use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

use super::server;

struct Identity {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
    dir: TempDir,
}

/// One for all tests.
fn identity() -> &'static Identity {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    IDENTITY.get_or_init(|| make(rcgen::IsCa::NoCa))
}

fn make(is_ca: rcgen::IsCa) -> Identity {
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let mut params = rcgen::CertificateParams::new(names).unwrap();
    params.is_ca = is_ca;
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("cert.pem"), certificate.pem()).unwrap();
    std::fs::write(dir.path().join("key.pem"), key.serialize_pem()).unwrap();
    Identity { certificate: certificate.der().clone(), key: key.serialize_der(), dir }
}

/// A server whose certificate is an authority's that signed itself, as `openssl req -x509` makes them; and the scenario's
/// `http` section that names it.
pub fn authority_server(serve: impl Fn(Stream) + Send + Sync + 'static) -> (u16, String, TempDir) {
    let identity = make(rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained));
    let port = serve_as(&identity, &[], serve);
    let named = format!("http: {{tls: {{ca: {}}}}}", identity.dir.path().join("cert.pem").display());
    (port, named, identity.dir)
}

/// The PEM file of the certificate, which verifies itself.
pub fn certificate_file() -> PathBuf {
    identity().dir.path().join("cert.pem")
}

/// The PEM file of its key.
pub fn key_file() -> PathBuf {
    identity().dir.path().join("key.pem")
}

/// The scenario's `http` section that trusts it, with `more` in it.
pub fn trusting(more: &str) -> String {
    format!("http: {{{more}{}tls: {{ca: {}}}}}", if more.is_empty() { "" } else { ", " }, certificate_file().display())
}

pub type Stream = StreamOwned<ServerConnection, TcpStream>;

/// A server that speaks TLS and agrees on one of `protocols` (`h2`, `http/1.1`) or, if that is empty, on none.
pub fn tls_server(protocols: &[&str], serve: impl Fn(Stream) + Send + Sync + 'static) -> u16 {
    serve_as(identity(), protocols, serve)
}

fn serve_as(identity: &Identity, protocols: &[&str], serve: impl Fn(Stream) + Send + Sync + 'static) -> u16 {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(identity.key.clone()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![identity.certificate.clone()], key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|p| p.as_bytes().to_vec()).collect();
    let config = Arc::new(config);
    server(move |stream| {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        serve(StreamOwned::new(connection, stream));
    })
}
