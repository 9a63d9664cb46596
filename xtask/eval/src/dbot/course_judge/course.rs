//! How an episode went: a time in which one session works alone, and a time in which a crowd of sessions works. A bulk load, an
//! index build or a mass delete is one session's; what the crowd then does, and whether it computes or waits, tells what the
//! first left behind. Phases are found in the number of connections; what they mean is said by the causes.

use std::collections::BTreeMap;

use holdup_signals::time::counters::frame::Frame;
use holdup_signals::time::counters::signal::Signal;

/// Connections over the fewest from which on it is a crowd. Monitoring and administration come and go with one or two.
pub const CROWD: f64 = 3.0;

/// Share of a growth in the whole that is noise: growth is over when no more than this is left to come.
const GROWN: f64 = 0.05;

/// Growth of memory that is data and no noise, bytes.
const GROWTH_BYTES: f64 = 128.0 * 1024.0 * 1024.0;

/// Growth of the used share of a filesystem that is data and no noise.
const GROWTH_RATIO: f64 = 0.002;

/// Samples from which on a crowd can be judged: one may have caught it between coming and going.
const SEEN_SAMPLES: usize = 2;

/// A part of an episode: how long it was, and what was read in it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Phase {
    /// Its length, s.
    pub seconds: f64,
    series: BTreeMap<Signal, Vec<f64>>,
}

impl Phase {
    /// The mean of a signal; `None` where it was not recorded.
    #[must_use]
    pub fn mean(&self, signal: Signal) -> Option<f64> {
        let values = self.series.get(&signal)?;
        Some(values.iter().sum::<f64>() / number(values.len()))
    }

    /// The share of the samples in which a signal is 1 or more.
    #[must_use]
    pub fn share_with_any(&self, signal: Signal) -> Option<f64> {
        let values = self.series.get(&signal)?;
        Some(number(values.iter().filter(|value| **value >= 1.0).count()) / number(values.len()))
    }

    fn of(frame: &Frame, rows: std::ops::Range<usize>) -> Self {
        let series = frame.signals().filter_map(|signal| {
            let known: Vec<f64> =
                frame.get(signal)?.get(rows.clone())?.iter().copied().filter(|v| v.is_finite()).collect();
            (!known.is_empty()).then_some((signal, known))
        });
        Self { seconds: number(rows.len()) * frame.period_s(), series: series.collect() }
    }
}

/// An episode in phases.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// Before a crowd came; the whole of it if none did.
    pub alone: Phase,
    /// While a crowd was there; of no length if none was.
    pub crowd: Phase,
    /// Sessions of the crowd; 0 without one, `None` for one that was seen too shortly to say anything of it.
    pub crowd_sessions: Option<f64>,
    /// Seconds before the crowd in which somebody was at work: a quiet time before it is none. `None` where nothing was recorded
    /// that would tell.
    pub alone_busy_s: Option<f64>,
    /// Seconds before the crowd in which somebody beside monitoring was connected.
    pub alone_connected_s: f64,
    /// Seconds that were still worked alone after data had stopped growing; `None` where growth was not recorded, or
    /// nothing grew.
    pub alone_after_growth_s: Option<f64>,
}

impl Course {
    /// `None` where connections were not recorded: phases can't be told apart then.
    #[must_use]
    pub fn of(frame: &Frame) -> Option<Self> {
        let connections = frame.get(Signal::TcpConnections)?;
        let known = || connections.iter().copied().filter(|value| value.is_finite());
        let (fewest, most) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
        if !fewest.is_finite() {
            return None;
        }
        let last_known = connections.iter().rposition(|value| value.is_finite()).map_or(0, |last| last + 1);
        let crowded = |row: &usize| connections[*row] - fewest >= (most - fewest) / 2.0;
        let (first, last) = if most - fewest >= CROWD {
            let first = (0..last_known).find(crowded).unwrap_or(last_known);
            (first, (0..last_known).rev().find(crowded).map_or(first, |last| last + 1))
        } else {
            (last_known, last_known)
        };
        let mut crowd: Vec<f64> = connections[first..last].iter().copied().filter(|v| v.is_finite()).collect();
        crowd.sort_by(f64::total_cmp);
        let crowd_sessions = match crowd.len() {
            0 => Some(0.0),
            samples if samples < SEEN_SAMPLES => None,
            samples => Some(crowd[samples / 2] - fewest),
        };
        Some(Self {
            alone: Phase::of(frame, 0..first),
            crowd: Phase::of(frame, first..last),
            crowd_sessions,
            alone_busy_s: busy(frame, first),
            alone_connected_s: number(connections[..first].iter().filter(|value| **value >= fewest + 1.0).count())
                * frame.period_s(),
            alone_after_growth_s: after_growth(frame, first),
        })
    }

