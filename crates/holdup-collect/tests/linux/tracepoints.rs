//! The real kernel's tracepoints. As root only: the tracing file system is mounted for this test's thread alone, in a mount
//! namespace of its own.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};

use holdup_collect::watch::{self, Options};
use holdup_recording::Batch;

const BLOCK: usize = 4_096;
const BLOCKS: u64 = 4_096;

/// Whether this thread now sees the tracing file system.
fn tracing_is_mounted() -> bool {
    let at = Path::new("/sys/kernel/tracing");
    if at.join("events").is_dir() {
        return true;
    }
    // SAFETY: plain system calls on constant strings; the namespace is this thread's own and ends with it.
    unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(
                std::ptr::null(),
                c"/".as_ptr(),
                std::ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                std::ptr::null(),
            ) == 0
            && libc::mount(c"nodev".as_ptr(), c"/sys/kernel/tracing".as_ptr(), c"tracefs".as_ptr(), 0, std::ptr::null())
                == 0
    }
}

/// A buffer that direct I/O accepts.
#[repr(align(4096))]
struct Aligned([u8; BLOCK]);

/// A file on a block device, read past the page cache; none where that can't be.
fn direct(path: &Path) -> Option<File> {
    let mut file = File::create(path).ok()?;
    let zeros = vec![7; BLOCK];
    for _ in 0..BLOCKS {
        file.write_all(&zeros).ok()?;
    }
    file.sync_all().ok()?;
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path).ok()
}

fn sum(batch: &Batch, metric: &str, labels: &[(&str, &str)]) -> f64 {
    let rows = batch.samples.iter().filter(|s| s.metric == metric && s.labels.contains(labels));
    rows.map(|s| s.value).sum()
}

/// Share of sequential ones, and number, of the reads that are made by reading `blocks`.
fn sequential(
    collector: &mut dyn holdup_collect::Collector,
    file: &File,
    blocks: impl Iterator<Item = u64>,
) -> (f64, f64) {
    let reads = [("direction", "read")];
    let read = |collector: &mut dyn holdup_collect::Collector| {
        let mut batch = Batch::default();
        collector.sample(&mut batch).unwrap();
        let of = |metric| sum(&batch, metric, &reads);
        (of("traced_disk_sequential_requests_total"), of("traced_disk_requests_total"))
    };
    let before = read(collector);
    let mut buffer = Box::new(Aligned([0; BLOCK]));
    for block in blocks {
        file.read_exact_at(&mut buffer.0, block * BLOCK as u64).unwrap();
    }
    let after = read(collector);
    let requests = after.1 - before.1;
    ((after.0 - before.0) / requests.max(1.0), requests)
}

#[test]
fn sequence_of_reads_and_time_of_calls_are_seen() {
    if !tracing_is_mounted() {
        eprintln!("skipped: the tracing file system can't be mounted here; that needs root");
        return;
    }
    let mut collector = watch::collector("tracepoints", &Options::default()).unwrap();
    let coverage = match collector.probe() {
        Ok(coverage) => coverage,
        Err(error) => {
            eprintln!("skipped: {error}");
            return;
        }
    };
    let has = |part: &str| !coverage.iter().any(|c| c.source.ends_with(part));
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();

    if has("block requests")
        && let Some(file) = direct(&dir.path().join("blocks"))
    {
        // Others may read from the same disk meanwhile: tried again, where that was much.
        let mut last = String::new();
        let told_apart = (0..4).any(|_| {
            let (in_order, reads) = sequential(&mut *collector, &file, 0..BLOCKS);
            let (at_random, more) = sequential(&mut *collector, &file, (0..BLOCKS).map(|i| i * 1_597 % BLOCKS));
            last = format!("{in_order} of {reads} in order, {at_random} of {more} at random");
            reads >= BLOCKS as f64 && more >= BLOCKS as f64 && in_order > 0.8 && at_random < 0.3
        });
        assert!(told_apart, "{last}");
    }

    if has("calls") {
        let script = "import os, sys\nfor i in range(50):\n  os.close(os.open('x', os.O_CREAT | os.O_WRONLY)); os.unlink('x')\n\
                      print('done', flush=True); sys.stdin.read()";
        let mut child = Command::new("python3");
        let child = child.args(["-c", script]).current_dir(dir.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut batch = Batch::default();
        collector.sample(&mut batch).unwrap();
        drop(child.stdin.take());
        child.wait().unwrap();
        let of = |metric| {
            let calls = ["unlink", "unlinkat"];
            calls.map(|call| sum(&batch, metric, &[("process", "python3"), ("call", call)])).iter().sum::<f64>()
        };
        let lost = sum(&batch, "traced_records_lost_total", &[]);
        assert!(of("traced_calls_total") >= 50.0 || lost > 0.0, "{} calls seen, {lost} lost", of("traced_calls_total"));
        assert!(of("traced_call_time_seconds_total") > 0.0);
    }
}
