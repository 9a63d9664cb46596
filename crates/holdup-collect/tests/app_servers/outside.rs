//! `--watch server:PORT`: what it says of real servers is what truly is: how many requests are in hand, how many wait before the
//! door, what they wait for behind it, who came and went.

use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use holdup_collect::Collector;
use holdup_recording::Batch;
use holdup_testing::{free_port, send};

use super::programs::{Peer, are_here, ask, get, knock, launch, wait_for_answer};
use super::{probed, refused, sum, until, watch};

/// Two workers of two threads each, and room for eight before the door.
const WORKERS: usize = 2;
const SLOTS: usize = 4;
const BACKLOG: usize = 8;

/// Asks a peer, on a connection that each thread keeps.
pub const RACK: &str = r#"
require "socket"
run lambda { |env|
  if env["PATH_INFO"] == "/ask"
    line = (Thread.current[:line] ||= TCPSocket.new("127.0.0.1", Integer(ENV.fetch("PEER"))))
    line.write("what?\n")
    line.gets
  end
  [200, { "Content-Type" => "text/plain" }, ["fine\n"]]
}
"#;

pub const WSGI: &str = r#"
import os, socket, threading
kept = threading.local()
def app(environ, start):
    if environ["PATH_INFO"] == "/ask":
        if not hasattr(kept, "line"):
            kept.line = socket.create_connection(("127.0.0.1", int(os.environ["PEER"])))
        kept.line.sendall(b"what?\n")
        kept.line.recv(100)
    start("200 OK", [("Content-Type", "text/plain")])
    return [b"fine\n"]
"#;

fn puma(folder: &Path, port: u16, peer: &Peer) -> Command {
    std::fs::write(folder.join("config.ru"), RACK).unwrap();
    let mut command = Command::new("puma");
    let bind = format!("tcp://127.0.0.1:{port}?backlog={BACKLOG}");
    command.args(["--quiet", "--workers", "2", "--threads", "2:2", "--environment", "none", "--bind", &bind]);
    command.env("PEER", peer.port.to_string());
    command
}

fn gunicorn(folder: &Path, port: u16, peer: &Peer) -> Command {
    std::fs::write(folder.join("app.py"), WSGI).unwrap();
    let mut command = Command::new("gunicorn");
    let bind = format!("127.0.0.1:{port}");
    command.args(["--workers", "2", "--worker-class", "gthread", "--threads", "2", "--worker-connections", "2"]);
    command.args(["--backlog", &BACKLOG.to_string(), "--bind", &bind, "app:app"]).env("PEER", peer.port.to_string());
    command
}

fn unicorn(folder: &Path, port: u16, peer: &Peer) -> Command {
    std::fs::write(folder.join("config.ru"), RACK).unwrap();
    let listen = format!("worker_processes {SLOTS}\nlisten \"127.0.0.1:{port}\", backlog: {BACKLOG}\n");
    std::fs::write(folder.join("unicorn.rb"), listen).unwrap();
    let mut command = Command::new("unicorn");
    command.args(["--config-file", "unicorn.rb", "config.ru"]).env("PEER", peer.port.to_string());
    command
}

#[test]
fn puma_from_outside() {
    if are_here(&["puma"]) {
        whole(puma, WORKERS);
    }
}

#[test]
fn gunicorn_from_outside() {
    if are_here(&["gunicorn"]) {
        whole(gunicorn, WORKERS);
    }
}

#[test]
fn unicorn_from_outside() {
    if are_here(&["unicorn"]) {
        whole(unicorn, SLOTS);
    }
}

fn whole(command: fn(&Path, u16, &Peer) -> Command, workers: usize) {
    let (folder, port, peer) = (tempfile::tempdir().unwrap(), free_port(), Peer::new());
    let address = format!("server:{port}");
    assert!(refused(&address).to_string().contains("no process listens"));
    let mut server = launch(folder.path(), &mut command(folder.path(), port, &peer));
    wait_for_answer(&mut server, port);
    let mut source = probed(&address);
    assert_eq!(source.source(), address);
    let own = port.to_string();
    let on_port: &[(&str, &str)] = &[("port", &own)];
    let processes = workers as f64 + 1.0;
    let of = |batch: &Batch, metric: &str| sum(batch, metric, &[]);

    let idle = until(&mut *source, "workers", |batch| of(batch, "server_processes") == Some(processes));
    assert_eq!(sum(&idle, "tcp_accept_queue_limit", on_port), Some(BACKLOG as f64));
    assert_eq!(sum(&idle, "tcp_accept_queue_length", on_port), Some(0.0));
    let parent = server.pid().to_string();
    assert!(sum(&idle, "server_memory_usage_bytes", &[("pid", &parent), ("role", "parent")]).unwrap() > 1e6);
    let of_workers: Vec<_> = idle
        .samples
        .iter()
        .filter(|s| s.metric == "server_sockets" && s.labels.contains(&[("role", "worker")]))
        .collect();
    assert_eq!(of_workers.len(), workers);
    assert!(of_workers.iter().all(|s| s.value >= 1.0));
    for metric in
        ["server_thread_cpu_time_seconds_total", "server_run_queue_wait_seconds_total", "tcp_listen_drops_total"]
    {
        assert!(of(&idle, metric).is_some(), "{metric}");
    }
    assert!(sum(&idle, "server_threads", &[("role", "worker")]).unwrap() >= workers as f64);

    in_hand_and_waiting(&mut *source, port, &peer);
    come_and_gone(&mut *source, port, &idle, processes);

    drop(server);
    let gone = until(&mut *source, "stop", |batch| batch.events.iter().any(|e| e.kind == "server_stopped"));
    assert_eq!(sum(&gone, "server_processes", on_port), Some(0.0));
    assert_eq!(of(&gone, "tcp_accept_queue_length"), None);
    let mut server = launch(folder.path(), &mut command(folder.path(), port, &peer));
    wait_for_answer(&mut server, port);
    let back = until(&mut *source, "start", |batch| batch.events.iter().any(|e| e.kind == "server_started"));
    let started = back.events.iter().find(|e| e.kind == "server_started").unwrap();
    assert!(started.labels.contains(&[("port", &own)]), "{started:?}");
    until(&mut *source, "workers", |batch| of(batch, "server_processes") == Some(processes));
    let mut batch = Batch::default();
    source.settings(&mut batch).unwrap();
    let set = |name: &str| batch.settings.iter().find(|s| s.name == name).map(|s| s.value.clone());
    assert_eq!(set("server.workers"), Some(workers.to_string()));
    assert!(set("server.name").is_some());
}

