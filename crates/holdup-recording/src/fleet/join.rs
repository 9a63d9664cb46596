//! Several opened recordings become one: sources that would collide are renamed, servers that two
//! hosts watch are kept once, machines are put aside, and rows are moved into one set of tables.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::machine::Machine;
use super::part::{Part, is_database};
use super::sources::{self, each_with_source};
use super::{MACHINE, Role, loads};
use crate::Recording;
use crate::condensed::Condensed;
use crate::manifest::{Manifest, RunState};
use crate::stored::Table;
use crate::tables::Tables;

/// The joined recording, and what is known of its sources.
pub(super) struct Joined {
    pub recording: Recording,
    pub machines: Vec<Machine>,
    pub owners: BTreeMap<String, String>,
    pub tables: BTreeMap<&'static str, BTreeSet<String>>,
    pub coverage_hosts: Vec<String>,
}

/// Moves every time of `recording` by `by_ns` nanoseconds.
pub(super) fn move_times(recording: &mut Recording, by_ns: i64) {
    let moved = |at: &mut i64| *at = at.saturating_add(by_ns);
    recording.tables.move_times(by_ns);
    recording.latencies.iter_mut().for_each(|slice| [&mut slice.from, &mut slice.to].into_iter().for_each(moved));
    let manifest = &mut recording.manifest;
    moved(&mut manifest.started_at);
    manifest.ended_at.iter_mut().for_each(moved);
    manifest.phases.iter_mut().for_each(|phase| [&mut phase.from, &mut phase.to].into_iter().for_each(moved));
    if let Some(aborted) = manifest.load.as_mut().and_then(|load| load.aborted.as_mut()) {
        moved(&mut aborted.at);
    }
}

/// Joins `recordings`, which belong to `parts`, for judging `range`.
pub(super) fn join(mut recordings: Vec<Recording>, parts: &mut [Part], range: &Range<i64>) -> Joined {
    tell_apart(&mut recordings, parts);
    let owners = owners(parts);
    let machines = recordings.iter_mut().map(|recording| Machine::take(&mut recording.tables)).collect();
    let (load, phases, scenario) = loads::joined(&mut recordings, parts);
    let mut manifest = Manifest::starting(&name(&recordings), range.start, Default::default());
    manifest.ended_at = (range.end != i64::MAX).then_some(range.end);
    (manifest.load, manifest.phases, manifest.scenario) = (load, phases, scenario);
    manifest.state = state(&recordings);
    let mut coverage_hosts = Vec::new();
    let mut whole = Recording {
        dir: PathBuf::new(),
        manifest,
        tables: Tables { condensed: Some(Arc::new(Condensed::default())), ..Tables::default() },
        latencies: Vec::new(),
        search: None,
        excerpt: None,
    };
    for (recording, part) in recordings.into_iter().zip(parts.iter()) {
        let Recording { manifest, tables, latencies, search, .. } = recording;
        append(&mut whole.tables, tables);
        whole.latencies.extend(latencies);
        whole.search = whole.search.or(search);
        whole.manifest.thresholds.extend(manifest.thresholds);
        if whole.manifest.pipeline.is_empty() {
            whole.manifest.pipeline = manifest.pipeline;
        }
        coverage_hosts.extend(manifest.coverage.iter().map(|_| part.host.clone()));
        whole.manifest.coverage.extend(manifest.coverage);
        if part.is_reference {
            whole.manifest.host = manifest.host;
        }
    }
    whole.latencies.sort_by_key(|slice| slice.from);
    let tables = of_tables(&whole.tables);
    Joined { recording: whole, machines, owners, tables, coverage_hosts }
}

