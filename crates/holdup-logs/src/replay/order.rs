//! Orders statements by their start. Most logs are in the order of ends, so a long statement stands
//! behind others that began after it. A stretch of the log is therefore held back and sorted.
//!
//! Some logs have only whole seconds (the general log of MariaDB, slow logs of MariaDB and of MySQL
//! up to 5.6). Records of the same second are spread evenly over it, in the order of the log.

use std::collections::{BTreeMap, HashMap};

use crate::replay::source::Recorded;

/// Bytes of a log that are held back.
pub const HELD_BACK_BYTES: usize = 64 << 20;

/// Most records of one second that are held back to be spread.
const MOST_OF_A_SECOND: usize = 1 << 17;

const SECOND_US: i64 = 1_000_000;

/// A record, and when it began.
#[derive(Clone, Debug)]
pub struct TimedRecord {
    /// Its start, microseconds since 1970 in the log's own time zone. It never decreases.
    pub begin_us: i64,
    /// The record.
    pub recorded: Recorded,
}

/// Corrections to times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Corrections {
    /// Records that share a whole second with others and were spread over it.
    pub spread: u64,
    /// Records that began before others that were already played: they took longer than the stretch
    /// that is held back.
    pub too_long: u64,
    /// Records without a time, which get the time of the one before.
    pub without_time: u64,
}

/// See the module.
pub struct Order<I> {
    source: I,
    most_bytes: usize,
    /// Records that are held back, by their start and their number.
    held: BTreeMap<(i64, u64), Recorded>,
    bytes: usize,
    /// Records of one whole second.
    of_second: Vec<Recorded>,
    second_us: i64,
    /// Whether the current file's times have fractions.
    is_fine: bool,
    file: u32,
    number: u64,
    /// When each connection becomes free.
    busy_until: HashMap<u64, i64>,
    last_us: i64,
    is_over: bool,
    /// Corrections so far.
    pub corrections: Corrections,
}

impl<I: Iterator<Item = Recorded>> Order<I> {
    /// Orders `source`, holding back at most this many bytes.
    pub fn new(source: I, most_bytes: usize) -> Self {
        Self {
            source,
            most_bytes,
            held: BTreeMap::new(),
            bytes: 0,
            of_second: Vec::new(),
            second_us: 0,
            is_fine: false,
            file: 0,
            number: 0,
            busy_until: HashMap::new(),
            last_us: i64::MIN,
            is_over: false,
            corrections: Corrections::default(),
        }
    }

    /// The source.
    pub fn source(&self) -> &I {
        &self.source
    }

    /// Adds a record of the log.
    fn take(&mut self, recorded: Recorded) {
        if recorded.file != self.file {
            self.spread();
            (self.file, self.is_fine) = (recorded.file, false);
        }
        let logged = recorded.ended_us.or(recorded.at_us);
        self.corrections.without_time += u64::from(logged.is_none());
        let logged = logged.unwrap_or(self.second_us);
        self.is_fine |= logged % SECOND_US != 0;
        if logged != self.second_us || self.is_fine || self.of_second.len() >= MOST_OF_A_SECOND {
            self.spread();
        }
        self.second_us = logged;
        self.of_second.push(recorded);
    }

    /// All records of one second have been read.
    fn spread(&mut self) {
        let all = std::mem::take(&mut self.of_second);
        let count = all.len() as i64;
        let is_coarse = self.second_us % SECOND_US == 0 && count > 1;
        self.corrections.spread += if is_coarse { count as u64 } else { 0 };
        for (place, recorded) in all.into_iter().enumerate() {
            let further = if is_coarse { SECOND_US * place as i64 / count } else { 0 };
            self.hold(self.second_us + further, recorded);
        }
    }

