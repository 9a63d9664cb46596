//! Where a database runs, and how it takes a new value there: `SET GLOBAL` and the option file,
//! `ALTER SYSTEM`, a parameter group, or the console of a cloud that has no command which is safe
//! to print.

use holdup_recording::rows::Setting;
use holdup_signals::View;
use holdup_signals::database::memory_setting::bytes_of;

use super::parameters::{Amazon, Engine, Live, Parameter};
use super::{Direction, SettingChange, Stay, Steps, Unit, settings};

/// Who runs the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// The reader.
    Own,
    /// Amazon RDS.
    Rds,
    /// Amazon Aurora.
    Aurora,
    /// Google Cloud SQL.
    CloudSql,
    /// Azure Database.
    Azure,
}

/// A server whose settings were recorded.
#[derive(Clone, Copy, Debug)]
pub struct Server<'a> {
    rows: &'a [Setting],
    source: &'a str,
    engine: Engine,
    home: Home,
}

impl<'a> Server<'a> {
    /// The server of kind `engine` that was recorded last.
    pub fn find(view: &View<'a>, engine: Engine) -> Self {
        Self::among(settings(view), engine)
    }

    /// The same of recorded settings.
    pub fn among(rows: &'a [Setting], engine: Engine) -> Self {
        let scheme = match engine {
            Engine::MySql => "mysql:",
            Engine::PostgreSql => "postgres",
        };
        let source = rows.iter().rev().map(|row| row.source.as_str()).find(|source| source.starts_with(scheme));
        Self { rows, source: source.unwrap_or_default(), engine, home: home(rows, source.unwrap_or_default()) }
    }

    /// The server that `source` is.
    pub fn at(view: &View<'a>, source: &'a str) -> Self {
        let engine = if source.starts_with("postgres") { Engine::PostgreSql } else { Engine::MySql };
        Self { source, home: home(settings(view), source), ..Self::find(view, engine) }
    }

    /// Who runs it.
    pub fn home(&self) -> Home {
        self.home
    }

    /// What it is.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Whether a server of its version has `parameter` at all, as far as the table tells.
    pub fn has(&self, parameter: &Parameter) -> bool {
        self.takes_live(parameter.live) || parameter.live == Live::Never
    }

