//! The marks that the load engine is to reach, each with what was measured. They are those of the project's issue on
//! the load engine; a mark that was not measured is not met.

use crate::figures::{Spread, over_rounds, ratio};
use crate::lateness::frozen_quantile_ms;
use crate::results::{Results, Run};

/// Share of gaps below a tenth of the scheduled gap up to which sends count as evenly spaced. The issue gives no
/// figure; a Poisson process, which nobody calls even, has 0.095.
const SHORT_GAPS_MOST: f64 = 0.05;

/// Growth of memory from the 10th second to the end up to which it counts as flat.
const GROWTH_MOST: f64 = 1.02;

/// From this length on a run tells whether memory is flat.
const SOAK_SECONDS: u32 = 600;

/// A mark.
#[derive(Clone, Debug)]
pub struct Mark {
    /// What is asked, with its figure.
    pub asked: String,
    /// What was measured.
    pub measured: Option<String>,
    /// Whether the median meets it.
    pub met: Option<bool>,
}

impl Mark {
    fn most(asked: &str, limit: f64, spread: Option<Spread>, decimals: usize) -> Self {
        Self::judged(asked, spread, decimals, |median| median <= limit)
    }

    fn judged(asked: &str, spread: Option<Spread>, decimals: usize, meets: impl Fn(f64) -> bool) -> Self {
        Self {
            asked: asked.to_owned(),
            measured: spread.map(|spread| spread.show(decimals)),
            met: spread.map(|spread| meets(spread.median)),
        }
    }
}

/// All of them.
pub fn all(results: &Results) -> Vec<Mark> {
    let mut marks = closed(results);
    marks.extend(sessions(results));
    marks.extend(open(results));
    marks.extend(freeze(results));
    marks.extend(idle(results));
    marks.extend(rest(results));
    marks
}

fn closed(results: &Results) -> Vec<Mark> {
    let to = |server: &str, other: &str| ratio(results, &format!("closed-{server}"), ("holdup", other), Run::cpu_us);
    vec![
        Mark::most(
            "closed, responder: CPU time a request at most 1.10 x the floor's",
            1.10,
            to("responder", "floor"),
            3,
        ),
        Mark::most("the same, stretch: 1.05 x", 1.05, to("responder", "floor"), 3),
        Mark::most("closed, nginx: at most 1.10 x the floor's", 1.10, to("nginx", "floor"), 3),
        Mark::judged("closed, responder: below wrk's (x wrk's)", to("responder", "wrk"), 3, |x| x < 1.0),
        Mark::judged("closed, nginx: below wrk's (x wrk's)", to("nginx", "wrk"), 3, |x| x < 1.0),
    ]
}

fn sessions(results: &Results) -> Vec<Mark> {
    let spread = ratio(results, "sessions", ("holdup, sessions", "holdup"), Run::cpu_us);
    vec![Mark::most(
        "sessions with templates, a capture and a check: CPU time a request at most 1.25 x the plain run's",
        1.25,
        spread,
        3,
    )]
}

fn late_p99(run: &Run) -> Option<f64> {
    run.arrivals.as_ref().map(|arrivals| arrivals.late_p99_ms)
}

fn open(results: &Results) -> Vec<Mark> {
    let late = |scenario: &str, label: &str| over_rounds(results, scenario, label, late_p99);
    let short = |scenario: &str| {
        over_rounds(results, scenario, "holdup precise", |run| Some(run.arrivals.as_ref()?.short_gaps_ratio))
    };
    let fast = "open-20000";
    vec![
        Mark::most(
            "open 20,000/s: economy's CPU time a request at most oha's (x oha's)",
            1.0,
            ratio(results, fast, ("holdup economy", "oha"), Run::cpu_us),
            3,
        ),
        Mark::judged(
            "open 20,000/s: oha's lateness p99 at least 3 x economy's",
            ratio(results, fast, ("oha", "holdup economy"), late_p99),
            2,
            |x| x >= 3.0,
        ),
        Mark::most("open 20,000/s, precise: lateness p99 at most 0.130 ms", 0.130, late(fast, "holdup precise"), 3),
        Mark::most(
            "open 5,000/s, precise: lateness p99 at most 0.110 ms",
            0.110,
            late("open-5000", "holdup precise"),
            3,
        ),
        Mark::most("open 20,000/s, precise: gaps below a tenth at most 5 %", SHORT_GAPS_MOST, short(fast), 4),
        Mark::most("open 5,000/s, precise: gaps below a tenth at most 5 %", SHORT_GAPS_MOST, short("open-5000"), 4),
    ]
}

