//! `--watch wire:3306`: requests and responses of databases as their packets say, with no help of app or server. The kernel
//! copies packets of these ports into a ring; a thread of its own makes exchanges of them
//! ([`holdup_capture`]), and `sample` takes those that have ended.
//!
//! It changes nothing and sends nothing. A database that is reached through a Unix socket is not seen.

mod addresses;
mod filter;
mod network;
mod ring;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use holdup_capture::{Capture, Options as Wanted, Protocol, Totals, Vantage};
use holdup_recording::rows::Exchange;
use holdup_recording::{Batch, Coverage, Labels, clock};

use self::filter::PORTS_MAX;
use self::ring::Ring;
use crate::reading::{Out, thread_cpu_time};
use crate::watch::Options;
use crate::{Collector, ProbeError, ReadError};

/// What would let us.
const ENABLE: &str = "run holdup as root, or: sudo setcap cap_net_raw+ep \"$(command -v holdup)\"";
/// The same where the packets are another network's.
const ENABLE_THERE: &str = "another network can be entered by root alone (CAP_SYS_ADMIN): run holdup as root";
/// Exchanges that wait for the next sample at most.
const ROWS_MAX: usize = 500_000;
/// Pairs of hosts whose round trip is told.
const ROUND_TRIPS_MAX: usize = 64;
/// How often silent connections are looked at.
const QUIET_EVERY: Duration = Duration::from_millis(250);

/// Packets of some ports as a source.
struct Wire {
    source: String,
    ports: Vec<(u16, Protocol)>,
    /// In whose network; none is ours.
    pid: Option<u32>,
    reader: Option<Reader>,
}

/// The thread that reads.
struct Reader {
    seen: Arc<Mutex<Seen>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What it has seen.
#[derive(Default)]
struct Seen {
    rows: Vec<Exchange>,
    rows_left_out: u64,
    totals: Totals,
    dropped: u64,
    round_trips: HashMap<(IpAddr, SocketAddr), i64>,
    cpu: Option<Duration>,
}

/// Makes the collector for `wire:PORTS` or `wire:PORTS?pid=N`; [`watch::SCHEMES`](crate::watch::SCHEMES) lists it.
///
/// # Errors
/// If the ports are not understood, or it is not known what is spoken there.
pub fn make(address: &str, _options: &Options) -> Result<Box<dyn Collector>, ProbeError> {
    let bad = |why: String| ProbeError::BadAddress(format!("--watch {address}: {why}"));
    let (list, query) = address.split_once('?').map_or((address, None), |(list, query)| (list, Some(query)));
    let ports = ports(list).map_err(bad)?;
    let pid = query.map(pid).transpose().map_err(bad)?;
    Ok(Box::new(Wire { source: address.to_owned(), ports, pid, reader: None }))
}

fn pid(query: &str) -> Result<u32, String> {
    let number = query.strip_prefix("pid=").and_then(|number| number.parse().ok());
    number
        .ok_or_else(|| "the only option is ?pid=N: packets in the network of process N, e.g. of a container".to_owned())
}

fn ports(address: &str) -> Result<Vec<(u16, Protocol)>, String> {
    let list = address.strip_prefix("wire:").unwrap_or_default();
    let ports: Vec<(u16, Protocol)> = list.split(',').map(one).collect::<Result<_, _>>()?;
    if ports.len() > PORTS_MAX {
        return Err(format!("at most {PORTS_MAX} ports"));
    }
    Ok(ports)
}

fn one(text: &str) -> Result<(u16, Protocol), String> {
    let (port, protocol) = text.split_once('=').map_or((text, None), |(port, protocol)| (port, Some(protocol)));
    let number = port.trim().parse().ok().filter(|port| *port != 0);
    let number = number.ok_or_else(|| format!("'{port}' is no port; give ports, e.g. wire:3306 or wire:3306,5432"))?;
    let known = match protocol {
        Some(name) => {
            Protocol::by_name(name).ok_or_else(|| format!("'{name}' is not known; there are: mysql, postgresql"))
        }
        None => Protocol::of_port(number).ok_or_else(|| {
            format!("what is spoken on port {number}? say wire:{number}=mysql or wire:{number}=postgresql")
        }),
    };
    known.map(|protocol| (number, protocol))
}

impl Wire {
    /// The ring, and the addresses that are on its side.
    fn open(&self) -> std::io::Result<(Ring, Vec<IpAddr>)> {
        let ports: Vec<u16> = self.ports.iter().map(|(port, _)| *port).collect();
        network::inside(self.pid, || Ok((Ring::open(&ports)?, addresses::own())))
    }

