//! The Linux collectors on made-up trees (`tests/trees`) and on this machine.

mod cgroup;
mod connection_table;
mod cost;
mod discover;
mod host;
mod kubernetes;
mod log;
mod probe;
mod process;
mod prometheus;
mod threads;
mod tracepoints;
mod wire;

use std::path::{Path, PathBuf};

use holdup_collect::proc::Proc;
use holdup_recording::Batch;

/// A copy of `tests/trees/small` that a test may change.
pub fn small_tree() -> (tempfile::TempDir, Proc) {
    let dir = tempfile::tempdir().unwrap();
    copy(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/trees/small"), dir.path());
    let proc = Proc::at(dir.path());
    (dir, proc)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The one value of `metric` with all of `labels`; nothing if there is none, a panic if there are several.
pub fn value(batch: &Batch, metric: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let mut found = batch.samples.iter().filter(|s| s.metric == metric && s.labels.contains(labels));
    let value = found.next().map(|s| s.value);
    assert!(found.next().is_none(), "{metric} {labels:?} is there twice");
    value
}
