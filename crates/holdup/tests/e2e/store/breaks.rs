//! Connections that break before the answer came, answers that are late, and servers that are killed and come back: however a
//! push is disturbed, the store has each row once. It asserts nothing about time.

use std::cell::RefCell;
use std::time::Duration;

use super::proxy::{Answer, Fate, Proxy};
use super::server::{Kind, Server};
use super::{DATABASE, assert_equal, fixture, with_tables};
use crate::program::{Running, holdup};

/// Pushes that are disturbed, each in its own way: on the real server, and on the engine, which takes longer for each.
const ROUNDS: usize = 20;
const ROUNDS_ENGINE: usize = 8;

/// The smallest of the fixtures with as many tables as any.
const RECORDING: &str = "demo-fixed";

/// What happens to an answer in this round. `pid` is the server.
fn fate(round: usize, answer: Answer, pid: u32) -> Fate {
    let Answer { number, inserts, is_insert } = answer;
    // A question has three attempts within two seconds, an insert seven within 16.
    match round % 4 {
        0 if number % 9 == 3 + round / 4 => Fate::Reset,
        1 if is_insert && inserts == 2 + round / 4 => Fate::Killed(pid),
        2 if number == 5 + round => Fate::Late(Duration::from_millis(500)),
        2 if is_insert && inserts % 4 == 1 => Fate::Reset,
        3 if number % 11 == 2 + round / 4 => Fate::Reset,
        _ => Fate::Arrives,
    }
}

/// Pushes through a network that breaks.
fn disturbed(server: &RefCell<Server>, round: usize) {
    let (port, pid) = (server.borrow().port(), server.borrow().pid());
    let proxy = Proxy::start(port, move |answer| fate(round, answer, pid));
    let mut command = holdup(["store", "push", "--json", "--as", &format!("r{round}")]);
    let push = Running::start(command.arg(fixture(RECORDING)).arg(proxy.url(DATABASE)));
    let looked = push.finish_unless(Duration::from_secs(60), || {
        server.borrow_mut().revive();
        false
    });
    let done = looked.unwrap();
    assert_eq!(done.code(), Some(0), "round {round}: {}", done.stderr);
    assert_eq!(done.json()["checked"], true, "round {round}");
    server.borrow_mut().revive();
}

fn whatever_breaks(kind: Kind, rounds: usize) {
    let Some(server) = with_tables(kind) else { return };
    let server = RefCell::new(server);
    for round in 0..rounds {
        disturbed(&server, round);
    }
    let server = server.into_inner();
    let names: Vec<String> = (0..rounds).map(|round| format!("r{round}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_equal(&server, &fixture(RECORDING), &names);
    if kind == Kind::Engine {
        // It drops a repeated insert at once, not only in a merge.
        for table in ["requests", "samples", "sessions"] {
            let sql = format!("SELECT count() - uniqExact(recording, row) FROM {table}");
            assert_eq!(server.ask(DATABASE, &sql), "0", "rows of {table} that are there twice");
        }
    }
}

#[test]
fn whatever_breaks_a_row_arrives_once_on_debian() {
    whatever_breaks(Kind::Debian, ROUNDS);
}

#[test]
fn whatever_breaks_a_row_arrives_once_on_the_engine() {
    whatever_breaks(Kind::Engine, ROUNDS_ENGINE);
}
