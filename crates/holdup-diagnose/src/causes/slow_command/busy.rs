//! A command that keeps the one thread busy though each of its calls is too short for the slow log: by
//! the server's calls and times of each command.

use std::collections::BTreeMap;

use holdup_recording::metrics::{self, Metric};
use holdup_recording::words::{ms, percent};
use holdup_recording::{Labels, condensed::Points};
use holdup_signals::View;
use holdup_signals::evidence::Evidence;
use holdup_signals::view::stretches::pairs;

use crate::causes::parts::one_thread;

/// One command keeps the thread if it takes this share (0-1) of the time.
const KEEPS: f64 = 0.5;

/// A command of this mean time is long where others take microseconds, seconds. Many short ones are demand.
const LONG_S: f64 = 1e-4;

/// Beyond this share (0-1) of busy time the queue grows as long as its clients let it.
const FULL: f64 = 0.99;

/// Calls of a command, and their seconds.
#[derive(Clone, Copy, Default)]
struct Use {
    calls: f64,
    seconds: f64,
}

impl Use {
    fn each_s(self) -> f64 {
        self.seconds / self.calls.max(1.0)
    }
}

/// The command that keeps the thread of a server.
pub(super) struct Busy<'v> {
    source: &'v str,
    command: &'v str,
    of: Use,
    /// Share (0-1) of the time.
    pub(super) share: f64,
    /// What an arriving command waits for the thread, seconds; none if the server's clients are unknown.
    wait_s: Option<f64>,
}

impl Busy<'_> {
    /// What it costs a request, milliseconds.
    pub(super) fn cost(&self, view: &View<'_>, requests: f64) -> Option<(f64, Evidence)> {
        let (wait_s, commands) = (self.wait_s?, one_thread::commands(view, self.source, requests));
        let cost_ms = 1e3 * (commands * wait_s + self.of.seconds / requests.max(1.0));
        let waited =
            format!(": each of the {commands:.1} commands of a request waited {} for the thread", ms(wait_s * 1e3));
        Some((cost_ms, self.evidence(view, &waited)))
    }

    /// That it keeps the thread, and what follows.
    pub(super) fn evidence(&self, view: &View<'_>, then: &str) -> Evidence {
        let (share, each) = (percent(self.share), ms(self.of.each_s() * 1e3));
        let name = self.command.to_ascii_uppercase();
        let text =
            format!("{name} kept the one thread of {} for {share} of the time, {each} a call{then}", self.source);
        let labels = Labels::new([("metric", metrics::redis::COMMAND_TIME.name), ("command", self.command)]);
        Evidence::new("samples", "value", labels, view.window, share, "a few %", text)
    }
}

/// The servers whose thread one long command keeps.
pub(super) fn all<'v>(view: &View<'v>) -> Vec<Busy<'v>> {
    by_server(view).into_iter().filter_map(|(source, uses)| keeps(view, source, &uses)).collect()
}

type Uses<'v> = BTreeMap<&'v str, Use>;

fn by_server<'v>(view: &View<'v>) -> BTreeMap<&'v str, Uses<'v>> {
    let mut all: BTreeMap<&str, Uses<'_>> = BTreeMap::new();
    let mut add = |metric: Metric, to: fn(&mut Use) -> &mut f64| {
        for ((source, labels), points) in view.index.series(metric.name, &[]) {
            let command = labels.get("command").unwrap_or_default();
            *to(all.entry(source).or_default().entry(command).or_default()) += grown(points, view);
        }
    };
    add(metrics::redis::COMMAND_CALLS, |of| &mut of.calls);
    add(metrics::redis::COMMAND_TIME, |of| &mut of.seconds);
    all
}

fn grown(points: &Points, view: &View<'_>) -> f64 {
    pairs(points, view.window).map(|((_, a), (_, b))| b - a).filter(|grown| *grown > 0.0).sum()
}

fn keeps<'v>(view: &View<'v>, source: &'v str, uses: &Uses<'v>) -> Option<Busy<'v>> {
    let window_s = view.window.seconds().max(1e-3);
    let (&command, of) = uses.iter().max_by(|a, b| a.1.seconds.total_cmp(&b.1.seconds))?;
    let share = (of.seconds / window_s).min(1.0);
    if share < KEEPS || of.each_s() < LONG_S {
        return None;
    }
    let (calls, busy_s) = uses.values().fold((0.0, 0.0), |sum, of| (sum.0 + of.calls, sum.1 + of.seconds));
    // What is left of the call at work, and then those that wait in front.
    let left_s = uses.values().map(|of| of.seconds * of.each_s()).sum::<f64>() / (2.0 * window_s);
    let queued_s = left_s / (1.0 - (busy_s / window_s).min(FULL));
    // A client waits for its answer before it asks again.
    let clients = view.gauge_where(|of| of == source, metrics::redis::INFO_CONNECTED_CLIENTS.name, &[], "").ok();
    let wait_s = clients.map(|clients| queued_s.min(clients.mean * busy_s / f64::max(calls, 1.0)));
    Some(Busy { source, command, of: *of, share, wait_s })
}
