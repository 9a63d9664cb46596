//! `--watch wire:3306`: requests and responses of databases, read from their packets without help
//! from app or server. The kernel copies packets of these ports into a ring; a separate thread
//! turns them into exchanges ([`holdup_capture`]), and `sample` takes the finished ones.
//!
//! It changes and sends nothing. Traffic through a Unix socket is invisible to it.

mod addresses;
mod filter;
pub(crate) mod network;
mod ring;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use holdup_protocol::packets::{Capture, Options as CaptureOptions, Protocol, Totals, Vantage};
use holdup_recording::rows::Exchange;
use holdup_recording::{Batch, Coverage, Labels, clock, metrics};

use self::filter::PORTS_MAX;
use self::ring::Ring;
use crate::options::Options;
use crate::own_thread::{OwnThread, lock};
use crate::reading::{Out, thread_cpu_time};
use crate::{Collector, ProbeError, ReadError};

/// How to permit capturing.
const ENABLE: &str = "run holdup as root, or: sudo setcap cap_net_raw+ep \"$(command -v holdup)\"";
/// The same for the packets of another network namespace.
const ENABLE_THERE: &str = "only root (CAP_SYS_ADMIN) can enter another network namespace: run holdup as root";
/// Largest number of exchanges waiting for the next sample.
const ROWS_MAX: usize = 500_000;
/// Largest number of host pairs whose round trip is recorded.
const ROUND_TRIPS_MAX: usize = 64;
/// Time within which a packet reaches the ring: twice the time after which the kernel hands over a
/// partly filled block.
const LAST_PACKETS: Duration = Duration::from_millis(2 * ring::RETIRE_MS as u64);
/// How often silent connections are checked.
const QUIET_EVERY: Duration = Duration::from_millis(250);

/// Packets of some ports as a source.
struct Wire {
    source: String,
    ports: Vec<(u16, Protocol)>,
    /// The process whose network namespace is captured; none means holdup's own.
    pid: Option<u32>,
    reader: Option<Reader>,
    settings_read: u32,
    /// Dropped packets and left-out exchanges at the last sample.
    lost: (u64, u64),
    cpu: Duration,
}

/// The reading thread.
struct Reader {
    seen: Arc<Mutex<PacketResults>>,
    stop: Arc<AtomicBool>,
    thread: Option<OwnThread>,
}

/// Its results so far.
#[derive(Default)]
struct PacketResults {
    rows: Vec<Exchange>,
    rows_left_out: u64,
    totals: Totals,
    dropped: u64,
    round_trips: HashMap<(IpAddr, SocketAddr), i64>,
    cpu: Option<Duration>,
}

/// Makes the collector for `wire:PORTS` or `wire:PORTS?pid=N`.
pub(crate) fn make(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    let (list, query) = rest.split_once('?').map_or((rest, None), |(list, query)| (list, Some(query)));
    let (ports, pid) = (ports(list)?, query.map(pid).transpose()?);
    let source = format!("wire:{rest}");
    Ok(Box::new(Wire { source, ports, pid, reader: None, settings_read: 0, lost: (0, 0), cpu: Duration::ZERO }))
}

fn pid(query: &str) -> Result<u32, String> {
    let number = query.strip_prefix("pid=").and_then(|number| number.parse().ok());
    number.ok_or_else(|| {
        "the only option is ?pid=N: packets in the network namespace of process N, e.g. of a container".to_owned()
    })
}

fn ports(list: &str) -> Result<Vec<(u16, Protocol)>, String> {
    let ports: Vec<(u16, Protocol)> = list.split(',').map(one).collect::<Result<_, _>>()?;
    if ports.len() > PORTS_MAX {
        return Err(format!("too many ports: wire: takes at most {PORTS_MAX}"));
    }
    Ok(ports)
}

fn one(text: &str) -> Result<(u16, Protocol), String> {
    let (port, protocol) = text.split_once('=').map_or((text, None), |(port, protocol)| (port, Some(protocol)));
    let number = port.trim().parse().ok().filter(|port| *port != 0);
    let number = number.ok_or_else(|| format!("'{port}' is not a port; write e.g. wire:3306 or wire:3306,5432"))?;
    let known = match protocol {
        Some(name) => {
            Protocol::by_name(name).ok_or_else(|| format!("'{name}' is unknown; supported: mysql, postgresql, mongodb"))
        }
        None => Protocol::by_port(number).ok_or_else(|| {
            format!("the protocol on port {number} is unknown; write wire:{number}=mysql, wire:{number}=postgresql or wire:{number}=mongodb")
        }),
    };
    known.map(|protocol| (number, protocol))
}

