//! A certificate that verifies itself, for servers that speak TLS.

use std::fs;
use std::path::Path;

use rustls::pki_types::CertificateDer;

/// Writes `cert.pem` and `key.pem` for localhost, by name and by address.
pub fn certificate(dir: &Path) -> CertificateDer<'static> {
    let made =
        rcgen::generate_simple_self_signed(["localhost", "127.0.0.1"].map(str::to_owned)).expect("a certificate");
    fs::write(dir.join("cert.pem"), made.cert.pem()).expect("cert.pem");
    fs::write(dir.join("key.pem"), made.signing_key.serialize_pem()).expect("key.pem");
    made.cert.der().clone()
}
