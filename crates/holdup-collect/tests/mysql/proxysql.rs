//! The collector of ProxySQL's admin interface. No registry that the tests use has a ProxySQL, so another program answers: it
//! speaks MySQL's protocol over tables of SQLite that have ProxySQL's columns, as ProxySQL does.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use holdup_collect::watch::{Options, collector};
use holdup_collect::{Collector, ProbeError};
use holdup_recording::metrics::{Metric, proxysql as metric};
use holdup_recording::{Batch, CoverageState};

const PASSWORD: &str = "s3cr3t-canary";

/// Two servers of one hostgroup, of which one is offline, and one of another; 5 clients wait for the first hostgroup.
const TABLES: &[&str] = &[
    "INSERT INTO stats_mysql_global VALUES ('Client_Connections_connected', '40'), ('Client_Connections_non_idle', '12'), \
     ('Questions', '9000'), ('ConnPool_get_conn_failure', '77'), ('max_connect_timeouts', '2'), ('Backend_query_time_nsec', '1500000000')",
    "INSERT INTO stats_mysql_connection_pool VALUES (10, '10.0.0.7', 3306, 'ONLINE', 4, 0, 60, 1, 4, 8000, 0, 10, 20, 450), \
     (10, '10.0.0.8', 3306, 'OFFLINE_SOFT', 0, 0, 3, 0, 1, 10, 0, 1, 2, 0), (20, '10.0.0.9', 3306, 'ONLINE', 1, 3, 9, 0, 4, 990, 0, 5, 6, 300)",
    "INSERT INTO runtime_mysql_servers VALUES (10, '10.0.0.7', 3306, 0, 'ONLINE', 1, 0, 4, 0, 0, 0, ''), \
     (10, '10.0.0.8', 3306, 0, 'OFFLINE_SOFT', 1, 0, 4, 0, 0, 0, ''), (20, '10.0.0.9', 3306, 0, 'ONLINE', 1, 0, 100, 0, 0, 0, '')",
    "INSERT INTO runtime_global_variables VALUES ('mysql-max_connections', '2048'), ('mysql-interfaces', '0.0.0.0:6033'), \
     ('mysql-monitor_password', 's3cr3t-canary'), ('admin-version', '2.0.0-x')",
    "INSERT INTO stats_mysql_query_digest VALUES (10, 'shop', 'app', '0x1', 'SELECT name FROM item WHERE id=?', 300, 0, 0, 900000, 1, 9), \
     (20, 'shop', 'app', '0x1', 'SELECT name FROM item WHERE id=?', 100, 0, 0, 100000, 1, 9)",
];

/// A client of `hostgroup` by its number, with the server that it has and what it does.
fn client(id: u32, hostgroup: u32, server: &str, command: &str, ms: u32) -> String {
    format!(
        "INSERT INTO stats_mysql_processlist VALUES (0, {id}, 'app', 'shop', '10.0.0.5', {id}, {hostgroup}, NULL, NULL, {server}, 3306, \
         '{command}', {ms}, 'SELECT ''{PASSWORD}''')"
    )
}

struct Admin {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    port: u16,
}