impl Wire {
    /// Opens the ring, and lists the local addresses.
    fn open(&self) -> std::io::Result<(Ring, Vec<IpAddr>)> {
        let ports: Vec<u16> = self.ports.iter().map(|(port, _)| *port).collect();
        network::inside(self.pid, || Ok((Ring::open(&ports)?, addresses::own())))
    }

    fn start(&self) -> std::io::Result<Reader> {
        let (ring, own) = self.open()?;
        let wanted =
            CaptureOptions { ports: self.ports.clone(), vantage: Vantage::Host(own), ..CaptureOptions::default() };
        let (seen, stop) = (Arc::new(Mutex::new(PacketResults::default())), Arc::new(AtomicBool::new(false)));
        let thread = OwnThread::spawn("wire", {
            let (seen, stop) = (Arc::clone(&seen), Arc::clone(&stop));
            move || read(ring, Capture::new(wanted), &seen, &stop)
        })?;
        Ok(Reader { seen, stop, thread: Some(thread) })
    }
}

impl Reader {
    /// Ends the thread, which also ends unanswered exchanges.
    fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = &mut self.thread {
            thread.join();
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.end();
    }
}

fn read(mut ring: Ring, mut capture: Capture, seen: &Mutex<PacketResults>, stop: &AtomicBool) {
    let (mut rows, mut looked, mut is_over) = (Vec::new(), Instant::now(), false);
    while !is_over {
        is_over = stop.load(Ordering::Relaxed);
        if is_over {
            std::thread::sleep(LAST_PACKETS);
        } else {
            ring.wait(100);
        }
        ring.drain(&mut |packet| capture.packet(packet, &mut |row| rows.push(row)));
        if looked.elapsed() >= QUIET_EVERY {
            looked = Instant::now();
            capture.quiet(clock::now_ns(), &mut |row| rows.push(row));
        }
        if is_over {
            capture.finish(clock::now_ns(), &mut |row| rows.push(row));
        }
        let mut seen = lock(seen);
        let room = ROWS_MAX.saturating_sub(seen.rows.len());
        seen.rows_left_out += rows.len().saturating_sub(room) as u64;
        rows.truncate(room);
        seen.rows.append(&mut rows);
        seen.totals = capture.totals();
        seen.dropped += ring.dropped();
        seen.cpu = thread_cpu_time();
        for trip in capture.round_trips() {
            let is_full = seen.round_trips.len() >= ROUND_TRIPS_MAX;
            let known = seen.round_trips.get_mut(&(trip.client, trip.server));
            match known {
                Some(least) => *least = trip.least_ns.min(*least),
                None if is_full => {}
                None => {
                    seen.round_trips.insert((trip.client, trip.server), trip.least_ns);
                }
            }
        }
    }
}

impl Collector for Wire {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        // It is opened again when the recording begins; until then no packet is kept.
        let why = match self.open() {
            Ok(_) => return Ok(Coverage::with_parts(&self.source, Vec::new())),
            Err(error) => error,
        };
        let enable = if self.pid.is_some() { ENABLE_THERE } else { ENABLE };
        let gone = self.pid.filter(|_| why.kind() == std::io::ErrorKind::NotFound);
        let unreachable = |why| ProbeError::unreachable(&self.source, why);
        Err(match (why.raw_os_error(), gone) {
            (Some(libc::EPERM | libc::EACCES), _) => {
                ProbeError::denied(&self.source, format!("this account may not capture packets; {enable}"))
            }
            (_, Some(pid)) => unreachable(format!("the process {pid} does not exist")),
            _ => unreachable(format!("cannot capture packets: {why}; {enable}")),
        })
    }

    /// A ring has no settings. At the end, unanswered exchanges are recorded.
    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        self.settings_read += 1;
        let Some(reader) = self.reader.as_mut().filter(|_| self.settings_read > 1) else { return Ok(()) };
        reader.end();
        self.take(batch)
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        if self.reader.is_none() {
            self.reader = Some(self.start().map_err(|e| ReadError(format!("cannot capture packets: {e}")))?);
        }
        if self.reader.as_ref().and_then(|reader| reader.thread.as_ref()).is_none_or(OwnThread::is_finished) {
            return Err(ReadError("the thread that reads packets has ended; please report this".to_owned()));
        }
        self.take(batch)
    }

    fn has_panicked(&mut self) -> bool {
        self.reader.as_mut().and_then(|reader| reader.thread.as_mut()).is_some_and(OwnThread::has_panicked)
    }

    fn other_cpu_time(&self) -> Duration {
        self.cpu
    }
}

