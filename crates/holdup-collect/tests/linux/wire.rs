//! Packets of a server and a client in networks of their own, seen from either. As root only: elsewhere no network can be made.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};

use holdup_collect::Collector;
use holdup_collect::watch::{Options, collector};
use holdup_recording::Batch;
use holdup_recording::rows::Exchange;

const SERVER: &str = "10.231.7.1";
const CLIENT: &str = "10.231.7.2";
const PORT: u16 = 3306;
/// The server thinks so long before it answers.
const THINKS: Duration = Duration::from_millis(60);
const GREETING: &[u8] =
    b"\x0a8.0\0\x07\0\0\0abcdefgh\0\xff\xf7\x2d\x02\0\xff\xdf\x15\0\0\0\0\0\0\0\0\0\0ijklmnopqrst\0mysql_native_password\0";
const OK: &[u8] = b"\0\0\0\x02\0\0\0";

/// A process with nothing but a network of its own.
struct Network(Child);

impl Network {
    fn new() -> io::Result<Self> {
        let script = "ip link set lo up && echo ready && exec sleep 600";
        let mut child = Command::new("unshare").args(["-n", "sh", "-c", script]).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line)?;
        let network = Self(child);
        if line.trim() == "ready" { Ok(network) } else { Err(io::Error::other("no network was made")) }
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn run(&self, command: &str) {
        let pid = self.pid().to_string();
        let status = Command::new("nsenter").args(["-t", &pid, "-n"]).args(command.split(' ')).status().unwrap();
        assert!(status.success(), "{command}");
    }

    /// A thread in this network.
    fn thread<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let namespace = File::open(format!("/proc/{}/ns/net", self.pid())).unwrap();
        spawn(move || {
            // SAFETY: plain numbers; it moves this thread alone.
            assert_eq!(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
            work()
        })
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two networks with a line between them, and what is missing if that can't be had.
fn networks() -> Result<(Network, Network), String> {
    // SAFETY: it reads the process's own user id and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return Err("only root can make a network".to_owned());
    }
    let made = Network::new().and_then(|server| Ok((server, Network::new()?)));
    let (server, client) = made.map_err(|error| format!("unshare -n and ip: {error}"))?;
    let (at, to) = (server.pid().to_string(), client.pid().to_string());
    let line = ["link", "add", "name", "line0", "netns", &at, "type", "veth", "peer", "name", "line1", "netns", &to];
    let done = Command::new("ip").args(line).output().map_err(|error| format!("ip: {error}"))?;
    if !done.status.success() {
        return Err(format!("ip link add: {}", String::from_utf8_lossy(&done.stderr)));
    }
    for (network, name, address) in [(&server, "line0", SERVER), (&client, "line1", CLIENT)] {
        network.run(&format!("ip address add {address}/24 dev {name}"));
        network.run(&format!("ip link set {name} up"));
    }
    Ok((server, client))
}

fn message(number: u8, content: &[u8]) -> Vec<u8> {
    [&(content.len() as u32).to_le_bytes()[..3], &[number], content].concat()
}

fn read_message(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).ok()?;
    let mut content = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
    stream.read_exact(&mut content).ok()?;
    Some(content)
}

/// Greets, lets anybody in, and answers each statement but `HANG` after a while.
fn serve(mut stream: TcpStream) {
    stream.write_all(&message(0, GREETING)).unwrap();
    read_message(&mut stream).unwrap();
    stream.write_all(&message(2, OK)).unwrap();
    while let Some(request) = read_message(&mut stream) {
        if !request.ends_with(b"HANG") {
            sleep(THINKS);
            stream.write_all(&message(1, OK)).unwrap();
        }
    }
}

/// Logs in and asks, one statement after the other; the connection stays open.
fn ask(address: SocketAddr, statements: &[&str]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    read_message(&mut stream).unwrap();
    let login = [&0x0000_0201_u32.to_le_bytes()[..], &[0; 28], b"me\0secret\0"].concat();
    stream.write_all(&message(1, &login)).unwrap();
    read_message(&mut stream).unwrap();
    for statement in statements {
        stream.write_all(&message(0, &[b"\x03", statement.as_bytes()].concat())).unwrap();
        if *statement != "HANG" {
            read_message(&mut stream).unwrap();
        }
    }
    stream
}

/// Takes samples until there are `count` exchanges.
fn exchanges(watcher: &mut Box<dyn Collector>, count: usize) -> Vec<Exchange> {
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut batch = Batch::default();
    while batch.exchanges.len() < count && Instant::now() < deadline {
        sleep(Duration::from_millis(50));
        watcher.sample(&mut batch).unwrap();
    }
    batch.exchanges
}

