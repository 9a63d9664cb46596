//! The demand on a disk or volume and its parts: the flow that binds or has the longest queue, what
//! the load would move if all of it were served, and the parts of rewritten TOAST values and of
//! vacuum. Without one part, the rest is compared with the level: would that alone be enough?

use super::level::{self, rate};
use crate::case::Case;
use crate::cause::Cause;
use crate::resources::indexes;
use holdup_recording::words::percent;
use holdup_signals::database::tables::Toast;
use holdup_signals::database::vacuum::{Run, Vacuum};
use holdup_signals::host::flows::{Flow, FlowSource};
use holdup_signals::host::throttle::Unit;
use holdup_signals::time::plateau::Demand as Standing;
use holdup_signals::yardstick::MATTERS;
use holdup_signals::{Missing, View};

/// An update that writes fewer TOAST rows than this mostly writes no value out of line.
pub const REWRITES: f64 = 0.5;

/// Share (0-1) of the demand that must be new since the baseline window to count as grown, …
const GREW: f64 = 0.5;

/// … and share (0-1) of the growth that is most of it.
const MOST: f64 = 0.5;

/// A level is reached by a demand of this share (0-1) of it: queues are long by then.
const REACHES: f64 = 0.95;

/// A volume that moves this part (0-1) of what it moved before does as much.
const AS_MUCH: f64 = 0.8;

/// Factor above the level that counts as more.
const MORE: f64 = 1.1;

/// The flow of the episode.
pub struct Demand {
    /// The volume's throughput.
    pub flow: Flow,
    /// Bytes per second moved.
    pub moved: f64,
    /// Bytes per second that all of the offered load would have moved.
    pub offered: f64,
    /// The level that bytes stay at, if they do.
    pub level: Option<f64>,
}

/// The demand on the volume that binds, else on the one with the longest queue.
///
/// # Errors
/// If no disk was recorded.
pub fn demand(case: &Case<'_>) -> Result<Demand, Missing> {
    let slow = case.slow().window;
    let bound = [FlowSource::Cloud, FlowSource::Host].into_iter().find_map(|counted| {
        let (_, at) = level::at_ceiling(case, counted).ok()?;
        at.into_iter().find(|a| a.binding.unit == Unit::Bytes).map(|a| (a.flow, a.binding.ceiling.level))
    });
    let (flow, level) = match bound {
        Some((flow, level)) => (flow, Some(level)),
        None => {
            let flows = case.view(case.whole()).flows()?;
            let queued = |f: &Flow| f.queued(slow).unwrap_or(0.0);
            let single = flows.into_iter().filter(|f| !f.is_of_several());
            let longest = single.max_by(|a, b| queued(a).total_cmp(&queued(b)));
            (longest.ok_or_else(|| Missing::new("throughput of a disk", "--watch host"))?, None)
        }
    };
    let moved = flow.mean(Unit::Bytes, slow).unwrap_or(0.0);
    let offered = moved * level::backlog(case, slow);
    Ok(Demand { flow, moved, offered, level })
}

/// Whether the level is new: a burst ended, a higher rate existed before and never returned, or the
/// baseline window had a higher rate than it lets through now. A demand that existed all along is
/// then not the change.
pub fn came_down(case: &Case<'_>) -> bool {
    [FlowSource::Cloud, FlowSource::Host].into_iter().any(|counted| {
        let Ok((_, all)) = level::at_ceiling(case, counted) else { return false };
        let Some(at) = all.first() else { return false };
        if at.binding.ceiling.demand == Standing::Unchanged {
            return true;
        }
        let (unit, level) = (at.binding.unit, at.binding.ceiling.level);
        // The baseline recording may have another disk: its higher rate does not show a lowered
        // limit here.
        let baseline = case.baseline().filter(|baseline| !case.is_of_other(baseline.window));
        let before = baseline.and_then(|baseline| at.flow.mean(unit, baseline.window));
        at.burst().is_some() || at.freer().is_some() || before.is_some_and(|before| before > MORE * level)
    })
}

impl Demand {
    /// `bytes` per second as a share (0-1) of what was moved.
    pub fn share(&self, bytes: f64) -> f64 {
        if self.moved > 0.0 { (bytes / self.moved).min(1.0) } else { 0.0 }
    }

    /// The share (0-1) of the waits that `bytes` per second account for which came with the episode: all of
    /// them if the rest is what the volume moved in the baseline window, when nothing waited; else their part
    /// of what is new. Where the volume moves less than before, or too little of it is theirs to matter, it is
    /// their part of all.
    pub fn share_of_newcomer(&self, case: &Case<'_>, bytes: f64) -> f64 {
        let plain = self.share(bytes);
        let baseline = case.baseline().filter(|baseline| !case.is_of_other(baseline.window));
        let before = baseline.and_then(|baseline| self.flow.mean(Unit::Bytes, baseline.window));
        match before {
            Some(before) if self.moved >= AS_MUCH * before && !is_negligible(plain) => {
                plain.max((bytes / (self.moved - before).max(bytes)).min(1.0))
            }
            _ => plain,
        }
    }