impl Wire {
    /// Moves the results since the last sample into `batch`.
    ///
    /// # Errors
    /// If some were lost; the others are added nevertheless.
    fn take(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let Some(reader) = &self.reader else { return Ok(()) };
        let mut seen = lock(&reader.seen);
        let rows = std::mem::take(&mut seen.rows);
        let trips = std::mem::take(&mut seen.round_trips);
        let (totals, dropped, left_out, cpu) = (seen.totals, seen.dropped, seen.rows_left_out, seen.cpu);
        drop(seen);
        let mut out = Out::new(batch, &self.source);
        for (metric, value) in totals.counters() {
            out.put_plain(metric, value as f64);
        }
        out.put_plain(metrics::wire::PACKETS_DROPPED, dropped as f64);
        out.put_plain(metrics::wire::EXCHANGES_LEFT_OUT, left_out as f64);
        if let Some(cpu) = cpu {
            self.cpu = cpu;
            out.put_plain(metrics::wire::READER_CPU, cpu.as_secs_f64());
        }
        for ((client, server), least_ns) in trips {
            let labels =
                Labels::new([("client", client.to_string().as_str()), ("server", server.to_string().as_str())]);
            out.put(metrics::wire::ROUND_TRIP, labels, least_ns as f64 / 1e9);
        }
        batch.exchanges.extend(rows);
        let before = std::mem::replace(&mut self.lost, (dropped, left_out));
        lost(dropped - before.0, left_out - before.1).map_or(Ok(()), |why| Err(ReadError(why)))
    }
}

/// The loss since the last sample; none if there was none.
fn lost(dropped: u64, left_out: u64) -> Option<String> {
    let dropped = (dropped > 0).then(|| format!("the kernel dropped {dropped} packets before they were read"));
    let left_out = (left_out > 0)
        .then(|| format!("{left_out} exchanges were left out: holdup keeps at most {ROWS_MAX} between two samples"));
    let all: Vec<String> = dropped.into_iter().chain(left_out).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the collectors put in front of their statements is what is known as holdup's own.
    #[test]
    fn own_statements_are_known() {
        let declared = format!("MARKER: &str = {:?};", holdup_protocol::packets::OWN);
        for source in [include_str!("mysql/server.rs"), include_str!("postgres/server.rs")] {
            assert!(source.contains(&declared), "{declared}");
        }
    }

    /// Loss is a gap each time it grows, and what was read stands beside it.
    #[test]
    fn lost_packets_become_a_gap() {
        let seen = Arc::new(Mutex::new(PacketResults::default()));
        let reader = Reader { seen: Arc::clone(&seen), stop: Arc::default(), thread: None };
        let ports = vec![(3306, Protocol::Mysql)];
        let cpu = Duration::ZERO;
        let source = "wire:3306".to_owned();
        let mut wire = Wire { source, ports, pid: None, reader: Some(reader), settings_read: 0, lost: (0, 0), cpu };
        let mut take = |dropped, left_out| {
            let mut seen = seen.lock().unwrap();
            (seen.dropped, seen.rows_left_out, seen.rows) = (dropped, left_out, vec![Exchange::default()]);
            seen.cpu = Some(Duration::from_secs(3));
            drop(seen);
            let mut batch = Batch::default();
            let result = wire.take(&mut batch);
            assert_eq!(batch.exchanges.len(), 1);
            result.err().map(|error| error.to_string())
        };
        assert_eq!(take(0, 0), None);
        assert!(take(7, 0).is_some_and(|why| why.contains("dropped 7 packets")));
        assert_eq!(take(7, 0), None, "no more than before");
        assert!(take(9, 3).is_some_and(|why| why.contains("dropped 2 packets") && why.contains("3 exchanges")));
        assert_eq!(wire.other_cpu_time(), Duration::from_secs(3));
    }

    #[test]
    fn addresses() {
        let (mysql, postgres) = (Protocol::Mysql, Protocol::Postgres);
        assert_eq!(ports("3306"), Ok(vec![(3306, mysql)]));
        assert_eq!(
            ports("3306,5432,7000=postgresql,7001=mariadb"),
            Ok(vec![(3306, mysql), (5432, postgres), (7000, postgres), (7001, mysql)])
        );
        for (address, hint) in [
            ("", "not a port"),
            ("0", "not a port"),
            ("99999", "not a port"),
            ("7000", "wire:7000=mysql"),
            ("1=oracle", "supported"),
        ] {
            assert!(ports(address).is_err_and(|why| why.contains(hint)), "{address}");
        }
        assert_eq!((pid("pid=71"), pid("pid=").is_err(), pid("port=1").is_err()), (Ok(71), true, true));
        let many: Vec<String> = (0..17).map(|n| format!("{}=mysql", 100 + n)).collect();
        assert!(ports(&many.join(",")).is_err());
    }
}
