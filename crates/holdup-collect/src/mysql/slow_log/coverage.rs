//! Whether the slow query log can be read, whether it is complete, and how to change that. holdup
//! reads no log that the user did not name.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use holdup_recording::Coverage;

use super::Form;
use crate::coverage::Line as _;
use crate::mysql::address::Address;
use crate::mysql::failure::Failure;
use crate::mysql::server::{Row, Server};

/// The result of the probe.
#[derive(Default)]
pub(in crate::mysql) struct SlowLogProbe {
    /// Its format, if it should be read.
    pub(in crate::mysql) form: Option<Form>,
    /// None if executions come from the history and no log was named.
    pub(in crate::mysql) coverage: Option<Coverage>,
}

/// The log's settings, by lower-case name.
struct Settings(HashMap<String, String>);

impl Settings {
    fn read(server: &Server) -> Result<Self, Failure> {
        // Always the same single query: holdup recognizes its own statements by having run each
        // kind of them.
        let rows = server.rows(
            "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('slow_query_log', 'slow_query_log_file', 'datadir', 'log_output', \
             'long_query_time', 'log_slow_rate_limit', 'min_examined_row_limit', 'log_slow_filter')",
        )?;
        let pair = |row: &Row| Some((row.text(0)?.to_ascii_lowercase(), row.text(1)?.to_owned()));
        Ok(Self(rows.iter().filter_map(pair).collect()))
    }

    fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    fn number(&self, name: &str) -> f64 {
        self.text(name).parse().unwrap_or(0.0)
    }

    /// The log file named by the server.
    fn file(&self) -> Option<PathBuf> {
        let name = Some(self.text("slow_query_log_file")).filter(|name| !name.is_empty())?;
        Some(Path::new(self.text("datadir")).join(name))
    }
}

/// The cost of logging every statement (measured on MariaDB 10.11), and a common pitfall.
const PRICE: &str = "this writes every statement with its values to the server's disk, some 220 bytes beside its text and 10 us of CPU \
                     each: watch the disk, and reset it afterwards; open connections keep the old long_query_time";

/// Probes the log; `entry` is the coverage entry to fill in.
pub(in crate::mysql) fn find(
    server: &Server,
    address: &Address,
    entry: Coverage,
    has_history: bool,
) -> Result<SlowLogProbe, Failure> {
    let settings = Settings::read(server)?;
    let without = |entry| Ok(SlowLogProbe { form: None, coverage: Some(entry) });
    let Some(path) = &address.log else {
        if has_history {
            return Ok(SlowLogProbe::default());
        }
        let why = "neither a statement history nor a log: single executions, their times and trace ids cannot be read";
        return without(entry.absent(why).enable(way_out(&settings, address)));
    };
    if has_history {
        return without(entry.note("not read: the statement history has the same executions, with better times"));
    }
    if let Err((why, enable)) = may_read(path) {
        return without(entry.absent(why).enable(enable));
    }
    let (lacks, enable) = lacks(&settings);
    let mut coverage = if lacks.is_empty() { entry } else { entry.partial(lacks.join("; ")) };
    coverage.enable = Some(enable.join(" ")).filter(|enable| !enable.is_empty());
    Ok(SlowLogProbe { form: Some(Form { stamp_is_begin: server.release.is_mariadb() }), coverage: Some(coverage) })
}

/// How to get executions from the log.
fn way_out(settings: &Settings, address: &Address) -> String {
    let file = settings.file();
    let is_here = matches!(address.host.as_str(), "localhost" | "::1") || address.host.starts_with("127.");
    let (place, whose) = match &file {
        None => ("FILE".to_owned(), String::new()),
        Some(path) if !is_here => (path.display().to_string(), ", on the server's machine".to_owned()),
        Some(path) => (
            path.display().to_string(),
            may_read(path).err().map(|(why, enable)| format!(" ({why}: {enable})")).unwrap_or_default(),
        ),
    };
    let (_, enable) = lacks(settings);
    let switch = if enable.is_empty() { String::new() } else { format!("{} ({PRICE}); ", enable.join(" ")) };
    format!("{switch}add ?log={place} to the address{whose}")
}

/// Opens it without reading; on failure why, and what to do.
fn may_read(path: &Path) -> Result<(), (String, String)> {
    let Err(error) = holdup_recording::files::open(path) else { return Ok(()) };
    let why = format!("{}: {error}", path.display());
    if error.kind() != ErrorKind::PermissionDenied {
        return Err((why, "run holdup on the server's machine, and switch the slow log on".to_owned()));
    }
    let whose = std::fs::metadata(path).map_or_else(
        |_| "its folder does not admit this user".to_owned(),
        |file| {
            let (user, group, mode) = (file.uid(), file.gid(), file.mode() & 0o777);
            format!("it belongs to user {user} and group {group}, mode {mode:o}")
        },
    );
    Err((why, format!("run holdup as root, or as a user who may read the log ({whose})")))
}

/// What these settings keep out of the log, and how to change that.
fn lacks(settings: &Settings) -> (Vec<String>, Vec<String>) {
    let (mut lacks, mut enable) = (Vec::new(), Vec::new());
    if !matches!(settings.text("slow_query_log"), "1" | "ON") {
        lacks.push("slow_query_log is OFF: nothing is logged".to_owned());
        enable.push("SET GLOBAL slow_query_log = ON;".to_owned());
    }
    let output = settings.text("log_output");
    if !output.to_ascii_uppercase().contains("FILE") {
        lacks.push(format!("log_output is {output}, not FILE"));
        enable.push("SET GLOBAL log_output = 'FILE';".to_owned());
    }
    let seconds = settings.number("long_query_time");
    if seconds > 0.0 {
        lacks.push(format!("it has only executions of {seconds} s or more (long_query_time)"));
        enable.push("SET GLOBAL long_query_time = 0;".to_owned());
    }
    for (name, what) in [
        ("log_slow_rate_limit", "only one in so many executions or sessions is logged"),
        ("min_examined_row_limit", "only statements that examine so many rows are logged"),
    ] {
        let least = if name == "log_slow_rate_limit" { 1.0 } else { 0.0 };
        if settings.number(name) > least {
            lacks.push(format!("{name} is {}: {what}", settings.number(name)));
            enable.push(format!("SET GLOBAL {name} = {least};"));
        }
    }
    // MariaDB only (Percona Server's is empty by default): with all of these set everything is
    // logged.
    let filter = settings.text("log_slow_filter");
    const ALL: [&str; 7] =
        ["admin", "filesort", "filesort_on_disk", "full_join", "full_scan", "tmp_table", "tmp_table_on_disk"];
    if !filter.is_empty() && !ALL.iter().all(|name| filter.split(',').any(|part| part == *name)) {
        lacks.push(format!("log_slow_filter is {filter}: only these kinds are logged"));
        enable.push("SET GLOBAL log_slow_filter = '';".to_owned());
    }
    (lacks, enable)
}
