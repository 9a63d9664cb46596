//! What changed between two readings of settings, for any source: rows that say what was known already
//! are dropped, the others become events with the statement that undoes the change.

use std::collections::BTreeMap;

use holdup_recording::catalog::{self, Dialect, Difference, Form, Key, Kind, Objects};
use holdup_recording::rows::{Event, Setting};
use holdup_recording::{Batch, Labels, events};

use crate::reading::event;

/// Most changes of one reading that become an event each. A migration makes more.
const TOLD: usize = 200;

/// Longest value in an event, characters.
const LONGEST: usize = 2_000;

/// A longer statement is not kept: it would not fit on any screen.
const LONGEST_STATEMENT: usize = 8_000;

/// The settings of all sources of a collector as last read.
#[derive(Debug, Default)]
pub(crate) struct Known {
    sources: BTreeMap<String, Source>,
}

#[derive(Debug, Default)]
struct Source {
    objects: Objects,
    /// When objects of each kind were last read, nanoseconds since 1970.
    read_at: BTreeMap<Kind, i64>,
}

impl Known {
    /// Takes the settings in `batch`; adds an event for each change. Of objects of catalogs only changed
    /// rows stay in the batch, and of all settings if only changes are `wanted`.
    pub(crate) fn take(&mut self, batch: &mut Batch, only_changes: bool) {
        let mut by_source: BTreeMap<String, Vec<Setting>> = BTreeMap::new();
        for row in batch.settings.drain(..) {
            by_source.entry(row.source.clone()).or_default().push(row);
        }
        for (source, rows) in by_source {
            match self.sources.get_mut(&source) {
                Some(known) => {
                    let (kept, told) = known.update(&source, rows, only_changes);
                    batch.settings.extend(kept);
                    batch.events.extend(told);
                }
                None => {
                    let mut known = Source::default();
                    let (kept, _) = known.update(&source, rows, false);
                    self.sources.insert(source, known);
                    batch.settings.extend(kept);
                }
            }
        }
    }
}

impl Source {
    /// The rows to keep, and what changed. A kind that is read for the first time has no changes.
    fn update(&mut self, source: &str, rows: Vec<Setting>, only_changes: bool) -> (Vec<Setting>, Vec<Event>) {
        let before = self.read_at.clone();
        let (mut after, mut kept, mut at) = (None, Vec::new(), 0);
        for row in rows {
            let key = Key::of_setting(&row.name);
            let is_object = row.name.starts_with(catalog::PREFIX);
            let form = Some(Form::of_value(&key, &row.value)).filter(|_| !(is_object && row.value.is_empty()));
            self.read_at.insert(key.kind, row.observed_at);
            at = at.max(row.observed_at);
            let is_same = self.objects.get(&key) == form.as_ref();
            if !is_same {
                let objects = after.get_or_insert_with(|| self.objects.clone());
                match form {
                    Some(form) => objects.insert(key, form),
                    None => objects.remove(&key),
                };
            }
            if !is_same || !(only_changes || is_object) {
                kept.push(row);
            }
        }
        let Some(after) = after else { return (kept, Vec::new()) };
        let changes = catalog::differences(&self.objects, &after);
        self.objects = after;
        let since = |change: &Difference| {
            // A column is read with its table.
            let kind = if change.key.kind == Kind::Column { Kind::Table } else { change.key.kind };
            before.get(&kind).copied()
        };
        let is_told = |change: &&Difference| !catalog::moves_by_itself(&change.key.setting());
        let changes = changes.iter().filter(is_told).filter_map(|change| Some((since(change)?, change)));
        let mut told: Vec<Event> = changes.map(|(since, change)| say(source, at, since, change)).collect();
        let more = told.len().saturating_sub(TOLD);
        told.truncate(TOLD);
        if more > 0 {
            let labels = Labels::new([("what", "more".to_owned()), (events::COUNT, more.to_string())]);
            told.push(event(source, at, events::CHANGED, format!("{more} more objects changed"), labels));
        }
        (kept, told)
    }
}

