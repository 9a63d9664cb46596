//! `watch` starts whatever answers: sources that are slow, refuse or are gone are asked again meanwhile, and the recording says
//! since when each was there.

use std::net::TcpListener;
use std::time::Duration;

use holdup_recording::{Coverage, CoverageState, Recording};
use holdup_testing::{Postgres, Which};

use crate::mariadb::{self, CANARY, USER};
use crate::program::{Running, finish, free_port, holdup, manifest};
use crate::survive::{MINUTES, has_rows, until};

/// The line of `source` in the coverage.
fn line<'r>(recording: &'r Recording, source: &str) -> &'r Coverage {
    let coverage = &recording.manifest.coverage;
    coverage.iter().find(|line| line.source == source).unwrap_or_else(|| panic!("{source}: {coverage:?}"))
}

#[test]
fn a_server_that_starts_later_is_recorded_from_then_on_and_the_others_from_the_start() {
    let Some(mut late) = Postgres::new(Which::System) else { return };
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("recording");
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("mysql://{USER}:{CANARY}@{}", mute.local_addr().unwrap());
    let closed = format!("prometheus:http://127.0.0.1:{}/metrics", free_port());
    let watched = ["host", &silent, &closed, &late.url("boss", "postgres")];
    let mut command = holdup(["watch", "--interval=200ms", "-o"]);
    command.arg(&to).args(watched.iter().flat_map(|address| ["--watch", address]));
    let run = Running::start(&mut command);
    until("a segment", || has_rows(&to));
    std::thread::sleep(Duration::from_secs(2));
    late.again();
    let source = late.source();
    let answers = |line: &serde_json::Value| line["source"] == source.as_str() && line["state"] == "partial";
    until("it answers", || manifest(&to)["coverage"].as_array().is_some_and(|all| all.iter().any(answers)));
    std::thread::sleep(Duration::from_secs(2));
    run.signal(libc::SIGINT);
    let done = run.finish(MINUTES);

    // Without a length, Ctrl-C is the normal end.
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let said = &done.stderr;
    assert!(said.contains(&format!("waiting for {source}: ")) && said.contains("refused"), "{said}");
    assert!(said.contains(&format!("{source} answers after ")), "{said}");
    assert!(said.contains("no answer within"), "{said}");
    assert!(!said.contains(CANARY), "{said}");
    assert!(done.stdout.contains("Not watched: mysql://"), "{}", done.stdout);

    let recording = Recording::open(&to).unwrap();
    let samples = &recording.tables.samples.rows;
    let first = |of: &str| samples.iter().filter(|row| row.source == of).map(|row| row.observed_at).min();
    assert!(first(&source) > first("host").map(|at| at + 2_000_000_000), "it had not started yet");
    let own = line(&recording, &source);
    let why = own.why.as_deref().unwrap_or_default();
    assert!(own.state == CoverageState::Partial && why.contains("recorded since"), "{own:?}");
    assert!(own.reads_total > 3 && own.gaps_total > 0, "{own:?}");
    for absent in [silent.replace(&format!("{USER}:{CANARY}@"), ""), closed] {
        let line = line(&recording, &absent);
        assert!(line.state == CoverageState::Absent && line.gaps_total > 0, "{line:?}");
        assert!(line.why.as_ref().is_some_and(|why| why.starts_with("no answer since 20")), "{line:?}");
        assert_eq!(first(&absent), None);
    }
    let host = line(&recording, "host");
    assert!(host.why.as_ref().is_none_or(|why| !why.contains("recorded since")), "{host:?}");
    let gap = recording.tables.events.rows.iter().find(|event| event.kind == "gap" && event.source == source);
    assert!(gap.is_some_and(|gap| gap.text.starts_with("not recorded yet: ")), "{gap:?}");
}

#[test]
fn a_wrong_password_ends_nothing_but_its_own_source() {
    if !mariadb::is_here() {
        return;
    }
    let server = mariadb::start();
    let dir = tempfile::tempdir().unwrap();
    let mut command = holdup(["watch", "--for=1s", "--watch=host", "--json", "-o", "recording", "--watch"]);
    let done = finish(command.arg(server.address(USER, "c4nary-wr0ng")).current_dir(dir.path()), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    assert!(done.stderr.contains("Access denied") && done.stderr.contains("HOLDUP_MYSQL_PASSWORD"), "{}", done.stderr);
    assert!(!done.stderr.contains("c4nary"), "{}", done.stderr);
    let verdict = done.json();
    let lines = verdict["coverage"].as_array().unwrap();
    let own = lines.iter().find(|line| line["source"] == server.source().as_str()).unwrap();
    assert_eq!(own["state"], "absent", "{own}");
}

#[test]
fn plans_and_databases_that_cannot_be_had_are_named_at_the_start() {
    let libraries = [("shared_preload_libraries", "pg_stat_statements")];
    let Some(server) = Postgres::of(Which::System, &libraries) else { return };
    server.run("CREATE ROLE looker LOGIN; GRANT pg_monitor TO looker;");
    let dir = tempfile::tempdir().unwrap();
    let mut command = holdup(["watch", "--for=1s", "-o", "recording", "--watch"]);
    let address = format!("{}?plans=explain", server.url("looker", "postgres"));
    let done = finish(command.arg(address).current_dir(dir.path()), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let said = done.stderr.lines().find(|line| line.starts_with("asked for in vain: ")).unwrap_or(&done.stderr);
    assert!(
        said.contains(" plans: ") && said.contains("ALTER ROLE looker SET pg_stat_statements.track = none"),
        "{said}"
    );
    let mut command = holdup(["watch", "--for=1s", "--watch=host", "-o", "other", "--watch"]);
    let done = finish(command.arg(server.url("looker", "nowhere")).current_dir(dir.path()), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let said = "database \"nowhere\" does not exist";
    assert!(done.stderr.contains(said) && done.stderr.contains("CREATE DATABASE \"nowhere\";"), "{}", done.stderr);
}
