//! Processes that end with the test, and what they need.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use rustls::pki_types::CertificateDer;

/// The first of these programs that is there; else the test is skipped, which CI does not allow.
pub fn program(candidates: &[&str], package: &str) -> Option<PathBuf> {
    let found = candidates.iter().map(PathBuf::from).find(|path| path.exists());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "install with: sudo apt-get install {package}");
        eprintln!("skipped; install with: sudo apt-get install {package}");
    }
    found
}

pub fn free_port() -> u16 {
    holdup_lab::ports::free().expect("a port")
}

pub fn is_root() -> bool {
    // SAFETY: it reads the process's own user id and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Writes `cert.pem` and `key.pem` for localhost, by name and by address.
pub fn certificate(dir: &Path) -> CertificateDer<'static> {
    let made =
        rcgen::generate_simple_self_signed(["localhost", "127.0.0.1"].map(str::to_owned)).expect("a certificate");
    fs::write(dir.join("cert.pem"), made.cert.pem()).expect("cert.pem");
    fs::write(dir.join("key.pem"), made.signing_key.serialize_pem()).expect("key.pem");
    made.cert.der().clone()
}

/// Ends a server and waits for it.
pub fn stop(process: &mut Child, signal: libc::c_int) {
    // One that has ended was waited for: its number may be another's.
    if process.try_wait().is_ok_and(|status| status.is_none()) {
        send(process, signal);
        let _ = process.wait();
    }
}

/// Sends a signal.
pub fn send(process: &Child, signal: libc::c_int) {
    if let Ok(id) = i32::try_from(process.id()) {
        // SAFETY: the process is our own child, which has not been waited for.
        unsafe { libc::kill(id, signal) };
    }
}
