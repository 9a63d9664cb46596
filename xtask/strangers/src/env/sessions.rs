//! Other clients of the database: sessions that execute one statement again and again, or hold something open.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::database::Database;
use super::process::{self, ask};
use super::running::Running;

/// The account of a fault's own clients.
pub const USER: &str = "batch";

/// What one session does with each round.
pub type Script = dyn Fn(usize, u64) -> String + Send + Sync;

struct Client {
    child: Child,
    writer: JoinHandle<()>,
}

/// Starts `count` sessions. Each executes what `script` gives for its number and its round, and then waits for `pause`.
/// What they have left at work is ended with the fault.
pub fn start(database: &Database, count: usize, pause: Duration, script: Arc<Script>) -> Result<Running> {
    let running = start_clients(|| database.client(USER, "shop"), &database.dir, count, pause, &script)?;
    let database = database.clone();
    Ok(Running::until(move || database.end_sessions(USER)).and(running))
}

/// Starts `count` client programs, which end with the fault. Each reads what `script` gives for its number and its round, and then
/// nothing for `pause`.
pub fn start_clients(
    program: impl Fn() -> Command,
    dir: &Path,
    count: usize,
    pause: Duration,
    script: &Arc<Script>,
) -> Result<Running> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = Vec::new();
    for number in 0..count {
        let child = process::spawn(program(), dir, &format!("batch-{number}"));
        clients.push(client(child?, number, pause, script, &stop)?);
    }
    Ok(Running::until(move || {
        stop.store(true, Ordering::Relaxed);
        // With what the programs have started: each is a process group of its own.
        let groups = clients.iter().map(|client| format!("-{}", client.child.id()));
        let _ = ask(Command::new("kill").args(["-s", "KILL", "--"]).args(groups), "");
        for mut client in clients {
            let _ = client.child.wait();
            let _ = client.writer.join();
        }
        Ok(())
    }))
}

fn client(
    mut child: Child,
    number: usize,
    pause: Duration,
    script: &Arc<Script>,
    stop: &Arc<AtomicBool>,
) -> Result<Client> {
    let mut stdin = child.stdin.take().context("a client program takes no input")?;
    let (script, stop) = (Arc::clone(script), Arc::clone(stop));
    let writer = thread::Builder::new().name("batch".to_owned()).spawn(move || {
        for round in 0.. {
            let statement = script(number, round);
            // Without a pause the pipe holds it back: it takes what the server has not executed yet.
            if stop.load(Ordering::Relaxed) || writeln!(stdin, "{statement}").is_err() {
                return;
            }
            let slices = (pause.as_millis() / 20).max(1) as u32;
            for _ in 0..slices {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                thread::sleep(pause / slices);
            }
        }
    });
    Ok(Client { child, writer: writer.context("could not start a thread")? })
}

/// Sessions that all execute `statement`.
pub fn repeat(database: &Database, count: f64, pause_ms: f64, statement: &str) -> Result<Running> {
    let statement = format!("{};", statement.trim_end_matches(';'));
    let pause = Duration::from_secs_f64(pause_ms.max(0.0) * 1e-3);
    start(database, count.round().max(1.0) as usize, pause, Arc::new(move |_, _| statement.clone()))
}

/// One session that executes `statements` and then sleeps in the server for `hold_ms`, every `every_ms`.
pub fn hold(database: &Database, begin: &str, hold_ms: f64, end: &str, every_ms: f64) -> Result<Running> {
    let seconds = hold_ms * 1e-3;
    let sleep = if database.engine.is_mysql() {
        format!("SELECT SLEEP({seconds:.3})")
    } else {
        format!("SELECT pg_sleep({seconds:.3})")
    };
    let round = format!("{begin};\n{sleep};\n{end};");
    start(database, 1, Duration::from_secs_f64(every_ms.max(hold_ms) * 1e-3), Arc::new(move |_, _| round.clone()))
}