    fn start(&self) -> std::io::Result<Reader> {
        let (ring, own) = self.open()?;
        let wanted = Wanted { ports: self.ports.clone(), vantage: Vantage::Host(own), ..Wanted::default() };
        let (seen, stop) = (Arc::new(Mutex::new(Seen::default())), Arc::new(AtomicBool::new(false)));
        let thread = std::thread::Builder::new().name("wire".to_owned()).spawn({
            let (seen, stop) = (Arc::clone(&seen), Arc::clone(&stop));
            move || read(ring, Capture::new(wanted), &seen, &stop)
        })?;
        Ok(Reader { seen, stop, thread: Some(thread) })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn read(mut ring: Ring, mut capture: Capture, seen: &Mutex<Seen>, stop: &AtomicBool) {
    let (mut rows, mut looked) = (Vec::new(), Instant::now());
    while !stop.load(Ordering::Relaxed) {
        ring.wait(100);
        ring.drain(&mut |packet| capture.packet(packet, &mut |row| rows.push(row)));
        if looked.elapsed() >= QUIET_EVERY {
            looked = Instant::now();
            capture.quiet(clock::now_ns(), &mut |row| rows.push(row));
        }
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
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
        // It is opened again when the recording begins: until then nothing is to be kept.
        let why = match self.open() {
            Ok(_) => return Ok(Coverage::with_parts(&self.source, Vec::new())),
            Err(error) => error,
        };
        let source_name = self.source.clone();
        let enable = if self.pid.is_some() { ENABLE_THERE } else { ENABLE };
        let gone = self.pid.filter(|_| why.kind() == std::io::ErrorKind::NotFound);
        Err(match (why.raw_os_error(), gone) {
            (Some(libc::EPERM | libc::EACCES), _) => {
                ProbeError::Denied { source_name, why: format!("packets may not be read by this account; {enable}") }
            }
            (_, Some(pid)) => ProbeError::Unreachable { source_name, why: format!("there is no process {pid}") },
            _ => ProbeError::Unreachable { source_name, why: format!("packets can't be read: {why}; {enable}") },
        })
    }

    fn settings(&mut self, _batch: &mut Batch) -> Result<(), ReadError> {
        Ok(())
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        if self.reader.is_none() {
            self.reader = Some(self.start().map_err(|e| ReadError(format!("packets can't be read: {e}")))?);
        }
        let Some(reader) = &self.reader else { return Ok(()) };
        if reader.thread.as_ref().is_none_or(JoinHandle::is_finished) {
            return Err(ReadError("the thread that reads packets has ended; please report this".to_owned()));
        }
        let mut seen = reader.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = std::mem::take(&mut seen.rows);
        let trips = std::mem::take(&mut seen.round_trips);
        let (totals, dropped, left_out, cpu) = (seen.totals, seen.dropped, seen.rows_left_out, seen.cpu);
        drop(seen);
        let mut out = Out::new(batch, &self.source);
        put(&mut out, &totals);
        out.put_plain("wire_packets_dropped_total", dropped as f64);
        out.put_plain("wire_exchanges_left_out_total", left_out as f64);
        if let Some(cpu) = cpu {
            out.put_plain("wire_reader_cpu_seconds_total", cpu.as_secs_f64());
        }
        for ((client, server), least_ns) in trips {
            let labels = Labels::of([("client", client.to_string().as_str()), ("server", server.to_string().as_str())]);
            out.put("wire_round_trip_seconds", labels, least_ns as f64 / 1e9);
        }
        batch.exchanges.extend(rows);
        Ok(())
    }
}

/// Counters of what was seen.
fn put(out: &mut Out<'_>, totals: &Totals) {
    for (metric, value) in [
        ("wire_packets_total", totals.packets),
        ("wire_bytes_total", totals.bytes),
        ("wire_connections_total", totals.connections),
        ("wire_exchanges_total", totals.exchanges),
        ("wire_exchanges_lost_total", totals.lost_exchanges),
        ("wire_retransmitted_segments_total", totals.retransmitted),
        ("wire_gaps_total", totals.gaps),
        ("wire_lost_bytes_total", totals.lost_bytes),
    ] {
        out.put_plain(metric, value as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let (mysql, postgres) = (Protocol::Mysql, Protocol::Postgres);
        assert_eq!(ports("wire:3306"), Ok(vec![(3306, mysql)]));
        assert_eq!(
            ports("wire:3306,5432,7000=postgresql,7001=mariadb"),
            Ok(vec![(3306, mysql), (5432, postgres), (7000, postgres), (7001, mysql)])
        );
        for (address, hint) in [
            ("wire:", "no port"),
            ("wire:0", "no port"),
            ("wire:99999", "no port"),
            ("wire:7000", "wire:7000=mysql"),
            ("wire:1=oracle", "there are"),
        ] {
            assert!(ports(address).is_err_and(|why| why.contains(hint)), "{address}");
        }
        assert_eq!((pid("pid=71"), pid("pid=").is_err(), pid("port=1").is_err()), (Ok(71), true, true));
        let many: Vec<String> = (0..17).map(|n| format!("{}=mysql", 100 + n)).collect();
        assert!(ports(&format!("wire:{}", many.join(","))).is_err());
    }
}