    /// Holds back a record that was logged at `logged_us`.
    fn hold(&mut self, logged_us: i64, recorded: Recorded) {
        let took_us = recorded.took_us.and_then(|took| i64::try_from(took).ok()).unwrap_or(0);
        let mut begin_us = if recorded.ended_us.is_some() { logged_us - took_us } else { logged_us };
        if recorded.connection != 0 {
            // A connection does one thing after the other, even if the log's resolution hides that.
            let busy_until = self.busy_until.entry(recorded.connection).or_insert(i64::MIN);
            begin_us = begin_us.max(*busy_until);
            *busy_until = logged_us.max(begin_us);
        }
        self.bytes += recorded.bytes();
        self.held.insert((begin_us, self.number), recorded);
        self.number += 1;
    }
}

impl<I: Iterator<Item = Recorded>> Iterator for Order<I> {
    type Item = TimedRecord;

    fn next(&mut self) -> Option<TimedRecord> {
        while !self.is_over && self.bytes < self.most_bytes {
            match self.source.next() {
                Some(recorded) => self.take(recorded),
                None => {
                    self.spread();
                    self.is_over = true;
                }
            }
        }
        let ((begin_us, _), recorded) = self.held.pop_first()?;
        self.bytes -= recorded.bytes();
        self.corrections.too_long += u64::from(begin_us < self.last_us);
        self.last_us = self.last_us.max(begin_us);
        Some(TimedRecord { begin_us: self.last_us, recorded })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(connection: u64, ended_us: i64, took_us: u64) -> Recorded {
        Recorded { connection, ended_us: Some(ended_us), took_us: Some(took_us), ..Recorded::default() }
    }

    fn begins(records: Vec<Recorded>, most_bytes: usize) -> (Vec<(u64, i64)>, Corrections) {
        let mut order = Order::new(records.into_iter(), most_bytes);
        let begins = order.by_ref().map(|timed| (timed.recorded.connection, timed.begin_us)).collect();
        (begins, order.corrections)
    }

    #[test]
    fn what_took_long_comes_before_what_began_after_it() {
        let log = vec![record(1, 1_000_100, 50), record(2, 1_000_300, 10), record(3, 1_000_400, 390)];
        let (found, corrections) = begins(log.clone(), usize::MAX);
        assert_eq!(
            (found, corrections),
            (vec![(3, 1_000_010), (1, 1_000_050), (2, 1_000_290)], Corrections::default())
        );
        // Nothing is held back: it comes late, and is counted.
        let (found, corrections) = begins(log, 1);
        assert_eq!(found, [(1, 1_000_050), (2, 1_000_290), (3, 1_000_290)]);
        assert_eq!(corrections.too_long, 1);
    }

    #[test]
    fn whole_seconds_are_spread_and_fractions_are_not() {
        let at = |connection, at_us| Recorded { connection, at_us: Some(at_us), ..Recorded::default() };
        let seconds = vec![at(1, 5_000_000), at(2, 5_000_000), at(1, 5_000_000), at(3, 5_000_000), at(1, 7_000_000)];
        let (found, corrections) = begins(seconds, usize::MAX);
        assert_eq!(found, [(1, 5_000_000), (2, 5_250_000), (1, 5_500_000), (3, 5_750_000), (1, 7_000_000)]);
        assert_eq!(corrections.spread, 4);
        let (found, corrections) = begins(vec![at(1, 5_000_001), at(2, 6_000_000), at(3, 6_000_000)], usize::MAX);
        assert_eq!((found, corrections.spread), (vec![(1, 5_000_001), (2, 6_000_000), (3, 6_000_000)], 0));
    }

    #[test]
    fn a_connection_does_one_thing_after_the_other() {
        // Ends to the millisecond, durations to the microsecond: the second seems to begin before the first ended.
        let log = vec![record(1, 1_001_000, 400), record(1, 1_001_000, 900), record(2, 1_001_000, 900)];
        let (found, _) = begins(log, usize::MAX);
        assert_eq!(found, [(2, 1_000_100), (1, 1_000_600), (1, 1_001_000)]);
    }
}