/// As many requests as there are slots, all waiting for the peer; then some more; then more than there is room for.
fn in_hand_and_waiting(source: &mut dyn Collector, port: u16, peer: &Peer) {
    let slots = SLOTS as f64;
    let of = |batch: &Batch, metric: &str| sum(batch, metric, &[]);
    let peer_port = peer.port.to_string();
    let of_peer = |batch: &Batch, metric: &str| sum(batch, metric, &[("peer_port", &peer_port), ("peer", "127.0.0.1")]);
    // Twice, so that the second time each asks on a connection that has been used.
    for round in 0..2 {
        peer.let_go(false);
        let mut asked = Vec::new();
        // One by one: all at once, a worker of Puma's may take in more than it has threads for.
        for number in 1..=SLOTS {
            asked.push(ask(port, "/ask"));
            until(source, "requests in hand", |batch| {
                of(batch, "server_answering_connections") == Some(number as f64)
                    && of_peer(batch, "server_outgoing_pending_connections") == Some(number as f64)
            });
        }
        asked.extend((0..3).map(|_| ask(port, "/ask")));
        // Some servers take one more in than they work on.
        let full = until(source, "queue", |batch| {
            let waiting = of(batch, "tcp_accept_queue_length").unwrap_or(0.0);
            waiting >= 1.0 && waiting + of(batch, "server_accepted_connections").unwrap_or(0.0) == slots + 3.0
        });
        assert!(of(&full, "tcp_server_unread_connections").unwrap() >= 1.0);
        assert_eq!(of_peer(&full, "server_outgoing_connections"), Some(slots));
        if round == 1 {
            let before = of(&full, "tcp_listen_overflows_total").unwrap();
            let kept = knock(port, BACKLOG + 8);
            until(source, "overflow", |batch| of(batch, "tcp_listen_overflows_total").unwrap() > before);
            drop(kept);
        }
        peer.let_go(true);
        for answer in asked {
            assert!(answer.join().unwrap().is_some_and(|answer| answer.contains("fine")));
        }
        let idle = until(source, "rest", |batch| {
            of(batch, "server_answering_connections") == Some(0.0)
                && of(batch, "server_undecided_connections") == Some(0.0)
                && of_peer(batch, "server_outgoing_pending_connections") == Some(0.0)
                && of(batch, "tcp_accept_queue_length") == Some(0.0)
        });
        assert!(of_peer(&idle, "server_outgoing_connections").unwrap() <= slots);
    }
}

/// One worker is killed; the server starts another.
fn come_and_gone(source: &mut dyn Collector, port: u16, idle: &Batch, processes: f64) {
    let worker = idle.samples.iter().find(|s| s.metric == "server_sockets" && s.labels.contains(&[("role", "worker")]));
    let pid = worker.and_then(|s| s.labels.get("pid").map(str::to_owned)).unwrap();
    send(pid.parse().unwrap(), libc::SIGKILL);
    let changed = until(source, "another worker", |batch| {
        ["worker_exited", "worker_started"].iter().all(|kind| batch.events.iter().any(|e| e.kind == *kind))
            && sum(batch, "server_processes", &[]) == Some(processes)
    });
    let exited = changed.events.iter().find(|e| e.kind == "worker_exited").unwrap();
    assert!(exited.labels.contains(&[("pid", &pid), ("port", &port.to_string()), ("role", "worker")]), "{exited:?}");
    assert!(!changed.events.iter().any(|e| e.kind == "server_stopped"));
    assert!(get(port, "/").is_some());
}