    /// Its last value of `name`, in its own words.
    pub fn value(&self, name: &str) -> Option<&'a str> {
        let is_it = |row: &&Setting| row.name == name && (self.source.is_empty() || row.source == self.source);
        self.rows.iter().rev().find(is_it).map(|row| row.value.as_str())
    }

    /// The same as a number in the parameter's unit; infinite where the value stands for no limit.
    pub fn number(&self, parameter: &Parameter) -> Option<f64> {
        let value = number(self.value(parameter.name)?, parameter.unit)?;
        Some(if parameter.unlimited == Some(value) { f64::INFINITY } else { value })
    }

    /// Moves `parameter` to `to`, if that is the way that `direction` says.
    pub fn change(&self, direction: Direction, parameter: &'static Parameter, to: f64) -> Result<SettingChange, Stay> {
        let from = self.number(parameter);
        SettingChange::new(direction, parameter.name, parameter.unit, from, to, parameter.bounds)
    }

    /// How this server takes `changes`.
    pub fn steps(&self, changes: &[(&'static Parameter, &SettingChange)]) -> Steps {
        match self.home {
            Home::Own if self.engine == Engine::PostgreSql => self.postgresql(changes),
            Home::Own => self.mysql(changes),
            Home::Rds => self.amazon(changes, |parameter| parameter.rds),
            Home::Aurora => self.amazon(changes, |parameter| parameter.aurora),
            Home::CloudSql => in_console(changes, "database flag", "Cloud SQL"),
            Home::Azure => in_console(changes, "server parameter", "Azure"),
        }
    }

    fn mysql(&self, changes: &[(&'static Parameter, &SettingChange)]) -> Steps {
        let lines = changes.iter().map(|(of, change)| format!("{}={}", of.name, plain(change.to)));
        let lines = format!("{} below [mysqld] in the option file", lines.collect::<Vec<_>>().join(" and "));
        if !changes.iter().all(|(of, _)| self.takes_live(of.live)) {
            let effect = "Takes effect with a restart.".to_owned();
            return Steps { command: None, keep: Some(format!("{lines}, then restart the server.")), effect };
        }
        let set = changes.iter().map(|(of, change)| format!("SET GLOBAL {} = {};", of.name, plain(change.to)));
        let command = Some(set.collect::<Vec<_>>().join(" "));
        Steps { command, keep: Some(format!("{lines}.")), effect: "Takes effect at once.".to_owned() }
    }

    /// Whether it takes a new value while it runs; a server of unknown version may not.
    fn takes_live(&self, live: Live) -> bool {
        match live {
            Live::Always => true,
            Live::Never => false,
            Live::From { mysql, mariadb } => {
                let Some(version) = self.value("version") else { return false };
                let is_mariadb =
                    version.contains("MariaDB") || self.value("version_comment").is_some_and(|c| c.contains("MariaDB"));
                version_of(version) >= if is_mariadb { mariadb } else { mysql }
            }
        }
    }

    fn postgresql(&self, changes: &[(&'static Parameter, &SettingChange)]) -> Steps {
        let pairs = || changes.iter().map(|(of, change)| format!("{} = {}", of.name, quoted(change)));
        let needs_restart = changes.iter().any(|(of, _)| of.live == Live::Never);
        let effect = if needs_restart { "Takes effect with a restart." } else { "Takes effect at once." }.to_owned();
        // PostgreSQL 17 and later can refuse it: another tool makes the configuration then.
        if self.value("allow_alter_system") == Some("off") {
            let lines = pairs().collect::<Vec<_>>().join(" and ");
            let keep = format!("set {lines} where this server's configuration is made (allow_alter_system is off)");
            return Steps { command: None, keep: Some(keep), effect };
        }
        let mut command = pairs().map(|pair| format!("ALTER SYSTEM SET {pair};")).collect::<Vec<_>>().join(" ");
        if !needs_restart {
            command += " SELECT pg_reload_conf();";
        }
        Steps { command: Some(command), keep: None, effect }
    }

    /// `aws rds modify-db-parameter-group`, or what to say where a group does not have it.
    fn amazon(&self, changes: &[(&'static Parameter, &SettingChange)], how: impl Fn(&Parameter) -> Amazon) -> Steps {
        let ways: Vec<Amazon> = changes.iter().map(|(of, _)| how(of)).collect();
        if ways.contains(&Amazon::No) {
            let names = changes.iter().map(|(of, _)| of.name).collect::<Vec<_>>().join(" and ");
            let keep = format!("only if the parameter group offers {names} as modifiable");
            return Steps { command: None, keep: Some(keep), effect: String::new() };
        }
        let is_cluster = ways.contains(&Amazon::Cluster);
        let verb = if is_cluster { "modify-db-cluster-parameter-group" } else { "modify-db-parameter-group" };
        let group = if is_cluster { "--db-cluster-parameter-group-name" } else { "--db-parameter-group-name" };
        // The name of a default group would only lead to a refusal.
        let described =
            self.rows.iter().rev().find(|row| row.source == "aws" && row.name == "instance.parameter_group");
        let own = described.map(|row| row.value.as_str()).filter(|name| !is_cluster && !name.starts_with("default."));
        let name = own.unwrap_or("GROUP");
        let needs_reboot = ways.contains(&Amazon::Reboot);
        let method = if needs_reboot { "pending-reboot" } else { "immediate" };
        let values = changes.iter().map(|(of, change)| {
            let to = if change.unit == Unit::Switch { change.unit.word(change.to) } else { plain(change.to) };
            format!("\"ParameterName={},ParameterValue={to},ApplyMethod={method}\"", of.name)
        });
        let command = format!("aws rds {verb} {group} {name} --parameters {}", values.collect::<Vec<_>>().join(" "));
        let effect = if needs_reboot { "Takes effect when the instance is rebooted." } else { "Takes effect at once." };
        let keep = "The parameter group keeps it. A default group cannot be changed: make one of your own first.";
        Steps { command: Some(command), keep: Some(keep.to_owned()), effect: effect.to_owned() }
    }

    /// The statement that ends a session.
    pub fn kill(&self, session_id: i64) -> String {
        match (self.engine, self.home) {
            (Engine::PostgreSql, _) => format!("SELECT pg_terminate_backend({session_id});"),
            (_, Home::Rds | Home::Aurora) => format!("CALL mysql.rds_kill({session_id});"),
            (_, Home::Azure) => format!("CALL mysql.az_kill({session_id});"),
            _ => format!("KILL {session_id};"),
        }
    }
}

/// `10.11.6-MariaDB-log` -> (10, 11, 6).
fn version_of(version: &str) -> (u32, u32, u32) {
    let mut parts = version.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    let mut next = || parts.next().unwrap_or(0);
    (next(), next(), next())
}

/// A number without a sign of its unit.
fn plain(value: f64) -> String {
    format!("{value}")
}

/// A value as PostgreSQL takes it, with its unit.
fn quoted(change: &SettingChange) -> String {
    let to = change.to;
    match change.unit {
        Unit::Milliseconds if to % 1_000.0 == 0.0 => format!("'{}s'", to / 1_000.0),
        Unit::Milliseconds => format!("'{to}ms'"),
        Unit::Mebibytes => format!("'{to}MB'"),
        Unit::Switch => change.unit.word(to),
        _ => plain(to),
    }
}

/// A value in a server's own words as a number in `unit`.
fn number(text: &str, unit: Unit) -> Option<f64> {
    match unit {
        Unit::Milliseconds => milliseconds(text),
        Unit::Bytes => bytes_of(text, 1.0),
        Unit::Mebibytes => bytes_of(text, 1_048_576.0).map(|bytes| bytes / 1_048_576.0),
        // All but `off` make a commit wait for the disk.
        Unit::Switch => Some(if matches!(text, "off" | "OFF" | "0") { 0.0 } else { 1.0 }),
        _ => text.trim().parse().ok(),
    }
}

/// A time in PostgreSQL's words; a plain number counts milliseconds.
pub fn milliseconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit.trim() {
        "" | "ms" => 1.0,
        "us" => 1e-3,
        "s" => 1e3,
        "min" => 60e3,
        "h" => 3_600e3,
        "d" => 86_400e3,
        _ => return None,
    };
    number.parse::<f64>().ok().map(|n| n * factor)
}

/// Who runs the server at `source`: by its address, by where its files lie, and by variables that
/// only a cloud's servers have.
fn home(rows: &[Setting], source: &str) -> Home {
    let own = || rows.iter().filter(|row| row.source == source || source.is_empty());
    let described = |name: &str| rows.iter().rev().find(|row| row.source == "aws" && row.name == name);
    let has = |prefixes: &[&str]| own().any(|row| prefixes.iter().any(|prefix| row.name.starts_with(prefix)));
    let lies = |folders: &[&str]| own().any(|row| folders.iter().any(|folder| row.value.starts_with(folder)));
    let engine = described("engine").map(|row| row.value.as_str());
    if has(&["aurora_", "apg_"]) || engine.is_some_and(|engine| engine.starts_with("aurora")) {
        return Home::Aurora;
    }
    let is_rds = has(&["rds.", "rds_"]) || lies(&["/rdsdbbin", "/rdsdbdata"]) || source.contains(".rds.amazonaws.com");
    if is_rds || engine.is_some() {
        // The address of a cluster says so.
        return if source.contains(".cluster-") { Home::Aurora } else { Home::Rds };
    }
    let is_google = own().any(|row| row.name == "version" && row.value.ends_with("-google"));
    if is_google || has(&["cloudsql"]) {
        return Home::CloudSql;
    }
    if has(&["azure.", "azure_"]) || source.contains(".database.azure.com") {
        return Home::Azure;
    }
    Home::Own
}

/// A cloud whose command line replaces all values at once, or takes different names for each kind
/// of server: in words.
fn in_console(changes: &[(&'static Parameter, &SettingChange)], what: &str, cloud: &str) -> Steps {
    let values = changes.iter().map(|(of, change)| {
        let to = if change.unit == Unit::Switch { change.unit.word(change.to) } else { plain(change.to) };
        format!("{what} {}={to}", of.name)
    });
    let keep = format!("set {} in {cloud}, beside those that are set there", values.collect::<Vec<_>>().join(" and "));
    Steps { command: None, keep: Some(keep), effect: String::new() }
}
