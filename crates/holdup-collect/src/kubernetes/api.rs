//! The part of Kubernetes' API that lists pods and events of a namespace, bounded in time, bytes
//! and pages. The token is read for each request, because the cluster rotates it; it appears in no
//! message.

use std::fmt;
use std::time::Duration;

use crate::kubernetes::objects::Document;

use super::address::{Address, word};
use crate::http;

/// Time limit of one request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Largest page read.
const PAGE_BYTES_MAX: u64 = 32 << 20;

/// Objects per page, and pages per list.
const PAGE: usize = 500;
const PAGES_MAX: usize = 10;

/// Largest number of objects read from a list.
pub(super) const MOST: usize = PAGE * PAGES_MAX;

/// A client of the API.
pub(super) struct Api {
    address: Address,
    agent: ureq::Agent,
}

/// A list, complete or cut.
pub(super) struct ObjectList {
    /// One per page.
    pub documents: Vec<Document>,
    /// Whether the list was cut.
    pub cut: bool,
}

/// Why a list could not be read.
#[derive(Debug)]
pub(super) enum ListError {
    /// The account may not list it.
    Denied(String),
    /// Any other reason.
    Failed(String),
}

impl fmt::Display for ListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Denied(why) | Self::Failed(why)) = self;
        f.write_str(why)
    }
}

impl Api {
    /// The client for `address`.
    ///
    /// # Errors
    /// If the authority's certificate can't be read.
    pub fn new(address: &Address) -> Result<Self, String> {
        let mut tls = ureq::tls::TlsConfig::builder();
        if let Some(file) = &address.ca_file {
            tls = tls.root_certs(http::authority(file, "ca-file")?);
        }
        let agent = http::config(TIMEOUT, "application/json").tls_config(tls.build()).build().into();
        Ok(Self { address: address.clone(), agent })
    }

    /// All of `what` (`pods` or `events`) that the address selects.
    ///
    /// # Errors
    /// If the account may not list it, or the answer is incomplete.
    pub fn list(&self, what: &str) -> Result<ObjectList, ListError> {
        let Address { base, namespace, pod, selector, token_file, .. } = &self.address;
        let mut url = format!("{base}/api/v1/namespaces/{namespace}/{what}?limit={PAGE}");
        match (what, pod, selector) {
            ("pods", Some(pod), _) => url += &format!("&fieldSelector={}", encoded(&format!("metadata.name={pod}"))),
            ("pods", None, Some(labels)) => url += &format!("&labelSelector={}", encoded(labels)),
            // The API selects events by the pod's name; holdup itself matches labels.
            (_, Some(pod), _) => url += &format!("&fieldSelector={}", encoded(&format!("involvedObject.name={pod}"))),
            _ => {}
        }
        let token = token_file.as_deref().map(word).transpose().map_err(ListError::Failed)?;
        let authorization = token.map(|token| format!("Bearer {token}"));
        let mut listed = ObjectList { documents: Vec::new(), cut: false };
        let mut next: Option<String> = None;
        for _ in 0..PAGES_MAX {
            let page = next.take().map_or_else(String::new, |token| format!("&continue={}", encoded(&token)));
            let document = self.page(&format!("{url}{page}"), authorization.as_deref())?;
            next = document.next.clone();
            listed.documents.push(document);
            if next.is_none() {
                return Ok(listed);
            }
        }
        listed.cut = true;
        Ok(listed)
    }

    fn page(&self, url: &str, authorization: Option<&str>) -> Result<Document, ListError> {
        let answer = http::get(&self.agent, url, authorization, PAGE_BYTES_MAX).map_err(ListError::Failed)?;
        match answer.status {
            200 => crate::kubernetes::objects::read(&answer.body).map_err(|why| {
                ListError::Failed(format!("its answer is not a list of Kubernetes' API: line {}: {why}", why.line))
            }),
            401 => Err(ListError::Denied(
                "the API rejected the token (401): is it expired, or of another cluster?".to_owned(),
            )),
            403 => Err(ListError::Denied(format!("not allowed (403): {}", http::said(&answer.body, message)))),
            status => Err(ListError::Failed(format!(
                "it answers with status {status}: {}",
                http::said(&answer.body, message)
            ))),
        }
    }
}

/// Where the API says why.
fn message(status: &serde_json::Value) -> Option<&str> {
    status.get("message")?.as_str()
}

/// `text` encoded for a query.
fn encoded(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}
