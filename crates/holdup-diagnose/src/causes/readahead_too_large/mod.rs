//! Random reads that each pull in far more than was requested.

mod advice;
mod signs;

use holdup_recording::{Labels, metrics};

use super::{
    Cause, CauseFinding, Definition, Doc, Judge, MATTERS, Outcome, Role, Trait, bytes, ms, percent, thousands,
};
use crate::case::Case;
use crate::next_command;
use crate::resources::disk::{
    AMPLIFIED, MAYBE_AMPLIFIED, PLAIN_READ_BYTES, WINDOWS_PER_FAULT, is_readahead_like, read_device, what_it_does, who,
};
use crate::resources::{is_too_small, share, volume};
use crate::strength::{FAIR, STRONG, WEAK};
use holdup_signals::evidence::Evidence;
use holdup_signals::host::disk_waits::{DiskWaits, Wait};
use holdup_signals::host::disks::HOST;
use holdup_signals::host::useful_reads::{UsefulReads, window_setting};
use holdup_signals::{Counter, Disk, Missing, View};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::DiskDemand, Trait::Standing, Trait::LongStatement],
    signs: Some(signs::find),
    is_answered: |facts| facts.read_per_fault.is_some(),
    fixes: advice::of_facts,
    ..Definition::new(Cause::ReadaheadTooLarge, DOC, Judge::Alone(judge), &next_command::READ_PER_FAULT)
};

const DOC: Doc = Doc {
    title: "Readahead is too large for random reads",
    what: "A page fault on a mapped file makes the kernel read a whole readahead window around the page. If access is random, the rest of the window is never used.",
    hurts: "The disk spends its bandwidth on unrequested data, requests queue behind it, and that data pushes useful pages out of memory.",
    needs: "The host's disk and paging counters and its block devices' settings (--watch host), and the thread states and read calls of the service's processes (--watch pid:N).",
    predicts: "The device is at its limit while the service's threads sleep in page faults; a read is many times larger than requested (page faults x page size, plus read calls) and about as large as the readahead window; each fault costs about one window.",
    clears: "Reads bring a page or two, or about as much as requested; a fault brings many windows, as for a sequential reader; the window is already small; the device has room; or threads hardly ever slept for reads.",
    looks_like: "A working set that does not fit in memory makes as many reads, about as large as requested. Between two and four bytes read for each requested, both are possible: a smaller window for a minute tells them apart, because reads of the working set stay as they are. A sequential scan or a backup makes large reads that are used. Current kernels do not read ahead for random read calls (pread): only mapped files suffer.",
    fix: "Readahead near the size of a useful read (blockdev --setra), and noatime. A store that maps its files can tell the kernel instead that access is random (MADV_RANDOM).",
    prove: "The same load again: reads as small as requested, a short queue, a fraction of the bytes per second.",
    references: "Linux: blockdev(8), madvise(2), Documentation/ABI/stable/sysfs-block (read_ahead_kb), Documentation/admin-guide/iostats.rst; MongoDB manual: Production Notes, readahead of 8 to 32 sectors for WiredTiger; LMDB: MDB_NORDAHEAD in lmdb.h.",
};

/// What to record to see whether reads are sequential.
const TRACED: &str = "--watch tracepoints, as root";

/// Reads are random if this share (0-1) of them jump.
const MOST_JUMP: f64 = 0.5;

