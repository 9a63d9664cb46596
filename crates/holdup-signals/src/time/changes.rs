//! What changed by itself, rather than by its figures: objects of catalogs and settings, from the events of
//! one recording, or between two.

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::catalog::{self, Dialect, Difference, Form, Key, Kind, Objects};
use holdup_recording::rows::{Event, Setting};
use holdup_recording::{Labels, Recording, events};

use crate::{Evidence, Window};

/// An object or a setting that is another than before.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The server, host or process.
    pub source: String,
    /// Which.
    pub key: Key,
    /// What it was, in words.
    pub from: String,
    /// What it is, in words.
    pub to: String,
    /// It in a sentence, without its full stop.
    pub text: String,
    /// The statement that undoes it.
    pub restore: Option<String>,
    /// When it happened: between these readings; none between two recordings.
    pub window: Option<Window>,
}

impl Change {
    /// An index that statements can no longer use: gone, invalid, invisible or ignored.
    pub fn is_index_lost(&self) -> bool {
        const LOST: [&str; 4] = ["none", "invalid", "invisible", "ignored"];
        self.key.kind == Kind::Index && self.from != "none" && LOST.contains(&self.to.as_str())
    }

    /// An index that is new: every change of its table maintains it.
    pub fn is_index_new(&self) -> bool {
        self.key.kind == Kind::Index && self.from == "none"
    }

    /// Evidence that points at it, in `window` if it was found between two recordings.
    pub fn evidence(&self, window: Window, text: String) -> Evidence {
        let (table, column, labels) = match self.window {
            Some(_) => ("events", "kind", Labels::new([("kind", events::CHANGED)])),
            None => {
                let labels = [("name", self.key.setting()), ("source", self.source.clone())];
                ("settings", "value", Labels::new(labels))
            }
        };
        Evidence::new(table, column, labels, window, self.to.as_str(), self.from.as_str(), text)
    }
}

/// What changed within `recording`, in the order of time.
pub fn within(recording: &Recording) -> Vec<Change> {
    let rows = recording.tables.events.with_columns(&["observed_at", "source", "kind", "labels"]).unwrap_or_default();
    let mut all: Vec<Change> = rows.iter().filter(|row| row.kind == events::CHANGED).filter_map(change).collect();
    all.sort_by_key(|change| change.window.map(|window| window.to));
    all
}

fn change(row: &Event) -> Option<Change> {
    let label = |name: &str| row.labels.get(name).unwrap_or_default().to_owned();
    let kind = Kind::parse(row.labels.get("what")?)?;
    let since = row.labels.get("since_ns").and_then(|ns| ns.parse().ok()).unwrap_or(row.observed_at);
    Some(Change {
        source: row.source.clone(),
        key: Key::new(kind, label("on"), label("object")),
        from: label("from"),
        to: label("to"),
        text: row.text.clone(),
        restore: row.labels.get("restore").map(str::to_owned),
        window: Some(Window { from: since.min(row.observed_at), to: row.observed_at }),
    })
}

/// What differs between the end of `before` and the start of `after`, of sources and kinds of objects that
/// were read in both.
pub fn between(before: &Recording, after: &Recording) -> Vec<Change> {
    let (last, first) = (read(before, true), read(after, false));
    let mut all = Vec::new();
    for (source, (was, old)) in &last {
        let Some((is, new)) = first.get(source) else { continue };
        let in_both = |objects: &Objects, other: &Objects| -> Objects {
            let is_known = |key: &Key| {
                if key.setting().starts_with(catalog::PREFIX) {
                    old.contains(&key.kind) && new.contains(&key.kind)
                } else {
                    other.contains_key(key)
                }
            };
            objects.iter().filter(|(key, _)| is_known(key)).map(|(key, form)| (key.clone(), form.clone())).collect()
        };
        let differ = catalog::differences(&in_both(was, is), &in_both(is, was));
        let told = differ.iter().filter(|change| !catalog::moves_by_itself(&change.key.setting()));
        all.extend(told.map(|change| of_difference(source, change)));
    }
    all
}

