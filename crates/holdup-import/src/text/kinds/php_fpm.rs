//! PHP-FPM's status page as text, and `cpu.stat` of a cgroup: figures by their name, one a line.

use holdup_recording::Labels;
use holdup_recording::metrics::{Metric, cgroup, php_fpm};

use super::{Context, Kind, Line, number, text};

pub(super) const KIND: Kind =
    Kind::lines("PHP-FPM status", |lines| text(lines, 0).starts_with("pool:") && is_page(lines), read);

pub(super) const CPU_STAT: Kind = Kind::lines("cpu.stat", |lines| quota(text(lines, 0)).is_some(), read_quota);

const FIGURES: [(&str, Metric); 9] = [
    ("accepted conn", php_fpm::ACCEPTED_CONNECTIONS),
    ("listen queue", php_fpm::LISTEN_QUEUE),
    ("max listen queue", php_fpm::MAX_LISTEN_QUEUE),
    ("listen queue len", php_fpm::LISTEN_QUEUE_LIMIT),
    ("idle processes", php_fpm::IDLE_PROCESSES),
    ("active processes", php_fpm::ACTIVE_PROCESSES),
    ("total processes", php_fpm::TOTAL_PROCESSES),
    ("max active processes", php_fpm::MAX_ACTIVE_PROCESSES),
    ("max children reached", php_fpm::MAX_CHILDREN_REACHED),
];

/// Version 2 counts the time in microseconds, version 1 in nanoseconds.
const QUOTA: [(&str, Metric, f64); 4] = [
    ("nr_periods", cgroup::CPU_PERIODS, 1.0),
    ("nr_throttled", cgroup::CPU_THROTTLED_PERIODS, 1.0),
    ("throttled_usec", cgroup::CPU_THROTTLED_TIME, 1e6),
    ("throttled_time", cgroup::CPU_THROTTLED_TIME, 1e9),
];

fn is_page(lines: &[Line]) -> bool {
    lines.iter().take(4).any(|line| line.text.starts_with("process manager:"))
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant_of(KIND.name);
    let used = lines.iter().take_while(|line| line.text.contains(':')).count();
    let pairs = || lines.iter().take(used).filter_map(|line| line.text.split_once(':'));
    let pool = pairs().next().map_or("", |(_, pool)| pool.trim()).to_owned();
    for (name, value) in pairs() {
        let known = FIGURES.iter().find(|(known, _)| *known == name.trim());
        if let Some(((_, metric), value)) = known.zip(number(value)) {
            context.out.gauge(at, "php-fpm:", metric.name, Labels::new([("pool", pool.as_str())]), value);
        }
    }
    used.max(1)
}

fn quota(line: &str) -> Option<(Metric, f64)> {
    let (name, value) = line.trim().split_once(' ')?;
    let (_, metric, unit) = QUOTA.iter().find(|(known, ..)| *known == name)?;
    Some((*metric, number(value)? / unit))
}

fn read_quota(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant_of(CPU_STAT.name);
    let figures: Vec<(Metric, f64)> = lines.iter().map_while(|line| quota(&line.text)).collect();
    for (metric, value) in &figures {
        context.out.gauge(at, "cgroup:", metric.name, Labels::none(), *value);
    }
    figures.len()
}