fn say(source: &str, at: i64, since: i64, change: &Difference) -> Event {
    let (from, to) = change.sides();
    let mut labels = Labels::new([
        ("what", change.key.kind.word().to_owned()),
        ("object", change.key.name.clone()),
        ("from", short(&from)),
        ("to", short(&to)),
        ("since_ns", since.to_string()),
    ]);
    if !change.key.on.is_empty() {
        labels = labels.with("on", change.key.on.as_str());
    }
    let restore = Dialect::of_source(source).and_then(|dialect| catalog::restore(dialect, change));
    if let Some(statement) = restore.filter(|statement| statement.len() <= LONGEST_STATEMENT) {
        labels = labels.with("restore", statement);
    }
    event(source, at, events::CHANGED, short(&change.text()), labels)
}

fn short(text: &str) -> String {
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    text.chars().take(LONGEST).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::tell;

    const MADE: &str = "CREATE INDEX by_customer ON public.orders USING btree (customer)";
    const SOURCE: &str = "postgresql://db:5432";

    fn read(known: &mut Known, only_changes: bool, rows: &[(&str, &str)]) -> Batch {
        let mut batch = Batch::default();
        tell(&mut batch, SOURCE, rows.iter().map(|(name, value)| (*name, (*value).to_owned())));
        known.take(&mut batch, only_changes);
        batch
    }

    #[test]
    fn a_dropped_index_is_an_event_with_the_statement_that_makes_it_again() {
        let (mut known, index) = (Known::default(), "catalog.index public.orders: by_customer");
        let first = read(&mut known, false, &[(index, MADE), ("work_mem", "4MB")]);
        assert_eq!((first.settings.len(), first.events.len()), (2, 0));
        let same = read(&mut known, false, &[(index, MADE), ("work_mem", "4MB")]);
        assert_eq!((same.settings.len(), same.events.len()), (1, 0), "objects are kept once, settings again");
        let gone = read(&mut known, true, &[(index, ""), ("work_mem", "4MB")]);
        assert_eq!(gone.settings.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), [index]);
        let [event] = gone.events.as_slice() else { panic!("{:?}", gone.events) };
        assert_eq!((event.kind.as_str(), event.labels.get("to")), (events::CHANGED, Some("none")));
        assert_eq!(event.labels.get("restore"), Some(format!("{MADE};").as_str()));
        assert_eq!(event.labels.get("on"), Some("public.orders"));
        let since: i64 = event.labels.get("since_ns").unwrap().parse().unwrap();
        assert!(since > 0 && since <= event.observed_at);
        assert!(read(&mut known, true, &[(index, "")]).is_empty(), "it is gone once");
    }

    #[test]
    fn a_migration_of_many_objects_becomes_some_events() {
        let mut known = Known::default();
        let rows = |value: &str| -> Vec<(String, String)> {
            (0..500).map(|n| (format!("setting{n}"), value.to_owned())).collect()
        };
        for value in ["1", "2"] {
            let mut batch = Batch::default();
            tell(&mut batch, SOURCE, rows(value));
            known.take(&mut batch, true);
            let told = if value == "1" { 0 } else { TOLD + 1 };
            assert_eq!(batch.events.len(), told);
            assert_eq!(batch.events.last().and_then(|event| event.labels.get("count")), (told > 0).then_some("300"));
        }
    }

    #[test]
    fn figures_that_move_by_themselves_count_as_unchanged() {
        let mut known = Known::default();
        read(&mut known, false, &[("threads", "7"), ("cgroup.memory_limit_bytes", "100")]);
        let later = read(&mut known, true, &[("threads", "9"), ("cgroup.memory_limit_bytes", "50")]);
        let told: Vec<&str> = later.events.iter().map(|event| event.text.as_str()).collect();
        assert_eq!(told, ["setting cgroup.memory_limit_bytes went from 100 to 50"]);
    }
}
