//! Whose turn it is on a connection, and how many requests there were, held against the truth: two ends that say when they have asked and when they have answered, each in
//! one segment, with or without a greeting. What is said may be that it can't be told, but never the other way round.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use holdup_recording::Batch;

use super::{PATIENCE, probed, sum};

/// Looks that count for a pattern.
const LOOKS: usize = 30;

/// What is so: odd while a question is out and not answered, even while an answer is in and nothing asked; any two looks at it
/// with the same value have nothing between them.
#[derive(Default)]
struct Truth {
    step: AtomicU32,
    between: AtomicBool,
    stop: AtomicBool,
}

impl Truth {
    /// Nothing is certain from here on.
    fn leave(&self) {
        self.between.store(true, Ordering::SeqCst);
    }

    fn arrive(&self) {
        self.step.fetch_add(1, Ordering::SeqCst);
        self.between.store(false, Ordering::SeqCst);
    }

    fn look(&self) -> Option<u32> {
        (!self.between.load(Ordering::SeqCst)).then(|| self.step.load(Ordering::SeqCst))
    }
}

#[test]
fn none_is_taken_for_the_other() {
    let ms = Duration::from_millis;
    // Pauses of who asks and of who answers, by turns.
    for (thinks, works) in
        [(vec![ms(0)], vec![ms(40)]), (vec![ms(60)], vec![ms(0)]), (vec![ms(0), ms(0), ms(60)], vec![ms(0), ms(40)])]
    {
        for greets in [false, true] {
            let undecided = pattern(&thinks, &works, greets);
            assert!(undecided < LOOKS, "{undecided} of {LOOKS} at both ends: {thinks:?} {works:?} {greets}");
        }
    }
}

/// Looks at one connection; gives how often it could not be told whose turn it is.
fn pattern(thinks: &[Duration], works: &[Duration], greets: bool) -> usize {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    if greets {
        server.write_all(b"!").unwrap();
        (&client).read_exact(&mut [0]).unwrap();
    }
    // It sees the connection before anything is asked, as of a pool: whether there was a greeting can't be told from ties alone.
    let mut source = probed(&format!("server:{port}"));
    source.sample(&mut Batch::default()).unwrap();
    let truth = Arc::new(Truth::default());
    truth.leave();
    let answers = spawn({
        let (truth, works) = (truth.clone(), works.to_vec());
        move || answer(server, &truth, &works)
    });
    let asks = spawn({
        let (truth, thinks) = (truth.clone(), thinks.to_vec());
        move || ask(client, &truth, &thinks)
    });
    let port = port.to_string();
    let (mut looks, mut undecided, mut requests) = (0, 0, 0.0);
    let deadline = Instant::now() + PATIENCE;
    while looks < LOOKS && Instant::now() < deadline {
        sleep(Duration::from_millis(7));
        let mut batch = Batch::default();
        let before = truth.look();
        source.sample(&mut batch).unwrap();
        requests += sum(&batch, "server_requests_since_last", &[]).unwrap();
        let Some(step) = before.filter(|step| truth.look() == Some(*step) && *step > 5) else { continue };
        let (is_open, answered) = (f64::from(step % 2), f64::from(step / 2));
        // With a greeting the one in flight counts.
        assert!((answered..=answered + is_open).contains(&requests), "{requests} requests of {answered}: {greets}");
        let of = |metric: &str, labels: &[(&str, &str)]| sum(&batch, metric, labels).unwrap();
        let at_peer: &[(&str, &str)] = &[("peer_port", &port)];
        let ends = [
            (
                of("server_accepted_connections", &[]),
                of("server_answering_connections", &[]),
                of("server_undecided_connections", &[]),
            ),
            (
                of("server_outgoing_connections", at_peer),
                of("server_outgoing_pending_connections", at_peer),
                of("server_outgoing_undecided_connections", at_peer),
            ),
        ];
        // A program that another test starts has for a moment all that this process has.
        if ends.iter().any(|(connections, ..)| *connections != 1.0) {
            continue;
        }
        for (_, open, unknown) in ends {
            assert!(
                unknown == 1.0 || open == is_open,
                "it is {is_open} and is told as {open}: {thinks:?} {works:?} {greets}"
            );
            undecided += unknown as usize;
        }
        looks += 1;
    }
    assert!(looks >= LOOKS / 2, "only {looks} looks");
    truth.stop.store(true, Ordering::SeqCst);
    asks.join().unwrap();
    answers.join().unwrap();
    undecided
}

fn ask(mut line: TcpStream, truth: &Truth, thinks: &[Duration]) {
    line.set_nodelay(true).unwrap();
    for think in thinks.iter().cycle() {
        if truth.stop.load(Ordering::SeqCst) {
            return;
        }
        sleep(*think);
        truth.leave();
        line.write_all(&[b'?'; 100]).unwrap();
        line.read_exact(&mut [0; 100]).unwrap();
        truth.arrive();
    }
}

fn answer(mut line: TcpStream, truth: &Truth, works: &[Duration]) {
    line.set_nodelay(true).unwrap();
    for work in works.iter().cycle() {
        if line.read_exact(&mut [0; 100]).is_err() {
            return;
        }
        truth.arrive();
        sleep(*work);
        truth.leave();
        if line.write_all(&[b'!'; 100]).is_err() {
            return;
        }
    }
}
