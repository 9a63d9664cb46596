//! Reads a command back from its text and holds it against the recorded settings, its own sentence
//! and its platform. It knows what platforms refuse from their manuals, and nothing of the code
//! under test.

use crate::change::Fix;
use holdup_recording::rows::Setting;

use super::bases::Base;
use super::{Random, setting};

/// Where the database and the service run, as the recording shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Platform {
    home: &'static str,
    place: &'static str,
}

const HOMES: &[&str] = &["own", "own", "own", "rds", "rds by its description", "aurora", "google", "azure"];
const PLACES: &[&str] = &["machine", "machine", "machine", "docker", "podman", "kubernetes", "overlay"];

impl Platform {
    pub fn draw(random: &mut Random) -> Self {
        Self { home: random.pick(HOMES), place: random.pick(PLACES) }
    }

    /// Puts in what such a platform leaves in a recording.
    pub fn mark(&self, base: &Base, rows: &mut Vec<Setting>) {
        let is_postgresql = base.source.starts_with("postgres");
        let mut put = |source: &str, name: &str, value: &str| rows.push(setting(source, name, value));
        match self.home {
            "rds" if is_postgresql => put(base.source, "ssl_cert_file", "/rdsdbdata/rds-metadata/server-cert.pem"),
            "rds" => put(base.source, "basedir", "/rdsdbbin/mysql-8.0.36.R2/"),
            "rds by its description" => put("aws", "engine", if is_postgresql { "postgres" } else { "mariadb" }),
            "aurora" if is_postgresql => put(base.source, "apg_ccm_enabled", "on"),
            "aurora" => put(base.source, "aurora_version", "3.05.2"),
            "google" => put(base.source, "cloudsql_iam_authentication", "off"),
            "azure" => put(base.source, "azure.extensions", ""),
            _ => {}
        }
        const ID: &str = "4f66ad9c0b2e4f66ad9c0b2e4f66ad9c0b2e4f66ad9c0b2e4f66ad9c0b2e4f66";
        let path = match self.place {
            "docker" => format!("/system.slice/docker-{ID}.scope"),
            "podman" => format!("/machine.slice/libpod-{ID}.scope"),
            "kubernetes" => format!("/kubepods/burstable/pod1234/{ID}"),
            "overlay" => {
                put("host", "mount[/].fstype", "overlay");
                return;
            }
            _ => return,
        };
        for source in [base.service, "host"] {
            put(source, "cgroup.path", &path);
        }
    }

    fn is_managed(&self) -> bool {
        self.home != "own"
    }

    fn is_container(&self) -> bool {
        self.place != "machine"
    }
}

/// A setting that a command moves.
#[derive(Debug, PartialEq)]
struct Move {
    name: String,
    to: f64,
}

/// What a command begins with that only looks, ends a session, or changes a schema.
#[rustfmt::skip]
const MOVES_NOTHING: &[&str] = &[
    "EXPLAIN", "USE ", "SHOW ", "ANALYZE", "SELECT pg_terminate_backend(", "SELECT indexrelid", "KILL ", "CALL mysql.rds_kill(",
    "CALL mysql.az_kill(", "CREATE INDEX", "DROP INDEX", "ss -", "nstat", "ps -", "free -m", "grep ", "ls -l /proc", "mtr ", "ethtool -S",
    "tc -s", "holdup ", "postgres -D", "ALTER TABLE", "tmpdir=", "py-spy dump",
    "SELECT rolname, rolconnlimit FROM", "python3 -c 'import gc; gc.set_debug(", "cat /sys/fs/cgroup/",
];

/// What changes the machine, and is refused within a container.
const OF_THE_MACHINE: &[&str] = &["sysctl -w", "blockdev", "mount ", "umount ", "mkdir ", "tc qdisc change", "echo "];

/// Between two words.
fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let rest = &text[text.find(before)? + before.len()..];
    Some(&rest[..rest.find(after).unwrap_or(rest.len())])
}

/// A number with PostgreSQL's units, in milliseconds or MB where it has one.
fn value(text: &str) -> Option<f64> {
    let text = text.trim().trim_matches('\'').trim_end_matches(';');
    match text {
        "on" | "local" | "remote_apply" | "remote_write" => return Some(1.0),
        "off" => return Some(0.0),
        _ => {}
    }
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let factor = match &text[end..] {
        "" | "ms" | "MB" | "m" => 1.0,
        "s" => 1e3,
        "min" => 60e3,
        "h" => 3_600e3,
        "d" => 86_400e3,
        "kB" => 1.0 / 1024.0,
        "GB" => 1024.0,
        "TB" => 1_048_576.0,
        "bit" => 1.0 / 8.0,
        _ => return None,
    };
    text[..end].parse::<f64>().ok().map(|number| number * factor)
}