/// With fewer operations queued or in service on average, the device has room, and a smaller read
/// would hardly be faster.
const AT_LIMIT_QUEUE: f64 = 1.0;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let disks = view.disks()?;
    let waits = view.disk_waits(&disks, case.completed_in(view.window)?)?;
    let reading_ms = volume::of_requests(&waits, case, waits.reading_ms())?;
    let asleep = waits.asleep.counted(
        format!("{:.2} threads on average", waits.asleep.mean),
        "several, if reads were the cause",
        format!(
            "{:.2} {} on average: waits for reads are at most {} of a request",
            waits.asleep.mean,
            waits.asleep.who(),
            ms(reading_ms)
        ),
    );
    let Some(disk) = read_device(&view, &disks, &waits).filter(|_| share(case, reading_ms) >= MATTERS) else {
        return Ok(Outcome::Cleared(vec![asleep]));
    };
    let labels = [("device", disk.device.as_str()), ("direction", "read")];
    let read = view.counter(metrics::host::DISK_IO_BYTES.name, &labels, HOST)?;
    let size = disk.read.bytes_each();
    if size <= PLAIN_READ_BYTES {
        let text = format!("a read of {} was {} on average: that is not readahead", disk.name(), bytes(size));
        let plain = read.evidence(bytes(size), format!("more than {}", bytes(PLAIN_READ_BYTES)), text);
        return Ok(Outcome::Cleared(vec![plain]));
    }
    let useful = view.useful_reads(disk, &waits)?;
    let amplified = amplified(disk, &read, &useful);
    let per_fault = per_fault(&useful, useful.window_bytes.unwrap_or(size));
    if !is_readahead_like(&useful) {
        let why = if useful.ratio() < MAYBE_AMPLIFIED { amplified } else { per_fault };
        return Ok(Outcome::Cleared(vec![why]));
    }
    let queue = view.disk_evidence(disk, "below 1", what_it_does(disk))?;
    if disk.queue < AT_LIMIT_QUEUE && !waits.held_back {
        return Ok(Outcome::Cleared(vec![queue]));
    }
    let explains_ms = reading_ms * (1.0 - 1.0 / useful.ratio()) * useful.own();
    let mut evidence = vec![amplified];
    if is_too_small(case, explains_ms)? {
        evidence.extend(who(&view, disk).evidence);
        return Ok(Outcome::Cleared(evidence));
    }
    evidence.extend([queue, per_fault]);
    evidence.extend(who(&view, disk).evidence);
    let mut weights = vec![if useful.ratio() < AMPLIFIED { WEAK } else { STRONG }];
    let further = [window(&view, disk, &useful), jumps(&view, disk)];
    for told in further.into_iter().flatten() {
        evidence.push(told);
        weights.push(FAIR);
    }
    let faults = in_faults(&waits);
    weights.push(if faults.is_some() { STRONG } else { WEAK });
    evidence.push(faults.unwrap_or(asleep));
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes: advice::fixes(&view, disk, &useful, &waits),
        prove: format!(
            "Run the same scenario again: a read of {} is near {}, and its queue is short.",
            disk.device,
            bytes(advice::fitting_bytes(&useful))
        ),
        role: Role::Root,
    }))
}

/// How many bytes were read for each that was requested.
fn amplified(disk: &Disk, read: &Counter, useful: &UsefulReads) -> Evidence {
    let text = format!(
        "{} read {:.0} bytes for every byte requested: {} per read, of which {} were needed",
        disk.name(),
        useful.ratio(),
        bytes(useful.read_each()),
        bytes(useful.useful_each()),
    );
    read.evidence(format!("{:.0}x", useful.ratio()), format!("below {MAYBE_AMPLIFIED:.0}x"), text)
}

/// What a page fault brought, compared with a readahead window of `window` bytes.
fn per_fault(useful: &UsefulReads, window: f64) -> Evidence {
    let text = format!(
        "{} page faults/s had to read; each brought {}",
        thousands(useful.faults.rate()),
        bytes(useful.read_per_fault())
    );
    let expected = format!("at most {}, if reads are random", bytes(WINDOWS_PER_FAULT * window));
    useful.faults.evidence(format!("{} a fault", bytes(useful.read_per_fault())), expected, text)
}

/// The device's readahead window, if recorded.
fn window(view: &View<'_>, disk: &Disk, useful: &UsefulReads) -> Option<Evidence> {
    let name = window_setting(&disk.device);
    let kb = view.setting(&name, HOST).ok()?;
    let text = format!("the readahead window of {} is {kb} KiB", disk.device);
    let near = format!("near {}", bytes(useful.useful_each()));
    Some(Evidence::new("settings", "value", Labels::new([("name", name)]), view.window, kb, near, text))
}

/// The share of the sleeping threads that waited for a page of a mapped file, if any did.
fn in_faults(waits: &DiskWaits) -> Option<Evidence> {
    let place = waits.place(&[Wait::Fault])?;
    let share = percent(waits.mean_of(&[Wait::Fault]) / waits.asleep.mean.max(1e-9));
    let text = format!(
        "{share} of the threads in uninterruptible sleep waited for a page of a mapped file ({})",
        place.process
    );
    Some(waits.asleep.at(place, share, "0 %", text))
}

