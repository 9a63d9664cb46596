//! `--watch uwsgi:`: the stats server of a real uWSGI, over TCP and a Unix socket.

use std::process::Command;

use holdup_collect::ProbeError;
use holdup_recording::Batch;
use holdup_testing::{Process, free_port};

use super::programs::{Peer, are_here, ask, launch, wait_for_answer};
use super::{outside, probed, refused, sum, until, watch};

#[test]
fn workers_and_their_threads() {
    if !are_here(&["uwsgi"]) {
        return;
    }
    let stats = free_port();
    let (_folder, _server, port, peer) = start(&format!("127.0.0.1:{stats}"));
    let mut source = probed(&format!("uwsgi:127.0.0.1:{stats}"));
    assert_eq!(source.source(), format!("uwsgi:127.0.0.1:{stats}"));
    let of = |batch: &Batch, metric: &str| sum(batch, metric, &[]);
    let idle = until(&mut *source, "idle workers", |batch| {
        of(batch, "uwsgi_worker_busy") == Some(0.0) && of(batch, "uwsgi_listen_queue_limit") == Some(8.0)
    });
    assert_eq!((of(&idle, "uwsgi_worker_cores"), of(&idle, "uwsgi_listen_queue")), (Some(4.0), Some(0.0)));
    assert_eq!(of(&idle, "uwsgi_respawns_total"), Some(2.0));
    peer.let_go(false);
    let asked: Vec<_> = (0..7).map(|_| ask(port, "/ask?s3cr3t-canary")).collect();
    let full = until(&mut *source, "busy workers and a queue", |batch| {
        of(batch, "uwsgi_worker_busy_cores") == Some(4.0) && of(batch, "uwsgi_listen_queue") == Some(3.0)
    });
    assert_eq!(of(&full, "uwsgi_worker_busy"), Some(2.0));
    assert!(!format!("{full:?}").contains("canary"));
    peer.let_go(true);
    asked.into_iter().for_each(|answer| assert!(answer.join().unwrap().is_some()));
    until(&mut *source, "seven requests more", |batch| of(batch, "uwsgi_requests_total").unwrap() >= 7.0);

    for (address, said) in [
        (format!("uwsgi:127.0.0.1:{port}"), "stats"),
        (format!("uwsgi:127.0.0.1:{}", free_port()), "refused"),
        ("uwsgi:unix:/nowhere/stats.sock".to_owned(), "the socket does not exist"),
    ] {
        let error = refused(&address);
        assert!(matches!(error, ProbeError::Unreachable { .. }) && error.to_string().contains(said), "{error}");
    }
}

#[test]
fn over_a_unix_socket() {
    if !are_here(&["uwsgi"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("stats.sock");
    let _server = start(&socket.display().to_string());
    let mut source = probed(&format!("uwsgi:unix:{}", socket.display()));
    until(&mut *source, "workers", |batch| sum(batch, "uwsgi_worker_cores", &[]) == Some(4.0));
}

/// With its stats server at `stats`, once that is there.
fn start(stats: &str) -> (tempfile::TempDir, Process, u16, Peer) {
    let (folder, port, peer) = (tempfile::tempdir().unwrap(), free_port(), Peer::new());
    std::fs::write(folder.path().join("app.py"), outside::WSGI).unwrap();
    let mut command = Command::new("uwsgi");
    command.args(["--plugin", "python3", "--http-socket", &format!("127.0.0.1:{port}"), "--wsgi-file", "app.py"]);
    command.args(["--callable", "app", "--master", "--processes", "2", "--threads", "2", "--listen", "8"]);
    command.args(["--stats", stats]).env("PEER", peer.port.to_string());
    let mut server = launch(folder.path(), &mut command);
    wait_for_answer(&mut server, port);
    let address = format!("uwsgi:{}{stats}", if stats.starts_with('/') { "unix:" } else { "" });
    server.wait("stats", || watch(&address).probe().is_ok());
    (folder, server, port, peer)
}
