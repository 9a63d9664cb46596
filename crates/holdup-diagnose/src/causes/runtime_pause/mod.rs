//! The code of the app stands still: for its garbage collector, behind a callback of its event loop,
//! or for a thread to run goroutines on.

mod signs;

use super::bound::Bound;
use super::{
    Cause, CauseFinding, Definition, Doc, Edge, Judge, MATTERS, Occurs, Outcome, Role, Source::Of, Source::With, Trait,
    ms, percent,
};
use crate::case::Case;
use crate::change::Fix;
use crate::failures::UNCOUNTED;
use crate::next_command::NextCommand;
use crate::resources::runtime::{Holdup, RuntimePauses};
use crate::resources::share;
use crate::strength::{CERTAIN, STRONG};
use holdup_signals::Missing;
use holdup_signals::app::runtime::{ENABLE, Stop};
use holdup_signals::client::latency::Origin;
use holdup_signals::evidence::Evidence;
use holdup_signals::time::distribution::Distribution;

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::InRuntimes,
    bound: Some(bound),
    signs: Some(signs::find),
    errors: &[(holdup_recording::events::HEAP_FULL, crate::strength::FAIR)],
    follows_from: &[
        // A runtime that gets no CPU takes longer to collect, is late in its event loop, and lets its
        // goroutines wait. A collector touches the whole heap, pages that are swapped out, too.
        Edge::same_time(&[
            &[Of(Cause::CpuThrottled), Of(Cause::ProcessStopped)],
            &[Of(Cause::CpuSaturated)],
            &[Of(Cause::MemoryPressure)],
            &[With(Trait::Load)],
        ]),
    ],
    ..Definition::new(Cause::RuntimePause, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "The app's runtime stops it",
    what: "The garbage collector or another safepoint stops all threads of the app (JVM, Go, .NET, Python), a callback blocks the event loop (Node.js), or runnable goroutines wait because few threads may run them (GOMAXPROCS).",
    hurts: "All requests in flight stand still at once, and those that arrive wait for the end. The database and the host look idle meanwhile.",
    needs: "The runtime's own metrics from the app (--watch prometheus:http://APP/metrics, or otlp): seconds of collector pauses or safepoints, the mean lag of the event loop, scheduler latencies of goroutines. Python's client counts collections without their time; holdup reads a histogram that ends in gc_pause_seconds.",
    predicts: "The share of time for which the process stands still, times the usual response time and half of a pause, makes up the excess; in the baseline window it was smaller.",
    clears: "The process stood still for so small a share of the time that requests lost a small part of the delay to it, or as much before. Of a JVM or .NET collector pauses are enough for that; of Go both collector and scheduler, of Node.js the event loop. Python's collections alone clear nothing: no runtime counts the wait for the interpreter's lock.",
    looks_like: "A process whose interpreter has a lock and that uses all of one CPU (cpu_saturated). A CPU quota (cpu_throttled): it stops the process, too, and makes pauses longer. A process that is stopped from outside (a debugger, a snapshot): its event loop is late without work.",
    fix: "Find what allocates, blocks or spins, with the runtime's own profiler; give the heap room; move long work off the event loop; let Go use all CPUs of its quota.",
    prove: "The same load again: the runtime's pause metric hardly grows.",
    references: "OpenTelemetry semantic conventions: runtime metrics (JVM, Go, Node.js, .NET, CPython); Micrometer JvmGcMetrics; Prometheus client libraries' runtime collectors; Go runtime/metrics (/sched/latencies, /sched/pauses); Node.js perf_hooks.monitorEventLoopDelay; S. W. Fuhrmann and R. B. Cooper, Stochastic decompositions in the M/G/1 queue with generalized vacations, Operations Research 33 (1985).",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::anywhere("jstat -gcutil PID 1000 10", 10, "how long collections stop the app");

/// Pauses that cost a request this part of the time that the app counts for one are not small.
const UNTIMED: f64 = 0.5;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let pauses = RuntimePauses::for_case(case)?;
    let evidence = vec![pauses.evidence()];
    if share(case, pauses.explains_ms) >= MATTERS {
        return Ok(Outcome::Found(found(&pauses, evidence)));
    }
    if let Some(missing) = untimed(case, &pauses) {
        return Ok(Outcome::Uncounted(CauseFinding { explains_ms: 0.0, ..found(&pauses, evidence) }, missing));
    }
    match &pauses.unseen {
        _ if share(case, pauses.most_ms) >= MATTERS => {
            let most = ms(pauses.most_ms);
            let what = format!("which requests met the pauses of the app's runtime, which cost at most {most} of one");
            Err(Missing::new(what, ENABLE))
        }
        Some(unseen) => Err(unseen.clone()),
        None => Ok(Outcome::Cleared(evidence)),
    }
}