    /// Milliseconds of a mean request that wait for the volume.
    ///
    /// # Errors
    /// If no source shows waits for it.
    pub fn waited_ms(&self, case: &Case<'_>) -> Result<f64, Missing> {
        level::disk_ms(case, &self.flow)
    }

    /// Whether the level lets through what is left without a part of `share` (0-1).
    fn fits_without(&self, share: f64) -> bool {
        self.level.is_some_and(|level| self.offered * (1.0 - share) < REACHES * level)
    }

    /// The demand without a part of `share` (0-1), and whether that is below the level: in words.
    pub fn without(&self, share: f64) -> String {
        let left = self.offered * (1.0 - share);
        let of =
            format!("the demand would be {} instead of {}", rate(Unit::Bytes, left), rate(Unit::Bytes, self.offered));
        match self.level {
            Some(level) if self.fits_without(share) => {
                format!(
                    "{of}, which the level of {} lets through: for this load that alone would suffice",
                    rate(Unit::Bytes, level)
                )
            }
            Some(level) => format!("{of}, still above the level of {}", rate(Unit::Bytes, level)),
            None => of,
        }
    }
}

/// Whether what `cause` adds to the demand began with the episode and makes up most of its growth:
/// then it is what changed, and the volume's limit is how it hurts.
pub fn began(case: &Case<'_>, cause: Cause) -> bool {
    let Some(baseline) = case.baseline().filter(|baseline| !case.is_of_other(baseline.window)) else { return false };
    let Ok(demand) = demand(case) else { return false };
    let grew = demand.moved - demand.flow.mean(Unit::Bytes, baseline.window).unwrap_or(demand.moved);
    if grew < GREW * demand.moved {
        return false;
    }
    if cause == Cause::TooManyIndexes {
        return indexes::added(case).is_some();
    }
    let bytes = |view: &View<'_>| bytes_of(view, cause, &demand);
    bytes(&case.slow()) - bytes(&baseline) >= MOST * grew
}

/// The demand on the volume without the contributor `cause`, in words; none if unknown.
pub fn without(case: &Case<'_>, cause: Cause) -> Option<String> {
    let demand = demand(case).ok()?;
    let share = share_of(case, cause, &demand)?;
    (share > 0.0).then(|| demand.without(share))
}

/// Whether what `cause` adds to the demand is new since the baseline window, and the level lets
/// through what is left without it: then requests would not wait for the volume, however small its
/// part.
pub fn tips(case: &Case<'_>, cause: Cause) -> bool {
    let tips = || {
        let baseline = case.baseline().filter(|baseline| !case.is_of_other(baseline.window))?;
        let demand = demand(case).ok()?;
        let share = share_of(case, cause, &demand)?;
        let before = bytes_of(&baseline, cause, &demand);
        Some(before < (1.0 - MOST) * bytes_of(&case.slow(), cause, &demand) && demand.fits_without(share))
    };
    tips().unwrap_or(false)
}

/// The share (0-1) of the demand that would go with the contributor `cause`; none if unknown.
fn share_of(case: &Case<'_>, cause: Cause, demand: &Demand) -> Option<f64> {
    let bytes = match cause {
        Cause::ToastRewrite => {
            let toasts = case.slow().toasts().ok()?;
            rewritten_bytes(&toasts) + cleaned_bytes(case, &toasts, demand)
        }
        Cause::AutovacuumPressure => case.slow().vacuum().ok().as_ref().and_then(|v| vacuum_bytes(v, demand))?,
        _ => return None,
    };
    Some(demand.share(bytes))
}

/// Bytes per second in `view` that the contributor `cause` adds; 0 if unknown.
fn bytes_of(view: &View<'_>, cause: Cause, demand: &Demand) -> f64 {
    match cause {
        Cause::ToastRewrite => view.toasts().map(|toasts| rewritten_bytes(&toasts)).unwrap_or(0.0),
        Cause::AutovacuumPressure => view.vacuum().ok().and_then(|v| vacuum_bytes(&v, demand)).unwrap_or(0.0),
        _ => 0.0,
    }
}

