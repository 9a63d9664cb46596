//! A recording's life on disk: finished, cut off at any moment, of another version, damaged.

use std::fs;
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use holdup_recording::manifest::{FORMAT_MAJOR, Host};
use holdup_recording::rows::{Request, Sample};
use holdup_recording::{Batch, Labels, Limits, Manifest, OpenError, RecordError, Recorder, Recording, RunState};

fn manifest() -> Manifest {
    Manifest::starting("test", 1_000, Host { kernel: "6.1".into(), cpus: 2, name: None })
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
            labels: Labels::new([("device", "a \"quoted\" name"), ("direction", "read")]),
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
    let dictionary = fs::read_to_string(dir.join("metrics.json")).unwrap();
    assert!(dictionary.contains(r#""name":"system_disk_io_time_seconds_total","kind":"counter","unit":"seconds""#));

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

/// Waits until a recording has said something that has `part` in it.
fn wait_for_notice(recorder: &Recorder, part: &str) -> String {
    let begun = Instant::now();
    loop {
        if let Some(text) = recorder.notices().into_iter().find(|text| text.contains(part)) {
            return text;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "it never says \"{part}\"");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The folder of segments goes away and comes back, as if a disk refused to be written for a while.
#[test]
fn a_failed_write_is_said_kept_and_tried_again() {
    let root = tempfile::tempdir().unwrap();
    let (dir, away) = (root.path().join("r"), root.path().join("away"));
    let recorder = Recorder::create(&dir, &manifest()).unwrap();
    fs::rename(dir.join("segments"), &away).unwrap();
    recorder.sink().push(batch(0, 100));
    wait_for_notice(&recorder, "cannot be written");
    recorder.sink().push(batch(100, 100));
    fs::rename(&away, dir.join("segments")).unwrap();
    wait_for_notice(&recorder, "written again");
    recorder.sink().push(batch(200, 100));
    recorder.finish(manifest(), RunState::Complete).unwrap();

    let read = Recording::open(&dir).unwrap();
    assert_eq!(read.manifest.state, RunState::Complete);
    assert_eq!(read.tables.requests.rows, batch(0, 300).requests);
    let gaps: Vec<_> = read.tables.events.rows.iter().filter(|event| event.kind == "gap").collect();
    assert_eq!(gaps.len(), 2, "{gaps:?}");
    assert_eq!(gaps[1].labels.get("lost_rows"), Some("0"));
    let own = read.manifest.coverage.iter().find(|c| c.source == "recording").unwrap();
    assert!(own.gaps_total > 0 && own.reads_total > 0, "{own:?}");
}

#[test]
fn what_the_memory_does_not_hold_is_counted_as_lost() {
    let root = tempfile::tempdir().unwrap();
    let (dir, away) = (root.path().join("r"), root.path().join("away"));
    let limits = Limits { memory_bytes: 64 << 10, ..Limits::default() };
    let recorder = Recorder::create_within(limits, &dir, &manifest()).unwrap();
    fs::rename(dir.join("segments"), &away).unwrap();
    let pushed = 50 * 101;
    (0..50).for_each(|number| recorder.sink().push(batch(number * 100, 100)));
    wait_for_notice(&recorder, "cannot be written");
    fs::rename(&away, dir.join("segments")).unwrap();
    wait_for_notice(&recorder, "written again");
    // There is memory again.
    recorder.sink().push(batch(1_000_000, 100));
    recorder.finish(manifest(), RunState::Complete).unwrap();
    let read = Recording::open(&dir).unwrap();
    let kept = read.tables.requests.rows.len() + read.tables.samples.rows.len() - 101;
    let lost: usize = read
        .tables
        .events
        .rows
        .iter()
        .filter_map(|event| event.labels.get("lost_rows"))
        .map(|rows| rows.parse::<usize>().unwrap())
        .sum();
    assert!(kept > 0 && lost > 0 && kept + lost == pushed, "{kept} kept and {lost} lost of {pushed}");
    let why = read.manifest.coverage[0].why.clone().unwrap();
    assert!(why.contains(&format!("{lost} rows were lost")), "{why}");
}

/// A thousand times the rows that memory holds, and one batch that alone is larger than it.
#[test]
fn a_recording_of_files_waits_for_the_disk_and_loses_no_row() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("r");
    let recorder = Recorder::create(&dir, &manifest()).unwrap();
    let sink = recorder.sink();
    let large = 400_000;
    // A request takes more than 100 bytes: larger than all of the memory.
    sink.push(batch(0, large));
    (0..20).for_each(|number| sink.push(batch(large + number * 20_000, 20_000)));
    let manifest = recorder.finish(manifest(), RunState::Complete).unwrap();
    assert_eq!((manifest.tables["requests"], manifest.tables["samples"]), (800_000, 21));
    assert!(manifest.coverage.is_empty(), "{:?}", manifest.coverage);
}

/// Nothing waits for a disk that takes nothing: what is lost is counted, and the source has failed.
#[test]
fn a_recording_of_files_on_a_full_disk_ends_and_says_what_it_lost() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("r");
    let recorder = Recorder::create(&dir, &manifest()).unwrap();
    let segments = dir.join("segments");
    fs::rename(&segments, root.path().join("away")).unwrap();
    (0..20).for_each(|number| recorder.sink().push(batch(number * 40_000, 40_000)));
    fs::rename(root.path().join("away"), &segments).unwrap();
    let (lost, state) = match recorder.finish(manifest(), RunState::Complete) {
        Ok(manifest) => (800_000 - manifest.tables["requests"], manifest.coverage[0].state),
        Err(_) => panic!("the last write succeeded"),
    };
    assert!(lost > 0 && state == holdup_recording::CoverageState::Failed, "{lost} {state:?}");
}

/// The disk never takes anything again: the manifest has its room, and what was written before is kept.
#[test]
fn a_disk_that_stays_full_leaves_a_manifest_that_says_so() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("r");
    let recorder = Recorder::create(&dir, &manifest()).unwrap();
    recorder.sink().push(batch(0, 100));
    wait_for_segments(&dir, 2);
    // A file cannot be made where a folder of its name is.
    for number in 2..20 {
        for table in ["requests", "samples", "events"] {
            fs::create_dir(dir.join(format!("segments/{table}-{number:08}.parquet.tmp"))).unwrap();
        }
    }
    recorder.sink().push(batch(100, 100));
    assert!(recorder.finish(manifest(), RunState::Complete).is_err());
    let read = Recording::open(&dir).unwrap();
    assert_eq!((read.manifest.state, read.tables.requests.rows.len()), (RunState::Interrupted, 100));
    let own = read.manifest.coverage.iter().find(|c| c.source == "recording").unwrap();
    assert!(own.why.as_ref().unwrap().contains("rows were lost") && own.enable.is_some(), "{own:?}");
    assert!(!dir.join(".reserve").exists());
}

#[test]
fn a_recording_says_when_it_has_reached_its_size() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("r");
    let limits = Limits { max_bytes: Some(2_000), ..Limits::default() };
    let recorder = Recorder::create_within(limits, &dir, &manifest()).unwrap();
    assert!(!recorder.is_full());
    recorder.sink().push(batch(0, 1_000));
    wait_for_notice(&recorder, "--max-size");
    assert!(recorder.is_full());
    recorder.finish(manifest(), RunState::Complete).unwrap();
    assert_eq!(Recording::open(&dir).unwrap().tables.requests.rows.len(), 1_000);
}

#[test]
fn without_the_room_that_must_stay_free_nothing_is_begun() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("r");
    let limits = Limits { min_free_bytes: Some(u64::MAX), ..Limits::default() };
    let why = Recorder::create_within(limits, &dir, &manifest()).err().unwrap().to_string();
    assert!(why.contains("--min-free"), "{why}");
    assert!(!dir.exists());
}

