//! How many spans a second are taken in, from bytes to rows pushed, and in how much memory: a million spans in bodies of 512,
//! as the stock SDKs batch them. `cargo run --release -p holdup-otlp --example ingest [SPANS]`. First without a network, in both
//! encodings; then over HTTP/1.1 on loopback, where the sender is a thread of its own and only the receiver's CPU time counts.
//! Memory is the resident set of the process at a tenth of the way and at the end, where equal figures are constant memory.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use holdup_otlp::{Bounds, Encoding, Intake, Receiver, Signal};

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
        ("JSON", (0..BODIES).map(json).collect(), Encoding::Json),
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

/// Of every four spans: a server's, a checkout, a statement with values in it, a call.
const NAMES: [&str; 4] = ["GET /vacancy", "connection_pool.checkout", "SELECT shop", "GET"];

fn attributes(n: usize) -> Vec<(&'static str, String)> {
    let pairs: Vec<(&str, String)> = match n % 4 {
        0 => vec![
            ("http.request.method", "GET".into()),
            ("http.route", "/vacancy".into()),
            ("url.path", "/vacancy".into()),
            ("server.address", "127.0.0.1".into()),
            ("user_agent.original", "holdup/0.1".into()),
        ],
        1 => vec![("db.client.connection.pool.name", "main".into())],
        2 => vec![
            ("db.system.name", "mariadb".into()),
            ("db.namespace", "shop".into()),
            ("db.operation.name", "SELECT".into()),
            ("db.query.text", format!("SELECT id, title, city, salary FROM vacancy WHERE id = {n} AND city = 'c{n}'")),
            ("server.address", "127.0.0.1".into()),
            ("server.port", "3306".into()),
        ],
        _ => vec![
            ("http.request.method", "GET".into()),
            ("server.address", "prices".into()),
            ("server.port", "80".into()),
        ],
    };
    pairs
}

fn json(number: usize) -> Vec<u8> {
    let span = |n: usize| {
        let n = number * BATCH + n;
        let attributes: Vec<String> = attributes(n)
            .iter()
            .map(|(key, value)| format!(r#"{{"key":"{key}","value":{{"stringValue":"{value}"}}}}"#))
            .collect();
        format!(
            r#"{{"traceId":"{:032x}","spanId":"{:016x}","parentSpanId":"{:016x}","name":"{}","kind":{},"startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000000020000000","attributes":[{}],"status":{{}}}}"#,
            n / 4 + 1,
            n + 1,
            n / 4 * 4 + 1,
            NAMES[n % 4],
            [2, 1, 3, 3][n % 4],
            attributes.join(",")
        )
    };
    let spans: Vec<String> = (0..BATCH).map(span).collect();
    format!(r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"shop"}}}}]}},"scopeSpans":[{{"spans":[{}]}}]}}]}}"#, spans.join(",")).into_bytes()
}

fn protobuf(number: usize) -> Vec<u8> {
    let mut scope = Vec::new();
    for n in 0..BATCH {
        let n = number * BATCH + n;
        let mut span = Vec::new();
        field(&mut span, 1, &(n as u128 / 4 + 1).to_be_bytes());
        field(&mut span, 2, &(n as u64 + 1).to_be_bytes());
        field(&mut span, 4, &(n as u64 / 4 * 4 + 1).to_be_bytes());
        field(&mut span, 5, NAMES[n % 4].as_bytes());
        span.extend([6 << 3, [2, 1, 3, 3][n % 4]]);
        for (number, time) in [(7_u8, 1_700_000_000_000_000_000_u64), (8, 1_700_000_000_020_000_000)] {
            span.push(number << 3 | 1);
            span.extend(time.to_le_bytes());
        }
        for (key, value) in attributes(n) {
            field(&mut span, 9, &pair(key, &value));
        }
        field(&mut scope, 2, &span);
    }
    let (mut resource, mut of_resource, mut body) = (Vec::new(), Vec::new(), Vec::new());
    field(&mut resource, 1, &pair("service.name", "shop"));
    field(&mut of_resource, 1, &resource);
    field(&mut of_resource, 2, &scope);
    field(&mut body, 1, &of_resource);
    body
}

fn pair(key: &str, value: &str) -> Vec<u8> {
    let (mut any, mut pair) = (Vec::new(), Vec::new());
    field(&mut any, 1, value.as_bytes());
    field(&mut pair, 1, key.as_bytes());
    field(&mut pair, 2, &any);
    pair
}

fn field(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    out.push(number << 3 | 2);
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend(bytes);
}
