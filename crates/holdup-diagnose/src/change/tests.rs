//! Moves, and how platforms take them.

use holdup_recording::rows::Setting;

use super::database::{Home, Server};
use super::host::Place;
use super::parameters::{
    BUFFER_POOL, Engine, FLUSH_LOG, LOCK_TIMEOUT, MAX_WAL_SIZE, MYSQL_CONNECTIONS, POOL_SIZE, POOL_STALL_LIMIT,
    POSTGRESQL_CONNECTIONS, Parameter,
};
use super::{Bounds, Direction, SettingChange, Stay, Steps, Unit, cut};

fn setting(source: &str, name: &str, value: &str) -> Setting {
    Setting { observed_at: 0, source: source.into(), name: name.into(), value: value.into() }
}

fn count(direction: Direction, from: Option<f64>, to: f64) -> Result<SettingChange, Stay> {
    SettingChange::new(direction, "n", Unit::Count, from, to, Bounds { least: 1.0, most: 100.0 })
}

/// How a server with `rows` takes `parameter` at `to`.
fn steps(rows: &[Setting], direction: Direction, parameter: &'static Parameter, to: f64) -> Steps {
    let server = Server::among(rows, parameter.engine);
    let change = server.change(direction, parameter, to).unwrap();
    server.steps(&[(parameter, &change)])
}

#[test]
fn a_move_goes_its_way_or_is_not_made() {
    let raised = count(Direction::Raise, Some(1.0), 16.0).unwrap();
    assert_eq!((raised.from, raised.to, raised.sentence().as_str()), (1.0, 16.0, "Raise n from 1 to 16"));
    assert!(matches!(count(Direction::Raise, Some(16.0), 16.0), Err(Stay::There(_))));
    assert!(matches!(count(Direction::Raise, Some(40.0), 16.0), Err(Stay::There(_))));
    assert!(matches!(count(Direction::Lower, Some(6.0), 10.0), Err(Stay::There(_))));
    assert!(matches!(count(Direction::Raise, None, 16.0), Err(Stay::Unknown(_))));
    assert!(matches!(count(Direction::Raise, Some(100.0), 500.0), Err(Stay::AtEnd(_))));
    assert_eq!(count(Direction::Raise, Some(1.0), 500.0).unwrap().to, 100.0);
    assert!(count(Direction::Raise, Some(1.0), f64::NAN).is_err() && count(Direction::Set, Some(2.0), 2.0).is_err());
}

/// The server of the report that brought this about: both of its settings were beyond what was
/// printed.
#[test]
fn forty_groups_and_a_limit_of_6_ms_stay_as_they_are() {
    let rows = [setting("mysql://a", "thread_pool_size", "40"), setting("mysql://a", "thread_pool_stall_limit", "6")];
    let server = Server::among(&rows, Engine::MySql);
    let stay = server.change(Direction::Raise, &POOL_SIZE, 16.0).unwrap_err();
    let fix = stay.fix("More thread groups do not help here.");
    assert_eq!(fix.text, "More thread groups do not help here: thread_pool_size is 40 already.");
    assert_eq!((fix.command, server.change(Direction::Lower, &POOL_STALL_LIMIT, 10.0).is_err()), (None, true));
}

#[test]
fn each_home_takes_a_parameter_its_own_way() {
    const DB: &str = "mysql://a.example:3306";
    let with = |name: &str, value: &str| [setting(DB, "max_connections", "100"), setting(DB, name, value)];
    let to = |rows: &[Setting]| steps(rows, Direction::Raise, &MYSQL_CONNECTIONS, 200.0);
    assert_eq!(to(&with("x", "")).command.unwrap(), "SET GLOBAL max_connections = 200;");
    let rds = to(&with("basedir", "/rdsdbbin/mysql/")).command.unwrap();
    assert!(rds.starts_with("aws rds modify-db-parameter-group --db-parameter-group-name GROUP"), "{rds}");
    assert!(rds.ends_with("\"ParameterName=max_connections,ParameterValue=200,ApplyMethod=immediate\""), "{rds}");
    for cloud in [("cloudsql_x", ""), ("azure.x", "")] {
        let steps = to(&with(cloud.0, cloud.1));
        assert!(steps.command.is_none() && steps.keep.unwrap().contains("max_connections=200"), "{cloud:?}");
    }
    let log = [setting(DB, "innodb_flush_log_at_trx_commit", "1"), setting(DB, "aurora_version", "3")];
    let log = steps(&log, Direction::Set, &FLUSH_LOG, 2.0).command.unwrap();
    assert!(log.starts_with("aws rds modify-db-cluster-parameter-group"), "{log}");
}

