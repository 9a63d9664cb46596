//! Recordings held against others, counters alone, and the measurement that tells rivals apart: through the command line.

use std::path::{Path, PathBuf};

use crate::program::{Finished, finish, holdup};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

fn diagnose(name: &str, more: &[&str]) -> Finished {
    let dir = fixture(name);
    let arguments = ["diagnose", dir.to_str().unwrap()].into_iter().chain(more.iter().copied());
    finish(holdup(arguments), 60)
}

#[test]
fn a_healthy_recording_is_named_and_a_wrong_one_refused() {
    let fixed = fixture("hidden-queue-fixed");
    let done = diagnose("hidden-queue-faulty", &["--against", fixed.to_str().unwrap()]);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    for words in [": thread_pool_queue  very likely", "It was compared with fixed", "What to do"] {
        assert!(done.stdout.contains(words), "does not say \"{words}\": {}", done.stdout);
    }
    let whole = diagnose("hidden-queue-faulty", &["--against", fixed.to_str().unwrap(), "--verbose"]);
    assert!(whole.stdout.contains("How to prove it") && !done.stdout.contains("How to prove it"), "{}", whole.stdout);
    let itself = fixture("hidden-queue-faulty");
    let refused = diagnose("hidden-queue-faulty", &["--against", itself.to_str().unwrap()]);
    assert_eq!(refused.code(), Some(2));
    assert!(refused.stderr.contains("the same recording") && refused.stdout.is_empty(), "{}", refused.stderr);
    let other = fixture("cpu-saturated");
    let refused = diagnose("throughput-ceiling-faulty", &["--against", other.to_str().unwrap()]);
    assert!(refused.stderr.contains("error:"), "{}", refused.stderr);
    assert_eq!(refused.code(), Some(2));
}

#[test]
fn counters_are_printed_beside_the_milliseconds() {
    let done = diagnose("worker-capacity-faulty", &["--counters"]);
    assert!(done.stdout.contains("FOUND  worker_pool_exhausted"), "{}", done.stdout);
    assert!(done.stdout.contains("By counters alone (milliseconds decide)"), "{}", done.stdout);
    assert!(!diagnose("worker-capacity-faulty", &[]).stdout.contains("By counters alone"));
}

/// Takes what only reads: this machine, for a second, into a recording of its own.
#[test]
fn the_measurement_is_said_and_taken_where_it_only_reads() {
    let scratch = tempfile::tempdir().unwrap();
    let doctor = |name: &str| {
        let dir = fixture(name);
        let arguments = ["doctor", "--for-verdict", dir.to_str().unwrap(), "--for", "1s", "--watch", "host", "--json"];
        let done = finish(holdup(arguments).current_dir(scratch.path()), 60);
        assert_eq!(done.code(), Some(0), "{}", done.stderr);
        serde_json::from_str::<serde_json::Value>(&done.stdout).unwrap()
    };
    let healthy = doctor("demo-fixed");
    assert_eq!((&healthy["verdict"], &healthy["split"]), (&"healthy".into(), &serde_json::Value::Null));
    for name in ["cpu-saturated", "demo-faulty", "worker-capacity-faulty", "readahead-faulty"] {
        let told = doctor(name);
        if told["split"].is_null() {
            continue;
        }
        // Either it was taken, and each rival has an outcome; or it is said why not.
        let rivals = told["split"]["rivals"].as_array().unwrap().len();
        match told["why_not"].as_str() {
            Some(why) => assert!(!why.is_empty() && told["taken"].as_array().unwrap().is_empty(), "{told}"),
            None => {
                assert_eq!(told["rivals"].as_array().unwrap().len(), rivals, "{told}");
                assert!(scratch.path().join(told["recording"].as_str().unwrap()).join("manifest.json").exists());
            }
        }
    }
}
