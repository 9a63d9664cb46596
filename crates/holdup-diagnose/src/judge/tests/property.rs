//! Ten thousand random settings and recordings: no fix goes against its own sentence, none is
//! refused by its platform, none leaves what its setting may be. What a command says is read back
//! from its text by [`oracle`], which shares nothing with what wrote it.

mod bases;
mod oracle;

use std::collections::BTreeMap;
use std::path::Path;

use crate::change::Fix;
use holdup_recording::Recording;
use holdup_recording::rows::Setting;
use holdup_signals::host::processes::is_service;

use crate::audit;
use crate::case::Case;
use crate::causes::{self, Cause, Outcome};
use crate::testing::{Judged as _, SyntheticRecording};
use bases::{BASES, Base};
use oracle::Platform;

/// Cases in an ordinary pass.
const CASES: u64 = 4_000;

/// Numbers that look random and are the same in every pass (splitmix64).
pub(super) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    pub fn pick<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    /// With odds of one in `n`.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// Between both, as likely small as large.
    pub fn scaled(&mut self, from: f64, to: f64) -> f64 {
        let at = self.below(1_001) as f64 / 1_000.0;
        from * (to / from).powf(at)
    }
}

/// Values of a setting, below, at and above what rules ask of it. What no server would have is
/// among them.
type Values = (&'static str, &'static [&'static str]);

#[rustfmt::skip]
const OF_MYSQL: &[Values] = &[
    ("thread_pool_size", &["1", "2", "7", "8", "15", "16", "17", "40", "64", "127", "100000"]),
    ("thread_pool_stall_limit", &["1", "6", "9", "10", "11", "60", "500", "60000", "?"]),
    ("table_open_cache", &["1", "64", "100", "400", "4000", "200000", "262144", "524288", "1048576"]),
    ("innodb_flush_log_at_trx_commit", &["0", "1", "2", "3"]),
    ("sync_binlog", &["0", "1", "100"]),
    ("innodb_lock_wait_timeout", &["1", "4", "5", "6", "50", "1073741824"]),
    ("idle_write_transaction_timeout", &["0", "1", "5", "6", "3600"]),
    ("innodb_buffer_pool_size", &["5242880", "67108864", "134217728", "1073741824", "107374182400"]),
    ("innodb_redo_log_capacity", &["8388608", "100000000", "104857600", "536870912", "536870913", "137438953472", "549755813888"]),
    ("innodb_log_file_size", &["4194304", "50331648", "100663296", "536870912", "274877906944"]),
    ("innodb_log_files_in_group", &["1", "2", "10"]),
    ("innodb_io_capacity", &["0", "100", "200", "2000", "20000", "600000", "1000000"]),
    ("innodb_io_capacity_max", &["200", "400", "800", "2000", "20000", "4000000", "18446744073709551615"]),
    ("open_files_limit", &["0", "1024", "5000", "65535", "1048576"]),
    ("version", &["5.6.51-log", "5.7.44", "8.0.20", "8.0.36", "10.1.48-MariaDB", "10.6.1-MariaDB", "10.11.6-MariaDB", "11.4.2-MariaDB"]),
];

#[rustfmt::skip]
const OF_POSTGRESQL: &[Values] = &[
    ("synchronous_commit", &["on", "off", "local", "remote_apply"]),
    ("lock_timeout", &["0", "1ms", "4999ms", "5s", "5001ms", "1min", "24d"]),
    ("idle_in_transaction_session_timeout", &["0", "1s", "5s", "10min", "1d"]),
    ("max_wal_size", &["2MB", "1023MB", "1GB", "4GB", "1TB", "2TB", "512"]),
    ("checkpoint_completion_target", &["0", "0.5", "0.84", "0.85", "0.9", "1"]),
    ("autovacuum_vacuum_cost_delay", &["-1", "0", "1ms", "2ms", "10ms", "20ms", "60ms", "100ms"]),
    ("vacuum_cost_delay", &["0", "1ms", "20ms", "100ms"]),
    ("allow_alter_system", &["on", "off"]),
];

#[rustfmt::skip]
const OF_HOST: &[Values] = &[
    ("vm.min_free_kbytes", &["1024", "67584", "135168", "400000", "1000000", "9999999"]),
    ("net.core.somaxconn", &["16", "64", "128", "511", "4095", "4096", "65535", "100000"]),
    ("block.loop0.read_ahead_kb", &["0", "4", "5", "8", "16", "32", "64", "128", "4096"]),
    ("cpu_logical_count", &["1", "2", "4", "16", "128"]),
    ("memory_total_bytes", &["100000000", "200000000", "1073741824", "68719476736"]),
    ("net.eth0.qdisc", &["tbf", "htb", "fq_codel"]),
    ("vm.swappiness", &["0", "1", "60"]),
    ("vm.overcommit_memory", &["0", "1", "2"]),
    ("vm.dirty_background_ratio", &["0", "1", "10"]),
    ("net.ipv4.ip_local_port_range", &["32768 60999", "1024 20000", "1024 65535", "x"]),
    ("transparent_hugepage.enabled", &["always", "madvise"]),
];

/// Puts random values in, over those that stand there.
fn draw(random: &mut Random, source: &str, all: &[Values], rows: &mut Vec<Setting>) {
    for (name, values) in all {
        // A base's own value stays at times: it is what makes the rule find something.
        if random.one_in(3) {
            continue;
        }
        rows.retain(|row| row.name != *name || row.source != source);
        if !random.one_in(8) {
            rows.push(setting(source, name, values[random.below(values.len())]));
        }
    }
}

fn setting(source: &str, name: &str, value: &str) -> Setting {
    Setting { observed_at: 0, source: source.into(), name: name.into(), value: value.into() }
}

/// One case: a base with its settings drawn and its platform marked.
fn drawn(base: &Base, random: &mut Random) -> (SyntheticRecording, Platform) {
    let mut made = (base.make)(random);
    let platform = Platform::draw(random);
    made = made.tables(|tables| {
        let rows = &mut tables.settings.rows;
        draw(random, base.source, if base.source.starts_with("postgres") { OF_POSTGRESQL } else { OF_MYSQL }, rows);
        draw(random, "host", OF_HOST, rows);
        platform.mark(base, rows);
    });
    (made, platform)
}

/// The fixes of `cause` for a recording.
fn fixes(made: &SyntheticRecording, cause: Cause) -> Vec<Fix> {
    match made.with(|case| cause.judge(case)) {
        Ok(Outcome::Found(found) | Outcome::Fails(found, _)) => found.fixes,
        _ => Vec::new(),
    }
}

/// Every rule over every fixture with another platform and other settings.
#[test]
fn on_real_recordings_no_platform_refuses_a_fix() {
    let mut random = Random(35);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let (mut moved, mut wrong) = (0, Vec::new());
    for dir in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        let mut recording = Recording::open(&dir).unwrap();
        let rows = &mut recording.tables.settings.rows;
        let is_database = |source: &&str| source.starts_with("mysql:") || source.starts_with("postgres");
        let source = rows.iter().map(|row| row.source.as_str()).find(is_database).unwrap_or("mysql://db").to_owned();
        let service = rows.iter().map(|row| row.source.as_str()).find(|s| is_service(s)).unwrap_or("pid:7").to_owned();
        let base = Base { source: source.leak(), service: service.leak(), ..BASES[0] };
        let platform = Platform::draw(&mut random);
        draw(&mut random, base.source, OF_MYSQL, rows);
        platform.mark(&base, rows);
        let case = Case::new(&recording, None);
        for (cause, outcome) in causes::judge_all(&case) {
            let Ok(Outcome::Found(found) | Outcome::Fails(found, _)) = outcome else { continue };
            for fix in &found.fixes {
                match oracle::check_platform(fix, &recording.tables.settings.rows, &platform, &base) {
                    Ok(moves) => moved += moves,
                    Err(why) => wrong.push(format!("{}, {}: {why}: {fix:?}", dir.display(), cause)),
                }
            }
        }
    }
    println!("{moved} moves of settings");
    assert!(wrong.is_empty() && moved > 0, "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn no_fix_goes_against_its_sentence_and_none_is_refused() {
    let mut random = Random(20_261_125);
    let mut moved: BTreeMap<&str, usize> = BTreeMap::new();
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for number in 0..CASES {
        let base = &BASES[number as usize % BASES.len()];
        let (made, platform) = drawn(base, &mut random);
        let rows = &made.recording().tables.settings.rows;
        let mut all = fixes(&made, base.rule);
        *found.entry(base.name).or_default() += usize::from(!all.is_empty());
        all.extend(audit::of_settings(rows).into_iter().filter_map(|note| note.fix));
        for fix in &all {
            match oracle::check(fix, rows, &platform, base) {
                Ok(moves) => *moved.entry(base.name).or_default() += moves,
                Err(why) => wrong.push(format!("case {number}, {}: {why}: {fix:?}", base.name)),
            }
        }
    }
    println!("cases in which the rule found something: {found:?}\nmoves of settings: {moved:?}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(12)].join("\n"));
    for base in BASES {
        assert!(found.get(base.name).is_some_and(|n| *n >= 20), "{}: nothing to fix was found", base.name);
        assert!(!base.moves || moved.get(base.name).is_some_and(|n| *n >= 10), "{}: no command", base.name);
    }
}
