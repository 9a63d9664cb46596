//! Several processes' parts of one load against real sockets: together they send each request once, when the whole
//! schedule says, whatever the profile.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread;

use holdup_load::engine::{Engine, Outputs};
use holdup_load::model::Load;
use holdup_load::scenario::Scenario;
use holdup_load::schedule::{Schedule, Share};
use holdup_load::stats::Live;
use holdup_recording::clock;

/// Requests of the replayed log, each for a path of its own.
const REQUESTS: u32 = 240;

/// When each request line came.
type Notes = Arc<Mutex<Vec<(i64, String)>>>;

/// A service that notes when each path was asked for; its port, and the notes.
fn server() -> (u16, Notes) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let notes = Notes::default();
    let shared = Arc::clone(&notes);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let notes = Arc::clone(&shared);
            thread::spawn(move || answer(stream, &notes));
        }
    });
    (port, notes)
}

fn answer(mut stream: TcpStream, notes: &Mutex<Vec<(i64, String)>>) {
    let mut buffer = [0; 4_096];
    while let Ok(n) = stream.read(&mut buffer)
        && n > 0
    {
        let line = String::from_utf8_lossy(&buffer[..n]).lines().next().unwrap_or_default().to_owned();
        notes.lock().unwrap().push((clock::now_ns(), line));
        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
            return;
        }
    }
}

/// Runs `text` as `of` shards that start at the same moment; the schedule, that moment, and the requests offered.
fn run(text: &str, file: &str, of: u32) -> (Schedule, i64, u64) {
    let start = clock::now_ns() + 500_000_000;
    let scenario = |index| {
        let scenario = Scenario::parse(text, file).unwrap();
        Scenario { shard: Share { index, of }, start_at: Some(start), ..scenario }
    };
    let offered = thread::scope(|scope| {
        let shards: Vec<_> = (0..of)
            .map(|index| {
                scope.spawn(move || {
                    let scenario = scenario(index);
                    let outputs = Outputs { rows: None, seconds: None, live: Live::default() };
                    let summary = Engine::prepare(&scenario).unwrap().run(outputs, &AtomicBool::new(false)).unwrap();
                    summary.operations.iter().map(|o| o.offered).sum::<u64>()
                })
            })
            .collect();
        shards.into_iter().map(|shard| shard.join().unwrap()).sum()
    });
    let Load::Open(schedule) = scenario(0).load else { panic!("{text} is closed") };
    (schedule, start, offered)
}

#[test]
fn shards_send_each_request_of_a_log_once_and_not_before_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let log: String = (0..REQUESTS)
        .map(|i| format!("{{\"ts\": {}, \"method\": \"GET\", \"path\": \"/n-{i}.x?i\"}}\n", 1_700_000_000 + i / 40))
        .collect();
    std::fs::write(dir.path().join("a.log"), log).unwrap();
    let (port, notes) = server();
    let text = format!("target: http://127.0.0.1:{port}\nload: {{replay: {{file: a.log, speed: 6}}}}\n");
    let (schedule, start, offered) = run(&text, &dir.path().join("s.yaml").display().to_string(), 3);
    assert_eq!((offered, schedule.total()), (u64::from(REQUESTS), u64::from(REQUESTS)));

    let mut seen = notes.lock().unwrap().clone();
    seen.retain(|(_, line)| line.starts_with("GET /n-"));
    let requests = &schedule.replay().unwrap().requests;
    let mut early = 0;
    for arrival in schedule.arrivals(Share::WHOLE) {
        let line = format!("GET {} HTTP/1.1", requests[arrival.request.unwrap() as usize].path);
        let at: Vec<i64> = seen.iter().filter(|(_, l)| *l == line).map(|(at, _)| *at).collect();
        assert_eq!(at.len(), 1, "{line}");
        let off = at[0] - start - arrival.due_ns;
        early += i32::from(off < -1_000_000);
    }
    assert_eq!(early, 0, "none is sent before its moment");
}

#[test]
fn shards_of_random_arrivals_add_up() {
    let (port, notes) = server();
    let text = format!(
        "target: http://127.0.0.1:{port}\nload: {{sine: {{mean: 200, amplitude: 200, period: 1s}}, duration: 1500ms, arrivals: poisson}}\noperations: [get: /]\n"
    );
    let (schedule, _, offered) = run(&text, "s.yaml", 2);
    let asked = notes.lock().unwrap().iter().filter(|(_, line)| line.starts_with("GET /")).count();
    assert_eq!((offered, asked as u64), (schedule.total(), schedule.total()));
}
