//! How much longer MongoDB's operations take while something runs than at other times, by the server's
//! own account of them (`opLatencies`). Reads and writes are compared each with its own kind, so that
//! another mix is not a delay. It does not know what runs: rules bring the windows.

use holdup_recording::metrics::mongodb as metric;
use holdup_recording::words::{ms, percent};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Counter, Growth, Missing, View, Window};

/// What to record for a server.
pub const MONGODB: &str = "--watch mongodb://USER@HOST:PORT";

/// From this share (0-1) of the time other instants are too few to compare with.
pub const ALWAYS: f64 = 0.9;

/// The kinds that a service asks for. Drivers and monitors send most commands.
const KINDS: [&str; 2] = ["reads", "writes"];

/// Operations while something runs.
pub struct SlowedOperations {
    /// Share (0-1) of the episode for which it runs.
    pub ratio: f64,
    /// The same of the baseline window; 0 without one.
    pub baseline_ratio: f64,
    /// Milliseconds by which it delays a mean request of the episode.
    pub request_ms: f64,
    /// Milliseconds of an operation meanwhile, and of the same operations at other times.
    inside_ms: f64,
    outside_ms: f64,
    counter: Counter,
}

/// Operations and their seconds, by kind.
type Sums = [(f64, f64); 2];

impl SlowedOperations {
    /// In `windows` of an episode, against the rest of it; or against the baseline window if it
    /// runs nearly all the time. So many requests were `completed` in the episode.
    ///
    /// # Errors
    /// If the server's account of operations, or a time without the thing, was not recorded.
    pub fn measure(
        view: &View<'_>,
        baseline: Option<&View<'_>>,
        completed: f64,
        windows: &[Window],
    ) -> Result<Self, Missing> {
        let counter = view.counter(metric::OPERATION_TIME.name, &[], MONGODB)?;
        let meant = |growth: &Growth| {
            let middle = growth.window.from + (growth.window.to - growth.window.from) / 2;
            windows.iter().any(|window| window.contains(middle))
        };
        let ratio = time_ratio(view, &meant);
        let (inside, others) = (sums(view, &meant), sums(view, &|growth| !meant(growth)));
        let outside = match baseline.filter(|_| ratio >= ALWAYS) {
            Some(baseline) => sums(baseline, &|growth| !meant(growth)),
            None => others,
        };
        // Each kind as long as it takes without it; a kind that was not seen without it counts as it is.
        let usual = |(inside, outside): (&(f64, f64), &(f64, f64))| match outside.0 >= 1.0 {
            true => inside.0 * outside.1 / outside.0,
            false => inside.1,
        };
        if outside.iter().all(|(operations, _)| *operations < 1.0) {
            return Err(Missing::new("operations of a time at which it does not run", MONGODB));
        }
        let usual_s: f64 = inside.iter().zip(&outside).map(usual).sum();
        let (operations, took_s) = inside.iter().fold((0.0, 0.0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        let each = |seconds: f64| seconds / f64::max(operations, 1.0) * 1e3;
        Ok(Self {
            ratio,
            baseline_ratio: baseline.map_or(0.0, |baseline| time_ratio(baseline, &meant)),
            request_ms: (took_s - usual_s).max(0.0) / completed.max(1.0) * 1e3,
            inside_ms: each(took_s),
            outside_ms: each(usual_s),
            counter,
        })
    }

    /// How long an operation took while `what` ran, and else.
    pub fn evidence(&self, what: &str) -> Evidence {
        let Self { ratio, request_ms, inside_ms, outside_ms, .. } = self;
        let text = format!(
            "an operation took {} while {what}, in {} of the episode, and {} at other times: {} of a request",
            ms(*inside_ms),
            percent(*ratio),
            ms(*outside_ms),
            ms(*request_ms)
        );
        self.counter.evidence(ms(*inside_ms), ms(*outside_ms), text)
    }
}

/// Share (0-1) of the time in `view` that intervals which are `meant` make up.
fn time_ratio(view: &View<'_>, meant: &dyn Fn(&Growth) -> bool) -> f64 {
    let growths = view.growths(|_| true, metric::OPERATION_TIME.name, &[]);
    let seconds = |of: &dyn Fn(&Growth) -> bool| -> f64 {
        growths.iter().filter(|growth| of(growth)).map(|growth| growth.window.seconds()).sum()
    };
    seconds(meant) / seconds(&|_| true).max(1e-9)
}

/// Operations and their seconds in the intervals that are `meant`.
fn sums(view: &View<'_>, meant: &dyn Fn(&Growth) -> bool) -> Sums {
    let sum = |metric: &str, kind: &str| -> f64 {
        let growths = view.growths(|_| true, metric, &[("kind", kind)]);
        growths.iter().filter(|growth| meant(growth)).map(|growth| growth.delta).sum()
    };
    KINDS.map(|kind| (sum(metric::OPERATIONS.name, kind), sum(metric::OPERATION_TIME.name, kind)))
}

/// The time from sample to sample of gauge `name` during which it was above 0 at one end at least.
pub fn while_positive(view: &View<'_>, name: &str) -> Vec<Window> {
    let mut windows = Vec::new();
    let sources = view.sources_of(name);
    for source in sources {
        let points = view.total(source, name, &[]);
        let runs = |pair: &&[(i64, f64)]| pair[0].1 > 0.0 || pair[1].1 > 0.0;
        windows.extend(points.windows(2).filter(runs).map(|pair| Window { from: pair[0].0, to: pair[1].0 }));
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_signals::testing::SyntheticRecording;

    const DB: &str = "mongodb://db";

    /// 100 reads of 2 ms and `writes(second)` writes of 10 ms a second; from 20 s on each read takes `slow_ms` in every other second,
    /// and `else_ms` between.
    fn made(slow_ms: f64, else_ms: f64, writes: fn(i64) -> f64) -> SyntheticRecording {
        let sum = |of: &dyn Fn(i64) -> f64, s: i64| (1..=s).map(of).sum::<f64>();
        let read_ms = move |s: i64| match s > 20 {
            true if s % 2 == 1 => slow_ms,
            true => else_ms,
            false => 2.0,
        };
        SyntheticRecording::new(40)
            .counter(DB, "mongodb_operations_total", &[("kind", "reads")], 100.0)
            .counted(DB, "mongodb_operations_total", &[("kind", "writes")], move |s| sum(&writes, s))
            .counted(DB, "mongodb_operation_time_seconds_total", &[("kind", "reads")], move |s| {
                sum(&|t| 0.1 * read_ms(t), s)
            })
            .counted(DB, "mongodb_operation_time_seconds_total", &[("kind", "writes")], move |s| {
                sum(&|t| writes(t) * 0.01, s)
            })
    }

    /// What runs in every other second from `begun` on, in the episode from 20 s on.
    fn measured_since(made: &SyntheticRecording, begun: i64) -> SlowedOperations {
        let seconds = |from: i64, to: i64| Window { from: from * 1_000_000_000, to: to * 1_000_000_000 };
        let windows: Vec<Window> = (begun..=40).filter(|s| s % 2 == 1).map(|s| seconds(s - 1, s)).collect();
        made.seen(|view| {
            let [baseline, episode] = [seconds(0, 20), seconds(20, 40)].map(|window| View { window, ..*view });
            SlowedOperations::measure(&episode, Some(&baseline), 2_000.0, &windows).unwrap()
        })
    }

    /// Milliseconds of a request, and the share of the episode, for what runs in every other second of it.
    fn measured(made: &SyntheticRecording) -> (f64, f64) {
        let slowed = measured_since(made, 21);
        (slowed.request_ms, slowed.ratio)
    }

    #[test]
    fn the_time_beyond_that_of_other_intervals_is_its_doing() {
        // Between, a read takes 42 ms for another reason.
        let (request_ms, ratio) = measured(&made(102.0, 42.0, |_| 0.0));
        assert!((0.4..=0.6).contains(&ratio), "{ratio}");
        assert!((request_ms - 60.0 * ratio).abs() < 3.0, "{request_ms} {ratio}");
        assert!(measured(&made(42.0, 42.0, |_| 0.0)).0 < 0.1);
        assert!(measured(&made(2.0, 42.0, |_| 0.0)).0 < 0.1, "what is quicker meanwhile is no delay");
        let said = measured_since(&made(102.0, 42.0, |_| 0.0), 21).evidence("it ran").text;
        assert!(said.contains("took 102 ms while it ran") && said.contains("42.0 ms at other times"), "{said}");
    }

    #[test]
    fn what_ran_before_is_told_by_its_share_of_the_baseline() {
        let made = made(42.0, 42.0, |_| 0.0);
        assert!(measured_since(&made, 21).baseline_ratio < 0.1);
        let baseline = measured_since(&made, 1).baseline_ratio;
        assert!((0.4..=0.6).contains(&baseline), "{baseline}");
    }

    #[test]
    fn a_gauge_that_stands_runs_until_it_is_zero() {
        let made = SyntheticRecording::new(10).counted(DB, "it", &[], |s| f64::from(u8::from((4..6).contains(&s))));
        let windows = made.seen(|view| while_positive(view, "it"));
        let ends: Vec<(i64, i64)> = windows.iter().map(|it| (it.from / 1_000_000_000, it.to / 1_000_000_000)).collect();
        assert_eq!(ends, [(3, 4), (4, 5), (5, 6)]);
    }

    #[test]
    fn another_mix_is_no_delay_and_without_another_time_nothing_is_said() {
        // Four times as many writes while it runs, each as long as ever.
        let made = made(2.0, 2.0, |s| if s > 20 && s % 2 == 1 { 200.0 } else { 50.0 });
        let (request_ms, _) = measured(&made);
        assert!(request_ms < 0.5, "{request_ms}");
        // Only then does it write: how long that takes else is not known.
        let only_then = self::made(2.0, 2.0, |s| if s > 20 && s % 2 == 1 { 50.0 } else { 0.0 });
        assert!(measured(&only_then).0 < 0.5);
        let always = [Window { from: i64::MIN, to: i64::MAX }];
        assert!(made.seen(|view| SlowedOperations::measure(view, None, 1.0, &always).is_err()));
    }
}
