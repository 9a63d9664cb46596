//! The attack on a recording's path: a user who owns a folder above it swaps that folder for a link
//! to another one while rows are written and merged.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use holdup_recording::manifest::Host;
use holdup_recording::rows::Sample;
use holdup_recording::{Batch, Manifest, Recorder, Recording, RunState};

const ROWS: usize = 10;

fn rows() -> Batch {
    Batch { samples: vec![Sample { source: "host".into(), ..Sample::default() }; ROWS], ..Batch::default() }
}

/// Waits for whole segments: one that is being written has another name.
fn await_segments(dir: &Path, count: usize) {
    let is_whole = |entry: &fs::DirEntry| entry.path().extension().is_some_and(|kind| kind == "parquet");
    let whole = || fs::read_dir(dir.join("segments")).map_or(0, |all| all.flatten().filter(is_whole).count());
    let begun = Instant::now();
    while whole() < count {
        assert!(begun.elapsed() < Duration::from_secs(120), "nothing was written to {}", dir.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Every file below a folder, with its content.
fn content(dir: &Path) -> Vec<(String, Option<Vec<u8>>)> {
    let mut found: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    let of = |path: &std::path::PathBuf| {
        let inside = if path.is_dir() { content(path) } else { Vec::new() };
        [vec![(path.display().to_string(), fs::read(path).ok())], inside].concat()
    };
    found.iter().flat_map(of).collect()
}

#[test]
fn a_swapped_folder_never_redirects_a_recording() {
    let root = tempfile::tempdir().unwrap();
    let [theirs, aside, canaries] = ["theirs", "aside", "canaries"].map(|name| root.path().join(name));
    fs::create_dir_all(canaries.join("r/segments")).unwrap();
    fs::write(canaries.join("r/manifest.json"), "canary").unwrap();
    fs::write(canaries.join("r/segments/samples-00000001.parquet"), "canary").unwrap();
    let before = content(&canaries);
    let swap = || {
        fs::rename(&theirs, &aside).unwrap();
        symlink(&canaries, &theirs).unwrap();
    };
    let swap_back = || {
        fs::remove_file(&theirs).unwrap();
        fs::rename(&aside, &theirs).unwrap();
    };
    let manifest = || Manifest::starting("test", 1_000, Host { kernel: "6.1".into(), cpus: 2, name: None });
    let recorder = Recorder::create(&theirs.join("r"), &manifest()).unwrap();
    swap();
    recorder.sink().push(rows());
    await_segments(&aside.join("r"), 1);
    recorder.sink().push(rows());
    // A merge replaces every segment between its first and its last number, and a writer counts up: its second one comes
    // before those of higher numbers.
    await_segments(&aside.join("r"), 2);
    // Many segments, so that merging takes a while.
    let segments = aside.join("r/segments");
    let bytes = fs::read(segments.join("samples-00000001.parquet")).unwrap();
    for number in 100..300 {
        // As the writer does: a merge that has begun would take a file without its end for one that was cut off.
        let partial = segments.join("partial");
        fs::write(&partial, &bytes).unwrap();
        fs::rename(&partial, segments.join(format!("samples-00000{number}.parquet"))).unwrap();
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let attacker = scope.spawn(|| {
            let mut swaps = 0;
            while !is_over.load(Ordering::Relaxed) {
                swap_back();
                swap();
                swaps += 1;
            }
            swaps
        });
        let finished = recorder.finish(manifest(), RunState::Complete);
        is_over.store(true, Ordering::Relaxed);
        assert!(attacker.join().unwrap() > 0);
        assert_eq!(finished.unwrap().tables["samples"], (202 * ROWS) as u64);
    });
    assert_eq!(content(&canaries), before);
    let recording = Recording::open(&aside.join("r")).unwrap();
    let said: Vec<_> = recording.tables.events.rows.iter().filter(|event| event.kind == "moved").collect();
    assert!(said.len() == 1 && said[0].text.contains("was moved or replaced"), "{said:?}");
    let coverage = recording.manifest.coverage.iter().find(|part| part.source == "recording").unwrap();
    assert!(coverage.why.as_ref().is_some_and(|why| why.ends_with("aside/r")), "{coverage:?}");
}