/// Stops of the process that stood still for longest. Goroutines that wait for a thread do not stand still.
fn bound(case: &Case<'_>) -> Option<Bound> {
    let view = case.slow();
    if RuntimePauses::for_case(case).is_ok_and(|pauses| pauses.holdup == Holdup::Scheduler) {
        return None;
    }
    let all = view.runtime_stops().ok()?;
    let most = all.iter().max_by(|a, b| a.ratio().total_cmp(&b.ratio()))?;
    let pointer = most.evidence(percent(most.ratio()), "", String::new());
    Some(Bound::of_stops(most.ratio() * view.window.seconds(), pointer, "the stops of the runtime"))
}

fn found(pauses: &RuntimePauses, evidence: Vec<Evidence>) -> CauseFinding {
    CauseFinding {
        explains_ms: pauses.explains_ms,
        evidence,
        weights: vec![if pauses.holdup == Holdup::Scheduler { STRONG } else { CERTAIN }],
        fixes: fixes(pauses),
        prove: "Run the same scenario again: the runtime's pause metric hardly grows.".to_owned(),
        role: Role::Root,
    }
}

/// What would time the requests that wait for the end of a pause, if the app alone times them: its
/// clock for a request starts once it runs again.
fn untimed(case: &Case<'_>, pauses: &RuntimePauses) -> Option<Missing> {
    let is_by_app = matches!(case.origin, Origin::AppMetrics | Origin::AppMeans);
    let mean_ms = Distribution::merged(case.client.seconds.iter().map(|second| &second.response_ms)).mean()?;
    let timed = "load from holdup run, or the log of a load balancer or proxy in front";
    let is_large = pauses.explains_ms >= UNTIMED * mean_ms;
    (is_by_app && is_large && case.degradation.is_none()).then(|| Missing::new(UNCOUNTED, timed))
}

