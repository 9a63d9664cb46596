//! Nothing is broken; there is more load than before.

mod rise;
mod trace;

use crate::change::Fix;
use holdup_recording::{Labels, metrics};

use self::rise::{Rise, SPIKE_FACTOR, arrivals};
use super::{Cause, CauseFinding, Definition, Doc, Judge, Others, Outcome, Role, Trait, percent};
use crate::case::{Band, Case};
use crate::next_command::NextCommand;
use crate::resources::cpu;
use crate::strength::{STRONG, WEAK};
use holdup_signals::evidence::Evidence;
use holdup_signals::host::cpu::CpuTime;
use holdup_signals::{Counter, Missing, View};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::Outside, Trait::Load],
    traces: &[trace::PATTERN],
    ..Definition::new(Cause::WorkloadSpike, DOC, Judge::Beside(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "The load increased",
    what: "More requests arrive than in the baseline window and each needs the same work as before. No part is broken; a resource that is named beside this has run out.",
    hurts: "Looked at alone, every resource near its limit seems to be the culprit.",
    needs: "A baseline window, in this recording or in the one it is compared with, and the rate in both: requests by the app's HTTP server metrics, or else calls by statement, or the database's counter of all statements, which tells least. For a load by holdup its schedule, and the use per request of the resource that ran out.",
    predicts: "The rate rises at the start of the episode; the work per request stays.",
    clears: "The rate is unchanged. A load by holdup is deliberate and clears it, unless its rate rose, a resource ran out (CPUs, a disk, the network, workers, connections), and a request used no more of it than in the baseline window. Or its rate rose, no cause within the service was found, and what would show a resource was not recorded.",
    looks_like: "Retries after a fault raise the rate too, but after the latency rose, not before.",
    fix: "Admit less (rate limits, load shedding), or add the resource that ran out.",
    prove: "With the old rate response time is back to normal.",
    references: "B. Gregg, The USE Method; the workload characterisation method.",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand {
    seconds: 10,
    ..NextCommand::statement(
        "SHOW GLOBAL STATUS LIKE 'Questions'; SELECT SLEEP(10); SHOW GLOBAL STATUS LIKE 'Questions';",
        "SELECT sum(xact_commit) FROM pg_stat_database; SELECT pg_sleep(10); SELECT sum(xact_commit) FROM pg_stat_database;",
        "whether more statements arrive than usual",
    )
};

/// More work per request than this factor means that something became more expensive.
const SAME_WORK: f64 = 1.5;

/// The causes on CPUs and on the network.
const CPUS: Cause = Cause::CpuSaturated;
const NETWORK: Cause = Cause::NetworkBandwidth;

/// Resources that can run out although nothing is broken: the cause, the metric of their use, and
/// its name.
const RESOURCES: [(Cause, &str, &str); 5] = [
    (CPUS, metrics::process::CPU_TIME.name, "CPU time"),
    (Cause::ThroughputCeiling, metrics::host::DISK_IO_BYTES.name, "bytes of disks"),
    (Cause::IopsCeiling, metrics::host::DISK_OPERATIONS.name, "operations of disks"),
    (Cause::DiskSaturated, metrics::host::DISK_OPERATIONS.name, "operations of disks"),
    (NETWORK, metrics::host::NETWORK_IO_BYTES.name, "bytes of network"),
];

/// Limits of their number that more of the same requests reach.
const POOLS: [Cause; 3] = [Cause::WorkerPoolExhausted, Cause::ConnectionPoolExhausted, Cause::ThreadPoolQueue];

fn judge(case: &Case<'_>, others: &Others) -> Result<Outcome, Missing> {
    if case.recording.manifest.load.is_some() {
        return scheduled(case, others);
    }
    let baseline = case.baseline().ok_or_else(|| Missing::baseline(" to compare with"))?;
    let rise = arrivals(&case.slow(), &baseline)?;
    if rise.is_excluded() {
        return Ok(Outcome::Cleared(vec![rise.evidence]));
    }
    if !rise.is_clear() {
        return Err(Missing::new(
            "enough requests to compare their rates",
            "a longer recording that includes a healthy stretch",
        ));
    }
    Ok(Outcome::Found(found(case, rise, ran_out_of_any(case, others))))
}

/// A load of holdup's own: its rate is a question, unless it rose, a resource ran out, and requests
/// use no more of it than before. Others may send more beside it.
fn scheduled(case: &Case<'_>, others: &Others) -> Result<Outcome, Missing> {
    // Without what is still answered after the load has ended.
    let slow = case.degradation.as_ref().map_or(case.slow().window, |symptom| symptom.slow);
    let now = case.due_per_second(slow)?;
    let baseline = case.baseline();
    let before =
        baseline.and_then(|baseline| Some((case.due_per_second(baseline.window).ok()?, baseline.window.seconds())));
    let due = |expected: String, text: String| {
        Evidence::new("requests", "intended_at", Labels::none(), slow, format!("{now:.0}/s"), expected, text)
    };
    let is_searched = case.recording.search.is_some();
    let own = before.filter(|(before, _)| *before > 0.0 && !is_searched).map(|(before, seconds)| {
        let text = format!("the schedule rose to {now:.0} requests/s, from {before:.0} in the baseline window");
        let band = |rate: f64, seconds: f64| Band::of_count(rate, rate * seconds);
        Rise::new(band(now, slow.seconds()), band(before, seconds), due(format!("{before:.0}/s"), text), STRONG)
    });
    let own_factor = own.as_ref().map_or(1.0, Rise::factor);
    let beside = baseline.filter(|_| !is_searched && own_factor < SPIKE_FACTOR);
    let beside =
        beside.and_then(|baseline| arrivals(&case.view(slow), &baseline).ok()).filter(|rise| rise.weight > WEAK);
    if let Some(rise) = own.filter(Rise::is_clear) {
        match ran_out(case, others) {
            Ok(None) => {}
            Ok(work) => return Ok(Outcome::Found(found(case, rise, work))),
            // What would show the resource is not measured, and nothing else changed.
            Err(missing) if is_service_found(others) => return Err(missing),
            Err(_) => return Ok(Outcome::Found(CauseFinding { role: Role::Root, ..found(case, rise, None) })),
        }
    }
    if let Some(rise) = beside.filter(Rise::is_clear) {
        return Ok(Outcome::Found(found(case, rise, ran_out_of_any(case, others))));
    }
    let text = format!("the load was the one you asked for ({now:.0}/s), so there was no spike");
    Ok(Outcome::Cleared(vec![due("as scheduled".to_owned(), text)]))
}

/// Whether a cause within the service is found.
fn is_service_found(others: &Others) -> bool {
    let is = |(cause, outcome): (&Cause, &_)| {
        matches!(outcome, Ok(Outcome::Found(_) | Outcome::Fails(..))) && !cause.is(Trait::Outside)
    };
    others.iter().any(is)
}

/// Evidence of a resource that ran out although a request uses no more of it than in the baseline
/// window.
///
/// # Errors
/// If none is known to have run out and CPUs or disks could not be judged, or if the use per
/// request is unknown.
fn ran_out(case: &Case<'_>, others: &Others) -> Result<Option<Evidence>, Missing> {
    let (slow, Some(baseline)) = (case.slow(), case.baseline()) else { return Ok(None) };
    let mut untold = None;
    for (cause, metric, what) in RESOURCES {
        match others.get(&cause) {
            Some(Ok(Outcome::Found(_))) => {}
            // The network is seldom judged, and seldom runs out.
            Some(Err(missing)) if cause != NETWORK => {
                untold.get_or_insert_with(|| missing.clone());
                continue;
            }
            _ => continue,
        }
        let each = |view: &View<'_>| -> Result<(f64, Counter), Missing> {
            let used = view.counter(metric, &[], "--watch host, and pid:N for the app and the database")?;
            Ok((used.delta / case.completed_in(view.window)?.max(1.0), used))
        };
        let ((now, used), (before, _)) = (each(&slow)?, each(&baseline)?);
        if now > SAME_WORK * before || !is_services_own(cause, &slow, used.delta) {
            continue;
        }
        return Ok(Some(says_same(&used, now / before.max(f64::MIN_POSITIVE), what)));
    }
    untold.map_or(Ok(None), Err)
}

fn says_same(used: &Counter, ratio: f64, what: &str) -> Evidence {
    let text =
        format!("a request used {ratio:.2} times the {what} of the baseline window: no part became more expensive");
    used.evidence(format!("{ratio:.2} times"), "more", text)
}

/// The same, or a number of workers, connections or threads that ran out: for a load of others. The
/// rate of a load by holdup is a question, and what is too few for it is the answer.
fn ran_out_of_any(case: &Case<'_>, others: &Others) -> Option<Evidence> {
    let in_number = || same_work(case, others, &case.slow(), &case.baseline()?);
    ran_out(case, others).ok().flatten().or_else(in_number)
}

/// The same for workers, connections or threads that ran out: a request uses no more CPU time than
/// before, so nothing became dearer.
fn same_work(case: &Case<'_>, others: &Others, slow: &View<'_>, baseline: &View<'_>) -> Option<Evidence> {
    let is_out = |cause: &&Cause| matches!(others.get(cause), Some(Ok(Outcome::Found(_))));
    POOLS.iter().find(is_out)?;
    let each = |view: &View<'_>| -> Option<(f64, Counter)> {
        let used = view.counter(metrics::process::CPU_TIME.name, &[], "").ok()?;
        Some((used.delta / case.completed_in(view.window).ok()?.max(1.0), used))
    };
    let ((now, used), (before, _)) = (each(slow)?, each(baseline)?);
    let ratio = now / before.max(f64::MIN_POSITIVE);
    (ratio <= SAME_WORK).then(|| says_same(&used, ratio, "CPU time"))
}

