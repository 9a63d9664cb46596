//! The names of sources: which a recording has, which two recordings of different hosts may both
//! have of their own, and which are one server for all who watch it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::tables::Tables;
use crate::{Labels, Recording, Text};

/// Runs a macro with every table whose rows have a source.
macro_rules! each_with_source {
    ($macro:ident) => {
        $macro!(samples threads sessions statements stages spans exchanges plans settings events)
    };
}
pub(super) use each_with_source;

/// The sources of `recording`: those that were read, and those of its rows.
pub(super) fn of(recording: &Recording) -> BTreeSet<String> {
    let covered = recording.manifest.coverage.iter().filter_map(|entry| entry.source.split(' ').next());
    let mut all: BTreeSet<String> = covered.map(str::to_owned).collect();
    let condensed = recording.tables.condensed.iter();
    all.extend(condensed.clone().flat_map(|of| &of.series.sources).map(|(source, _)| source.clone()));
    all.extend(condensed.flat_map(|of| &of.totals).map(|totals| totals.source.clone()));
    macro_rules! add {
        ($($table:ident)*) => {
            $(all.extend(distinct(recording.tables.$table.rows.iter().map(|row| &*row.source)));)*
        };
    }
    each_with_source!(add);
    all
}

/// The distinct ones of `sources`, of which one follows another many times.
pub(super) fn distinct<'s>(sources: impl Iterator<Item = &'s str>) -> BTreeSet<String> {
    let mut all: BTreeSet<String> = BTreeSet::new();
    let mut last = None;
    for source in sources.filter(|source| !source.is_empty()) {
        if last != Some(source) && !all.contains(source) {
            all.insert(source.to_owned());
        }
        last = Some(source);
    }
    all
}

/// The address that `source` names, without its port; empty for a socket on this machine.
pub(super) fn address(source: &str) -> Option<&str> {
    let (_, rest) = source.split_once("://")?;
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next(),
        None => host.split(':').next(),
    }
}

/// Whether `source` means another thing on each host: a process, a port, a loopback address.
pub(super) fn is_local(source: &str) -> bool {
    let Some(host) = address(source) else { return true };
    host.is_empty() || host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Gives rows and series of `from` the source `to`.
pub(super) fn rename(recording: &mut Recording, from: &str, to: &str) {
    let text = Text::from(to);
    let tables = &mut recording.tables;
    macro_rules! each {
        ($($table:ident)*) => {
            $(for row in tables.$table.rows.iter_mut().filter(|row| *row.source == *from) {
                row.source = text.clone().into();
            })*
        };
    }
    each_with_source!(each);
    let Some(condensed) = &mut tables.condensed else { return };
    let condensed = std::sync::Arc::make_mut(condensed);
    for of_metric in condensed.series.by_metric.values_mut() {
        let named = |(source, labels): (String, Labels)| (if source == from { to.to_owned() } else { source }, labels);
        *of_metric = std::mem::take(of_metric).into_iter().map(|(key, points)| (named(key), points)).collect();
    }
    condensed
        .series
        .sources
        .iter_mut()
        .filter(|(source, _)| source == from)
        .for_each(|(source, _)| *source = to.into());
    condensed.totals.iter_mut().filter(|of| of.source == from).for_each(|of| of.source = to.into());
}

/// Removes rows and series of `source`.
pub(super) fn leave_out(tables: &mut Tables, source: &str) {
    macro_rules! each {
        ($($table:ident)*) => { $(tables.$table.rows.retain(|row| *row.source != *source);)* };
    }
    each_with_source!(each);
    let Some(condensed) = &mut tables.condensed else { return };
    let condensed = std::sync::Arc::make_mut(condensed);
    condensed.series.by_metric.values_mut().for_each(|of| of.retain(|(of, _), _| of != source));
    condensed.series.sources.retain(|(of, _)| of != source);
    condensed.totals.retain(|of| of.source != source);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loopback_address_is_another_server_on_each_host() {
        let local =
            ["host", "pid:7", "wire:3306", "otlp", "mysql://127.0.0.1:3306", "mysql://u@[::1]:3306", "mysql:///run/s"];
        assert!(local.iter().all(|source| is_local(source)));
        let shared = [
            "mysql://10.0.0.7:3306",
            "postgresql://db7/shop",
            "prometheus:http://app:80/metrics",
            "mysql://[2001::1]:3",
        ];
        assert!(shared.iter().all(|source| !is_local(source)));
        assert_eq!(address("mysql://u@[2001::1]:3"), Some("2001::1"));
    }
}
