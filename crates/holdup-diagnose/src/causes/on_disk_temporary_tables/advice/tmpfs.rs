//! A tmpfs for temporary tables: how large it has to be, and how the server's place gets one.

use crate::change::host::Place;
use crate::change::{Fix, Steps};
use holdup_recording::metrics;

use super::ENABLE;
use crate::causes::{bytes, thousands};
use holdup_signals::View;

/// Where to mount the tmpfs; nothing else is there.
const DIRECTORY: &str = "/var/lib/mysql-tmpdir";

/// Least size of the tmpfs: 64 MiB. Statements that sort or alter a table put files there, too.
const LEAST_BYTES: f64 = 64.0 * 1024.0 * 1024.0;

/// Temporary tables differ in size: room for this many times the mean.
const ROOM: f64 = 4.0;

/// A tmpfs may take this share (0-1) of the memory that is available.
const MEMORY_MOST: f64 = 0.5;

/// A tmpfs for the tables, if the memory for it is there; `each` is what one takes.
pub(super) fn in_memory(view: &View<'_>, place: &Place, each: Option<f64>, at_once: f64) -> Fix {
    let size = (at_once.ceil() * each.unwrap_or(0.0) * ROOM).max(LEAST_BYTES);
    let mebibytes = ((size / 1024.0 / 1024.0).ceil() as u64).next_power_of_two();
    let why = match each {
        Some(each) => format!(
            "{} tables at once x at most {} each x {ROOM:.0} as reserve, and at least {}",
            thousands(at_once.ceil()),
            bytes(each),
            bytes(LEAST_BYTES)
        ),
        None => "the least that is sensible; the size of the tables was not recorded (--watch host, --watch pid:N)"
            .to_owned(),
    };
    let available = view.gauge(metrics::host::MEMORY_AVAILABLE_BYTES.name, &[], ENABLE).map_or(f64::MAX, |g| g.min);
    if mebibytes as f64 * 1_048_576.0 > MEMORY_MOST * available {
        let text = format!(
            "A tmpfs for tmpdir would take {mebibytes} MiB ({why}), and {} of memory are available: make the tables smaller or fewer first.",
            bytes(available)
        );
        return Fix { text, command: None, keep: None, risk: None };
    }
    let options = format!("size={mebibytes}m,mode=1777,nosuid,nodev,noexec");
    let line = format!("tmpdir={DIRECTORY} below [mysqld] in the option file");
    let steps = if place.is_machine() {
        place.machine(
            format!("mkdir -p {DIRECTORY} && mount -t tmpfs -o {options} tmpfs {DIRECTORY}   # then {line}, and restart the server"),
            format!("/etc/fstab: tmpfs {DIRECTORY} tmpfs {options} 0 0   and in the option file, below [mysqld]: tmpdir={DIRECTORY}"),
        )
    } else {
        let keep = match place {
            Place::Kubernetes => format!(
                "give the pod an emptyDir of medium Memory and sizeLimit {mebibytes}Mi at {DIRECTORY}, and {line}"
            ),
            _ => format!("start the container with --tmpfs {DIRECTORY}:{options}, and {line}"),
        };
        Steps { command: None, keep: Some(keep), effect: String::new() }
    };
    Fix {
        text: format!(
            "Put tmpdir on a tmpfs of {mebibytes} MiB: {why}. The server reads tmpdir when it starts.{}",
            steps.note()
        ),
        command: steps.command,
        keep: steps.keep,
        risk: Some(format!(
            "Needs a restart. Up to {mebibytes} MiB of memory; a statement that needs more fails with error 28 (no space left). Large sorts and ALTER TABLE put files there, too; a replica's replica_load_tmpdir must survive a restart and stays on disk."
        )),
    }
}