/// Whether the watched processes use most of the CPU time in use. For disks and network this is
/// unknown.
fn is_services_own(cause: Cause, view: &View<'_>, own_seconds: f64) -> bool {
    let programs = CpuTime::measure(view).map_or(0.0, |cpu| cpu.seconds.programs());
    cause != CPUS || own_seconds >= cpu::OWN * programs
}

fn found(case: &Case<'_>, rise: Rise, work: Option<Evidence>) -> CauseFinding {
    let (excess, factor) = (case.excess_ms(), rise.factor());
    // At the old rate all was well: if nothing else changed, the whole delay goes with the rate.
    // Otherwise more load lengthens every queue, and other rules say which: this one takes the
    // share by which demand grew.
    let explains_ms = if work.is_some() { excess } else { excess * (1.0 - 1.0 / factor) };
    let weights = if work.is_some() { vec![STRONG, STRONG] } else { vec![rise.weight] };
    let evidence: Vec<Evidence> = std::iter::once(rise.evidence).chain(work).collect();
    CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes: vec![Fix {
            text: format!(
                "Reduce or spread the load by {}, or add the resource that ran out.",
                percent(1.0 - 1.0 / factor)
            ),
            command: None,
            keep: None,
            risk: None,
        }],
        prove: "With the old rate response time is back to normal.".to_owned(),
        // A root if the exhausted resource follows from nothing closer, which its links decide.
        role: Role::Contributor,
    }
}

