//! Ids of a trace: from the request's `traceparent` (W3C Trace Context), or new ones.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::service::seed::mix;

/// The trace of a request, and the request's own span in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// The trace's id.
    pub trace_id: u128,
    /// Id of the request's span here.
    pub span_id: u64,
    /// The caller's span; 0 without one.
    pub parent_id: u64,
}

impl Context {
    /// The context of a request with this `traceparent`; a new trace if it is missing or malformed.
    pub fn from_traceparent(traceparent: Option<&str>) -> Self {
        let (trace_id, parent_id) =
            traceparent.and_then(parse).unwrap_or_else(|| (u128::from(new_id()) << 64 | u128::from(new_id()), 0));
        Self { trace_id, span_id: new_id(), parent_id }
    }
}

/// As a `traceparent` whose parent is the request's span.
impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-01", self.trace_id, self.span_id)
    }
}

fn parse(text: &str) -> Option<(u128, u64)> {
    let mut parts = text.trim().split('-');
    let (version, trace, parent) = (parts.next()?, parts.next()?, parts.next()?);
    let is_hex =
        |text: &str, digits| text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let good =
        is_hex(version, 2) && version != "ff" && is_hex(trace, 32) && is_hex(parent, 16) && parts.next()?.len() == 2;
    let ids = (u128::from_str_radix(trace, 16).ok()?, u64::from_str_radix(parent, 16).ok()?);
    (good && ids.0 != 0 && ids.1 != 0).then_some(ids)
}

/// A unique span id: numbers of this process, mixed, from a random start.
pub fn new_id() -> u64 {
    static NEXT: OnceLock<AtomicU64> = OnceLock::new();
    let next = NEXT.get_or_init(|| AtomicU64::new(mix(super::now_ns() ^ u64::from(std::process::id()) << 48)));
    mix(next.fetch_add(1, Ordering::Relaxed)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_traceparent_is_gone_on_with_and_no_other() {
        let context = Context::from_traceparent(Some("00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01"));
        assert_eq!(
            (context.trace_id, context.parent_id),
            (0x5bd6_6ef5_0953_69c7_b0d1_f8f4_bd33_716a, 0xc532_cb40_98ac_3dd2)
        );
        let text = context.to_string();
        assert!(text.starts_with("00-5bd66ef5095369c7b0d1f8f4bd33716a-") && text.len() == 55, "{text}");
        for bad in [
            "",
            "00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2",
            "00-5BD66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01",
            "ff-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01",
            "00-00000000000000000000000000000000-c532cb4098ac3dd2-01",
        ] {
            let own = Context::from_traceparent(Some(bad));
            assert!(own.parent_id == 0 && own.trace_id != 0, "{bad}");
        }
        assert_ne!(Context::from_traceparent(None).trace_id, Context::from_traceparent(None).trace_id);
    }
}