/// What a command moves; none if it is of no known kind.
fn read(command: &str) -> Option<Vec<Move>> {
    let mut moves = Vec::new();
    let mut put = |name: &str, to: &str| {
        let to = value(to)?;
        moves.push(Move { name: name.to_owned(), to });
        Some(())
    };
    let first = |text: &str| text.split_whitespace().next().unwrap_or_default().to_owned();
    if command.starts_with("SET GLOBAL ") || command.starts_with("ALTER SYSTEM SET ") {
        for part in command.split("; ").filter(|part| !part.starts_with("SELECT pg_reload_conf")) {
            let pair =
                part.trim_end_matches(';').trim_start_matches("SET GLOBAL ").trim_start_matches("ALTER SYSTEM SET ");
            let (name, to) = pair.split_once(" = ")?;
            put(name, to)?;
        }
    } else if command.starts_with("aws rds modify-db-") {
        for pair in command.split("ParameterName=").skip(1) {
            put(pair.split(',').next()?, between(pair, "ParameterValue=", ",")?)?;
        }
    } else if let Some(pair) = command.strip_prefix("sysctl -w ") {
        let (name, to) = pair.split_once('=')?;
        if to.starts_with('"') {
            return Some(Vec::new());
        }
        put(name, to)?;
    } else if command.starts_with("blockdev --setra ") {
        let sectors = value(between(command, "--setra ", " ")?)?;
        let device = command.rsplit('/').next()?;
        put(&format!("block.{device}.read_ahead_kb"), &(sectors / 2.0).to_string())?;
    } else if command.starts_with("echo '") && command.ends_with("/cpu.max") {
        let (micros, period) = between(command, "echo '", "'")?.split_once(' ')?;
        put("cpus", &(value(micros)? / value(period)?).to_string())?;
    } else if command.ends_with("/cpu.cfs_quota_us") {
        put("cpus", &(value(&first(command.strip_prefix("echo ")?))? / 1e5).to_string())?;
    } else if command.ends_with("/memory.max") || command.ends_with("/memory.limit_in_bytes") {
        put("memory", &first(command.strip_prefix("echo ")?))?;
    } else if command.contains("/io.max") || command.contains("/blkio.throttle.") {
        let given = between(command, "' ')", "\"")?.trim();
        put("disk", given.rsplit(['=', ' ']).next()?)?;
    } else if let Some(cpus) = between(command, " update --cpus ", " ") {
        put("cpus", cpus)?;
    } else if let Some(memory) = between(command, " update --memory ", "m") {
        put("memory", &(value(memory)? * 1_048_576.0).to_string())?;
    } else if command.starts_with("prlimit --pid ") {
        between(command, "--pid ", " ")?.parse::<u32>().ok()?;
        let (soft, hard) = between(command, "--nofile=", " ")?.split_once(':')?;
        put("limit.nofile", soft)?;
        put("limit.nofile_hard", hard)?;
    } else if command.starts_with("tc qdisc change") {
        put("rate", between(command, " rate ", " ")?)?;
    } else if command.starts_with("threads ") {
        put("threads", between(command, "threads ", ",")?)?;
    } else if command.starts_with("livenessProbe:") {
        put("probe.timeout_s", between(command, "timeoutSeconds: ", ",")?)?;
        put("probe.failures", between(command, "failureThreshold: ", "}")?)?;
    } else if command.starts_with("echo madvise") || command.starts_with("echo none") || command.starts_with("echo tsc")
    {
    } else if !MOVES_NOTHING.iter().chain(OF_THE_MACHINE).any(|start| command.starts_with(start)) {
        return None;
    }
    Some(moves)
}

/// What was recorded under a name that [`read`] gives.
fn recorded(rows: &[Setting], name: &str, base: &Base) -> Option<f64> {
    let last = |source: &str, name: &str| {
        rows.iter().rev().find(|row| row.source == source && row.name == name).map(|row| row.value.as_str())
    };
    let of_service = |name: &str| last(base.service, name).and_then(value);
    match name {
        "cpus" => {
            let (quota, period) = last(base.service, "cgroup.cpu_quota_us_per_period_us")?.split_once(' ')?;
            Some(value(quota)? / value(period)?)
        }
        "memory" => of_service("cgroup.memory_limit_bytes"),
        "disk" => of_service("cgroup.disk_limit[vda].read_operations_per_second"),
        "limit.nofile" | "limit.nofile_hard" => of_service(name),
        "rate" => last("host", "net.eth0.shaper_bytes_per_second").and_then(value),
        "probe.timeout_s" | "probe.failures" => last("probe:http://127.0.0.1:8080/health", name).and_then(value),
        "autovacuum_vacuum_cost_delay" if last(base.source, name) == Some("-1") => {
            last(base.source, "vacuum_cost_delay").and_then(value)
        }
        _ => {
            let text = last(base.source, name).or_else(|| last("host", name))?;
            let number = value(text)?;
            let is_unlimited = ["lock_timeout", "idle_in_transaction_session_timeout"].contains(&name) && number == 0.0;
            Some(if is_unlimited { f64::INFINITY } else { number })
        }
    }
}