impl Admin {
    fn start(version: &str) -> Self {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mysql/proxysql_admin.py");
        let mut command = Command::new("python3");
        command.arg(program).arg(version);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (input, output) = (process.stdin.take(), BufReader::new(process.stdout.take().unwrap()));
        let mut admin = Self { process, input, output, port: 0 };
        admin.port = admin.line().parse().unwrap();
        TABLES.iter().for_each(|statement| admin.change(statement));
        // 2.0 writes an empty text, and later versions NULL, where a client has no server.
        let no_server = if version == "2.0.0" { "''" } else { "NULL" };
        (0..5).for_each(|id| admin.change(&client(id, 10, no_server, "Connect", 100 * (id + 1))));
        // One that waits for the server, not for a connection; others that run or think.
        admin.change(&client(5, 20, "'10.0.0.9'", "Connect", 3));
        admin.change(&client(6, 10, "'10.0.0.7'", "Query", 700));
        admin.change(&client(7, 10, no_server, "Sleep", 90_000));
        admin
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    fn change(&mut self, statement: &str) {
        writeln!(self.input.as_mut().unwrap(), "{statement}").unwrap();
        assert_eq!(self.line(), "done", "{statement}");
    }

    fn watch(&self, user: &str, password: &str) -> Box<dyn Collector> {
        let address = format!("proxysql://{user}:{password}@127.0.0.1:{}", self.port);
        collector(&address, &Options::default()).unwrap()
    }

    /// Everything that it was asked.
    fn end(mut self) -> Vec<String> {
        drop(self.input.take());
        let mut log = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        log.lines().map(|line| line.strip_prefix("asked ").unwrap_or_else(|| panic!("{line}")).to_owned()).collect()
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn value(batch: &Batch, metric: Metric, labels: &[(&str, &str)]) -> Option<f64> {
    let of = batch.samples.iter().filter(|s| s.metric == metric.name && s.labels.contains(labels));
    let values: Vec<f64> = of.map(|s| s.value).collect();
    (!values.is_empty()).then(|| values.iter().sum())
}

fn sampled(watcher: &mut dyn Collector) -> Batch {
    let mut batch = Batch::default();
    watcher.settings(&mut batch).unwrap();
    watcher.sample(&mut batch).unwrap();
    batch
}

#[test]
fn proxysql_by_an_account_that_sees_everything() {
    let mut admin = Admin::start("2.7.1");
    admin.change(
        "INSERT INTO stats_mysql_errors VALUES (10, '10.0.0.7', 3306, 'app', '', 'shop', 1205, 6, 0, 0, 's3cr3t-canary')",
    );
    let mut watcher = admin.watch("admin", PASSWORD);
    let coverage = watcher.probe().unwrap();
    assert!(coverage.len() == 1 && coverage[0].state == CoverageState::Complete, "{coverage:?}");
    let batch = sampled(&mut *watcher);
    let (first, second) = ([("hostgroup", "10")], [("hostgroup", "20")]);
    assert_eq!(value(&batch, metric::WAITING_CLIENTS, &first), Some(5.0));
    assert_eq!(value(&batch, metric::LONGEST_WAIT, &first), Some(0.5));
    assert_eq!(value(&batch, metric::WAITING_CLIENTS, &second), Some(0.0), "it has a server");
    assert_eq!(value(&batch, metric::CONNECTIONS_USED, &first), Some(4.0));
    assert_eq!(value(&batch, metric::CONNECTIONS_LIMIT, &first), Some(4.0), "of the server that is online");
    assert_eq!(value(&batch, metric::SERVER_ONLINE, &[("server", "10.0.0.8:3306")]), Some(0.0));
    assert_eq!(value(&batch, metric::POOL_TIMEOUTS, &[]), Some(2.0));
    assert_eq!(value(&batch, metric::BACKEND_TIME, &[]), Some(1.5));
    assert_eq!(value(&batch, metric::ERRORS, &[("code", "1205")]), Some(6.0));
    let [digest] = batch.statements.as_slice() else { panic!("{:?}", batch.statements) };
    assert_eq!((digest.calls, digest.duration_ns), (400, 1_000_000_000));
    let setting = |name: &str| batch.settings.iter().rev().find(|s| s.name == name).map(|s| s.value.as_str());
    assert_eq!((setting("mysql-max_connections"), setting("mysql-monitor_password")), (Some("2048"), None));
    assert!(!format!("{batch:?}").contains(PASSWORD));
    drop(watcher);
    let asked = admin.end();
    assert!(
        asked.len() > 8 && asked.iter().all(|sql| sql.starts_with("SELECT ") && !sql.contains("_reset")),
        "{asked:?}"
    );
}

#[test]
fn proxysql_by_an_account_of_its_statistics_on_the_oldest_version() {
    let admin = Admin::start("2.0.0");
    let mut watcher = admin.watch("stats", PASSWORD);
    let coverage = watcher.probe().unwrap();
    let absent: Vec<&str> =
        coverage[1..].iter().filter_map(|part| part.source.split_once(' ').map(|(_, name)| name)).collect();
    assert_eq!(absent, ["limits of pools", "errors of servers"]);
    assert!(coverage[1].enable.as_deref().is_some_and(|way| way.contains("admin-admin_credentials")), "{coverage:?}");
    let batch = sampled(&mut *watcher);
    let first = [("hostgroup", "10")];
    assert_eq!(value(&batch, metric::WAITING_CLIENTS, &first), Some(5.0));
    assert_eq!(value(&batch, metric::CONNECTIONS_USED, &first), Some(4.0));
    assert_eq!(value(&batch, metric::CONNECTIONS_LIMIT, &[]), None, "what it may not see is no 0");
    assert!(batch.settings.is_empty(), "{:?}", batch.settings);
}

#[test]
fn an_account_that_proxysql_refuses_and_a_server_without_its_tables() {
    let mut admin = Admin::start("2.7.1");
    let error = admin.watch("stats", "wrong-canary").probe().unwrap_err();
    assert!(matches!(error, ProbeError::Denied { .. }), "{error}");
    assert!(error.to_string().contains("Access denied") && !error.to_string().contains("canary"), "{error}");
    admin.change("DROP TABLE stats_mysql_global");
    let error = admin.watch("stats", PASSWORD).probe().unwrap_err().to_string();
    assert!(error.contains("no such table") && error.contains("admin interface (6032"), "{error}");
}

#[test]
fn a_table_that_is_gone_is_a_gap_of_its_own() {
    let mut admin = Admin::start("2.7.1");
    let mut watcher = admin.watch("admin", PASSWORD);
    watcher.probe().unwrap();
    sampled(&mut *watcher);
    admin.change("DROP TABLE stats_mysql_errors");
    let error = watcher.sample(&mut Batch::default()).unwrap_err().to_string();
    assert!(error.starts_with("errors of servers: ") && !error.contains("pool"), "{error}");
    drop(admin.end());
    let error = watcher.sample(&mut Batch::default()).unwrap_err().to_string();
    assert!(error.contains("figures: ") || error.contains("cannot connect"), "{error}");
}
