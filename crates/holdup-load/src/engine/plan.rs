//! What all loops share and none changes: the bytes of every request, laid out ahead of time, whose turn it
//! is, and where to send.

use std::net::SocketAddr;
use std::sync::RwLock;

use holdup_http::{Request, http1, http2};

use super::redirect::Origin;
use super::tls::Tls;
use crate::model::Load;
use crate::scenario::{HttpVersion, Scenario};

/// One request, ready to be sent.
pub struct Prepared {
    /// Index of the operation that it counts as.
    pub operation: u32,
    /// `HEAD` is answered without a body.
    pub is_head: bool,
    /// Method, for redirects.
    pub method: String,
    /// Path and query, for redirects and cookies.
    pub path: String,
    /// It has a body, which a redirect may repeat.
    pub has_body: bool,
    /// Its bytes.
    pub form: Form,
}

/// The bytes of a request in its protocol.
pub enum Form {
    /// Head and body.
    Http1(Vec<u8>),
    /// Frames but for the stream's number.
    Http2(http2::Template),
}

/// See the module.
pub struct Plan<'a> {
    /// What to do.
    pub scenario: &'a Scenario,
    /// Distinct requests: one an operation, or one a distinct line of a replayed log.
    pub requests: Vec<Prepared>,
    /// Operations' names.
    pub operations: Vec<String>,
    /// Names of phases.
    pub phases: Vec<String>,
    /// Whose turn it is.
    pub turns: Turns,
    /// TLS, if the target speaks it.
    pub tls: Option<Tls>,
    /// Where to; none while the name does not resolve.
    pub address: RwLock<Option<SocketAddr>>,
    /// Scheme, host and port, for redirects.
    pub origin: Origin,
    /// What is sent with every request beside what the operation says.
    extra: Vec<(String, String)>,
}

impl<'a> Plan<'a> {
    /// Lays everything out.
    pub fn new(scenario: &'a Scenario, tls: Option<Tls>, address: Option<SocketAddr>) -> Self {
        let mut extra = Vec::new();
        if scenario.http.compression {
            extra.push(("accept-encoding".to_owned(), "gzip, deflate, br, zstd".to_owned()));
        }
        let replayed = match &scenario.load {
            Load::Open(schedule) => schedule.replay().filter(|replay| !replay.requests.is_empty()),
            Load::Closed(_) => None,
        };
        let mut plan = Self {
            scenario,
            requests: Vec::new(),
            operations: scenario.operations.iter().map(|o| o.name.clone()).collect(),
            phases: scenario.load.phase_names(),
            turns: Turns::new(scenario.operations.iter().map(|o| o.weight)),
            tls,
            address: RwLock::new(address),
            origin: Origin { tls: scenario.target.tls, authority: scenario.target.authority() },
            extra,
        };
        plan.requests = match replayed {
            Some(log) => {
                let distinct = log.requests.iter();
                distinct.map(|r| plan.own(r.operation, r.method, &r.path, r.method != "HEAD")).collect()
            }
            None => {
                let operations = scenario.operations.iter().enumerate();
                operations.map(|(i, o)| plan.own(i as u32, &o.method, &o.path, true)).collect()
            }
        };
        plan
    }

    /// Lays out a request of an operation, with its header fields, and its body unless that is to be left out.
    pub fn own(&self, operation: u32, method: &str, path: &str, with_body: bool) -> Prepared {
        let own = &self.scenario.operations[operation as usize];
        let given = |name: &str| own.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
        let headers = own.headers.iter().chain(self.extra.iter().filter(|(name, _)| !given(name)));
        let headers: Vec<_> = headers.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let scheme = if self.origin.tls { "https" } else { "http" };
        let body = own.body.as_deref().filter(|_| with_body).map(str::as_bytes);
        let request = Request { method, scheme, authority: &self.origin.authority, path, headers: &headers, body };
        let form = match self.scenario.http.version {
            HttpVersion::Http1 => Form::Http1(http1::request_bytes(&request, true)),
            HttpVersion::Http2 => Form::Http2(http2::Template::new(&request)),
        };
        let (method, path, has_body) = (method.to_owned(), path.to_owned(), body.is_some());
        Prepared { operation, is_head: method == "HEAD", method, path, has_body, form }
    }

    /// Where `request`, which was answered with `status` and `location`, is to be sent on to; none if that is no
    /// redirect to follow. RFC 9110, section 15.4: 307 and 308 repeat the request, others ask with GET.
    pub fn redirected(&self, request: &Prepared, status: u16, location: &[u8]) -> Option<Prepared> {
        if !matches!(status, 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        let path = self.origin.resolve(&request.path, std::str::from_utf8(location).ok()?)?;
        let repeats = matches!(status, 307 | 308);
        let method = if repeats || request.is_head { request.method.as_str() } else { "GET" };
        Some(self.own(request.operation, method, &path, repeats && request.has_body))
    }

    /// `request` with a `Cookie` header.
    pub fn with_cookies(request: &Prepared, cookies: &str) -> Prepared {
        let form = match &request.form {
            Form::Http1(bytes) => {
                let head = bytes.windows(4).position(|w| w == b"\r\n\r\n").map_or(bytes.len(), |at| at + 2);
                Form::Http1([&bytes[..head], b"Cookie: ", cookies.as_bytes(), b"\r\n", &bytes[head..]].concat())
            }
            Form::Http2(template) => Form::Http2(template.with_extra(&[("cookie", cookies)])),
        };
        Prepared { method: request.method.clone(), path: request.path.clone(), form, ..*request }
    }
}

/// Whose turn it is: by weight, evenly mixed, as a pure function of the request's number, so that every shard and
/// loop agrees. The multiples of the golden ratio, modulo 1, fall into any interval as often as it is long,
/// and as evenly as can be (H. Weyl 1916); each operation has an interval as long as its weight.
pub struct Turns {
    /// Upper end of each operation's interval, as a fraction of 2^64.
    ends: Vec<u64>,
}

/// The golden ratio's fraction times 2^64.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

impl Turns {
    /// For these weights.
    pub fn new(weights: impl Iterator<Item = u32>) -> Self {
        let weights: Vec<u64> = weights.map(u64::from).collect();
        let total: u128 = weights.iter().map(|w| u128::from(*w)).sum::<u128>().max(1);
        let mut sum = 0_u128;
        let ends = weights.iter().map(|w| {
            sum += u128::from(*w);
            ((sum << 64) / total).min(u128::from(u64::MAX)) as u64
        });
        Self { ends: ends.collect() }
    }

    /// Index of the operation of request `number`.
    pub fn of(&self, number: u64) -> u32 {
        if self.ends.len() < 2 {
            return 0;
        }
        let point = number.wrapping_mul(GOLDEN);
        self.ends.partition_point(|&end| end <= point).min(self.ends.len() - 1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_follow_the_weights_also_in_every_share_of_them() {
        let turns = Turns::new([5, 1, 1].into_iter());
        for (from, step) in [(0, 1), (0, 2), (1, 2), (3, 5)] {
            let mut counts = [0_i32; 3];
            let mut longest = 0;
            let mut run = 0;
            for k in 0..7_000 {
                let operation = turns.of(from + k * step) as usize;
                counts[operation] += 1;
                run = if operation == 0 { run + 1 } else { 0 };
                longest = longest.max(run);
            }
            let off = [5_000, 1_000, 1_000].iter().zip(counts).map(|(want, got)| (want - got).abs()).max();
            assert!(off <= Some(20) && longest < 30, "{counts:?}, {longest} in a row from {from} by {step}");
        }
        assert_eq!(Turns::new([3].into_iter()).of(9), 0);
    }
}