/// What a setting may be, by its name.
#[rustfmt::skip]
const RANGES: &[(&str, f64, f64)] = &[
    ("thread_pool_size", 1.0, 100_000.0),
    ("thread_pool_stall_limit", 1.0, 600_000.0),
    ("max_connections", 1.0, 100_000.0),
    ("max_user_connections", 1.0, 100_000.0),
    ("table_open_cache", 1.0, 524_288.0),
    ("innodb_flush_log_at_trx_commit", 0.0, 3.0),
    ("sync_binlog", 0.0, 4_294_967_295.0),
    ("innodb_lock_wait_timeout", 1.0, 1_073_741_824.0),
    ("innodb_buffer_pool_size", 5_242_880.0, 1.1e12),
    ("innodb_redo_log_capacity", 8_388_608.0, 137_438_953_472.0),
    ("innodb_log_file_size", 4_194_304.0, 274_877_906_944.0),
    ("innodb_io_capacity", 100.0, 1_000_000.0),
    ("innodb_io_capacity_max", 100.0, 2_000_000.0),
    ("synchronous_commit", 0.0, 0.0),
    ("lock_timeout", 1.0, 2_147_483_647.0),
    ("max_wal_size", 2.0, 1_048_576.0),
    ("checkpoint_completion_target", 0.0, 1.0),
    ("autovacuum_vacuum_cost_delay", 1.0, 100.0),
    ("vm.min_free_kbytes", 1_024.0, 25e6),
    ("net.core.somaxconn", 1.0, 65_535.0),
    ("block.loop0.read_ahead_kb", 4.0, 65_536.0),
    ("cpus", 0.01, 1_024.0),
    ("memory", 1_048_576.0, 1e13),
    ("disk", 1.0, 1e9),
    ("rate", 1.0, 1e12),
    ("limit.nofile", 1.0, 1_048_576.0),
    ("limit.nofile_hard", 1.0, 1e12),
    ("threads", 1.0, 10_000.0),
    ("probe.timeout_s", 1.0, 1_000.0),
    ("probe.failures", 1.0, 100.0),
];

/// The word that says which way `name` goes: the nearest before it, else the sentence's first.
fn direction(text: &str, name: &str) -> Option<&'static str> {
    let before = text.find(name).map_or(text, |at| &text[..at]);
    let words = ["Raise", "Lower", "Change", "Turn"];
    let nearest = words.into_iter().filter_map(|word| Some((before.rfind(word)?, word))).max();
    nearest.or_else(|| words.into_iter().filter_map(|word| Some((text.find(word)?, word))).min()).map(|(_, word)| word)
}

/// Of a fix for a recording of which it is not known whose limits are meant: what [`check`] sees
/// without that.
pub(super) fn check_platform(fix: &Fix, rows: &[Setting], platform: &Platform, base: &Base) -> Result<usize, String> {
    words(&fix.text)?;
    let Some(command) = &fix.command else { return Ok(0) };
    refused(command, rows, platform, base)?;
    read(command).map(|moves| moves.len()).ok_or_else(|| "a command of an unknown kind".to_owned())
}

/// Whether `fix` does what it says, and its platform takes it: how many settings it moves, or what
/// is wrong.
pub(super) fn check(fix: &Fix, rows: &[Setting], platform: &Platform, base: &Base) -> Result<usize, String> {
    words(&fix.text)?;
    let Some(command) = &fix.command else { return Ok(0) };
    refused(command, rows, platform, base)?;
    let moves = read(command).ok_or("a command of an unknown kind")?;
    for Move { name, to } in &moves {
        if let Some((_, least, most)) = RANGES.iter().find(|(of, ..)| of == name) {
            if !(*least..=*most).contains(to) {
                return Err(format!("{name} = {to} is not within {least} to {most}"));
            }
        } else if !name.starts_with("vm.") && !name.starts_with("net.") {
            return Err(format!("no range of {name} is known"));
        }
        let from = recorded(rows, name, base);
        let (Some(from), true) = (from, name != "threads") else {
            if name == "threads" || name == "limit.nofile_hard" || name == "innodb_buffer_pool_size" {
                continue;
            }
            return Err(format!("{name} moves though its value is not known"));
        };
        let is_so = match direction(&fix.text, name) {
            // The hard limit goes with the soft one, and never down.
            _ if name == "limit.nofile_hard" => *to >= from,
            Some("Raise") => *to > from,
            Some("Lower") => *to < from,
            Some("Turn") => *to == 0.0 && from > 0.0,
            Some("Change") => *to != from,
            // Advice of vendors says "Set NAME to VALUE".
            None => fix.text.starts_with(&format!("Set {name}")) || fix.text.contains("ahead"),
            Some(_) => false,
        };
        if !is_so {
            return Err(format!("{name} goes from {from} to {to}"));
        }
    }
    Ok(moves.len())
}

