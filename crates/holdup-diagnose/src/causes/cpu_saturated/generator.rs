//! The load generator on the same machine: its loop is a thread like those of the service, so full
//! CPUs make it send late. That delay is the machine's. A generator that takes most of the CPU time
//! itself is its own limit.

use holdup_recording::metrics;

use crate::case::Case;
use crate::causes::ms;
use crate::resources::cpu::{self, CpuUse};
use holdup_signals::View;
use holdup_signals::evidence::Evidence;
use holdup_signals::time::requests::{mean_over, send_lag_ms};

/// What to record for the generator's own figures.
const RUN: &str = "holdup run";

/// Milliseconds by which a request was sent late because the generator's loop waited for a CPU, beyond
/// the baseline window; none if CPUs were idle, or if it used most of them itself.
pub(super) fn find(case: &Case<'_>, view: &View<'_>, cpus: &CpuUse, completed: f64) -> Option<(f64, Evidence)> {
    let used = view.counter(metrics::load::CPU.name, &[], RUN).ok()?;
    if !cpus.is_short() || used.delta >= cpu::OWN * cpus.seconds {
        return None;
    }
    let waited = view.counter(metrics::load::RUN_QUEUE.name, &[], RUN).ok()?;
    let lag = |rows: &[&holdup_recording::rows::Request]| mean_over(rows.iter().copied(), send_lag_ms);
    let late_ms = lag(case.slow_requests().ok()?)?;
    let before_ms = case.baseline().and_then(|baseline| lag(&case.requests_in(baseline.window).ok()?)).unwrap_or(0.0);
    // It sleeps until the next request is due: what it waited in all bounds what it was late.
    let request_ms = (late_ms - before_ms).min(waited.delta / completed * 1e3).max(0.0);
    let text = format!(
        "holdup's own loop waited for a CPU as well, and sent each request {} late, {} in the baseline window",
        ms(late_ms),
        ms(before_ms)
    );
    let piece = waited.evidence(format!("{} a request", ms(request_ms)), "a small share of the delay", text);
    (request_ms > 0.0).then_some((request_ms, piece))
}

#[cfg(test)]
mod tests {
    use crate::causes::cpu_saturated::DEFINITION;
    use crate::causes::load_generator_limit;
    use crate::testing::{Judged as _, SyntheticRecording};
    use crate::verdict::Answer;

    /// 50 requests a second, sent 300 ms late from the twelfth second on; the generator uses `own` CPUs of two, which
    /// are full.
    fn made(own: f64, idle: f64) -> SyntheticRecording {
        let mode = |mode| [("cpu_mode", mode)];
        SyntheticRecording::new(24)
            .requests(50, 310)
            .each_request(|n, r| {
                r.ready_at = Some(r.intended_at);
                let late = if n < 600 { 0 } else { 300_000_000 };
                r.sent_at = Some(r.intended_at + late);
                r.done_at = r.intended_at + late + 10_000_000;
            })
            .counter("host", "system_cpu_time_seconds_total", &mode("user"), 2.0 - idle)
            .counter("host", "system_cpu_time_seconds_total", &mode("idle"), idle)
            .counter("pid:7", "process_run_queue_seconds_total", &[], 0.01)
            .counter("holdup", "holdup_load_cpu_seconds_total", &[], own)
            .counter("holdup", "holdup_load_run_queue_seconds_total", &[], 20.0)
    }

    #[test]
    fn a_generator_short_of_full_cpus_is_short_of_cpus() {
        let late = made(0.05, 0.0).explains(&DEFINITION).unwrap();
        assert!((late - 300.0).abs() < 30.0, "{late}");
        let diagnosis = made(0.05, 0.0).diagnose();
        let generator = diagnosis.findings.iter().find(|f| f.cause == load_generator_limit::DEFINITION.cause).unwrap();
        assert_eq!(generator.follows_from, Some(DEFINITION.cause));
        assert_eq!(
            (diagnosis.verdict, diagnosis.culprit),
            (Answer::Found, Some(DEFINITION.cause)),
            "{}",
            diagnosis.headline
        );
        assert_eq!(made(1.9, 0.0).explains(&DEFINITION), Some(0.0), "it takes the CPUs itself");
        assert_eq!(made(0.05, 1.6).explains(&DEFINITION), Some(0.0), "CPUs are idle");
    }
}
