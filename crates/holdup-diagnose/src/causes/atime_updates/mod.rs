//! Every read of a file also writes its access time.

mod signs;

use super::{Cause, CauseFinding, Definition, Doc, Judge, Outcome, Role, Trait, ms, percent};
use crate::case::Case;
use crate::next_command::NextCommand;
use crate::resources::disk::{what_it_does, who};
use crate::resources::{is_too_small, mounts, volume};
use crate::strength::FAIR;
use holdup_recording::metrics;
use holdup_signals::{Missing, Mount};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::DiskDemand, Trait::Standing],
    signs: Some(signs::find),
    fixes: |facts| facts.strict_mounts().iter().map(|mount| mounts::without_access_times(&facts.view, mount)).collect(),
    ..Definition::new(Cause::AtimeUpdates, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "Reads of files write their access times",
    what: "On a file system mounted with strictatime, the kernel writes an inode's access time back after each read of its file, though no program requested a write.",
    hurts: "A service that only reads makes its disk write: operations that compete with its reads, and journal commits that delay others.",
    needs: "Mount options and the host's disk statistics (--watch host), and the writes of the service's processes (--watch pid:N).",
    predicts: "The mount has strictatime (neither relatime nor noatime); its device writes more than the processes wrote; those writes are a large share of its operations while threads wait for it.",
    clears: "Every mount on an active device has noatime, or relatime, which is the default and writes at most once a day and file; or the unrequested writes are few.",
    looks_like: "Write-back of earlier writes, a journal, a swap partition on the same disk. A large effect is rare: many reads of one file update a single inode.",
    fix: "Mount with noatime, or at least relatime.",
    prove: "The same load again: the device hardly writes.",
    references: "Linux: mount(8) (relatime, strictatime, lazytime); MongoDB manual: Production Notes (noatime); PostgreSQL and MySQL run on either.",
};

/// Shows it in one command.
const NEXT: NextCommand =
    NextCommand::on_machine("mount", 1, "whether each read of a file is written down (relatime and noatime avoid it)");

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let mounted = mounts::on_devices(&view)?;
    let is_strict = |m: &&Mount| mounts::writes_access_times(m);
    let disks = view.disks()?;
    let used = |m: &&Mount| disks.named(&view.whole_device(&m.device)).is_some();
    let Some(mount) = mounted.iter().filter(is_strict).find(used) else {
        let shown = mounted.iter().find(used).or(mounted.first());
        let evidence =
            shown.map(|m| mounts::options(&view, m, "no mount on an active disk writes access times on every read"));
        return Ok(Outcome::Cleared(evidence.into_iter().collect()));
    };
    let options = mounts::options(&view, mount, "it has neither relatime nor noatime");
    let Some(disk) = disks.named(&view.whole_device(&mount.device)) else { return Ok(Outcome::Cleared(vec![options])) };
    let waits = view.disk_waits(&disks, case.completed_in(view.window)?)?;
    let all = (disk.read.operations + disk.write.operations).max(1.0);
    let disks_ms = waits.disks_ms(disk.utilization);
    let most = volume::of_requests(&waits, case, disks_ms * disk.write.operations / all)?;
    let does = view.disk_evidence(disk, "hardly a write", what_it_does(disk))?;
    if is_too_small(case, most)? {
        return Ok(Outcome::Cleared(vec![options, does]));
    }
    let own = view.counter(
        metrics::process::DISK_IO_BYTES.name,
        &[("direction", "write")],
        "--watch pid:N for the app and the database",
    )?;
    let unasked = (1.0 - own.delta / disk.write.bytes.max(1.0)).clamp(0.0, 1.0);
    let explains_ms = volume::of_requests(&waits, case, disks_ms * disk.write.operations * unasked / all)?;
    let asked = own.evidence(
        format!("{} of it", percent(1.0 - unasked)),
        "all of it",
        format!(
            "{} of the writes to {} came from no watched process, while reads were answered: at most {} of a request",
            percent(unasked),
            disk.device,
            ms(explains_ms)
        ),
    );
    if is_too_small(case, explains_ms)? {
        return Ok(Outcome::Cleared(vec![options, asked]));
    }
    let mut evidence = vec![options, asked, does];
    evidence.extend(who(&view, disk).evidence);
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights: vec![FAIR, FAIR * unasked],
        fixes: vec![mounts::without_access_times(&view, mount)],
        prove: format!("Run the same scenario again: {} hardly writes.", disk.device),
        role: Role::Root,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    fn made(options: &str, own_writes: f64) -> SyntheticRecording {
        let read = "folio_wait_bit_common < filemap_update_page < filemap_read < vfs_read";
        SyntheticRecording::new(12)
            .requests(100, 200)
            .disk("vda", (100.0, 4096.0, 40.0), (300.0, 4096.0, 50.0))
            .asleep(19, "folio_wait_bit_common", read, None)
            .counter("pid:7", "process_disk_io_bytes_total", &[("direction", "write")], own_writes)
            .setting("host", "mount[/].fstype", "ext4")
            .setting("host", "mount[/].device", "vda1")
            .setting("host", "mount[/].options", options)
            .setting("host", "block.vda1.parent", "vda")
    }

    #[test]
    fn unrequested_writes_on_a_strictatime_mount_are_found() {
        let made = made("rw", 0.0);
        assert!((made.explains(&DEFINITION).unwrap() - 142.0).abs() < 5.0);
        let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
        assert_eq!(found.fixes[0].command.as_deref(), Some("mount -o remount,noatime /"));
    }

    #[test]
    fn relatime_and_the_services_own_writes_clear_it() {
        assert_eq!(made("rw,relatime", 0.0).explains(&DEFINITION), Some(0.0));
        assert_eq!(made("rw", 300.0 * 4096.0).explains(&DEFINITION), Some(0.0));
    }

    #[test]
    fn without_a_fact_it_is_not_cleared() {
        for metric in ["system_disk_operations_total", "process_disk_io_bytes_total", "process_threads"] {
            assert_eq!(made("rw", 0.0).without(metric).explains(&DEFINITION), None, "{metric}");
        }
    }
}
