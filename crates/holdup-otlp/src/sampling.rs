//! Detects whether traces are complete. An app, or a collector on the way, may keep only some; then
//! the sum of their spans differs from what requests waited. Three things reveal it: the sampler's
//! entry in `tracestate` (`ot=th:…`, `ot=p:…`), attributes of samplers, and spans whose parent, in
//! the same process and ended since, never arrived. A trace dropped as a whole leaves nothing to
//! detect here; comparing the number of requests with that of traces is up to code that knows the
//! requests.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use holdup_recording::rows::Event;
use holdup_recording::{Labels, clock};

use crate::attributes::Topic;
use crate::spans::ParsedSpan;

/// How long to wait for a parent: the SDKs send every 5 s, and few requests take longer than the
/// rest of this.
const PATIENCE: Duration = Duration::from_secs(30);

/// Largest number of spans waiting for their parent at a time; beyond it only some spans are
/// checked.
const AWAITED_MAX: usize = 8_192;

/// Largest number of spans remembered because their children may arrive later.
const SEEN_MAX: usize = 32_768;

/// Smallest number of awaited parents for which a missing share is meaningful.
const LOOKED_FOR_MIN: u64 = 100;

/// Share of parents (0-1) that may be missing without sampling: spans of requests in flight when
/// recording began or ended.
const MISSING_RATIO_MAX: f64 = 0.05;

/// Largest number of services reported.
const SERVICES_MAX: usize = 64;

/// The observations so far.
#[derive(Debug, Default)]
pub struct Sampling {
    source: String,
    said: HashSet<(String, &'static str)>,
    seen: HashSet<[u8; 8]>,
    seen_order: VecDeque<[u8; 8]>,
    awaited: HashMap<[u8; 8], Instant>,
    awaited_order: VecDeque<([u8; 8], Instant)>,
    found: u64,
    missing: u64,
    events: Vec<Event>,
}

impl Sampling {
    /// For spans sent to `source`.
    pub fn new(source: &str) -> Self {
        Self { source: source.to_owned(), ..Self::default() }
    }

    /// Examines one span of `service`, which arrived at `now`.
    pub fn look(&mut self, service: &str, span: &ParsedSpan<'_>, now: Instant) {
        match revealed_sampler(span) {
            Some(Sampler::Ratio(ratio)) if ratio < 1.0 => {
                let text = format!("`{service}` keeps {} % of its traces", (ratio * 1e4).round() / 100.0);
                self.say(service, "ratio", text, Some(ratio));
            }
            Some(Sampler::Other) => {
                self.say(service, "sampler", format!("a sampler chose which traces of `{service}` are kept"), None);
            }
            // All are kept, or nothing is known.
            Some(Sampler::Ratio(_)) | None => {}
        }
        self.look_for_parent(span, now);
    }

    fn look_for_parent(&mut self, span: &ParsedSpan<'_>, now: Instant) {
        let Some(own) = span.span_id else { return };
        if self.awaited.remove(&own).is_some() {
            self.found += 1;
        }
        if self.seen.insert(own) {
            self.seen_order.push_back(own);
            if self.seen_order.len() > SEEN_MAX
                && let Some(oldest) = self.seen_order.pop_front()
            {
                self.seen.remove(&oldest);
            }
        }
        // The parent of a server span is in another process, which may send nothing.
        let is_of_same_process = matches!(span.kind, 0 | 1 | 3 | 4);
        if let Some(parent) = span.parent_id
            && is_of_same_process
            && !self.seen.contains(&parent)
            && self.awaited_order.len() < AWAITED_MAX
            && self.awaited.insert(parent, now).is_none()
        {
            self.awaited_order.push_back((parent, now));
        }
    }

    /// The events due by `now`, each once.
    pub fn events(&mut self, now: Instant) -> Vec<Event> {
        while let Some((parent, since)) = self.awaited_order.front().copied()
            && now.saturating_duration_since(since) >= PATIENCE
        {
            self.awaited_order.pop_front();
            if self.awaited.remove(&parent).is_some() {
                self.missing += 1;
            }
        }
        let looked_for = self.found + self.missing;
        let missing = self.missing as f64 / looked_for.max(1) as f64;
        if looked_for >= LOOKED_FOR_MIN && missing > MISSING_RATIO_MAX {
            let text = format!("of {looked_for} parent spans, {} never arrived", self.missing);
            self.say("", "parents", text, None);
        }
        std::mem::take(&mut self.events)
    }