#[test]
fn both_ends_of_a_line_see_the_same_and_say_on_whose_side_they_are() {
    let (server, client) = match networks() {
        Ok(networks) => networks,
        Err(why) => {
            assert!(std::env::var_os("CI").is_none(), "{why}");
            eprintln!("skipped: {why}");
            return;
        }
    };
    let watch = |network: &Network| {
        let mut watcher = collector(&format!("wire:{PORT}?pid={}", network.pid()), &Options::default()).unwrap();
        watcher.probe().unwrap();
        let mut batch = Batch::default();
        watcher.sample(&mut batch).unwrap();
        watcher.settings(&mut batch).unwrap();
        watcher
    };
    let mut watchers = [("server", watch(&server)), ("client", watch(&client))];
    let (listens, is_listening) = mpsc::channel();
    // Its threads end with the clients' connections.
    server.thread(move || {
        let listener = TcpListener::bind((SERVER, PORT)).unwrap();
        listens.send(listener.local_addr().unwrap()).unwrap();
        for stream in listener.incoming() {
            spawn(move || serve(stream.unwrap()));
        }
    });
    let address = is_listening.recv().unwrap();
    let clients = client.thread(move || {
        let watcher = ask(address, &["/* holdup */ SHOW GLOBAL STATUS", "/* holdup */ SELECT @@version"]);
        (watcher, ask(address, &["SELECT 'canary'", "HANG"]))
    });
    let clients = clients.join().unwrap();
    for (side, watcher) in &mut watchers {
        // Two logins and one statement: what holdup itself asks is left out.
        let seen = exchanges(watcher, 3);
        let kinds: Vec<&str> = seen.iter().map(|row| row.kind.as_str()).collect();
        assert_eq!(kinds, ["login", "login", "query"], "{side}");
        assert!(seen.iter().all(|row| row.side == *side && row.outcome == "ok"), "{seen:?}");
        let query = &seen[2];
        assert_eq!((query.digest_text.as_deref(), query.session_id), (Some("SELECT ?"), Some(7)));
        assert_eq!((query.server.as_str(), query.client.split(':').next()), ("10.231.7.1:3306", Some(CLIENT)));
        let waited = query.first_byte_at.unwrap() - query.request_end_at;
        assert!(waited >= THINKS.as_nanos() as i64, "{side}: {waited} ns");
        // The end: what hangs is told, with its age.
        let mut last = Batch::default();
        watcher.sample(&mut last).unwrap();
        watcher.settings(&mut last).unwrap();
        let [hanging] = last.exchanges.as_slice() else { panic!("{side}: {:?}", last.exchanges) };
        assert_eq!((hanging.outcome.as_str(), hanging.digest_text.as_deref()), ("unfinished", Some("HANG")));
        assert!(hanging.done_at > hanging.request_at && hanging.first_byte_at.is_none());
        let own = last.samples.iter().rev().find(|sample| sample.metric == "wire_own_exchanges_total");
        assert_eq!(own.map(|sample| sample.value), Some(2.0));
        assert!(watcher.other_cpu_time() > Duration::ZERO);
    }
    drop(clients);
}

/// What reading costs, live. Ignored: it measures CPU time, and wants a release build and root
/// (`cargo test --release -p holdup-collect --test linux cost_of_packets -- --ignored --nocapture`).
#[test]
#[ignore = "measures CPU time: wants a release build"]
fn cost_of_packets() {
    const CLIENTS: u32 = 8;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    spawn(move || {
        for stream in listener.incoming() {
            spawn(move || {
                let mut stream = stream.unwrap();
                stream.write_all(&message(0, GREETING)).unwrap();
                while read_message(&mut stream).is_some() {
                    stream.write_all(&message(1, OK)).unwrap();
                }
            });
        }
    });
    for per_second in [1_000, 10_000, 20_000] {
        let mut watcher = collector(&format!("wire:{}=mysql", address.port()), &Options::default()).unwrap();
        watcher.probe().unwrap();
        watcher.sample(&mut Batch::default()).unwrap();
        let begun = Instant::now();
        let length = Duration::from_secs(10);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                spawn(move || {
                    let mut stream = ask(address, &[]);
                    stream.set_nodelay(true).unwrap();
                    let mut asked = 0_u32;
                    while begun.elapsed() < length {
                        let text = format!(
                            "/*traceparent='00-{client:016x}{asked:016x}-00000000000000ff-01'*/ SELECT id, name FROM products WHERE id = {asked}"
                        );
                        stream.write_all(&message(0, &[b"\x03", text.as_bytes()].concat())).unwrap();
                        read_message(&mut stream).unwrap();
                        asked += 1;
                        let due = Duration::from_secs(1) * asked * CLIENTS / per_second;
                        sleep(due.saturating_sub(begun.elapsed()));
                    }
                })
            })
            .collect();
        let (mut batch, mut lost) = (Batch::default(), 0);
        while !clients.iter().all(JoinHandle::is_finished) {
            sleep(Duration::from_secs(1));
            lost += usize::from(watcher.sample(&mut batch).is_err());
        }
        let took = begun.elapsed().as_secs_f64();
        let (count, cpu) = (batch.exchanges.len(), watcher.other_cpu_time().as_secs_f64());
        println!(
            "{:.0} exchanges/s: {:.2} % of a core, {:.1} us each; samples with loss: {lost}",
            count as f64 / took,
            cpu / took * 100.0,
            cpu / count as f64 * 1e6
        );
    }
}
