//! The app's side of one request: how long it took, and what it waited for.
//!
//! Only the outermost wait counts: a driver's span below an ORM's, and all that a downstream
//! service reports about its own work, lie within it. Where waits overlap, the time goes to those on
//! the request's [critical path](crate::app::critical_path): of two calls at the same time the app waits
//! for the one that ends last. Sums of waits from a log or a response header have no position in
//! time; they are used as they are, and scaled down if they exceed the request.

use std::collections::HashMap;

use holdup_recording::rows::Span;

use crate::app::critical_path::spans::waited_ns;

/// Most ancestors to follow from a span.
const DEPTH_MAX: usize = 64;

/// In a trace with more spans than this, only the longest count.
const SPANS_MAX: usize = 65_536;

/// What the app can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// A statement.
    Database,
    /// A connection of the pool.
    Pool,
    /// A call of another service.
    Http,
    /// A cache.
    Cache,
    /// A message queue.
    Queue,
}

impl Resource {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "database" => Self::Database,
            "pool" => Self::Pool,
            "http" => Self::Http,
            "cache" => Self::Cache,
            "queue" => Self::Queue,
            _ => return None,
        })
    }
}

/// One wait of a request.
#[derive(Clone, Copy, Debug)]
pub struct Wait<'a> {
    /// What for.
    pub resource: Resource,
    /// The row that says so.
    pub span: &'a Span,
    /// How long it took, milliseconds.
    pub ms: f64,
    /// The part on the request's critical path, milliseconds: less where others overlap.
    pub counted_ms: f64,
    /// Whether it is a sum of several waits, without a position in time.
    pub is_sum: bool,
}

/// The app's report on one request.
#[derive(Clone, Debug, Default)]
pub struct AppAccount<'a> {
    /// The whole request as the app sees it; none if not reported.
    pub request: Option<&'a Span>,
    /// Its outermost waits, in order of time.
    pub waits: Vec<Wait<'a>>,
}

impl<'a> AppAccount<'a> {
    /// How long the request was in the app, milliseconds.
    pub fn request_ms(&self) -> Option<f64> {
        self.request.map(|span| span.duration_ns as f64 / 1e6)
    }

    /// Counted milliseconds of waits for `resource`.
    pub fn waited_ms(&self, resource: Resource) -> f64 {
        self.waits_for(resource).map(|wait| wait.counted_ms).sum()
    }

    /// The waits for `resource`.
    pub fn waits_for(&self, resource: Resource) -> impl Iterator<Item = &Wait<'a>> {
        self.waits.iter().filter(move |wait| wait.resource == resource)
    }
}

/// What a span is about: the statement, the downstream service, else its name.
pub fn label(span: &Span) -> &str {
    let named = match Resource::from_name(&span.resource) {
        Some(Resource::Database) => span.digest_text.as_deref().or(span.system.as_deref()),
        Some(_) => span.system.as_deref().or(span.peer.as_deref()),
        None => None,
    };
    named.filter(|name| !name.is_empty()).unwrap_or(&span.name)
}

/// Rank of a span's source. Two sources that report the same request must not be added up.
fn rank(source: &str) -> u8 {
    match source {
        "otlp" => 0,
        _ if source.starts_with("otlp:") => 0,
        "server_timing" => 2,
        _ => 1,
    }
}