/// That `Raise X from A to B` has more in B, and `Lower` less, where both are told in one unit.
fn words(text: &str) -> Result<(), String> {
    for (verb, is_up) in [("Raise ", true), ("Lower ", false)] {
        for sentence in text.split(verb).skip(1) {
            let Some((_, numbers)) = sentence.split_once(" from ") else { continue };
            let Some((from, to)) = numbers.split_once(" to ") else { continue };
            let number = |text: &str| -> Option<f64> {
                let text = text.trim_start_matches("at least ").replace(',', "");
                text.split(|c: char| !c.is_ascii_digit() && c != '.').next()?.trim_end_matches('.').parse().ok()
            };
            let unit =
                |text: &str| text.split_whitespace().nth(1).map(|u| u.trim_end_matches([':', ';', '.']).to_owned());
            let (Some(a), Some(b)) = (number(from), number(to)) else { continue };
            if from.contains(' ') && unit(from) != unit(to) {
                continue;
            }
            if (is_up && b < a) || (!is_up && b > a) {
                return Err(format!("{verb}from {a} to {b}"));
            }
        }
    }
    Ok(())
}

/// Whether the platform refuses `command`.
fn refused(command: &str, rows: &[Setting], platform: &Platform, base: &Base) -> Result<(), String> {
    let starts = |start: &str| command.starts_with(start);
    let last = |name: &str| {
        rows.iter().rev().find(|row| row.source == base.source && row.name == name).map(|row| row.value.as_str())
    };
    let is_kill = starts("KILL") && platform.home != "google";
    let is_server_command = starts("SET GLOBAL") || starts("ALTER SYSTEM") || is_kill || starts("tmpdir=");
    if platform.is_managed() && (is_server_command || starts("mkdir")) {
        return Err(format!("{platform:?} lets no account do that"));
    }
    if starts("aws rds") {
        let is_amazon = platform.home.starts_with("rds") || platform.home == "aurora";
        let is_static = command.contains("max_connections") && base.source.starts_with("postgres");
        let is_not_auroras =
            ["sync_binlog", "max_wal_size", "innodb_io_capacity", "thread_pool", "innodb_log_file_size"];
        if !is_amazon || is_static && !command.contains("pending-reboot") {
            return Err("not a command of this platform".to_owned());
        }
        if platform.home == "aurora" && is_not_auroras.iter().any(|name| command.contains(name)) {
            return Err("Aurora has no such parameter".to_owned());
        }
        let is_clusters = platform.home == "aurora" && command.contains("innodb_flush_log_at_trx_commit");
        if is_clusters != command.contains("modify-db-cluster-parameter-group") {
            return Err("it is in the other parameter group".to_owned());
        }
    }
    if starts("ALTER SYSTEM") && last("allow_alter_system") == Some("off") {
        return Err("the server refuses ALTER SYSTEM".to_owned());
    }
    if starts("SET GLOBAL") {
        let version = last("version").unwrap_or("0");
        let mut numbers = version.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
        let number = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        let is_mariadb = version.contains("MariaDB");
        let is_read_only = |name: &str| match name {
            "innodb_log_file_size" => !is_mariadb || number < (10, 9),
            "innodb_buffer_pool_size" => number < if is_mariadb { (10, 2) } else { (5, 7) },
            _ => false,
        };
        if read(command).unwrap_or_default().iter().any(|of| is_read_only(&of.name)) {
            return Err(format!("read-only in {version}"));
        }
    }
    if platform.is_container() && OF_THE_MACHINE.iter().any(|start| starts(start)) {
        return Err("refused within a container".to_owned());
    }
    let hard = recorded(rows, "limit.nofile_hard", base);
    if platform.is_container() && starts("prlimit") && read(command).is_some_and(|m| hard.is_none_or(|h| m[0].to > h)) {
        return Err("a container's process may not raise its hard limit".to_owned());
    }
    let runtime = if platform.place == "podman" { "podman update" } else { "docker update" };
    if command.contains(" update --") && !starts(runtime) {
        return Err("another runtime's command".to_owned());
    }
    Ok(())
}