    fn say(&mut self, service: &str, what: &'static str, text: String, ratio: Option<f64>) {
        let is_new = self.said.len() < SERVICES_MAX && self.said.insert((service.to_owned(), what));
        if !is_new {
            return;
        }
        let mut labels = Labels::new([("source", self.source.as_str()), ("by", what)]);
        if !service.is_empty() {
            labels = labels.with("service", service);
        }
        if let Some(ratio) = ratio {
            labels = labels.with("ratio", ratio.to_string());
        }
        let (source, kind) = (self.source.clone(), "sampled".to_owned());
        self.events.push(Event { observed_at: clock::now_ns(), source, kind, text, labels });
    }
}

/// The sampler that chose the kept traces.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sampler {
    /// Keeps a share, 0-1.
    Ratio(f64),
    /// Any other kind.
    Other,
}

/// The sampler that a span reveals.
fn revealed_sampler(span: &ParsedSpan<'_>) -> Option<Sampler> {
    let attributes = &span.attributes;
    if attributes.has(Topic::TailPolicy) {
        // A tail sampler chose again, whatever was kept before.
        return Some(Sampler::Other);
    }
    let share = |what| attributes.get(what)?.number().filter(|ratio| (0.0..=1.0).contains(ratio));
    if let Some(ratio) = ratio_from_trace_state(&span.trace_state).or_else(|| share(Topic::SampledRatio)) {
        return Some(Sampler::Ratio(ratio));
    }
    // Jaeger's: the parameter's meaning depends on the type (its documentation, "Sampling"). For a
    // rate limiter it is traces per second.
    match attributes.text(Topic::SamplerType).as_deref() {
        Some("const") => {
            let is_all = attributes.text(Topic::SamplerParam).is_none_or(|param| matches!(&*param, "1" | "true"));
            return Some(if is_all { Sampler::Ratio(1.0) } else { Sampler::Other });
        }
        Some("probabilistic") => return Some(share(Topic::SamplerParam).map_or(Sampler::Other, Sampler::Ratio)),
        Some(_) => return Some(Sampler::Other),
        None => {}
    }
    attributes.has(Topic::Sampler).then_some(Sampler::Other)
}

