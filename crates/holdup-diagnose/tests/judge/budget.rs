//! What a long recording costs to judge, at 1,000 requests a second and 1,000 sessions: an hour must take no more than 512 MB, a day
//! no more than 1 GB, and twice as long no more than twice the work. Bytes are those that were asked of the allocator, which are the same on every machine;
//! seconds are not, so that work is the CPU time of one length beside that of another. All of the process is counted: it has to be this test's own.

use holdup_diagnose::Cause;
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::Relaxed};

use holdup_diagnose::diagnose;
use holdup_recording::Recording;

use crate::long::{SMALL, grow};

/// The system's allocator, counting bytes that are held once a test asks for it: threads of the other tests would wait for
/// one another at the counters.
struct Counting;

static COUNTS: AtomicBool = AtomicBool::new(false);
static HELD: AtomicIsize = AtomicIsize::new(0);
static MOST: AtomicIsize = AtomicIsize::new(0);

/// Adds to the bytes that are held, if they are counted.
fn add(bytes: isize) {
    if COUNTS.load(Relaxed) {
        MOST.fetch_max(HELD.fetch_add(bytes, Relaxed) + bytes, Relaxed);
    }
}

// SAFETY: every call is handed on as it came; what is counted has no part in it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size().cast_signed());
        // SAFETY: the caller keeps what `alloc` asks of it.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        add(-layout.size().cast_signed());
        // SAFETY: `at` came from the system's allocator, with this layout.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        add(size.cast_signed() - layout.size().cast_signed());
        // SAFETY: as for `dealloc`.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Seconds of the recordings that are compared.
const SECONDS: [i64; 2] = [120, 240];

/// Bytes that a second of a recording may take, so that an hour is within 512 MB.
const BYTES_A_SECOND: f64 = 512.0 * 1024.0 * 1024.0 / 3_600.0;

/// How much more CPU time twice as long a recording may take: what is quadratic takes four times as much.
const WORK: f64 = 2.75;

/// The CPU time of a pass is disturbed at times, so the best of several counts.
const PASSES: usize = 3;

/// CPU seconds of this process.
pub fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // Behind the name, which may hold anything: user and system time are fields 14 and 15 (proc(5)), in hundredths of a second.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = |field: usize| fields[field - 3].parse::<f64>().unwrap();
    (ticks(14) + ticks(15)) / 100.0
}

/// Bytes held at most, and CPU seconds, to judge the recording in `dir`.
fn cost(dir: &Path) -> (f64, f64) {
    COUNTS.store(true, Relaxed);
    let (held, begun) = (HELD.load(Relaxed), cpu_s());
    MOST.store(held, Relaxed);
    let recording = Recording::open_condensed(dir).unwrap();
    let diagnosis = diagnose(&recording, None);
    assert_eq!(diagnosis.culprit.map(Cause::slug), Some("thread_pool_queue"));
    ((MOST.load(Relaxed) - held) as f64, cpu_s() - begun)
}

#[test]
fn an_hour_fits_in_memory_and_work_grows_with_length() {
    let root = tempfile::tempdir().unwrap();
    let fixture = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
    let dirs = SECONDS.map(|seconds| -> PathBuf {
        let dir = root.path().join(seconds.to_string());
        let (healthy, faulty) = (fixture("hidden-queue-fixed"), fixture("hidden-queue-faulty"));
        grow::Grown::of(&healthy, &faulty, seconds).unwrap().write(&dir).unwrap();
        dir
    });
    let passes: Vec<[(f64, f64); 2]> = (0..PASSES).map(|_| [cost(&dirs[0]), cost(&dirs[1])]).collect();
    let least = |of: fn(&(f64, f64)) -> f64, length: usize| {
        passes.iter().map(|pass| of(&pass[length])).fold(f64::INFINITY, f64::min)
    };
    let bytes = [least(|cost| cost.0, 0), least(|cost| cost.0, 1)];
    let cpu_s = [least(|cost| cost.1, 0), least(|cost| cost.1, 1)];
    let a_second = (bytes[1] - bytes[0]) / (SECONDS[1] - SECONDS[0]) as f64;
    println!("{bytes:?} bytes, {a_second:.0} more a second; {cpu_s:?} s of CPU");
    assert!(a_second <= BYTES_A_SECOND, "{a_second:.0} bytes a second, {bytes:?} in all");
    assert!(cpu_s[1] <= WORK * cpu_s[0], "{cpu_s:?} s of CPU");
}

/// Bytes that a further second may take in a recording that is read in part. A day of them, the stretch that is read in full and the
/// thinned samples fit in 1 GB.
const BYTES_A_SECOND_IN_PART: f64 = 8.0 * 1024.0;

/// Seconds of the recordings that are read in part.
const SECONDS_IN_PART: [i64; 2] = [600, 960];

#[test]
fn a_day_fits_in_memory() {
    let root = tempfile::tempdir().unwrap();
    let fixture = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name);
    let bytes = SECONDS_IN_PART.map(|seconds| {
        let dir = root.path().join(seconds.to_string());
        let (healthy, faulty) = (fixture("hidden-queue-fixed"), fixture("hidden-queue-faulty"));
        grow::Grown::of(&healthy, &faulty, seconds).unwrap().write(&dir).unwrap();
        // Rules are judged side by side, and which of them meet decides the peak: the least of several counts.
        let peak = || {
            COUNTS.store(true, Relaxed);
            let held = HELD.load(Relaxed);
            MOST.store(held, Relaxed);
            let recording = Recording::open_excerpt(&dir, None, &SMALL).unwrap();
            let diagnosis = diagnose(&recording, None);
            assert_eq!(diagnosis.culprit.map(Cause::slug), Some("thread_pool_queue"));
            (MOST.load(Relaxed) - held) as f64
        };
        (0..PASSES).map(|_| peak()).fold(f64::INFINITY, f64::min)
    });
    let a_second = (bytes[1] - bytes[0]) / (SECONDS_IN_PART[1] - SECONDS_IN_PART[0]) as f64;
    println!("{bytes:?} bytes, {a_second:.0} more a second");
    assert!(a_second <= BYTES_A_SECOND_IN_PART, "{a_second:.0} bytes a second, {bytes:?} in all");
}
