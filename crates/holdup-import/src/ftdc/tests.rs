//! Files of the real structure, written by an encoder that only tests have.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use holdup_mongodb::Writer;
use holdup_recording::metrics::{Metric, mongodb as metric};

use super::chunk::{ChunkError, leaf};
use super::*;

const START_MS: i64 = 1_795_000_000_000;

/// A document of a file: its time, its kind, and its content.
fn document(kind: i32, fill: impl FnOnce(Writer) -> Writer) -> Vec<u8> {
    fill(Writer::new().time("_id", START_MS).int("type", kind)).finish()
}

/// Numbers in 7 bits a byte.
fn packed(mut number: u64, into: &mut Vec<u8>) {
    while number >= 0x80 {
        into.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}

fn numbers(bytes: &[u8]) -> Vec<i64> {
    fn walk(document: Document<'_>, into: &mut Vec<i64>) {
        for element in document.elements() {
            match element.unwrap().1 {
                Element::Map(inner) | Element::List(inner) => walk(inner, into),
                other => into.extend(leaf(other)),
            }
        }
    }
    let mut found = Vec::new();
    walk(Document::read(bytes).unwrap(), &mut found);
    found
}

/// The uncompressed bytes of a chunk of these samples.
fn plain(samples: &[Vec<u8>]) -> Vec<u8> {
    let all: Vec<Vec<i64>> = samples.iter().map(|sample| numbers(sample)).collect();
    let (figures, after) = (all[0].len(), all.len() - 1);
    let mut bytes = samples[0].clone();
    bytes.extend((figures as u32).to_le_bytes());
    bytes.extend((after as u32).to_le_bytes());
    let mut zeros = 0;
    for figure in 0..figures {
        for pair in all.windows(2) {
            let difference = pair[1][figure].wrapping_sub(pair[0][figure]);
            if difference == 0 {
                zeros += 1;
                continue;
            }
            if zeros > 0 {
                packed(0, &mut bytes);
                packed(zeros - 1, &mut bytes);
                zeros = 0;
            }
            packed(difference as u64, &mut bytes);
        }
    }
    if zeros > 0 {
        packed(0, &mut bytes);
        packed(zeros - 1, &mut bytes);
    }
    bytes
}

/// A chunk's data, which says that it has `length` bytes.
fn compressed(plain: &[u8], length: usize) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new((length as u32).to_le_bytes().to_vec(), Compression::fast());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn chunk(samples: &[Vec<u8>]) -> Vec<u8> {
    let plain = plain(samples);
    document(1, |it| it.binary("data", &compressed(&plain, plain.len())))
}

/// What a server collects at second `n`.
fn sample(n: i64) -> Vec<u8> {
    let at = START_MS + n * 1_000;
    let reads = Writer::new().long("latency", 1_000_000 + 250_000 * n).long("ops", 30 + n);
    let tickets = |out: i64| Writer::new().long("out", out).long("available", 128 - out);
    let queues = Writer::new().document("execution", Writer::new().document("write", tickets(n)));
    let status = Writer::new()
        .time("start", at)
        .text("host", "db1")
        .text("version", "8.0.4")
        .double("uptime", 600.0 + n as f64)
        .bool("ok", true)
        .document("connections", Writer::new().int("current", (5 - n) as i32))
        .document("opLatencies", Writer::new().document("reads", reads))
        .document("queues", queues)
        .document("mem", Writer::new().int("resident", 3))
        .document("rare", Writer::new().long("figure", 100 + n));
    let member = Writer::new().text("name", "db1").double("health", 1.0).text("stateStr", "PRIMARY");
    let optime = Writer::new().double("t", 1.0);
    let lost = Writer::new().text("name", "db2").double("health", 0.0).text("stateStr", "DOWN").time("optimeDate", 0);
    let members = Writer::list(|list| {
        list.document("0", member.document("optime", optime).time("optimeDate", at - 500)).document("1", lost)
    });
    let disk = Writer::new().long("reads", 10 * n).long("read_sectors", 80 * n).long("io_time_ms", 900 * n);
    let memory = ["MemTotal_kb", "MemFree_kb", "Buffers_kb", "Cached_kb", "SReclaimable_kb"];
    let memory =
        memory.iter().zip([1_000, 100 - n, 50, 200, 30]).fold(Writer::new(), |all, (name, kb)| all.long(name, kb));
    let machine = Writer::new()
        .document("cpu", Writer::new().long("user_ms", 1_500 * n).long("iowait_ms", 200))
        .document("memory", memory)
        .document("disks", Writer::new().document("vda", disk));
    Writer::new()
        .time("start", at)
        .document("serverStatus", status)
        .document("replSetGetStatus", Writer::new().list_of("members", members))
        .document("systemMetrics", machine)
        .time("end", at + 5)
        .finish()
}

fn metadata() -> Vec<u8> {
    let parsed = Writer::new().document("storage", Writer::new().text("dbPath", "/data"));
    let options = Writer::new().document("parsed", parsed);
    let system = Writer::new().int("numCores", 4).text("hostname", "db1");
    let doc = Writer::new()
        .document("buildInfo", Writer::new().text("version", "8.0.4"))
        .document("getCmdLineOpts", options)
        .document("hostInfo", Writer::new().document("system", system));
    document(0, |it| it.document("doc", doc))
}

fn read(bytes: &[u8]) -> (Account, Batch) {
    let (mut ftdc, mut all) = (Ftdc::default(), Batch::default());
    ftdc.read("metrics", bytes, &mut |batch| all.append(batch)).unwrap();
    (ftdc.finish(), all)
}

fn series(batch: &Batch, metric: Metric, labels: &[(&str, &str)]) -> Vec<f64> {
    let found = batch.samples.iter().filter(|it| it.metric == metric.name && it.labels.contains(labels));
    found.map(|it| it.value).collect()
}

#[test]
fn a_file_becomes_the_metrics_of_the_live_source() {
    let samples: Vec<Vec<u8>> = (0..4).map(sample).collect();
    let bytes = [metadata(), chunk(&samples), chunk(&[sample(4), sample(5)])].concat();
    assert!(is_one(&bytes) && !is_one(b"\x1f\x8b") && !is_one(&bytes[..15]));
    let (account, batch) = read(&bytes);
    let second = 1_000_000_000;
    let first = START_MS * 1_000_000;
    assert_eq!((account.chunks, account.samples, account.broken.len()), (2, 6, 0));
    assert_eq!(account.span, Some((first, first + 5 * second)));
    assert_eq!(series(&batch, metric::UPTIME, &[]), [600.0, 601.0, 602.0, 603.0, 604.0, 605.0]);
    assert_eq!(series(&batch, metric::SERVER_STATUS_CONNECTIONS_CURRENT, &[]), [5.0, 4.0, 3.0, 2.0, 1.0, 0.0]);
    let out = metric::SERVER_STATUS_WIRED_TIGER_CONCURRENT_TRANSACTIONS_WRITE_OUT;
    assert_eq!(series(&batch, out, &[])[..4], [0.0, 1.0, 2.0, 3.0], "8.0 has tickets at another place");
    assert_eq!(series(&batch, metric::OPERATION_TIME, &[("kind", "reads")])[..3], [1.0, 1.25, 1.5]);
    assert_eq!(series(&batch, metric::MEMORY_RESIDENT_BYTES, &[])[0], 3_145_728.0);
    let applied = series(&batch, metric::REPLICA_OPTIME, &[("member", "db1"), ("stage", "applied")]);
    assert!((applied[3] - (START_MS as f64 / 1e3 + 2.5)).abs() < 1e-3, "{applied:?}");
    assert_eq!(series(&batch, metric::REPLICA_HEALTH, &[("member", "db2")]), [0.0; 6]);
    assert!(series(&batch, metric::REPLICA_OPTIME, &[("member", "db2")]).is_empty(), "never reached");
    let times: Vec<i64> =
        batch.samples.iter().filter(|it| it.metric == metric::UPTIME.name).map(|it| it.observed_at).collect();
    assert_eq!(times[..3], [first, first + second, first + 2 * second]);
    let seldom: Vec<f64> =
        batch.samples.iter().filter(|it| it.metric.ends_with("rare_figure")).map(|it| it.value).collect();
    assert_eq!(seldom, [100.0, 104.0], "once a chunk at least");
    assert!(batch.settings.iter().any(|it| (it.name.as_str(), it.value.as_str()) == ("storage.dbPath", "/data")));
}

#[test]
fn the_machine_is_the_host() {
    use holdup_recording::metrics::host;
    let (_, batch) = read(&[metadata(), chunk(&[sample(0), sample(1)])].concat());
    assert_eq!(series(&batch, host::CPU_TIME, &[("cpu_mode", "user")]), [0.0, 1.5]);
    assert_eq!(series(&batch, host::DISK_IO_BYTES, &[("device", "vda"), ("direction", "read")]), [0.0, 40_960.0]);
    assert_eq!(series(&batch, host::DISK_IO_TIME, &[("device", "vda")]), [0.0, 0.9]);
    let used = series(&batch, host::MEMORY_USAGE_BYTES, &[("state", "used")]);
    assert_eq!(used, [620.0 * 1024.0, 621.0 * 1024.0]);
    assert_eq!(series(&batch, host::CPU_LOGICAL_COUNT, &[]), [4.0]);
    let sources: BTreeSet<&str> = batch.samples.iter().map(|it| it.source.as_str()).collect();
    assert_eq!(sources, BTreeSet::from(["host", SOURCE]));
}

#[test]
fn samples_that_two_files_of_a_copy_have_are_read_once() {
    let uptimes = |files: &[(&str, Vec<u8>)]| {
        let (mut ftdc, mut all) = (Ftdc::default(), Batch::default());
        for (name, bytes) in files {
            ftdc.read(name, bytes.as_slice(), &mut |batch| all.append(batch)).unwrap();
        }
        let account = ftdc.finish();
        let mut uptimes = series(&all, metric::UPTIME, &[]);
        uptimes.sort_by(f64::total_cmp);
        (account.samples, account.repeated, uptimes)
    };
    let stays = ("data/metrics.2026-11-26T10-00-00Z-00000", chunk(&[sample(0), sample(1), sample(2)]));
    // The interim file begins with the newest chunk, and goes on.
    let interim = ("data/metrics.interim", chunk(&[sample(1), sample(2), sample(3), sample(4)]));
    let expected = (5, 2, vec![600.0, 601.0, 602.0, 603.0, 604.0]);
    assert_eq!(uptimes(&[stays.clone(), interim.clone()]), expected);
    let (samples, repeated, _) = uptimes(&[interim.clone(), stays.clone()]);
    assert_eq!((samples, repeated), (5, 2), "in any order");
    // Of files that stay both count: a clock that was set back repeats times, not samples.
    let again = ("data/metrics.2026-11-26T11-00-00Z-00000", stays.1.clone());
    assert_eq!(uptimes(&[stays, again]).1, 0);
}

#[test]
fn damage_is_counted_and_survived() {
    let good = chunk(&[sample(0), sample(1)]);
    let bad = document(1, |it| it.binary("data", b"\x10\0\0\0not zlib"));
    let future = document(9, |it| it.text("doc", "x"));
    let periodic = document(2, |it| it.document("doc", Writer::new()));
    let (account, _) = read(&[bad.clone(), future, periodic, good.clone(), bad, good.clone()].concat());
    assert_eq!((account.chunks, account.samples, account.unknown, account.broken_total), (2, 4, 1, 2));
    assert_eq!(account.broken, ["metrics, byte 0: a chunk that cannot be decompressed"]);
    let empty = document(1, |it| it.text("doc", "x"));
    assert_eq!(read(&empty).0.broken, ["metrics, byte 0: a document without its content"]);
    let (account, batch) = read(&[metadata(), empty].concat());
    assert_eq!((account.samples, batch.len()), (0, 0), "metadata alone writes nothing");
    for ms in [i64::MAX, i64::MIN, -1] {
        let timeless = plain(&[Writer::new().int("n", 1).finish(), Writer::new().int("n", 2).finish()]);
        let data = compressed(&timeless, timeless.len());
        let odd = Writer::new().time("_id", ms).int("type", 1).binary("data", &data).finish();
        let (account, batch) = read(&[odd, good.clone()].concat());
        assert_eq!((account.chunks, account.broken_total), (1, 1), "{ms}");
        assert!(batch.samples.iter().all(|it| it.observed_at >= START_MS * 1_000_000));
    }
    for cut in 1..good.len() {
        let (account, batch) = read(&good[..cut]);
        assert_eq!((account.chunks, account.broken_total, batch.len()), (0, 1, 0), "{cut}");
    }
    let (account, _) = read(&[good.as_slice(), &[0; 4_096]].concat());
    assert_eq!((account.chunks, account.broken_total), (1, 0), "room that was made and not used yet");
    let (account, _) = read(&[good.as_slice(), b"\xff\xff\xff\x7fgarbage", &good].concat());
    assert_eq!((account.chunks, account.broken_total), (1, 1), "nothing is found again behind it");
}

#[test]
fn claims_are_held_against_the_bytes() {
    let good = plain(&[sample(0), sample(1)]);
    let error = |plain: &[u8], length: usize| Chunk::read(&compressed(plain, length)).unwrap_err();
    assert!(matches!(error(&good, usize::MAX >> 40), ChunkError::Length));
    assert!(matches!(error(&good, 1 << 30), ChunkError::Large(_)));
    assert!(matches!(error(&good, good.len() - 1), ChunkError::Length), "a bomb is not unpacked");
    let start = sample(0).len();
    let with = |at: usize, count: u32| {
        let mut bad = good.clone();
        bad[start + at..start + at + 4].copy_from_slice(&count.to_le_bytes());
        error(&bad, bad.len())
    };
    assert!(matches!(with(0, u32::MAX), ChunkError::Figures { .. }));
    assert!(matches!(with(4, u32::MAX), ChunkError::Values { .. }));
    assert!(matches!(with(4, 1_000), ChunkError::Differences), "fewer differences than it says");
    assert!(matches!(Chunk::read(b"\0"), Err(ChunkError::Short)));
    let mut deep = Writer::new().int("n", 1);
    for _ in 0..80 {
        deep = Writer::new().document("d", deep);
    }
    let plain = plain(&[deep.finish()]);
    assert!(matches!(Chunk::read(&compressed(&plain, plain.len())), Err(ChunkError::Sample(_))));
    // Texts do not count as figures, but take memory.
    let texts = (0..200_000).fold(Writer::new(), |all, _| all.text("t", ""));
    let bytes = [&texts.finish()[..], &[0; 8]].concat();
    assert!(matches!(Chunk::read(&compressed(&bytes, bytes.len())), Err(ChunkError::Sample(_))));
}
