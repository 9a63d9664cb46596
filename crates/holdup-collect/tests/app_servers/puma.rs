//! `--watch puma:`: the control server of a real Puma, over TCP and a Unix socket, of one process and of a cluster.

use std::process::Command;

use holdup_collect::ProbeError;
use holdup_recording::Batch;
use holdup_testing::{Process, free_port};

use super::programs::{Peer, are_here, ask, launch, wait_for_answer};
use super::{outside, probed, refused, sum, until};

const TOKEN: &str = "s3cr3t-canary";

#[test]
fn one_process_over_tcp() {
    if !are_here(&["puma"]) {
        return;
    }
    let control = free_port();
    let (_folder, _server, port, peer) = start(&["--workers", "0"], &format!("tcp://127.0.0.1:{control}"));
    let with_token = format!("puma:http://127.0.0.1:{control}?token={TOKEN}");
    let source = full(&with_token, port, &peer, 1);
    assert_eq!(source, format!("puma:127.0.0.1:{control}"));

    for (address, said) in [
        (format!("puma:http://127.0.0.1:{control}"), "?token=T"),
        (format!("puma:http://127.0.0.1:{control}?token=another-canary"), "rejects this token"),
    ] {
        let error = refused(&address);
        assert!(matches!(error, ProbeError::Denied { .. }), "{error}");
        assert!(error.to_string().contains(said) && !error.to_string().contains("canary"), "{error}");
    }
    for (address, said) in [
        (format!("puma:http://127.0.0.1:{port}?token={TOKEN}"), "not with Puma's stats"),
        (format!("puma:http://127.0.0.1:{}?token={TOKEN}", free_port()), "refused"),
        ("puma:unix:/nowhere/puma.sock".to_owned(), "the socket does not exist"),
    ] {
        let error = refused(&address);
        assert!(matches!(error, ProbeError::Unreachable { .. }), "{error}");
        assert!(error.to_string().contains(said) && !error.to_string().contains("canary"), "{error}");
    }
}

#[test]
fn a_cluster_over_a_unix_socket() {
    if !are_here(&["puma"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("control.sock");
    let (_folder, _server, port, peer) = start(&["--workers", "2"], &format!("unix://{}", socket.display()));
    let token_file = folder.path().join("token");
    std::fs::write(&token_file, format!("{TOKEN}\n")).unwrap();
    let address = format!("puma:unix:{}?token_file={}", socket.display(), token_file.display());
    let mut source = probed(&address);
    until(&mut *source, "workers", |batch| sum(batch, "puma_booted_workers", &[]) == Some(2.0));
    assert_eq!(full(&address, port, &peer, 2), format!("puma:unix:{}", socket.display()));
}

fn start(mode: &[&str], control: &str) -> (tempfile::TempDir, Process, u16, Peer) {
    let (folder, port, peer) = (tempfile::tempdir().unwrap(), free_port(), Peer::new());
    std::fs::write(folder.path().join("config.ru"), outside::RACK).unwrap();
    let mut command = Command::new("puma");
    let bind = format!("tcp://127.0.0.1:{port}");
    command.args(["--quiet", "--threads", "2:2", "--environment", "none", "--bind", &bind]).args(mode);
    command.args(["--control-url", control, "--control-token", TOKEN]).env("PEER", peer.port.to_string());
    let mut server = launch(folder.path(), &mut command);
    wait_for_answer(&mut server, port);
    (folder, server, port, peer)
}

/// All threads of all workers busy, then none; gives the source's name.
fn full(address: &str, port: u16, peer: &Peer, workers: usize) -> String {
    let mut source = probed(address);
    let threads = workers as f64 * 2.0;
    let of = |batch: &Batch, metric: &str| sum(batch, metric, &[]);
    peer.let_go(false);
    let mut asked: Vec<_> = (0..workers * 2 + 3).map(|_| ask(port, "/ask")).collect();
    // A cluster's parent says what it was told up to 5 s ago. One worker may have taken all of a burst: the others get some of
    // what comes later.
    let busy = until(&mut *source, "full pool", |batch| {
        if asked.len() < 60 {
            asked.push(ask(port, "/ask"));
        }
        of(batch, "puma_pool_capacity") == Some(0.0)
    });
    assert_eq!((of(&busy, "puma_max_threads"), of(&busy, "puma_running")), (Some(threads), Some(threads)));
    assert!(of(&busy, "puma_backlog").is_some());
    assert_eq!(of(&busy, "puma_last_checkin_age_seconds").is_some(), workers > 1);
    peer.let_go(true);
    asked.drain(..).for_each(|answer| assert!(answer.join().unwrap().is_some()));
    let idle = until(&mut *source, "empty pool", |batch| of(batch, "puma_pool_capacity") == Some(threads));
    assert!(of(&idle, "puma_requests_total").unwrap() >= (workers * 2) as f64);
    assert!(!format!("{idle:?}{:?}", source.probe()).contains("canary"));
    source.source()
}