    /// Threads of the crowd that want a CPU, per session of it. The reader of `/proc` is one and left out.
    #[must_use]
    pub fn running_per_session(&self) -> Option<f64> {
        let running = self.crowd.mean(Signal::RunQueue)?;
        self.crowd_sessions.filter(|sessions| *sessions > 0.0).map(|sessions| (running - 1.0).max(0.0) / sessions)
    }
}

/// Samples of a host that is at work: a thread runs beside the reader of `/proc`, one waits for a disk, or requests are on their
/// way to it.
const BUSY: [(Signal, f64); 4] = [
    (Signal::RunQueue, 2.0),
    (Signal::BlockedThreads, 1.0),
    (Signal::DiskReadsInFlight, 1.0),
    (Signal::DiskWritesInFlight, 1.0),
];

/// Seconds of the rows before `end` in which the host was at work.
fn busy(frame: &Frame, end: usize) -> Option<f64> {
    let known: Vec<(&[f64], f64)> =
        BUSY.iter().filter_map(|(signal, least)| Some((frame.get(*signal)?, *least))).collect();
    let at_work = |row: &usize| known.iter().any(|(values, least)| values[*row] >= *least);
    (!known.is_empty()).then(|| number((0..end).filter(at_work).count()) * frame.period_s())
}

/// Seconds between the end of growth and the end of the rows before `end`.
fn after_growth(frame: &Frame, end: usize) -> Option<f64> {
    [(Signal::AnonymousMemory, GROWTH_BYTES), (Signal::FilesystemUsed, GROWTH_RATIO)]
        .into_iter()
        .filter_map(|(signal, enough)| {
            let values = frame.get(signal)?.get(..end)?;
            let known: Vec<(usize, f64)> = values.iter().copied().enumerate().filter(|(_, v)| v.is_finite()).collect();
            let (_, start) = *known.first()?;
            let top = known.iter().map(|(_, value)| *value).fold(f64::NEG_INFINITY, f64::max);
            let grown = top - start;
            let over = known.iter().find(|(_, value)| *value >= top - GROWN * grown)?.0;
            (grown >= enough).then(|| number(end - over - 1) * frame.period_s())
        })
        .reduce(f64::max)
}

fn number(of: usize) -> f64 {
    f64::from(u32::try_from(of).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(series: &[(Signal, &[f64])]) -> Frame {
        let mut frame = Frame::new(series[0].1.len(), 3.0);
        for (signal, values) in series {
            frame.set(*signal, values.to_vec());
        }
        frame
    }

    #[test]
    fn a_crowd_after_one_session() {
        let course = Course::of(&frame(&[
            (Signal::TcpConnections, &[12.0, 13.0, 13.0, 13.0, 60.0, 62.0, 62.0, 13.0]),
            (Signal::RunQueue, &[1.0, 2.0, 4.0, 3.0, 40.0, 51.0, 53.0, 1.0]),
        ]))
        .unwrap();
        assert!((course.alone.seconds - 12.0).abs() < 1e-9 && (course.crowd.seconds - 9.0).abs() < 1e-9);
        assert!((course.crowd_sessions.unwrap() - 50.0).abs() < 1e-9);
        assert!((course.alone_busy_s.unwrap() - 9.0).abs() < 1e-9, "the first sample is quiet");
        assert!((course.alone_connected_s - 9.0).abs() < 1e-9);
        assert!((course.running_per_session().unwrap() - 47.0 / 50.0).abs() < 1e-9);
        assert_eq!((course.crowd.mean(Signal::BlockedThreads), course.alone_after_growth_s), (None, None));
    }

    #[test]
    fn one_or_two_connections_are_no_crowd() {
        let course = Course::of(&frame(&[(Signal::TcpConnections, &[12.0, 13.0, 14.0, 12.0])])).unwrap();
        assert!((course.alone.seconds - 12.0).abs() < 1e-9 && course.crowd_sessions == Some(0.0));
        assert_eq!(course.running_per_session(), None);
        let passing = Course::of(&frame(&[(Signal::TcpConnections, &[12.0, 13.0, 14.0, 80.0])])).unwrap();
        assert_eq!(passing.crowd_sessions, None, "one sample");
        assert_eq!(Course::of(&frame(&[(Signal::RunQueue, &[1.0])])), None);
    }

    #[test]
    fn growth_ends_before_the_work_does() {
        let gib = 1024.0_f64.powi(3);
        let memory = [1.0, 1.5, 2.0, 2.5, 2.5, 2.5, 2.5, 2.5, 2.5].map(|value| value * gib);
        let connections = [12.0, 13.0, 13.0, 13.0, 13.0, 13.0, 13.0, 13.0, 80.0];
        let course =
            Course::of(&frame(&[(Signal::AnonymousMemory, &memory), (Signal::TcpConnections, &connections)])).unwrap();
        assert!((course.alone_after_growth_s.unwrap() - 12.0).abs() < 1e-9);
    }
}
