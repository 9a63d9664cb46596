//! How many spans a second are taken in, from bytes to rows pushed, and in how much memory: a million spans in bodies of 512,
//! as the stock SDKs batch them. `cargo run --release -p holdup-otlp --example ingest [SPANS]`. First without a network, in both
//! encodings; then over HTTP/1.1 on loopback, where the sender is a thread of its own and only the receiver's CPU time counts.
//! Memory is the resident set of the process at a tenth of the way and at the end, where equal figures are constant memory.

#[path = "support/bodies.rs"]
mod bodies;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use holdup_otlp::{Bounds, Encoding, Intake, Receiver, Signal};
use prost::Message as _;

/// Spans unless the command line says how many.
const SPANS: usize = 1_000_000;
const BATCH: usize = 512;
/// Different bodies, so that the processor's caches do not know them by heart.
const BODIES: usize = 64;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let spans = std::env::args().nth(1).map_or(Ok(SPANS), |count| count.parse())?;
    for (name, bodies, encoding) in [
        ("protobuf", (0..BODIES).map(protobuf).collect::<Vec<_>>(), Encoding::Protobuf),
        ("JSON", (0..BODIES).map(json).collect::<Result<_, _>>()?, Encoding::Json),
    ] {
        direct(name, &bodies, encoding, spans)?;
    }
    over_network(&(0..BODIES).map(protobuf).collect::<Vec<_>>(), spans)
}

fn direct(name: &str, bodies: &[Vec<u8>], encoding: Encoding, spans: usize) -> Result<(), Error> {
    let intake = Intake::new("otlp", Bounds::default());
    let (mut taken, mut drained) = (0, 0);
    let mut resident_bytes = 0;
    let (begun, cpu) = (Instant::now(), thread_cpu("self")?);
    for body in bodies.iter().cycle().take(spans.div_ceil(BATCH)) {
        taken += intake.take(Signal::Traces, encoding, false, body)?.items;
        // As a collector does once a second, at this rate.
        if taken % 100_352 == 0 {
            drained += intake.drain().spans.len() as u64;
            if resident_bytes == 0 {
                resident_bytes = resident()?;
            }
        }
    }
    drained += intake.drain().spans.len() as u64;
    let (wall, cpu) = (begun.elapsed().as_secs_f64(), thread_cpu("self")? - cpu);
    println!(
        "{name}: {taken} spans ({drained} rows), {:.0} bytes each, in {wall:.2} s, {cpu:.2} s of CPU: {:.0} spans/s of CPU; resident {:.1} MiB at a tenth, {:.1} MiB at the end",
        bodies.iter().map(Vec::len).sum::<usize>() as f64 / (bodies.len() * BATCH) as f64,
        taken as f64 / cpu,
        resident_bytes as f64 / f64::from(1 << 20),
        resident()? as f64 / f64::from(1 << 20),
    );
    Ok(())
}

fn over_network(bodies: &[Vec<u8>], spans: usize) -> Result<(), Error> {
    let receiver = Receiver::start("otlp", &["127.0.0.1:0".parse()?], Bounds::default()).map_err(|(_, error)| error)?;
    let task = receiver_task()?;
    let mut stream = TcpStream::connect(receiver.addresses()[0])?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let (mut rows, mut refused, mut resident_bytes) = (0, 0, 0);
    let mut answer = [0; 4096];
    let (begun, cpu) = (Instant::now(), thread_cpu(&task)?);
    let mut drained_at = Instant::now();
    for (index, body) in bodies.iter().cycle().take(spans.div_ceil(BATCH)).enumerate() {
        let head = format!(
            "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        let count = stream.read(&mut answer)?;
        refused += u64::from(!answer[..count].starts_with(b"HTTP/1.1 200"));
        if drained_at.elapsed() > Duration::from_millis(200) {
            rows += receiver.drain().spans.len();
            drained_at = Instant::now();
        }
        if index == spans / BATCH / 10 {
            resident_bytes = resident()?;
        }
    }
    let (wall, cpu) = (begun.elapsed().as_secs_f64(), thread_cpu(&task)? - cpu);
    rows += receiver.drain().spans.len();
    println!(
        "HTTP/1.1, protobuf: {rows} rows, {refused} bodies refused, in {wall:.2} s, {cpu:.2} s of the receiver's CPU: {:.0} spans/s of CPU, {:.0} spans/s; resident {:.1} MiB at a tenth, {:.1} MiB at the end",
        rows as f64 / cpu,
        rows as f64 / wall,
        resident_bytes as f64 / f64::from(1 << 20),
        resident()? as f64 / f64::from(1 << 20),
    );
    Ok(())
}

/// The folder in /proc of the receiver's thread, which gets its name once it runs.
fn receiver_task() -> Result<String, Error> {
    for _ in 0..1_000 {
        for task in std::fs::read_dir("/proc/self/task")? {
            let id = task?.file_name().to_string_lossy().into_owned();
            if std::fs::read_to_string(format!("/proc/self/task/{id}/comm"))?.trim() == "otlp" {
                return Ok(format!("self/task/{id}"));
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Err("the receiver has no thread".into())
}

/// Seconds of CPU, of the process or of a thread of it.
fn thread_cpu(task: &str) -> Result<f64, Error> {
    let text = std::fs::read_to_string(format!("/proc/{task}/schedstat"))?;
    Ok(text.split(' ').next().unwrap_or_default().parse::<f64>()? / 1e9)
}

fn resident() -> Result<u64, Error> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    Ok(text.split(' ').nth(1).unwrap_or_default().parse::<u64>()? * 4096)
}

fn protobuf(number: usize) -> Vec<u8> {
    bodies::traces(number * BATCH, BATCH).encode_to_vec()
}

fn json(number: usize) -> Result<Vec<u8>, Error> {
    Ok(serde_json::to_vec(&bodies::traces(number * BATCH, BATCH))?)
}
