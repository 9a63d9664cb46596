//! Requests of one trace each, and what each service has of them.

use super::*;
use crate::testing::SyntheticRecording;

struct Made(Vec<Span>);

impl Made {
    fn span(mut self, id: &str, parent: Option<&str>, service: &str, kind: &str, (from_ms, to_ms): (i64, i64)) -> Self {
        self.0.push(Span {
            started_at: from_ms * 1_000_000,
            duration_ns: (to_ms - from_ms) * 1_000_000,
            source: "otlp:t.json".into(),
            service: service.into(),
            trace_id: format!("{:032x}", 7),
            span_id: Some(id.into()),
            parent_id: parent.map(str::to_owned),
            name: id.into(),
            kind: kind.into(),
            resource: match kind {
                "server" => "request",
                "client" => "http",
                _ => "other",
            }
            .into(),
            ..Span::default()
        });
        self
    }

    fn failed(mut self) -> Self {
        self.0.iter_mut().last().into_iter().for_each(|span| span.status = "error".into());
        self
    }

    /// The only request: its waits in milliseconds, and where it failed first.
    fn request(self) -> (Vec<(String, Part, f64)>, Option<String>) {
        let made = SyntheticRecording::new(1).tables(|tables| {
            tables.requests.rows.clear();
            (tables.spans.present, tables.spans.rows) = (true, self.0);
        });
        let sources = Sources::new(made.recording());
        let all = requests(&sources);
        assert_eq!(all.len(), 1, "{all:?}");
        let waits = all[0].waited_ms.iter().map(|((service, part), ms)| ((*service).to_owned(), *part, *ms));
        (waits.collect(), all[0].failed_in.map(str::to_owned))
    }
}

fn wait(service: &str, part: Part, ms: f64) -> (String, Part, f64) {
    (service.to_owned(), part, ms)
}

#[test]
fn the_way_to_a_service_belongs_to_the_service_that_answers() {
    let made = Made(Vec::new())
        .span("root", None, "front", "server", (0, 100))
        .span("call", Some("root"), "front", "client", (10, 90))
        .span("answer", Some("call"), "stock", "server", (60, 85));
    let expected = [wait("front", Part::Own, 20.0), wait("stock", Part::Own, 25.0), wait("stock", Part::Way, 55.0)];
    assert_eq!(made.request().0, expected);
}

#[test]
fn an_internal_span_that_covers_another_is_its_parent() {
    // The call names no parent; what covers it is the step of its service.
    let made = Made(Vec::new())
        .span("root", None, "front", "server", (0, 100))
        .span("step", Some("root"), "front", "internal", (5, 95))
        .span("call", None, "front", "client", (10, 90))
        .span("answer", Some("call"), "stock", "server", (10, 90));
    assert_eq!(made.request().0, [wait("front", Part::Own, 20.0), wait("stock", Part::Own, 80.0)]);
}

#[test]
fn without_kinds_another_service_answers() {
    let made = Made(Vec::new())
        .span("root", None, "front", "server", (0, 100))
        .span("sent", Some("root"), "front", "internal", (10, 90))
        .span("answer", Some("sent"), "stock", "internal", (5, 75));
    // Its clock is behind: moved until it lies within the call.
    assert_eq!(
        made.request().0,
        [wait("front", Part::Own, 20.0), wait("stock", Part::Own, 70.0), wait("stock", Part::Way, 10.0)]
    );
}

#[test]
fn the_deepest_service_that_failed_is_the_first() {
    let chain = |deep_failed: bool| {
        let made = Made(Vec::new())
            .span("root", None, "front", "server", (0, 100))
            .failed()
            .span("call", Some("root"), "front", "client", (10, 90))
            .failed()
            .span("answer", Some("call"), "stock", "server", (12, 88));
        if deep_failed { made.failed() } else { made }
    };
    assert_eq!(chain(true).request().1.as_deref(), Some("stock"));
    let deeper = chain(true).span("next", Some("answer"), "stock", "client", (20, 80)).failed();
    let deeper = deeper.span("deepest", Some("next"), "price", "server", (21, 79)).failed();
    assert_eq!(deeper.request().1.as_deref(), Some("price"));
    // The call failed without a failure behind it: it was given up for what took the time there.
    let given_up = chain(false).span("slow", Some("answer"), "stock", "client", (13, 300));
    assert_eq!(given_up.span("late", Some("slow"), "price", "server", (14, 299)).request().1.as_deref(), Some("price"));
}

#[test]
fn more_of_a_slow_operation_does_not_slow_the_service() {
    let one = |number: i64, is_long: bool| {
        let took_ms = if is_long { 300 } else { 10 } + number % 5;
        let id = if is_long { "long" } else { "short" };
        let at = number * 100;
        Made(Vec::new()).span(id, None, "front", "server", (at, at + took_ms)).0.into_iter().map(move |span| Span {
            trace_id: format!("{:032x}", number + 1),
            span_id: Some(number.to_string()),
            ..span
        })
    };
    // From second 30 on most are long ones.
    let rows: Vec<Span> = (0..600).flat_map(|n| one(n, n % 5 == 0 || n > 300 && n % 5 < 4)).collect();
    let made = SyntheticRecording::new(60).tables(|tables| (tables.spans.present, tables.spans.rows) = (true, rows));
    let sources = Sources::new(made.recording());
    let view = view(&requests(&sources), Window { from: 0, to: i64::MAX }, |_| false);
    let mean =
        |from: usize| view.seconds[from..from + 20].iter().filter_map(|s| s.response_ms.mean()).sum::<f64>() / 20.0;
    assert!((mean(35) / mean(5) - 1.0).abs() < 0.1, "{} {}", mean(5), mean(35));
}