#[test]
fn of_two_writers_on_one_directory_one_is_refused() {
    let root = tempfile::tempdir().unwrap();
    for round in 0..300 {
        let dir = root.path().join(format!("r{round}"));
        // There already and empty: making it does not tell who was first.
        fs::create_dir(&dir).unwrap();
        let start = Barrier::new(4);
        let begun = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        Recorder::create(&dir, &manifest())
                    })
                })
                .collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
        });
        let first = begun.iter().filter(|recorder| recorder.is_ok()).count();
        let refused = begun.iter().filter(|recorder| matches!(recorder, Err(RecordError::Occupied(_)))).count();
        assert_eq!((first, refused), (1, 3), "round {round}");
    }
}

/// A reader opens the recording again and again while its segments become tables: each time it finds every row once.
#[test]
fn a_reader_never_sees_half_of_what_is_merged() {
    let root = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let dir = root.path().join(format!("r{round}"));
        let recorder = Recorder::create(&dir, &manifest()).unwrap();
        recorder.sink().push(batch(0, 10));
        wait_for_segments(&dir, 2);
        let parts = dir.join("segments");
        let bytes = fs::read(parts.join("requests-00000001.parquet")).unwrap();
        for number in 100..300 {
            fs::write(parts.join(format!("requests-00000{number}.parquet")), &bytes).unwrap();
        }
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut seen = 0;
                loop {
                    let read = Recording::open(&dir).unwrap();
                    assert_eq!(read.tables.requests.rows.len(), 201 * 10, "after {seen} times");
                    seen += 1;
                    if dir.join("requests.parquet").exists() && !parts.exists() {
                        return;
                    }
                }
            });
            recorder.finish(manifest(), RunState::Complete).unwrap();
            reader.join().unwrap();
        });
    }
}