fn freeze(results: &Results) -> Vec<Mark> {
    let about = results.scenarios.iter().find(|about| about.name == "freeze");
    let truth = about.and_then(|about| frozen_quantile_ms(0.99, about.seconds.into(), about.stop_seconds?));
    let Some(truth) = truth else { return Vec::new() };
    let p99 = over_rounds(results, "freeze", "holdup", |run| run.reported.p99_ms);
    let asked = format!("freeze: p99 by default within 1 % of {truth:.0} ms");
    vec![Mark::judged(&asked, p99, 1, |p99| (p99 - truth).abs() <= 0.01 * truth)]
}

fn idle(results: &Results) -> Vec<Mark> {
    let Some(about) = results.scenarios.iter().find(|about| about.name == "idle") else { return Vec::new() };
    let of = |figure: fn(&Run) -> Option<f64>| over_rounds(results, "idle", "holdup", figure);
    let connections = about.connections;
    let grown = of(|run| Some(run.resident_last_bytes? as f64 / run.resident_10s_bytes? as f64));
    let flat =
        Mark::most("idle: memory at the end at most 1.02 x that at 10 s, over 10 minutes", GROWTH_MOST, grown, 3);
    let flat = if about.seconds < SOAK_SECONDS {
        let measured = flat.measured.map(|measured| format!("{measured}, but over {} s only", about.seconds));
        Mark { measured, met: None, ..flat }
    } else {
        flat
    };
    vec![
        Mark::most(
            &format!("idle: {connections} connections in at most 16 MB"),
            16.0,
            of(|run| Some(run.resident_most_bytes as f64 / 1e6)),
            1,
        ),
        Mark::most(
            &format!("idle: {connections} connected within 1 s"),
            1.0,
            of(|run| run.seen.as_ref()?.connected_seconds),
            3,
        ),
        flat,
    ]
}

fn rest(results: &Results) -> Vec<Mark> {
    let twice = ("holdup, 2 loops on cores 0 and 1", "holdup, 1 loop on core 0");
    let tls = |scenario: &str, base: &str| ratio(results, scenario, ("holdup", base), Run::cpu_us);
    vec![
        Mark::judged(
            "two cores: at least 1.8 x one core's answers",
            ratio(results, "cores", twice, |run| Some(run.answers_per_second)),
            2,
            |x| x >= 1.8,
        ),
        Mark::most("TLS, HTTP/1.1: at most 1.3 x h2load's CPU time", 1.3, tls("tls", "h2load --h1"), 3),
        Mark::most("HTTP/2, 1 stream: at most 1.3 x h2load's CPU time", 1.3, tls("h2-1", "h2load"), 3),
        Mark::most("HTTP/2, 10 streams: at most 1.3 x h2load's CPU time", 1.3, tls("h2-10", "h2load"), 3),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::About;
    use crate::tools::Reported;

    fn frozen(p99_ms: f64) -> Results {
        let about = About { name: "freeze".into(), seconds: 20, stop_seconds: Some(2.0), ..About::default() };
        let reported = Reported { completed: 10_000, p99_ms: Some(p99_ms), ..Reported::default() };
        let run = Run { scenario: "freeze".into(), entrant: "holdup".into(), round: 1, reported, ..Run::default() };
        Results { scenarios: vec![about], runs: vec![run], ..Results::default() }
    }

    #[test]
    fn the_freeze_is_met_within_one_percent() {
        assert_eq!(freeze(&frozen(1817.0))[0].met, Some(true));
        assert_eq!(freeze(&frozen(1781.0))[0].met, Some(false));
    }

    #[test]
    fn what_was_not_measured_is_not_met() {
        let marks = all(&Results::default());
        assert!(marks.len() > 10 && marks.iter().all(|mark| mark.met.is_none() && mark.measured.is_none()));
    }
}