#[test]
fn invalid_ports_are_refused() {
    for bad in ["server:", "server:0", "server:http", "server:80?pid=x"] {
        let made = holdup_collect::watch::collector(bad, &holdup_collect::watch::Options::default());
        assert!(made.err().is_some_and(|error| error.to_string().contains("port")), "{bad}");
    }
    assert!(watch("server:9").probe().is_err());
}

/// A parent that listens, accepts, and hands each connection to a child that was never given the port: so does Node's cluster.
const HANDS_ON: &str = r#"
import os, socket, sys
ours, theirs = socket.socketpair()
if os.fork() == 0:
    ours.close()
    while True:
        _, handed, _, _ = socket.recv_fds(theirs, 1, 1)
        line = socket.socket(fileno=handed[0])
        if b"/ask" in line.recv(1000):
            held = line
            continue
        line.sendall(b"HTTP/1.0 200 OK\r\n\r\nfine\n")
        line.close()
theirs.close()
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    line, _ = listener.accept()
    socket.send_fds(ours, [b"x"], [line.fileno()])
    line.close()
"#;

#[test]
fn a_child_that_is_handed_connections() {
    if !are_here(&["python3"]) {
        return;
    }
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let mut command = Command::new("python3");
    let mut server = launch(folder.path(), command.args(["-c", HANDS_ON, &port.to_string()]));
    wait_for_answer(&mut server, port);
    let mut source = probed(&format!("server:{port}"));
    let worker: &[(&str, &str)] = &[("role", "worker")];
    let parent = server.pid().to_string();
    let of_parent: &[(&str, &str)] = &[("pid", &parent), ("role", "parent")];
    let _asked = ask(port, "/ask");
    // The parent closes its own copy when the child has one, so both hold it for a moment.
    let there = until(&mut *source, "request in a child's hands alone", |batch| {
        sum(batch, "server_answering_connections", worker) == Some(1.0)
            && sum(batch, "server_accepted_connections", of_parent) == Some(0.0)
    });
    assert_eq!(sum(&there, "server_processes", &[]), Some(2.0));
}

/// As root only: elsewhere no network can be made.
#[test]
fn in_a_network_of_its_own() {
    if !are_here(&["gunicorn", "unshare", "ip"]) {
        return;
    }
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    std::fs::write(folder.path().join("app.py"), WSGI).unwrap();
    let script = format!("ip link set lo up && exec gunicorn --workers 2 --backlog 8 --bind 127.0.0.1:{port} app:app");
    let mut command = Command::new("unshare");
    let mut server = launch(folder.path(), command.args(["-n", "sh", "-c", &script]));
    sleep(Duration::from_millis(300));
    if server.has_ended() {
        eprintln!("skipped: no network can be made here: {}", server.log());
        return;
    }
    let address = format!("server:{port}?pid={}", server.pid());
    server.wait("listener", || watch(&address).probe().is_ok());
    assert!(refused(&format!("server:{port}")).to_string().contains("?pid=N"));
    let mut source = probed(&address);
    assert_eq!(source.source(), format!("server:{port}"));
    let there = until(&mut *source, "workers", |batch| sum(batch, "server_processes", &[]) == Some(3.0));
    assert_eq!(sum(&there, "tcp_accept_queue_limit", &[("port", &port.to_string())]), Some(8.0));
    assert_eq!(sum(&there, "tcp_listen_overflows_total", &[]), Some(0.0), "of its network, not of ours");
    drop(server);
    until(&mut *source, "stop", |batch| batch.events.iter().any(|e| e.kind == "server_stopped"));
    assert!(refused(&address).to_string().contains("does not exist here"));
}

/// Of a server of another user its queue can be seen, not who it is.
#[test]
fn without_the_right_to_look_into_others() {
    // SAFETY: no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("skipped: only root can start what another may not look into");
        return;
    }
    if !are_here(&["gunicorn"]) {
        return;
    }
    let (folder, port, peer) = (tempfile::tempdir().unwrap(), free_port(), Peer::new());
    let mut server = launch(folder.path(), &mut gunicorn(folder.path(), port, &peer));
    wait_for_answer(&mut server, port);
    let others = std::thread::spawn(move || {
        let nobody: libc::c_long = 65_534;
        // SAFETY: plain numbers; the call itself, unlike its wrapper, changes the calling thread alone.
        assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, nobody, nobody, nobody) }, 0);
        let mut source = watch(&format!("server:{port}"));
        let coverage = source.probe().unwrap();
        let part = coverage.iter().find(|part| part.source == format!("server:{port} processes"));
        assert!(part.unwrap().enable.as_deref().unwrap().contains("CAP_SYS_PTRACE"), "{coverage:?}");
        let mut batch = Batch::default();
        source.sample(&mut batch).unwrap();
        batch
    });
    let batch = others.join().unwrap();
    assert_eq!(sum(&batch, "tcp_accept_queue_length", &[]), Some(0.0));
    assert_eq!(sum(&batch, "tcp_accept_queue_limit", &[]), Some(BACKLOG as f64));
    assert_eq!(sum(&batch, "server_processes", &[]), None, "not seen is not none");
}