#[cfg(test)]
mod tests {
    use super::DEFINITION;
    use crate::cause::Cause;
    use crate::causes::Role;
    use crate::testing::{Judged as _, SyntheticRecording};
    use crate::verdict::Answer;

    /// Second from which on the schedule is four times as high.
    const ROSE: i64 = 20;

    /// 40 s of a schedule that rises from 25 to 100 requests a second, which the service, at `each_ms` of CPU time a request, then
    /// carries no more; `others` CPUs are used by somebody else all along. Two CPUs.
    fn rising(each_ms: (f64, f64), others: f64) -> SyntheticRecording {
        let grown = |before: f64, after: f64| {
            move |second: i64| before * second.min(ROSE) as f64 + after * (second - ROSE).max(0) as f64
        };
        let own = (25.0 * each_ms.0 / 1e3, 100.0 * each_ms.1 / 1e3);
        let idle = |own: f64| (2.0 - own - others).max(0.0);
        let used = (own.0 + others, own.1 + others);
        let mode = |mode| [("cpu_mode", mode)];
        let s = 1_000_000_000;
        SyntheticRecording::new(40)
            .requests(100, 900)
            .each_request(move |n, r| {
                if r.intended_at < ROSE * s {
                    r.done_at = r.intended_at + 30_000_000;
                    // Of the baseline window a quarter is left below.
                    r.phase = if n % 4 == 0 { "load".into() } else { "none".into() };
                }
            })
            .tables(|t| t.requests.rows.retain(|r| r.phase == "load"))
            .counted("host", "system_cpu_time_seconds_total", &mode("user"), grown(used.0, used.1))
            .counted("host", "system_cpu_time_seconds_total", &mode("idle"), grown(idle(own.0), idle(own.1)))
            .gauge("host", "system_cpu_logical_count", &[], 2.0)
            .disk("vda", (0.0, 0.0, 0.0), (1.0, 4_096.0, 0.5))
            .counted("pid:7", "process_cpu_time_seconds_total", &mode("user"), grown(own.0, own.1))
            .counted("pid:7", "process_run_queue_seconds_total", &[], grown(0.1, 60.0))
    }

    #[test]
    fn more_of_the_same_breaks_nothing() {
        let diagnosis = rising((19.5, 19.5), 0.0).diagnose();
        assert_eq!(diagnosis.culprit, Some(DEFINITION.cause), "{}", diagnosis.headline);
        assert_eq!(diagnosis.verdict, Answer::Found);
        assert!(diagnosis.headline.contains("nothing is broken"), "{}", diagnosis.headline);
        let cpu = diagnosis.findings.iter().find(|f| f.cause == Cause::CpuSaturated).unwrap();
        assert_eq!((cpu.role, cpu.follows_from), (Role::Symptom, Some(DEFINITION.cause)));
    }