/// Gives sources that several parts have of their own their host's name, and leaves a server that
/// several parts watched in the first of them.
fn tell_apart(recordings: &mut [Recording], parts: &mut [Part]) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for part in parts.iter() {
        part.sources.iter().for_each(|source| *seen.entry(source.clone()).or_default() += 1);
    }
    let mut kept: BTreeSet<String> = BTreeSet::new();
    for (recording, part) in recordings.iter_mut().zip(parts) {
        for source in std::mem::take(&mut part.sources) {
            if source == MACHINE || seen.get(&source).is_none_or(|count| *count < 2) {
                part.sources.push(source);
            } else if sources::is_local(&source) {
                let name = format!("{source}@{}", part.host);
                sources::rename(recording, &source, &name);
                part.sources.push(name);
            } else if kept.insert(source.clone()) {
                part.sources.push(source);
            } else {
                sources::leave_out(&mut recording.tables, &source);
                part.left_out.push(source);
            }
        }
        let is_known = |source: &String| part.sources.iter().any(|of| is_database(of) && of != source);
        if part.left_out.iter().any(|source| is_database(source) && !is_known(source)) {
            // Executions do not say whose they are.
            let condensed = recording.tables.condensed.as_mut();
            condensed.into_iter().for_each(|of| Arc::make_mut(of).executions = Default::default());
        }
    }
}

/// The host that each source belongs to. A database that was watched from another machine belongs to the one on
/// which a database was found, or else is called by its address.
fn owners(parts: &[Part]) -> BTreeMap<String, String> {
    let databases: Vec<&Part> = parts.iter().filter(|part| part.roles.contains(&Role::Database)).collect();
    let host = |part: &Part, source: &str| {
        let remote = sources::address(source).filter(|_| is_database(source) && !sources::is_local(source));
        match (remote, &databases[..]) {
            (None, _) => part.host.clone(),
            (Some(_), [one]) => one.host.clone(),
            (Some(_), _) if part.roles.contains(&Role::Database) => part.host.clone(),
            (Some(address), _) => address.to_owned(),
        }
    };
    let all = parts.iter().flat_map(|part| part.sources.iter().map(move |source| (part, source)));
    all.filter(|(_, source)| *source != MACHINE).map(|(part, source)| (source.clone(), host(part, source))).collect()
}

fn name(recordings: &[Recording]) -> String {
    let mut names: Vec<&str> = recordings.iter().map(|recording| recording.manifest.name.as_str()).collect();
    names.dedup();
    names.join(", ")
}

/// The worst state.
fn state(recordings: &[Recording]) -> RunState {
    let is = |state| recordings.iter().any(|recording| recording.manifest.state == state);
    [RunState::Running, RunState::Interrupted].into_iter().find(|state| is(*state)).unwrap_or(RunState::Complete)
}

/// The sources of each table but `samples`, which know theirs by metric.
fn of_tables(tables: &Tables) -> BTreeMap<&'static str, BTreeSet<String>> {
    let mut all: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
    macro_rules! add {
        ($($table:ident)*) => {
            $(all.insert(stringify!($table), sources::distinct(tables.$table.rows.iter().map(|row| &*row.source)));)*
        };
    }
    each_with_source!(add);
    let totals = tables.condensed.iter().flat_map(|of| &of.totals).map(|of| of.source.clone());
    all.entry("statements").or_default().extend(totals);
    all
}

/// Moves the rows of `more` behind those of `all`, and sorts tables that both have rows of.
fn append(all: &mut Tables, mut more: Tables) {
    macro_rules! join {
        ($($table:ident by $at:ident),*) => {
            $(if join_table(&mut all.$table, std::mem::take(&mut more.$table)) {
                all.$table.rows.sort_by_key(|row| row.$at);
            })*
        };
    }
    join!(requests by done_at, samples by observed_at, threads by observed_at, sessions by observed_at,
        statements by observed_at, stages by observed_at, spans by started_at, exchanges by request_at,
        executions by done_at, plans by observed_at, events by observed_at);
    join_table(&mut all.settings, more.settings);
    if let (Some(all), Some(more)) = (&mut all.condensed, more.condensed) {
        Arc::make_mut(all).append(Arc::unwrap_or_clone(more));
    }
}

/// Adds the rows of `more`. True if both have rows.
fn join_table<R>(all: &mut Table<R>, more: Table<R>) -> bool {
    let both = !all.rows.is_empty() && !more.rows.is_empty();
    if all.rows.is_empty() && (!more.rows.is_empty() || !all.present) {
        all.missing = more.missing;
    } else if both {
        all.missing.extend(more.missing);
        all.missing.sort_unstable();
        all.missing.dedup();
    }
    all.present |= more.present;
    if all.rows.is_empty() {
        all.rows = more.rows;
    } else {
        all.rows.extend(more.rows);
    }
    both
}
