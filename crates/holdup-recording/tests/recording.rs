//! A recording's life on disk: finished, cut off at any moment, of another version, damaged.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use holdup_recording::manifest::{FORMAT_MAJOR, Host};
use holdup_recording::rows::{Request, Sample};
use holdup_recording::{Batch, Labels, Manifest, OpenError, RecordError, Recorder, Recording, RunState};

fn manifest() -> Manifest {
    Manifest::starting("test", 1_000, Host { kernel: "6.1".into(), cpus: 2 })
}

fn batch(from: i64, count: i64) -> Batch {
    Batch {
        requests: (from..from + count)
            .map(|i| Request {
                operation: "search".into(),
                phase: "step 1".into(),
                intended_at: i,
                ready_at: Some(i),
                sent_at: (i % 2 == 0).then_some(i + 1),
                done_at: i + 2,
                outcome: "ok".into(),
                ..Request::default()
            })
            .collect(),
        samples: vec![Sample {
            observed_at: from,
            source: "host".into(),
            metric: "m_total".into(),
            labels: Labels::of([("device", "a \"quoted\" name"), ("direction", "read")]),
            value: 1.5,
            ..Sample::default()
        }],
        ..Batch::default()
    }
}

fn wait_for_segments(dir: &Path, count: usize) {
    let begun = Instant::now();
    while fs::read_dir(dir.join("segments")).map_or(0, Iterator::count) < count {
        assert!(begun.elapsed() < Duration::from_secs(120), "segments never came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_was_pushed_is_read_back() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("r");
    let recorder = Recorder::create(&dir, &manifest()).unwrap();
    // More than a row group, so that merging and group borders are crossed.
    recorder.sink().push(batch(0, 70_000));
    recorder.sink().push(batch(70_000, 10));
    let written = recorder.finish(manifest(), RunState::Complete).unwrap();
    assert_eq!((written.tables["requests"], written.tables["samples"]), (70_010, 2));
    assert!(!dir.join("segments").exists());

    let read = Recording::open(&dir).unwrap();
    assert_eq!(read.manifest, written);
    let rows = read.tables.requests.with_columns(&["sent_at"]).unwrap();
    assert_eq!(rows[..], [batch(0, 70_000).requests, batch(70_000, 10).requests].concat()[..]);
    assert_eq!(read.tables.samples.rows[0].labels.get("device"), Some("a \"quoted\" name"));
    assert!(read.tables.threads.present && read.tables.threads.rows.is_empty());
}

#[test]
fn a_recording_that_was_never_finished_is_read_as_far_as_it_got() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("r");
    let recorder = Recorder::create(&dir, &manifest()).unwrap();
    recorder.sink().push(batch(0, 100));
    wait_for_segments(&dir, 2);
    // What a writer that is killed may leave: a file of which only a part was written.
    fs::write(dir.join("segments/requests-00000099.parquet.tmp"), b"PAR1 half").unwrap();
    let read = Recording::open(&dir).unwrap();
    assert_eq!(read.manifest.state, RunState::Running);
    assert_eq!(read.tables.requests.rows.len(), 100);
    assert!(!read.tables.sessions.present);
    assert_eq!(read.tables.sessions.with_columns(&[]).unwrap_err(), "sessions");
    drop(recorder);
}

#[test]
fn a_crash_while_merging_neither_loses_nor_doubles_rows() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("r");
    let recorder = Recorder::create(&dir, &manifest()).unwrap();
    recorder.sink().push(batch(0, 100));
    wait_for_segments(&dir, 2);
    let segment = fs::read_dir(dir.join("segments"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.file_name().unwrap().to_string_lossy().starts_with("requests"))
        .unwrap();
    let bytes = fs::read(&segment).unwrap();
    recorder.finish(manifest(), RunState::Complete).unwrap();
    // As if it had died after the table was there and before its parts were gone.
    fs::create_dir_all(segment.parent().unwrap()).unwrap();
    fs::write(&segment, &bytes).unwrap();
    assert_eq!(Recording::open(&dir).unwrap().tables.requests.rows.len(), 100);
    // The same for parts that are merged while it runs: the wider one stands for those it covers.
    fs::remove_file(dir.join("requests.parquet")).unwrap();
    let parts = segment.parent().unwrap();
    fs::remove_file(&segment).unwrap();
    fs::write(parts.join("requests-00000001.parquet"), &bytes).unwrap();
    fs::write(parts.join("requests-00000002.parquet"), &bytes).unwrap();
    fs::write(parts.join("requests-00000001+00000002.parquet"), &bytes).unwrap();
    fs::write(parts.join("requests-00000003.parquet"), &bytes).unwrap();
    assert_eq!(Recording::open(&dir).unwrap().tables.requests.rows.len(), 200);
}

#[test]
fn a_directory_that_holds_something_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("mine"), "x").unwrap();
    assert!(matches!(Recorder::create(root.path(), &manifest()), Err(RecordError::Occupied(_))));
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
}

#[test]
fn unreadable_recordings_say_why() {
    let root = tempfile::tempdir().unwrap();
    let open = |dir: &Path| Recording::open(dir).unwrap_err();
    assert!(matches!(open(&root.path().join("none")), OpenError::NotThere(_)));
    assert!(matches!(open(root.path()), OpenError::NoManifest { .. }));

    let dir = root.path().join("r");
    let recorder = Recorder::create(&dir, &manifest()).unwrap();
    recorder.sink().push(batch(0, 10));
    recorder.finish(manifest(), RunState::Complete).unwrap();
    let path = dir.join("manifest.json");
    let good = fs::read_to_string(&path).unwrap();

    // A newer minor version has more than this one knows, and is read.
    let newer = good.replace("\"minor\": 0", "\"minor\": 7").replacen('{', "{ \"unheard_of\": 1,", 1);
    fs::write(&path, newer).unwrap();
    assert_eq!(Recording::open(&dir).unwrap().tables.requests.rows.len(), 10);

    fs::write(&path, good.replace(&format!("\"major\": {FORMAT_MAJOR}"), "\"major\": 99")).unwrap();
    let text = open(&dir).to_string();
    assert!(text.contains("format 99") && text.contains("newer holdup"), "{text}");

    fs::write(&path, &good[..good.len() / 2]).unwrap();
    assert!(matches!(open(&dir), OpenError::BadManifest { .. }));

    fs::write(&path, &good).unwrap();
    fs::write(dir.join("requests.parquet"), b"not parquet at all").unwrap();
    let text = open(&dir).to_string();
    assert!(text.contains("requests.parquet"), "{text}");
}