#[test]
fn who_runs_a_server_shows_in_its_address_files_and_variables() {
    let home = |source: &str, name: &str, value: &str| {
        let rows = [setting(source, name, value)];
        Server::among(&rows, if source.starts_with("mysql") { Engine::MySql } else { Engine::PostgreSql }).home()
    };
    assert_eq!(home("mysql://10.0.0.1:3306", "basedir", "/usr/"), Home::Own);
    assert_eq!(home("mysql://db.abc.eu-west-1.rds.amazonaws.com:3306", "basedir", "/usr/"), Home::Rds);
    assert_eq!(home("mysql://db.cluster-abc.eu-west-1.rds.amazonaws.com:3306", "x", ""), Home::Aurora);
    assert_eq!(home("postgresql://a", "ssl_cert_file", "/rdsdbdata/rds-metadata/server-cert.pem"), Home::Rds);
    assert_eq!(home("postgresql://a", "rds.extensions", ""), Home::Rds);
    assert_eq!(home("mysql://a", "version", "8.0.31-google"), Home::CloudSql);
    assert_eq!(home("postgresql://a.postgres.database.azure.com:5432", "x", ""), Home::Azure);
}

#[test]
fn a_server_that_has_to_restart_is_told_so() {
    let pool = |version: &str| {
        [setting("mysql://a", "innodb_buffer_pool_size", "134217728"), setting("mysql://a", "version", version)]
    };
    let to = |version: &str| steps(&pool(version), Direction::Raise, &BUFFER_POOL, 268_435_456.0);
    assert!(to("8.0.36").command.is_some() && to("10.6.1-MariaDB").command.is_some());
    let old = to("5.6.51-log");
    assert!(old.command.is_none() && old.effect.contains("restart"), "{old:?}");

    const DB: &str = "postgresql://a";
    let rows =
        [setting(DB, "max_connections", "100"), setting(DB, "max_wal_size", "1GB"), setting(DB, "lock_timeout", "0")];
    let restart = steps(&rows, Direction::Raise, &POSTGRESQL_CONNECTIONS, 150.0);
    assert_eq!(restart.command.as_deref(), Some("ALTER SYSTEM SET max_connections = 150;"));
    let reload = steps(&rows, Direction::Raise, &MAX_WAL_SIZE, 4_096.0).command.unwrap();
    assert_eq!(reload, "ALTER SYSTEM SET max_wal_size = '4096MB'; SELECT pg_reload_conf();");
    // 0 is no limit: 5 s are less.
    let bound = steps(&rows, Direction::Lower, &LOCK_TIMEOUT, 5_000.0).command.unwrap();
    assert_eq!(bound, "ALTER SYSTEM SET lock_timeout = '5s'; SELECT pg_reload_conf();");
    let refused = [&rows[..], &[setting(DB, "allow_alter_system", "off")]].concat();
    assert_eq!(steps(&refused, Direction::Raise, &MAX_WAL_SIZE, 4_096.0).command, None);
}

#[test]
fn a_container_is_changed_by_its_runtime_and_its_kernel_on_the_node() {
    let id = "4f66ad9c0b2e4f66ad9c0b2e4f66ad9c0b2e4f66ad9c0b2e4f66ad9c0b2e4f66";
    let at = |path: &str| Place::among(&[setting("pid:7", "cgroup.path", path)], "pid:7");
    assert_eq!(at("/system.slice/mysql.service"), Place::Machine);
    let docker = at(&format!("/docker/{id}"));
    assert_eq!(docker, Place::Docker("docker", "4f66ad9c0b2e".to_owned()));
    assert_eq!(at(&format!("/machine.slice/libpod-{id}.scope")), Place::Docker("podman", "4f66ad9c0b2e".to_owned()));
    assert_eq!(at("/kubepods.slice/kubepods-burstable.slice/x"), Place::Kubernetes);
    let inside = [setting("host", "mount[/].fstype", "overlay"), setting("pid:7", "cgroup.path", "/")];
    assert_eq!(Place::among(&inside, "pid:7"), Place::Container);

    let command = docker.memory(512.0, "/file").command.unwrap();
    assert_eq!(command, "docker update --memory 512m --memory-swap 1024m 4f66ad9c0b2e");
    let sysctl = count(Direction::Raise, Some(1.0), 2.0).unwrap();
    let (machine, inside) = (Place::Machine.sysctl(&sysctl), docker.sysctl(&sysctl));
    assert_eq!(machine.command.as_deref(), Some("sysctl -w n=2"));
    assert!(inside.command.is_none() && inside.note().contains("on the node"), "{inside:?}");
    let pod = Place::Kubernetes.cpus(0.45, "echo".to_owned(), Some("app"));
    assert!(pod.command.is_none() && pod.keep.unwrap().contains("resources.limits.cpu: 450m of container app"));
}

#[test]
fn a_long_statement_is_cut() {
    assert_eq!(cut("SELECT\n  1"), "SELECT 1");
    let long = cut(&"x".repeat(500));
    assert!(long.chars().count() == 120 && long.ends_with('…'));
}
