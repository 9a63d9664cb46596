//! A disk returns errors, or does not answer until the kernel resets it.

use holdup_recording::events;

use super::parts::present::{self, Shown};
use super::{Cause, Definition, Doc, Judge, Occurs, Outcome, Trait};
use crate::case::Case;
use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::instant::happened::Happened;
use crate::next_command::{Managed, NextCommand};
use crate::strength::{CERTAIN, FAIR, STRONG, WEAK};
use holdup_signals::Missing;

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::Rarely,
    traits: &[Trait::Harm, Trait::WithinStatement, Trait::LongStatement],
    signs: Some(find),
    ..Definition::new(Cause::DiskErrors, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "A disk fails",
    what: "A device or the way to it (cable, controller, network of a volume) returns errors, or does not answer until the kernel resets it. The file system reports errors and may become read-only.",
    hurts: "Each request to the device waits for the timeout, often 30 s, and for retries; threads stand in uninterruptible sleep meanwhile. Writes fail, and a read-only file system stops the server.",
    needs: "The kernel's log in pasted text (dmesg -T, journalctl -k).",
    predicts: "I/O errors, timeouts and resets of one device; hung tasks that wait for it; file system errors.",
    clears: "The kernel's log of that time has no error of a disk.",
    looks_like: "A saturated disk (disk_saturated) is slow and returns no error. A full file system fails with ENOSPC and not with EIO. A removed card or an empty drive returns errors that concern no server.",
    fix: "Save the data first: check the last backup, and fail over to a replica. Then replace the device or the way to it; ask the cloud's provider about a volume.",
    prove: "The same load on the new device: the kernel's log has no error.",
    references: "Linux kernel documentation: libATA error handling, NVMe fault handling, ext4 (errors=remount-ro), XFS error handling; smartctl(8); nvme-smart-log(1).",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand {
    managed: Some(Managed {
        amazon: "aws rds describe-events --duration 1440",
        azure: "az monitor activity-log list --offset 1d",
        google: "gcloud sql operations list",
    }),
    ..NextCommand::anywhere(
        "dmesg -T | grep -iE 'I/O error|timeout|reset|remount|medium error' | tail -50",
        1,
        "which device returns errors or was reset",
    )
};

/// Media that are put in and taken out: no server's data is on them.
const REMOVABLE: [&str; 2] = ["sr", "fd"];

/// One error of many requests may be repaired by a retry.
const SOME: u64 = 3;

fn find(facts: &Facts<'_>, signs: &mut Signs) {
    present::signs(shown(&facts.happened), signs);
}

fn shown(happened: &Happened<'_>) -> Shown {
    let mut shown = Shown::new();
    for kind in [events::FILE_SYSTEM_ERROR, events::IO_TIMEOUT, events::IO_ERROR] {
        for (device, errors) in happened.by(kind, "device") {
            if REMOVABLE.iter().any(|name| device.starts_with(name)) {
                continue;
            }
            let strength = match () {
                () if kind == events::FILE_SYSTEM_ERROR => CERTAIN,
                () if errors.count >= SOME => STRONG,
                () if kind == events::IO_TIMEOUT => FAIR,
                () => WEAK,
            };
            shown.push((strength, errors.told()));
        }
    }
    shown
}

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.view(case.whole());
    let shown = shown(&Happened::read(&view));
    if shown.is_empty() {
        return Err(Missing::new("the kernel's log", "holdup import FILE with the output of dmesg -T"));
    }
    let fixes = vec![present::step(
        "Check the last backup, and fail over to a replica before the device is replaced.",
        Some("smartctl -a /dev/DEVICE"),
        None,
    )];
    let unknown = Missing::new("what its errors cost requests", "load from holdup run, or an access log");
    Ok(present::outcome(shown, fixes, "The kernel's log has no further error under the same load.", unknown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{EventRow, Judged as _, SyntheticRecording};

    fn chance(rows: &[EventRow<'_>]) -> f64 {
        SyntheticRecording::new(60).events(rows).with(|case| {
            let mut signs = Signs::default();
            find(&Facts::read(case.view(case.whole())), &mut signs);
            signs.weigh().map_or(0.0, |weighed| weighed.chance)
        })
    }

    #[test]
    fn errors_and_resets_of_one_device_are_found() {
        let sdb = [("device", "sdb"), ("count", "7")];
        assert!(chance(&[(5, "host", "io_error", &sdb)]) >= 0.75);
        let reset = [("device", "nvme1")];
        assert!(chance(&[(5, "host", "io_timeout", &reset), (6, "host", "io_error", &sdb)]) > 0.85);
        assert!(chance(&[(5, "host", "file_system_error", &[("device", "dm-0")])]) >= 0.9);
    }

    #[test]
    fn one_error_and_an_empty_drive_are_not() {
        assert!(chance(&[(5, "host", "io_error", &[("device", "sda")])]) < 0.5);
        assert_eq!(chance(&[(5, "host", "io_error", &[("device", "sr0"), ("count", "40")])]), 0.0);
        assert!(SyntheticRecording::new(3).judge(&DEFINITION).is_err());
    }
}