/// Bytes per second of vacuum's work on rows that such updates left dead: it would not be needed
/// without them.
fn cleaned_bytes(case: &Case<'_>, toasts: &[Toast], demand: &Demand) -> f64 {
    let Ok(vacuum) = case.slow().vacuum() else { return 0.0 };
    let Some(all) = vacuum_bytes(&vacuum, demand) else { return 0.0 };
    let rewritten = |table: &str| toasts.iter().any(|t| is_rewritten(t) && t.toast.table == table);
    let weight = |of: &Run| of.pages_per_second * of.running_ratio;
    let (theirs, every) = vacuum.runs.iter().fold((0.0, 0.0), |(theirs, every), run| {
        (theirs + if rewritten(&run.table) { weight(run) } else { 0.0 }, every + weight(run))
    });
    if every > 0.0 { all * theirs / every } else { 0.0 }
}

/// Bytes per second written for values that updates rewrote, at least.
pub fn rewritten_bytes(toasts: &[Toast]) -> f64 {
    toasts.iter().filter(|t| is_rewritten(t)).map(Toast::bytes_per_second).fold(0.0, |sum, b| sum + b)
}

/// Whether most updates of the table rewrite values out of line.
pub fn is_rewritten(toast: &Toast) -> bool {
    toast.owner.updated > 0.0 && toast.per_update() >= REWRITES
}

/// Bytes per second that vacuum read and wrote, at most all there were.
pub fn vacuum_bytes(vacuum: &Vacuum, demand: &Demand) -> Option<f64> {
    vacuum.bytes_per_second.map(|(bytes, _)| bytes.min(demand.moved))
}

/// `43 % of the 12 MB/s that vda moved`.
pub fn share_text(demand: &Demand, share: f64) -> String {
    format!("{} of the {} that {} moved", percent(share), rate(Unit::Bytes, demand.moved), demand.flow.name)
}

/// Whether so small a share of the bytes can matter at all.
pub fn is_negligible(share: f64) -> bool {
    share < MATTERS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    /// 100 requests a second, of 10 ms until 20 s and of 400 from then on, when a disk that moved `before` bytes a second moves 6 MB with
    /// 20 in the queue.
    fn made(before: f64) -> SyntheticRecording {
        let moved = move |s: i64| if s < 20 { before * s as f64 } else { before * 20.0 + 6e6 * (s - 20) as f64 };
        let queued = |s: i64| if s < 20 { 0.5 * s as f64 } else { 10.0 + 20.0 * (s - 20) as f64 };
        let mut made = SyntheticRecording::new(60).requests(100, 400).each_request(|n, r| {
            if n < 2_000 {
                r.done_at = r.intended_at + 10_000_000;
            }
        });
        for direction in ["read", "write"] {
            let labels = [("device", "vda"), ("direction", direction)];
            made = made
                .counted("host", "system_disk_io_bytes_total", &labels, move |s| moved(s) / 2.0)
                .counted("host", "system_disk_operations_total", &labels, move |s| moved(s) / 2.0 / 65_536.0)
                .counter("host", "system_disk_operation_time_seconds_total", &labels, 5.0);
        }
        let labels = [("device", "vda")];
        made.counter("host", "system_disk_io_time_seconds_total", &labels, 1.0).counted(
            "host",
            "system_disk_weighted_io_time_seconds_total",
            &labels,
            queued,
        )
    }

    #[test]
    fn a_limit_that_came_down_is_told_from_a_demand_that_rose() {
        assert!(made(9e6).with(came_down), "more passed before");
        assert!(!made(2e6).with(came_down), "less was asked for before");
    }

    #[test]
    fn a_newcomer_accounts_for_what_is_new() {
        // 2 MB/s before, 6 now.
        let share = |bytes: f64| made(2e6).with(|case| demand(case).unwrap().share_of_newcomer(case, bytes));
        assert!((share(4.2e6) - 1.0).abs() < 1e-9, "the rest is what was moved before: {}", share(4.2e6));
        assert!((share(2e6) - 0.5).abs() < 0.05, "the service moves more as well: {}", share(2e6));
        assert!(share(0.3e6) < 0.06, "too little to matter: {}", share(0.3e6));
        let slower = made(9e6).with(|case| demand(case).unwrap().share_of_newcomer(case, 3e6));
        assert!((slower - 0.5).abs() < 0.05, "less is moved than before: {slower}");
    }

    #[test]
    fn remaining_demand_is_compared_with_the_level() {
        made(9e6).with(|case| {
            let demand = demand(case).unwrap();
            assert!((demand.level.unwrap() - 6e6).abs() < 0.2e6, "{:?}", demand.level);
            assert!(demand.without(0.5).ends_with("that alone would suffice"), "{}", demand.without(0.5));
            assert!(demand.fits_without(0.5) && !demand.fits_without(0.0));
            let more = Demand { offered: 20e6, ..demand };
            assert!(more.without(0.5).contains("still above the level of 6 MB/s"), "{}", more.without(0.5));
        });
    }
}