    #[test]
    fn dearer_requests_and_others_are_no_load() {
        // Each takes twice the CPU time: something became dearer, as the rate rose.
        let diagnosis = rising((9.0, 19.5), 0.0).diagnose();
        assert_eq!(diagnosis.culprit, Some(Cause::CpuSaturated), "{}", diagnosis.headline);
        // Somebody else has most of the CPUs.
        let diagnosis = rising((4.0, 4.0), 1.59).diagnose();
        assert_eq!(diagnosis.culprit, Some(Cause::CpuSaturated), "{}", diagnosis.headline);
    }

    /// `requests` a second, slow from second 20 on, when statements of three kinds run `factors` times as often.
    fn asked(requests: i64, factors: [i64; 3]) -> SyntheticRecording {
        let calls = |factor: i64| move |s: i64| 40 * s.min(ROSE) + factor * 40 * (s - ROSE).max(0);
        let of = |text: &str, made: SyntheticRecording, factor: i64| {
            let calls = calls(factor);
            made.digest(text, move |s| (calls(s), calls(s), 0, 0, 0))
        };
        let made = SyntheticRecording::new(40).requests(requests, 400).each_request(|_, r| {
            if r.intended_at < ROSE * 1_000_000_000 {
                r.done_at = r.intended_at + 10_000_000;
            }
        });
        let made = of("SELECT 1", made, factors[0]);
        of("SELECT 3", of("SELECT 2", made, factors[1]), factors[2])
    }

    #[test]
    fn others_who_ask_for_more_of_the_same_are_seen_in_statements() {
        let share = asked(40, [4, 4, 4]).explains(&DEFINITION).unwrap();
        assert!((share - 0.75 * 390.0).abs() < 20.0, "{share}");
        assert_eq!(asked(40, [1, 1, 1]).explains(&DEFINITION), Some(0.0), "slower, and no more");
        assert_eq!(asked(40, [1, 4, 40]).explains(&DEFINITION), Some(0.0), "more of some statements: another mix");
    }

    #[test]
    fn a_handful_is_no_rate() {
        let counted = |calls: fn(i64) -> f64| {
            asked(40, [1, 1, 1])
                .tables(|t| t.requests.rows.clear())
                .tables(|t| t.statements.rows.clear())
                .counted("app", "http_server_request_duration_seconds_count", &[], calls)
                .counted("app", "http_server_request_duration_seconds_bucket", &[("le", "0.01")], |s| {
                    s.min(ROSE) as f64
                })
                .counted("app", "http_server_request_duration_seconds_bucket", &[("le", "1")], |s| s as f64)
                .seen(|view| {
                    let at = |from: i64, to: i64| holdup_signals::View {
                        window: holdup_signals::Window { from: from * 1_000_000_000, to: to * 1_000_000_000 },
                        ..*view
                    };
                    let rise = super::arrivals(&at(20, 40), &at(0, 20)).unwrap();
                    (rise.factor(), rise.change.least())
                })
        };
        let (factor, least) = counted(|s| 0.2 * s.min(ROSE) as f64 + 0.4 * (s - ROSE).max(0) as f64);
        assert!((factor - 2.0).abs() < 0.01 && least < 1.0, "four requests and eight: {least}");
        let (_, least) = counted(|s| 200.0 * s.min(ROSE) as f64 + 400.0 * (s - ROSE).max(0) as f64);
        assert!(least > 1.7, "{least}");
    }

    #[test]
    fn a_schedule_that_stays_is_a_question() {
        let steady = SyntheticRecording::new(20).requests(100, 900).explains(&DEFINITION);
        assert_eq!(steady, Some(0.0));
        // It rose, and no resource of the machine ran out.
        let idle = || rising((5.0, 5.0), 0.0).tables(|t| t.samples.rows.retain(|r| !r.metric.contains("run_queue")));
        let awake = idle().gauge("pid:7", "process_threads", &[("state", "D")], 0.0);
        assert_eq!(awake.explains(&DEFINITION), Some(0.0));
        // Whether threads wait for disks was not looked at, and the rise is all that is known.
        assert!(idle().explains(&DEFINITION).is_some_and(|ms| ms > 0.0));
    }

    #[test]
    fn answers_after_the_load_do_not_count_as_its_rate() {
        // As `rising`, but what is due in the last ten seconds is answered a minute later.
        let late = rising((19.5, 19.5), 0.0).each_request(|_, r| {
            if r.intended_at >= 30 * 1_000_000_000 {
                r.done_at += 60 * 1_000_000_000;
            }
        });
        let spike = late.diagnose().findings.into_iter().find(|f| f.cause == DEFINITION.cause).expect("found");
        assert!(spike.evidence[0].text.contains("rose to 100 requests/s"), "{}", spike.evidence[0].text);
    }
}
