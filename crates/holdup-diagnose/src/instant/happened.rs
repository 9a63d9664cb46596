//! What happened in a stretch, by the events of any source: kills, restarts, hung tasks, errors,
//! deadlocks. An event needs no stopwatch. It comes before its consequences, so events from shortly
//! before the stretch count, too.

use std::collections::BTreeMap;

use holdup_recording::rows::Event;
use holdup_recording::words::thousands;
use holdup_recording::{Labels, clock, events};
use holdup_signals::evidence::Evidence;
use holdup_signals::{View, Window};

/// So long before the stretch what happened may be its reason, nanoseconds: a server that began
/// anew is cold for minutes.
const LEAD_NS: i64 = 600 * 1_000_000_000;

/// The events of a stretch.
pub(crate) struct Happened<'c> {
    by_kind: BTreeMap<&'c str, Vec<&'c Event>>,
    /// The stretch, with the time before it.
    pub window: Window,
}

/// Events of one kind that belong together.
pub(crate) struct Happening<'c> {
    /// In the order of their time.
    events: Vec<&'c Event>,
    /// How often it happened.
    pub count: u64,
    window: Window,
}

impl<'c> Happened<'c> {
    pub(crate) fn read(view: &View<'c>) -> Self {
        let window = Window { from: view.window.from.saturating_sub(LEAD_NS), ..view.window };
        let columns = ["observed_at", "kind", "text", "labels"];
        let rows = view.recording.tables.events.with_columns(&columns).unwrap_or_default();
        let mut by_kind: BTreeMap<&str, Vec<&Event>> = BTreeMap::new();
        for event in rows.iter().filter(|event| window.from <= event.observed_at && event.observed_at <= window.to) {
            by_kind.entry(event.kind.as_str()).or_default().push(event);
        }
        by_kind.values_mut().for_each(|events| events.sort_by_key(|event| event.observed_at));
        Self { by_kind, window }
    }

    /// The events of `kind` for which `is` holds; none if there was none.
    pub(crate) fn of(&self, kind: &str, is: impl Fn(&Event) -> bool) -> Option<Happening<'c>> {
        let events: Vec<&Event> = self.by_kind.get(kind)?.iter().copied().filter(|event| is(event)).collect();
        Happening::new(events, self.window)
    }

    /// The events of `kind`, apart by the value of a label; the most frequent first.
    pub(crate) fn by(&self, kind: &str, label: &str) -> Vec<(&'c str, Happening<'c>)> {
        let mut groups: BTreeMap<&str, Vec<&Event>> = BTreeMap::new();
        for event in self.by_kind.get(kind).into_iter().flatten() {
            groups.entry(event.labels.get(label).unwrap_or_default()).or_default().push(event);
        }
        let of = |(value, events)| Some((value, Happening::new(events, self.window)?));
        let mut all: Vec<_> = groups.into_iter().filter_map(of).collect();
        all.sort_by_key(|(_, happening)| std::cmp::Reverse(happening.count));
        all
    }

    /// Errors that servers reported by this name.
    pub(crate) fn errors(&self, error: &str) -> Option<Happening<'c>> {
        self.of(events::ERROR, |event| event.labels.get("error") == Some(error))
    }
}

impl<'c> Happening<'c> {
    fn new(events: Vec<&'c Event>, window: Window) -> Option<Self> {
        let of = |event: &&Event| event.labels.get(events::COUNT).and_then(|count| count.parse().ok()).unwrap_or(1u64);
        let count = events.iter().map(of).fold(0u64, u64::saturating_add);
        (!events.is_empty()).then_some(Self { events, count, window })
    }

    /// The first one.
    pub(crate) fn first(&self) -> Option<&'c Event> {
        self.events.first().copied()
    }

    /// The last one.
    pub(crate) fn last(&self) -> Option<&'c Event> {
        self.events.last().copied()
    }

    /// The largest number in a label, e.g. seconds.
    pub(crate) fn most(&self, label: &str) -> Option<f64> {
        let values = self.events.iter().filter_map(|event| event.labels.get(label)?.parse::<f64>().ok());
        values.filter(|value| value.is_finite()).reduce(f64::max)
    }

    /// How often and when, in words: `at 2026-11-26 10:11:12 UTC`, `3 times from … to …`.
    pub(crate) fn when(&self) -> String {
        let (first, last) = (self.events.first(), self.events.last());
        let (first, last) = (first.map_or(0, |event| event.observed_at), last.map_or(0, |event| event.observed_at));
        let times = if self.count > 1 { format!("{} times ", thousands(self.count as f64)) } else { String::new() };
        match first == last {
            true => format!("{times}at {}", moment(first)),
            false => format!("{times}from {} to {}", moment(first), moment(last)),
        }
    }

    /// Evidence that points at them.
    pub(crate) fn evidence(&self, text: String) -> Evidence {
        let kind = self.events.first().map_or("", |event| event.kind.as_str());
        let observed = format!("{} such events", thousands(self.count as f64));
        Evidence::new("events", "kind", Labels::new([("kind", kind)]), self.window, observed, "no such event", text)
    }

    /// The last one's own sentence, and how often and when it happened.
    pub(crate) fn told(&self) -> Evidence {
        let text = self.last().map_or("", |event| event.text.as_str());
        self.evidence(format!("{text}, {}", self.when()))
    }
}

/// A moment by the wall clock, to the second.
pub(crate) fn moment(ns: i64) -> String {
    let text = clock::rfc3339(ns).replace('T', " ");
    format!("{} UTC", text.get(..19).unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SyntheticRecording;

    #[test]
    fn events_from_shortly_before_count_and_older_ones_do_not() {
        let rows = [(100, "host", "restart", &[][..]), (2_000, "host", "restart", &[("count", "3")])];
        let made = SyntheticRecording::new(3_000).events(&rows);
        let counted = |from: i64| {
            made.seen(|view| {
                let window = Window { from: from * 1_000_000_000, to: 3_000_000_000_000 };
                let of = Happened::read(&View { window, ..*view }).of("restart", |_| true);
                of.map(|of| (of.count, of.when()))
            })
        };
        assert_eq!(counted(2_300), Some((3, "3 times at 1970-01-01 00:33:20 UTC".to_owned())));
        assert_eq!(counted(600).map(|(count, _)| count), Some(4));
        assert_eq!(counted(2_700), None);
    }
}
