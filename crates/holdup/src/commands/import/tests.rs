//! Files of several kinds, as a person gives them on the command line.

use std::fmt::Write as _;
use std::path::Path;

use clap::Parser;
use holdup_recording::{Recording, RunState};

use super::{Args, run};
use crate::failure::Failure;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn import(dir: &Path, words: &[&str]) -> Result<(), Failure> {
    let place = |word: &&str| match word.starts_with('-') {
        true => (*word).to_owned(),
        false => dir.join(word).display().to_string(),
    };
    let words = std::iter::once("import".to_owned()).chain(words.iter().map(place));
    run(Line::try_parse_from(words).unwrap().args)
}

const PASTE: &str = "2026-11-26T10:11:12Z\n 10:11:12 up 3 days,  2 users,  load average: 1.00, 2.00, 3.00\n";

const PODS: &str = r#"{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "orders-1", "namespace": "shop"}, "spec": {"containers": [{"name": "app"}]},
    "status": {"containerStatuses": [{"name": "app", "ready": true, "restartCount": 4,
        "state": {"running": {"startedAt": "2026-11-26T10:11:00Z"}}}]}}]}"#;

/// Five requests, a second apart, as one side saw them.
fn spans(first_ms: i64, took_ms: i64, kind: u8) -> String {
    let mut text = String::new();
    for n in 0..5 {
        let from = 1_795_687_872_000_000_000 + (first_ms + 1_000 * n) * 1_000_000;
        let to = from + took_ms * 1_000_000;
        let _ = writeln!(
            text,
            r#"{{"resourceSpans":[{{"resource":{{"attributes":[]}},"scopeSpans":[{{"spans":[{{"traceId":"5b8efff798038103d269b633813fc60{n}","spanId":"eee19b7ec3c1b17{kind}","name":"GET /","kind":{kind},"startTimeUnixNano":"{from}","endTimeUnixNano":"{to}"}}]}}]}}]}}"#
        );
    }
    text
}

#[test]
fn files_of_several_kinds_are_one_recording() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("paste.txt"), PASTE).unwrap();
    std::fs::write(dir.path().join("pods.json"), PODS).unwrap();
    import(dir.path(), &["paste.txt", "pods.json", "-o", "both"]).unwrap();
    let recording = Recording::open(&dir.path().join("both")).unwrap();
    let has = |metric: &str| recording.tables.samples.rows.iter().any(|row| row.metric == metric);
    assert!(has("system_load_average_1m") && has("container_restarts_total"));
    let clock = recording.tables.events.rows.iter().find(|row| row.kind == "clock_offset").unwrap();
    assert_eq!((clock.labels.get("part"), clock.labels.get("offset_seconds")), (Some("paste.txt"), None));
    let host = recording.manifest.coverage.iter().find(|part| part.source == "host").unwrap();
    assert!(host.why.as_deref().is_some_and(|why| why.contains("taken as they are")), "{:?}", host.why);
    assert_eq!(recording.manifest.state, RunState::Complete);
    // Nothing is left beside it, and the place is not taken twice.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
    let again = import(dir.path(), &["paste.txt", "pods.json", "-o", "both"]).unwrap_err().to_string();
    assert!(again.contains("exists and is not empty"), "{again}");
}

#[test]
fn json_of_kubectl_within_a_paste_is_read_beside_its_outputs() {
    let dir = tempfile::tempdir().unwrap();
    let paste = format!(
        "ann@ops:~$ kubectl get pods -n shop -o json\n{PODS}\nann@ops:~$ uptime\n 10:31:12 up 3 days,  2 users,  load average: 9.00, 2.00, 3.00\n"
    );
    std::fs::write(dir.path().join("paste.txt"), &paste).unwrap();
    import(dir.path(), &["paste.txt", "--at=2026-11-26T10:31:12Z", "-o", "r"]).unwrap();
    let recording = Recording::open(&dir.path().join("r")).unwrap();
    let at = |metric: &str| {
        recording.tables.samples.rows.iter().find(|row| row.metric == metric).map(|row| row.observed_at / 1_000_000_000)
    };
    // Pods say nothing of the time at which they were listed: the load average beside them does.
    assert_eq!(
        (at("container_restarts_total"), at("system_load_average_1m")),
        (Some(1_795_689_072), Some(1_795_689_072))
    );
    let clock = recording.tables.events.rows.iter().find(|row| row.kind == "clock_offset").unwrap();
    assert_eq!((clock.labels.get("part"), clock.labels.get("against")), (Some("paste.txt"), Some("paste.txt:2-5")));
    // Only the prompt around it: the document alone.
    let alone = paste.split("ann@ops:~$ uptime").next().unwrap();
    std::fs::write(dir.path().join("alone.txt"), alone).unwrap();
    import(dir.path(), &["alone.txt", "-o", "alone"]).unwrap();
    let recording = Recording::open(&dir.path().join("alone")).unwrap();
    assert!(recording.tables.samples.rows.iter().any(|row| row.metric == "container_restarts_total"));
}

