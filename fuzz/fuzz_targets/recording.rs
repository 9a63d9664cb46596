//! A recording of anybody: the first byte says which file of it the rest is. It opens or it is refused, in memory that its size
//! bounds; what opens has the tables that it says it has, and can be decoded.
#![no_main]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use holdup_recording::manifest::Host;
use holdup_recording::{Manifest, Recording, hlog};
use libfuzzer_sys::fuzz_target;

/// Files of a recording; what is no table comes first.
const FILES: [&str; 15] = [
    "manifest.json",
    "latency.hlog",
    "search.json",
    "requests.parquet",
    "samples.parquet",
    "threads.parquet",
    "sessions.parquet",
    "statements.parquet",
    "stages.parquet",
    "spans.parquet",
    "exchanges.parquet",
    "executions.parquet",
    "plans.parquet",
    "settings.parquet",
    "segments/events-00000001.parquet",
];

fn write_manifest(dir: &Path) {
    let manifest = Manifest::starting("fuzz", 1_000, Host { kernel: "6.1".into(), cpus: 2, name: None });
    std::fs::write(dir.join(FILES[0]), serde_json::to_vec(&manifest).expect("a manifest")).expect("a file");
}

/// A recording without tables, of this process; in memory where there is a place for it.
fn empty() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let memory = PathBuf::from("/dev/shm");
        let root = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let dir = root.join(format!("holdup-fuzz-recording-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("segments")).expect("a folder of its own");
        write_manifest(&dir);
        // The fuzzer's hook ends the process at any panic, but those of the Parquet library are caught. Others end it all the same.
        std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
        dir
    })
}

fuzz_target!(|input: &[u8]| {
    let Some((first, bytes)) = input.split_first() else { return };
    let dir = empty();
    let file = dir.join(FILES[usize::from(*first) % FILES.len()]);
    std::fs::write(&file, bytes).expect("a file");
    let rows = Recording::open(dir).map(|recording| {
        let _ = hlog::merged(&recording.latencies);
        recording.latencies.iter().for_each(|slice| drop(hlog::values(slice)));
        recording.tables.samples.rows.len()
    });
    let points = Recording::open_condensed(dir).map(|recording| recording.tables.condensed.is_some());
    assert!(rows.is_err() || points.is_ok_and(|is_condensed| is_condensed));
    std::fs::remove_file(&file).expect("the file");
    if file.ends_with(FILES[0]) {
        write_manifest(dir);
    }
});