/// The app's side from the spans of one trace; none without spans. With several sources, the most
/// exact one counts.
pub fn account_of<'a>(spans: impl Iterator<Item = &'a Span>) -> Option<AppAccount<'a>> {
    let mut spans: Vec<&Span> = spans.collect();
    // A trace with the app's own request beats one with a few waits.
    let best = spans.iter().map(|s| (s.resource != "request", rank(&s.source))).min()?.1;
    spans.retain(|s| rank(&s.source) == best);
    if spans.len() > SPANS_MAX {
        spans.select_nth_unstable_by_key(SPANS_MAX, |s| std::cmp::Reverse(s.duration_ns));
        spans.truncate(SPANS_MAX);
    }
    let by_id: HashMap<&str, &Span> = spans.iter().filter_map(|s| Some((s.span_id.as_deref()?, *s))).collect();
    let parent = |span: &Span| span.parent_id.as_deref().and_then(|id| by_id.get(id)).copied();
    let outer = |span: &'a Span| {
        // A cycle of parents is a fault of the tracer: it ends here, too.
        let mut above = Vec::new();
        let mut at = parent(span);
        while let Some(next) = at.filter(|next| above.len() < DEPTH_MAX && !std::ptr::eq(*next, span)) {
            above.push(next);
            at = parent(next);
        }
        above
    };
    let requests = spans.iter().copied().filter(|s| s.resource == "request");
    // A downstream service may work on after the app has given up, so its request may be the longer
    // one. Where parents were lost, the longest is the outermost. Work started by a message continues
    // by itself, and counts as the request only if it has no other.
    let is_outermost = |span: &&'a Span| outer(span).iter().all(|above| above.resource != "request");
    let request = requests.max_by_key(|s| (s.kind != "consumer", is_outermost(s), s.duration_ns));
    let mut waits = Vec::new();
    let mut placed = Vec::new();
    for span in spans {
        let Some(resource) = Resource::from_name(&span.resource) else { continue };
        let above = outer(span);
        let is_inner = above.iter().any(|s| Resource::from_name(&s.resource).is_some());
        let is_orphan = above.last().map_or(span.parent_id.is_some(), |top| top.parent_id.is_some());
        // Its parents were lost or never kept: only its service name shows whether it is the app's
        // own wait.
        let is_foreign = is_orphan
            && request.is_some_and(|r| r.service != span.service && !above.iter().any(|s| s.span_id == r.span_id));
        if !is_inner && !is_foreign {
            let ms = span.duration_ns as f64 / 1e6;
            let is_sum = span.span_id.is_none();
            if !is_sum {
                placed.push((waits.len(), (span, above)));
            }
            waits.push(Wait { resource, span, ms, counted_ms: ms, is_sum });
        }
    }
    let (numbers, placed): (Vec<usize>, Vec<_>) = placed.into_iter().unzip();
    for (i, ns) in numbers.into_iter().zip(waited_ns(request, &placed)) {
        waits[i].counted_ms = ns as f64 / 1e6;
    }
    waits.sort_by_key(|wait| wait.span.started_at);
    let whole = request.map_or(f64::MAX, |r| r.duration_ns as f64 / 1e6);
    let counted: f64 = waits.iter().map(|wait| wait.counted_ms).sum();
    if counted > whole {
        waits.iter_mut().for_each(|wait| wait.counted_ms *= whole / counted);
    }
    Some(AppAccount { request, waits })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(id: &str, parent: Option<&str>, resource: &str, from_ms: i64, ms: i64) -> Span {
        Span {
            started_at: from_ms * 1_000_000,
            duration_ns: ms * 1_000_000,
            source: "otlp".into(),
            service: "shop".into(),
            span_id: Some(id.into()),
            parent_id: parent.map(str::to_owned),
            resource: resource.into(),
            ..Span::default()
        }
    }

    #[test]
    fn of_waits_that_overlap_the_last_to_end_counts() {
        let spans = [
            span("r", None, "request", 0, 100),
            span("a", Some("r"), "database", 10, 50),
            span("b", Some("r"), "http", 10, 80),
            // Below the first: the driver's own.
            span("c", Some("a"), "database", 12, 30),
            span("d", Some("r"), "database", 92, 5),
        ];
        let account = account_of(spans.iter()).unwrap();
        assert_eq!(account.request_ms(), Some(100.0));
        assert_eq!((account.waited_ms(Resource::Database), account.waited_ms(Resource::Http)), (5.0, 80.0));
        assert_eq!(account.waits_for(Resource::Database).map(|w| w.ms).collect::<Vec<_>>(), [50.0, 5.0]);
    }

    #[test]
    fn a_branch_that_ends_early_has_no_wait_on_the_path() {
        let spans = [
            span("r", None, "request", 0, 100),
            span("x", Some("r"), "other", 0, 60),
            span("a", Some("x"), "database", 5, 50),
            span("y", Some("r"), "other", 0, 95),
            span("b", Some("y"), "http", 60, 30),
        ];
        let account = account_of(spans.iter()).unwrap();
        assert_eq!((account.waited_ms(Resource::Database), account.waited_ms(Resource::Http)), (0.0, 30.0));
    }

    #[test]
    fn spans_that_outlast_a_request_count_only_if_it_failed() {
        let mut spans = [span("r", None, "request", 0, 100), span("a", Some("r"), "queue", 90, 400)];
        assert_eq!(account_of(spans.iter()).unwrap().waited_ms(Resource::Queue), 0.0);
        spans[0].status = "error".into();
        assert_eq!(account_of(spans.iter()).unwrap().waited_ms(Resource::Queue), 10.0);
    }

    #[test]
    fn a_neighbours_own_waits_are_not_the_apps() {
        let mut spans = vec![
            span("r", None, "request", 0, 100),
            span("h", Some("r"), "http", 10, 50),
            span("n", Some("h"), "request", 11, 48),
            span("d", Some("n"), "database", 12, 40),
        ];
        spans[2].service = "stock".into();
        spans[3].service = "stock".into();
        let account = account_of(spans.iter()).unwrap();
        assert_eq!((account.waited_ms(Resource::Http), account.waited_ms(Resource::Database)), (50.0, 0.0));
        // The same where what links them was not kept.
        spans.remove(1);
        spans.remove(1);
        assert_eq!(account_of(spans.iter()).unwrap().waits.len(), 0);
    }

    #[test]
    fn a_sum_has_no_place_and_the_more_exact_source_is_taken() {
        let sum = |resource: &str, ms| Span {
            source: "server_timing".into(),
            span_id: None,
            calls: 3,
            ..span("", None, resource, 0, ms)
        };
        let mut spans = vec![sum("request", 50), sum("database", 40), sum("http", 40)];
        let account = account_of(spans.iter()).unwrap();
        assert_eq!((account.waited_ms(Resource::Database), account.waited_ms(Resource::Http)), (25.0, 25.0));
        spans.extend([span("r", None, "request", 0, 60), span("a", Some("r"), "database", 5, 44)]);
        let account = account_of(spans.iter()).unwrap();
        assert_eq!((account.request_ms(), account.waited_ms(Resource::Database)), (Some(60.0), 44.0));
    }

    #[test]
    fn consumers_of_a_message_do_not_belong_to_the_request() {
        let mut spans = vec![span("r", None, "request", 0, 20), span("c", Some("p"), "request", 30, 500)];
        spans[1].kind = "consumer".into();
        for span in &mut spans {
            span.source = "otlp:127.0.0.1:14318".into();
        }
        spans.push(Span { source: "log:app.log".into(), ..span("l", None, "request", 0, 22) });
        assert_eq!(account_of(spans.iter()).unwrap().request_ms(), Some(20.0));
        assert_eq!(account_of(spans[1..2].iter()).unwrap().request_ms(), Some(500.0));
    }

    #[test]
    fn a_neighbour_that_works_on_after_a_timeout_is_not_the_request() {
        let mut spans = [
            span("r", None, "request", 0, 100),
            span("h", Some("r"), "http", 5, 95),
            span("n", Some("h"), "request", 6, 900),
        ];
        spans[2].service = "stock".into();
        let account = account_of(spans.iter()).unwrap();
        assert_eq!((account.request_ms(), account.waited_ms(Resource::Http)), (Some(100.0), 95.0));
    }

    #[test]
    fn parents_in_a_circle_end() {
        let spans = [span("a", Some("b"), "other", 0, 9), span("b", Some("a"), "database", 0, 9)];
        assert_eq!(account_of(spans.iter()).unwrap().waits.len(), 1);
    }
}