#[test]
fn a_clock_that_is_off_is_moved_by_what_both_saw() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("client.json"), spans(0, 100, 3)).unwrap();
    // 7 s behind, and within the client's 100 ms.
    std::fs::write(dir.path().join("server.json"), spans(-7_000 + 10, 80, 2)).unwrap();
    import(dir.path(), &["client.json", "-o", "r"]).unwrap();
    import(dir.path(), &["server.json", "--into", "r"]).unwrap();
    let recording = Recording::open(&dir.path().join("r")).unwrap();
    assert_eq!((recording.tables.spans.rows.len(), recording.manifest.tables["spans"]), (10, 10));
    let clock = recording.tables.events.rows.iter().find(|row| row.kind == "clock_offset").unwrap();
    let number = |name: &str| clock.labels.get(name).and_then(|text| text.parse::<f64>().ok()).unwrap();
    assert!((number("offset_seconds") - 7.0).abs() <= number("error_seconds"), "{clock:?}");
    // The server's 80 ms may lie anywhere in the client's 100 ms: the error is as wide as that.
    assert!(number("error_seconds") <= 0.021 && clock.text.contains("5 shared trace ids"), "{clock:?}");
    let starts = recording.tables.spans.rows.iter().map(|row| row.started_at / 1_000_000_000);
    assert_eq!(starts.min(), Some(1_795_687_872));
}

/// Captured at both ends of a line between two network namespaces: tcpdump -s 128, one clock.
const AT_CLIENT: &[u8] = include_bytes!("../../../tests/captures/client.pcap");
const AT_SERVER: &[u8] = include_bytes!("../../../tests/captures/server.pcap");

/// The capture by a clock that is `by_us` microseconds ahead.
fn by_another_clock(capture: &[u8], by_us: u64) -> Vec<u8> {
    let mut bytes = capture.to_vec();
    let mut at = 24;
    while at < bytes.len() {
        let word = |place: usize| u32::from_le_bytes(bytes[place..place + 4].try_into().unwrap());
        let (moved, length) = (u64::from(word(at)) * 1_000_000 + u64::from(word(at + 4)) + by_us, word(at + 8));
        bytes[at..at + 4].copy_from_slice(&((moved / 1_000_000) as u32).to_le_bytes());
        bytes[at + 4..at + 8].copy_from_slice(&((moved % 1_000_000) as u32).to_le_bytes());
        at += 16 + length as usize;
    }
    bytes
}

#[test]
fn captures_of_both_ends_have_one_clock() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("client.pcap"), AT_CLIENT).unwrap();
    std::fs::write(dir.path().join("server.pcap"), by_another_clock(AT_SERVER, 2_500_000)).unwrap();
    import(dir.path(), &["client.pcap", "server.pcap", "-o", "r"]).unwrap();
    let recording = Recording::open(&dir.path().join("r")).unwrap();
    let clock = recording.tables.events.rows.iter().find(|row| row.kind == "clock_offset").unwrap();
    let number = |name: &str| clock.labels.get(name).and_then(|text| text.parse::<f64>().ok()).unwrap();
    assert!((number("offset_seconds") + 2.5).abs() <= number("error_seconds") + 1e-6, "{clock:?}");
    assert!(number("error_seconds") < 0.001 && clock.text.contains("segments of the same connections"), "{clock:?}");
    // What both saw is at the same moments now.
    let sent = |source: &str| {
        let of_it = recording.tables.exchanges.rows.iter().filter(move |row| row.source == source);
        of_it.map(|row| row.request_at).collect::<Vec<i64>>()
    };
    let (near, far) = (sent("pcap:client.pcap"), sent("pcap:server.pcap"));
    assert!(near.len() >= 16 && near.len() == far.len(), "{} {}", near.len(), far.len());
    assert!(near.iter().zip(&far).all(|(near, far)| (near - far).abs() < 1_000_000));
}

#[test]
fn a_folder_of_several_kinds_and_a_recording() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("all/db1");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("paste.txt"), PASTE).unwrap();
    std::fs::write(folder.join("pods.json"), PODS).unwrap();
    std::fs::write(folder.join("other.json"), "{\"name\": \"x\"}").unwrap();
    import(dir.path(), &["all", "-o", "r"]).unwrap();
    std::fs::write(dir.path().join("late.txt"), PASTE.replace("10:11:12", "10:11:15")).unwrap();
    import(dir.path(), &["r", "late.txt", "-o", "more"]).unwrap();
    let recording = Recording::open(&dir.path().join("more")).unwrap();
    // The recording's own load average stays, and that of the same name is left out.
    let loads = recording.tables.samples.rows.iter().filter(|row| row.metric == "system_load_average_1m");
    assert_eq!(loads.count(), 1);
}