/// The share in OpenTelemetry's entry of `tracestate`: `th` is a threshold of 56 bits in hex digits
/// without trailing zeros, below which traces are dropped; `p` is the older form, with a share of
/// 2^-p (<https://opentelemetry.io/docs/specs/otel/trace/tracestate-handling/>).
fn ratio_from_trace_state(state: &str) -> Option<f64> {
    let own = state.split(',').find_map(|entry| entry.trim().strip_prefix("ot="))?;
    own.split(';').find_map(|part| match part.trim().split_once(':')? {
        ("th", digits) if (1..=14).contains(&digits.len()) => {
            let threshold = u64::from_str_radix(digits, 16).ok()? << (4 * (14 - digits.len()));
            Some(1.0 - threshold as f64 / (1_u64 << 56) as f64)
        }
        ("p", power) => power
            .parse()
            .ok()
            .filter(|power| *power <= 63)
            .map(|power: i32| if power == 63 { 0.0 } else { 0.5_f64.powi(power) }),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::attributes::Value;

    fn span(own: u8, parent: Option<u8>, kind: u64) -> ParsedSpan<'static> {
        ParsedSpan { span_id: Some([own; 8]), parent_id: parent.map(|id| [id; 8]), kind, ..ParsedSpan::default() }
    }

    #[test]
    fn ratios_of_trace_states() {
        for (state, ratio) in [
            ("ot=th:8", Some(0.5)),
            ("ot=th:c;rv:6e6d1a75832a2f", Some(0.25)),
            ("vendor=x, ot=rv:1;th:0", Some(1.0)),
            ("ot=p:3;r:5", Some(0.125)),
            ("ot=th:", None),
            ("ot=th:123456789abcdef", None),
            ("congo=th:8", None),
            ("", None),
        ] {
            assert_eq!(ratio_from_trace_state(state), ratio, "{state}");
        }
    }

    #[test]
    fn it_is_said_once_for_a_service_and_not_of_those_that_keep_all() {
        let now = Instant::now();
        let mut sampling = Sampling::default();
        let sampled = ParsedSpan { trace_state: Cow::Borrowed("ot=th:e6666666666668"), ..span(1, None, 2) };
        sampling.look("shop", &sampled, now);
        sampling.look("shop", &sampled, now);
        sampling.look("all", &ParsedSpan { trace_state: Cow::Borrowed("ot=th:0"), ..span(2, None, 2) }, now);
        let mut tail = span(3, None, 2);
        tail.attributes.put("sampling.policy", Value::Text(Cow::Borrowed("slow")));
        sampling.look("cart", &tail, now);
        let events = sampling.events(now);
        assert_eq!(events.len(), 2, "{events:?}");
        assert_eq!(events[0].labels.get("service"), Some("shop"));
        assert!(
            events[0].labels.get("ratio").is_some_and(|ratio| ratio.starts_with("0.1") || ratio.starts_with("0.09999"))
        );
        assert_eq!((events[1].labels.get("service"), events[1].labels.get("ratio")), (Some("cart"), None));
        assert!(sampling.events(now).is_empty());
    }

    #[test]
    fn sampler_parameters_are_read_by_kind() {
        let text = |text: &'static str| Value::Text(Cow::Borrowed(text));
        let ratio = |ratio| Some(Sampler::Ratio(ratio));
        for (kind, param, trace_state, expected) in [
            (Some(text("const")), Some(Value::Flag(true)), "", ratio(1.0)),
            (Some(text("const")), Some(Value::Whole(1)), "", ratio(1.0)),
            (Some(text("const")), Some(Value::Double(1.0)), "", ratio(1.0)),
            (Some(text("const")), None, "", ratio(1.0)),
            (Some(text("const")), Some(Value::Flag(false)), "", Some(Sampler::Other)),
            (Some(text("probabilistic")), Some(Value::Double(0.25)), "", ratio(0.25)),
            (Some(text("probabilistic")), Some(text("1")), "", ratio(1.0)),
            (Some(text("ratelimiting")), Some(Value::Double(0.5)), "", Some(Sampler::Other)),
            (Some(text("ratelimiting")), Some(Value::Double(1.0)), "ot=th:0", ratio(1.0)),
            (None, Some(Value::Double(0.5)), "", None),
            (None, None, "", None),
        ] {
            let case = format!("{kind:?} {param:?} {trace_state}");
            let mut told = ParsedSpan { trace_state: Cow::Borrowed(trace_state), ..span(1, None, 2) };
            for (key, value) in [("sampler.type", kind), ("sampler.param", param)] {
                value.into_iter().for_each(|value| told.attributes.put(key, value));
            }
            assert_eq!(revealed_sampler(&told), expected, "{case}");
            let mut sampling = Sampling::default();
            sampling.look("s", &told, Instant::now());
            assert_eq!(
                sampling.events(Instant::now()).is_empty(),
                matches!(expected, None | Some(Sampler::Ratio(1.0)))
            );
            told.attributes.put("tailsampling.policy", Value::Text(Cow::Borrowed("slow")));
            assert_eq!(revealed_sampler(&told), Some(Sampler::Other), "{case}");
        }
        let mut all = span(1, None, 2);
        all.attributes.put("sampling.ratio", Value::Whole(1));
        all.attributes.put("sampling.rule", Value::Text(Cow::Borrowed("all")));
        assert_eq!(revealed_sampler(&all), ratio(1.0));
    }

    #[test]
    fn parents_that_never_come() {
        let begun = Instant::now();
        let later = begun + PATIENCE;
        let mut whole = Sampling::default();
        let mut holed = Sampling::default();
        for n in 0..120 {
            // Children end first, or are cut loose and end last.
            for sampling in [&mut whole, &mut holed] {
                sampling.look("s", &span(n, Some(n + 120), 3), begun);
            }
            whole.look("s", &span(n + 120, Some(255), 2), begun);
            if n % 2 == 0 {
                holed.look("s", &span(n + 120, Some(255), 2), begun);
            }
        }
        assert!(whole.events(later).is_empty());
        assert!(holed.events(begun).is_empty(), "they may still come");
        let said = holed.events(later);
        assert_eq!(said.len(), 1, "{said:?}");
        assert_eq!(said[0].labels.get("by"), Some("parents"));
    }

    #[test]
    fn remembered_traces_are_bounded() {
        let mut sampling = Sampling::default();
        let now = Instant::now();
        for n in 0..200_000_u64 {
            let told = ParsedSpan {
                span_id: Some((2 * n + 1).to_le_bytes()),
                parent_id: Some((2 * n + 2).to_le_bytes()),
                ..ParsedSpan::default()
            };
            sampling.look("s", &told, now);
        }
        assert!(sampling.seen.len() <= SEEN_MAX && sampling.seen_order.len() <= SEEN_MAX);
        assert!(sampling.awaited.len() <= AWAITED_MAX && sampling.awaited_order.len() <= AWAITED_MAX);
    }
}