/// Whether most reads start elsewhere than where an earlier one ended, if recorded (--watch
/// tracepoints). A window larger than the device's largest request is read in several consecutive
/// parts: few jumps then prove nothing.
fn jumps(view: &View<'_>, disk: &Disk) -> Option<Evidence> {
    let labels = [("device", disk.device.as_str()), ("direction", "read")];
    let all = view.counter(metrics::tracepoints::DISK_REQUESTS.name, &labels, TRACED).ok()?;
    let in_order = view.counter(metrics::tracepoints::DISK_SEQUENTIAL_REQUESTS.name, &labels, TRACED).ok()?;
    let ratio = 1.0 - in_order.delta / all.delta.max(1.0);
    (ratio >= MOST_JUMP).then(|| {
        let text = format!("{} of {:.0} reads did not start where an earlier one ended", percent(ratio), all.delta);
        in_order.evidence(percent(ratio), format!("below {}", percent(MOST_JUMP)), text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    const FAULT: &str = "folio_wait_bit_common < filemap_fault < __do_fault < exc_page_fault";

    /// 250 requests a second of 100 ms; 24 threads of the store sleep in page faults, behind reads of `size` bytes.
    fn made(reads: f64, size: f64, faults: f64, window_kb: &str) -> SyntheticRecording {
        let reading = (reads, size, 24.0 / reads * 1e3);
        SyntheticRecording::new(12)
            .requests(250, 100)
            .disk("loop0", reading, (0.0, 0.0, 0.0))
            .disk("vda", (1.0, 4096.0, 1.0), (5.0, 4096.0, 1.0))
            .asleep(24, "folio_wait_bit_common", FAULT, Some("/data/store/data.mdb"))
            .counter("host", "system_paging_faults_total", &[("type", "major")], faults)
            .counter("pid:7", "process_io_calls_bytes_total", &[("direction", "read")], 30_000.0)
            .setting("host", "mount[/data].fstype", "ext4")
            .setting("host", "mount[/data].device", "loop0")
            .setting("host", "block.loop0.read_ahead_kb", window_kb)
    }

    fn found(made: &SyntheticRecording) -> CauseFinding {
        match made.judge(&DEFINITION) {
            Ok(Outcome::Found(found)) => found,
            Ok(Outcome::Cleared(evidence)) => panic!("cleared: {evidence:?}"),
            _ => panic!("not judged"),
        }
    }

    #[test]
    fn a_window_a_fault_is_found_with_the_value_that_fits() {
        let found = found(&made(330.0, 118_000.0, 335.0, "128"));
        assert!((found.explains_ms - 93.0).abs() < 3.0, "{}", found.explains_ms);
        assert_eq!(found.fixes[0].command.as_deref(), Some("blockdev --setra 8 /dev/loop0"));
        assert!(found.fixes[0].keep.as_ref().unwrap().contains("read_ahead_kb}=\"4\""));
        assert!(found.evidence[0].observed == "28x" || found.evidence[0].observed == "29x", "{:?}", found.evidence[0]);
        assert!(found.evidence.iter().any(|e| e.table == "threads"));
    }

    #[test]
    fn advice_is_for_the_store_that_reads_and_for_the_mount_that_writes() {
        let texts = |made: &SyntheticRecording| -> Vec<String> {
            found(made).fixes.into_iter().map(|fix| fix.command.unwrap_or(fix.text)).collect()
        };
        let lmdb = made(330.0, 118_000.0, 335.0, "128").setting("host", "mount[/data].options", "rw,relatime");
        let said = texts(&lmdb);
        assert!(said.len() == 2 && said[1].contains("MDB_NORDAHEAD"), "{said:?}");
        let strict = made(330.0, 118_000.0, 335.0, "128").setting("host", "mount[/data].options", "rw");
        assert_eq!(texts(&strict)[1], "mount -o remount,noatime /data");
        // Another store has no word of LMDB's, and one that reads by calls maps nothing.
        let other = lmdb.clone().tables(|tables| {
            tables.threads.rows.iter_mut().for_each(|thread| thread.path = Some("/data/store/table.bin".into()));
        });
        let said = texts(&other);
        assert!(said[1].contains("MADV_RANDOM") && !said[1].contains("LMDB"), "{said:?}");
        let calls = "folio_wait_bit_common < filemap_update_page < filemap_read < vfs_read < __x64_sys_pread64";
        let by_calls = lmdb.tables(|tables| {
            tables.threads.rows.iter_mut().for_each(|thread| thread.stack = Some(calls.into()));
        });
        assert_eq!(texts(&by_calls).len(), 1, "{:?}", texts(&by_calls));
    }

    #[test]
    fn traced_jumps_are_evidence_and_their_absence_is_none() {
        let read = [("device", "loop0"), ("direction", "read")];
        let traced = |in_order| {
            let made =
                made(330.0, 118_000.0, 335.0, "128").counter("tracepoints", "traced_disk_requests_total", &read, 300.0);
            found(&made.counter("tracepoints", "traced_disk_sequential_requests_total", &read, in_order))
        };
        let said = |found: &CauseFinding| found.evidence.iter().any(|e| e.text.contains("did not start where"));
        assert!(said(&traced(9.0)) && !said(&traced(200.0)));
    }

    /// As in the incident: 15 kB a read, of which a page was asked for, behind a window of 128 KiB.
    #[test]
    fn parts_of_a_window_may_be_readahead() {
        let partial = found(&made(330.0, 15_200.0, 330.0, "128"));
        let whole = found(&made(330.0, 118_000.0, 335.0, "128"));
        assert!((partial.explains_ms - 71.0).abs() < 5.0, "{}", partial.explains_ms);
        assert!(partial.weights[0] < whole.weights[0]);
        assert_eq!(partial.fixes[0].command.as_deref(), Some("blockdev --setra 8 /dev/loop0"));
    }

    #[test]
    fn small_reads_used_reads_and_sequential_reads_are_not_it() {
        for (why, made) in [
            ("small", made(2_000.0, 8_192.0, 1_900.0, "8")),
            ("used", made(330.0, 118_000.0, 8_000.0, "128")),
            ("sequential", made(330.0, 118_000.0, 100.0, "128")),
        ] {
            assert_eq!(made.explains(&DEFINITION), Some(0.0), "{why}");
        }
        let roomy = made(330.0, 118_000.0, 335.0, "128").without("system_disk_weighted_io_time_seconds_total");
        assert_eq!(roomy.explains(&DEFINITION), None);
    }

    #[test]
    fn reads_of_another_process_do_not_count() {
        let read = [("direction", "read")];
        let of =
            |bytes| made(330.0, 118_000.0, 335.0, "128").counter("pid:7", "process_disk_io_bytes_total", &read, bytes);
        assert!(of(330.0 * 118_000.0).explains(&DEFINITION).unwrap() > 80.0);
        assert_eq!(of(1_000_000.0).explains(&DEFINITION), Some(0.0));
    }

    #[test]
    fn bytes_requested_by_read_calls_count_as_useful() {
        let calls = "folio_wait_bit_common < filemap_update_page < filemap_read < vfs_read < __x64_sys_pread64";
        let base =
            made(330.0, 118_000.0, 335.0, "128").without("process_io_calls_bytes_total").without("process_threads");
        let asking = base.clone().asleep(2_000, "folio_wait_bit_common", calls, None);
        assert_eq!(asking.explains(&DEFINITION), Some(0.0), "without their bytes, waits in calls count as used");
    }

    /// As MongoDB reads: by calls of a few pages, each of which brings a window. Its engine counts calls and bytes.
    #[test]
    fn requested_bytes_of_a_storage_engine_separate_it_from_a_working_set() {
        let calls = "folio_wait_bit_common < filemap_update_page < filemap_read < vfs_read < __x64_sys_pread64";
        let engine = "mongodb_server_status_wired_tiger_block_manager";
        let made = |asked: f64| {
            SyntheticRecording::new(12)
                .requests(250, 100)
                .disk("vda", (234.0, 15_248.0, 182.0), (45.0, 10_800.0, 36.0))
                .asleep(24, "folio_wait_bit_common", calls, None)
                .counter("host", "system_paging_faults_total", &[("type", "major")], 0.0)
                .counter("mongodb://db", &format!("{engine}_blocks_read"), &[], 200.0)
                .counter("mongodb://db", &format!("{engine}_bytes_read"), &[], 200.0 * asked)
                .setting("host", "block.vda.read_ahead_kb", "128")
        };
        assert!(
            made(4_096.0).explains(&DEFINITION).is_some_and(|ms| ms > 60.0),
            "{:?}",
            made(4_096.0).explains(&DEFINITION)
        );
        assert_eq!(made(15_000.0).explains(&DEFINITION), Some(0.0), "all of it was asked for");
    }

    #[test]
    fn without_a_fact_it_is_not_cleared() {
        let made = made(330.0, 118_000.0, 335.0, "128");
        for metric in [
            "system_disk_operations_total",
            "system_disk_io_bytes_total",
            "process_threads",
            "system_paging_faults_total",
        ] {
            assert_eq!(made.clone().without(metric).explains(&DEFINITION), None, "{metric}");
        }
        assert!(made.without("process_io_calls_bytes_total").explains(&DEFINITION).is_some_and(|ms| ms > 80.0));
    }
}