/// A step that only looks, then the change that it may suggest.
fn fixes(pauses: &RuntimePauses) -> Vec<Fix> {
    let look = |text: &str, command: &str| Fix {
        text: text.to_owned(),
        command: Some(command.to_owned()),
        keep: None,
        risk: None,
    };
    let change =
        |text: &str, risk: &str| Fix { text: text.to_owned(), command: None, keep: None, risk: Some(risk.to_owned()) };
    let memory = "The process takes more memory: stay below its container's limit.";
    match (pauses.runtime, pauses.holdup) {
        (_, Holdup::Scheduler) => vec![
            look(
                "See what runs instead: a CPU profile of the process.",
                "go tool pprof http://APP/debug/pprof/profile?seconds=10",
            ),
            change(
                "Set GOMAXPROCS to the CPUs that the process may use, or leave it unset (Go 1.25 reads the container's quota).",
                "More threads than CPUs of the quota are throttled.",
            ),
        ],
        (_, Holdup::Stop(Stop::EventLoop)) => vec![
            look("Find the callback that blocks: a CPU profile of the process under load.", "node --cpu-prof app.js"),
            change(
                "Split that work, or move it to a worker thread or another process.",
                "Handing over costs a copy of the data.",
            ),
        ],
        ("JVM", _) => vec![
            look(
                "See which collections and safepoints are long, and why.",
                "jcmd PID VM.log what=gc*,safepoint output=/tmp/pauses.log; jcmd PID GC.heap_info",
            ),
            change(
                "Allocate less, or give the heap more room (-Xmx), or choose a collector with short pauses (ZGC).",
                memory,
            ),
        ],
        ("Go", _) => vec![
            look("See what allocates.", "go tool pprof http://APP/debug/pprof/allocs"),
            change("Allocate less, or collect less often: raise GOGC, with GOMEMLIMIT as the bound.", memory),
        ],
        ("Node.js", _) => vec![
            look("See what allocates, and how long collections take.", "node --trace-gc app.js"),
            change("Allocate less; if young collections are many, raise --max-semi-space-size.", memory),
        ],
        ("Python", _) => vec![
            look(
                "See how long collections take, and of how many objects.",
                "python3 -c 'import gc; gc.set_debug(gc.DEBUG_STATS)' (in the app)",
            ),
            change(
                "Take long-lived objects out of collections (gc.freeze() after start), or raise gc.set_threshold.",
                memory,
            ),
        ],
        _ => vec![change("Find what allocates with the runtime's own profiler, and give its heap room.", memory)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    const APP: &str = "prometheus:app";

    /// 100 requests a second, of 10 ms in the first ten seconds; then 30 % of them arrive in a pause and wait.
    fn slowed() -> SyntheticRecording {
        SyntheticRecording::new(20).requests(100, 400).each_request(|n, row| {
            let waited_ms = if n >= 1_000 && n % 10 < 3 { (n % 10 + 1) * 200 } else { 0 };
            row.done_at = row.intended_at + (10 + waited_ms) * 1_000_000;
        })
    }

    /// `stem` counts `before` and `during` seconds of pauses a second, each of `length` seconds.
    fn pauses(made: SyntheticRecording, stem: &str, (before, during): (f64, f64), length: f64) -> SyntheticRecording {
        let grown = move |second: i64| second.min(10) as f64 * before + (second - 10).max(0) as f64 * during;
        made.counted(APP, &format!("{stem}_sum"), &[], grown)
            .counted(APP, &format!("{stem}_count"), &[], move |s| grown(s) / length)
    }

    #[test]
    fn pauses_that_began_with_the_delay_are_its_cause() {
        // A mean request lost 120 ms; those that meet a pause of 600 ms wait for half of it.
        let made = pauses(slowed(), "jvm_gc_pause_seconds", (0.002, 0.4), 0.6);
        let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
        assert!((110.0..140.0).contains(&found.explains_ms), "{}", found.explains_ms);
        assert!(
            found.evidence[0].text.contains("garbage collector stopped prometheus:app for 40 %"),
            "{:?}",
            found.evidence
        );
        assert_eq!(made.diagnose().culprit, Some(Cause::RuntimePause));
    }

    #[test]
    fn pauses_as_before_and_short_ones_clear_it() {
        assert_eq!(
            pauses(slowed(), "jvm_gc_pause_seconds", (0.4, 0.4), 0.6).explains(&DEFINITION),
            Some(0.0),
            "as before"
        );
        assert_eq!(
            pauses(slowed(), "jvm_gc_pause_seconds", (0.001, 0.002), 0.002).explains(&DEFINITION),
            Some(0.0),
            "short"
        );
    }

    #[test]
    fn pauses_that_the_app_does_not_time_are_a_cause_of_their_own() {
        // The app counts 4 ms for each of 100 requests a second; it stands still for `stopped` of the time, 0.6 s at a time.
        let timed = |stopped: f64| {
            let made = SyntheticRecording::new(20)
                .counter(APP, "http_server_request_duration_seconds_count", &[], 100.0)
                .counter(APP, "http_server_request_duration_seconds_sum", &[], 0.4);
            pauses(made, "python_gc_pause_seconds", (stopped, stopped), 0.6).diagnose()
        };
        assert_eq!(timed(0.05).culprit, Some(Cause::RuntimePause), "{}", timed(0.05).headline);
        assert!(timed(0.05).headline.contains("No source shows what it costs requests"), "{}", timed(0.05).headline);
        // A third of a millisecond of 4.
        assert_eq!(timed(0.001).culprit, None);
    }

    #[test]
    fn an_account_of_collections_alone_clears_no_python() {
        let short = |stem: &str| pauses(slowed(), stem, (0.001, 0.002), 0.002);
        assert_eq!(short("python_gc_pause_seconds").explains(&DEFINITION), None);
        assert_eq!(short("nodejs_gc_duration_seconds").explains(&DEFINITION), None);
        assert_eq!(short("go_gc_duration_seconds").explains(&DEFINITION), None);
        let go = short("go_gc_duration_seconds").counter(APP, "go_sched_latencies_seconds_sum", &[], 0.001);
        assert_eq!(go.explains(&DEFINITION), Some(0.0));
        // Long ones are found all the same.
        assert!(pauses(slowed(), "python_gc_pause_seconds", (0.0, 0.4), 0.6).explains(&DEFINITION).unwrap() > 100.0);
        assert_eq!(slowed().explains(&DEFINITION), None);
        for column in ["value", "labels", "metric"] {
            let less = pauses(slowed(), "jvm_gc_pause_seconds", (0.0, 0.4), 0.6).without_column("samples", column);
            assert_eq!(less.explains(&DEFINITION), None, "{column}");
        }
    }

    #[test]
    fn goroutines_that_wait_for_a_thread_are_found() {
        let made = slowed()
            .counted(APP, "go_sched_latencies_seconds_sum", &[], |s| (s - 10).max(0) as f64 * 1.5)
            .gauge(APP, "go_sched_gomaxprocs_threads", &[], 1.0);
        let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
        assert!((100.0..140.0).contains(&found.explains_ms), "{}", found.explains_ms);
        assert!(found.evidence[0].text.contains("GOMAXPROCS is 1"), "{:?}", found.evidence);
    }

    #[test]
    fn a_late_event_loop_is_found() {
        let by = |idle: f64, busy: f64| move |second: i64| if second <= 10 { idle } else { busy };
        let made = slowed()
            .counted(APP, "nodejs_eventloop_lag_mean_seconds", &[], by(0.0101, 0.022))
            .counted(APP, "nodejs_eventloop_lag_stddev_seconds", &[], by(0.0001, 0.065))
            .counted(APP, "nodejs_eventloop_lag_max_seconds", &[], by(0.011, 0.5));
        let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
        assert!((80.0..140.0).contains(&found.explains_ms), "{}", found.explains_ms);
        assert!(found.fixes[0].command.as_deref().is_some_and(|c| c.contains("--cpu-prof")), "{:?}", found.fixes);
    }

    #[test]
    fn requests_of_several_processes_share_their_pauses() {
        let half = |made: SyntheticRecording, source: &'static str, stopped: f64| {
            let grown = move |s: i64| (s - 10).max(0) as f64 * stopped;
            made.counted(source, "nodejs_gc_duration_seconds_sum", &[], grown)
                .counted(source, "nodejs_gc_duration_seconds_count", &[], move |s| grown(s) / 0.6)
                .counter(source, "http_server_request_duration_seconds_count", &[], 50.0)
        };
        let one = half(half(slowed(), "prometheus:a", 0.4), "prometheus:b", 0.0).explains(&DEFINITION).unwrap();
        let both = half(half(slowed(), "prometheus:a", 0.4), "prometheus:b", 0.4).explains(&DEFINITION).unwrap();
        assert!((both / one - 2.0).abs() < 0.05, "{one} {both}");
    }
}