fn of_difference(source: &str, change: &Difference) -> Change {
    let (from, to) = change.sides();
    Change {
        source: source.to_owned(),
        key: change.key.clone(),
        from,
        to,
        text: change.text(),
        restore: Dialect::of_source(source).and_then(|dialect| catalog::restore(dialect, change)),
        window: None,
    }
}

/// Objects and settings by source, as at the end of the recording or at its start, and the kinds of objects
/// that a catalog showed.
fn read(recording: &Recording, at_end: bool) -> BTreeMap<&str, (Objects, BTreeSet<Kind>)> {
    let columns = ["observed_at", "source", "name", "value"];
    let rows = recording.tables.settings.with_columns(&columns).unwrap_or_default();
    let mut in_time: Vec<&Setting> = rows.iter().collect();
    in_time.sort_by_key(|row| row.observed_at);
    let mut by_source: BTreeMap<&str, (Objects, BTreeSet<Kind>)> = BTreeMap::new();
    for row in in_time {
        let (objects, kinds) = by_source.entry(&row.source).or_default();
        let key = Key::of_setting(&row.name);
        let is_object = row.name.starts_with(catalog::PREFIX);
        if is_object {
            kinds.insert(key.kind);
        }
        match is_object && row.value.is_empty() {
            true if at_end => drop(objects.remove(&key)),
            true => {}
            false if at_end || !objects.contains_key(&key) => {
                let form = Form::of_value(&key, &row.value);
                objects.insert(key, form);
            }
            false => {}
        }
    }
    by_source
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SyntheticRecording;

    const MADE: &str = "CREATE INDEX by_customer ON public.orders USING btree (customer)";
    const SOURCE: &str = "postgresql://db:5432";
    const INDEX: &str = "catalog.index public.orders: by_customer";

    #[test]
    fn two_recordings_differ_by_their_catalogs_and_settings() {
        let healthy = SyntheticRecording::new(10)
            .setting(SOURCE, INDEX, MADE)
            .setting(
                SOURCE,
                "catalog.index public.item: by_kind",
                "CREATE INDEX by_kind ON public.item USING btree (kind)",
            )
            .setting(SOURCE, "work_mem", "4MB")
            .setting(SOURCE, "only_here", "1")
            .setting("host", "hostname", "a");
        let slow = SyntheticRecording::new(10)
            .setting(
                SOURCE,
                "catalog.index public.item: by_kind",
                "CREATE INDEX by_kind ON public.item USING btree (kind)",
            )
            .setting(SOURCE, "work_mem", "64kB")
            .setting("host", "hostname", "b");
        let changes = between(healthy.recording(), slow.recording());
        let told: Vec<(&str, bool)> = changes.iter().map(|of| (of.text.as_str(), of.is_index_lost())).collect();
        assert_eq!(
            told,
            [("index by_customer of public.orders is gone", true), ("setting work_mem went from 4MB to 64kB", false)]
        );
        assert_eq!(changes[0].restore.as_deref(), Some(format!("{MADE};").as_str()));
        let blind = SyntheticRecording::new(10).setting(SOURCE, "work_mem", "4MB");
        assert_eq!(between(healthy.recording(), blind.recording()), [], "no catalog was read in it");
    }

    #[test]
    fn a_change_within_a_recording_is_read_from_its_event() {
        let labels = [
            ("what", "index"),
            ("object", "by_customer"),
            ("on", "public.orders"),
            ("from", "in use"),
            ("to", "invalid"),
            ("since_ns", "3000000000"),
        ];
        let rows = [(5, SOURCE, events::CHANGED, &labels[..]), (6, SOURCE, events::CHANGED, &[("what", "more")][..])];
        let changes = within(SyntheticRecording::new(10).events(&rows).recording());
        let [change] = changes.as_slice() else { panic!("{changes:?}") };
        assert!(change.is_index_lost() && change.key.on == "public.orders");
        assert_eq!(change.window, Some(Window { from: 3_000_000_000, to: 5_000_000_000 }));
    }
}
