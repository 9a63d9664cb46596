//! The HTTP client under a store: its time limits, TLS, and the bytes that it moved. It follows no
//! redirects (they could carry a password to another host) and uses no proxy from the environment.

use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use holdup_recording::files;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use crate::address::{Address, Tls};
use crate::error::StoreError;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);

/// How long a connection may stay open without a request: ClickHouse closes it after 3 s or more.
const IDLE: Duration = Duration::from_secs(2);

/// The client for `address`.
///
/// # Errors
/// If the authority's certificate cannot be read.
pub fn agent(address: &Address) -> Result<ureq::Agent, StoreError> {
    let mut tls = TlsConfig::builder();
    match &address.tls {
        Tls::Off | Tls::InClear | Tls::Verify(None) => {}
        Tls::Require => tls = tls.disable_verification(true),
        Tls::Verify(Some(file)) => {
            let roots =
                authority(file).map_err(|why| StoreError::BadAddress(format!("tls_ca={}: {why}", file.display())))?;
            tls = tls.root_certs(roots);
        }
    }
    Ok(ureq::Agent::config_builder()
        .timeout_connect(Some(CONNECT))
        .max_idle_age(IDLE)
        .timeout_global(Some(address.timeout))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .tls_config(tls.build())
        .proxy(None)
        .accept("*/*")
        .user_agent(concat!("holdup/", env!("CARGO_PKG_VERSION")))
        .build()
        .into())
}

fn authority(file: &Path) -> Result<RootCerts, String> {
    let pem = files::read(file, files::SMALL_BYTES).map_err(|error| error.to_string())?;
    let items = parse_pem(&pem).collect::<Result<Vec<_>, _>>().map_err(|_| "not a PEM file".to_owned())?;
    let certificates = items.into_iter().filter_map(|item| match item {
        PemItem::Certificate(certificate) => Some(certificate),
        _ => None,
    });
    let certificates: Vec<_> = certificates.collect();
    if certificates.is_empty() {
        return Err("it contains no certificate".to_owned());
    }
    Ok(RootCerts::new_with_certs(&certificates))
}

/// The error in words, without the URL.
pub fn reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => error.to_string(),
        ureq::Error::Timeout(_) => {
            "no complete answer within the time limit (timeout=SECONDS in the address)".to_owned()
        }
        ureq::Error::HostNotFound => "the host name does not resolve".to_owned(),
        ureq::Error::ConnectionFailed => "the connection failed; is ClickHouse's HTTP port there?".to_owned(),
        ureq::Error::Tls(why) => format!("TLS: {why}"),
        ureq::Error::Rustls(why) => format!("TLS: {why}"),
        ureq::Error::Protocol(why) => format!("its answer is not HTTP: {why}"),
        // Other errors may repeat the URL.
        _ => "the request failed".to_owned(),
    }
}

/// Counts the bytes that come through.
pub struct Counted<'c, R> {
    /// What is read.
    pub inner: R,
    /// The count.
    pub count: &'c AtomicU64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.inner.read(buffer)?;
        self.count.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}
