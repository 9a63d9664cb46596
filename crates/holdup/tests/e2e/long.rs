//! What judging costs grows no faster than the recording: CPU time, and the most memory, of two recordings of different length.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::program::{alone, holdup, root};

#[path = "../../../holdup-diagnose/tests/long/grow.rs"]
mod grow;

/// Lengths of the recordings, seconds: the second is three times the first.
const LENGTHS: [i64; 2] = [120, 360];

/// What an hour may take, bytes.
const AN_HOUR: f64 = 512.0 * 1024.0 * 1024.0;

/// Times the CPU time that three times as much may take beyond three times: chance, and caches that a short recording fits into.
const SLACK: f64 = 1.3;

#[derive(Debug)]
struct Cost {
    cpu_s: f64,
    peak_bytes: f64,
}

/// What `holdup diagnose --json` costs, as the kernel counts it until it ends.
fn cost(recording: &Path) -> Cost {
    let mut command = holdup(["diagnose".as_ref(), recording.as_os_str(), "--json".as_ref()]);
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let (of, mut cost) = (format!("/proc/{}", child.id()), Cost { cpu_s: 0.0, peak_bytes: 0.0 });
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        let stat = std::fs::read_to_string(format!("{of}/stat")).unwrap_or_default();
        // User and system time, in hundredths of a second, stand eleven after the name in brackets.
        let ticks = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
        let ticks: f64 = ticks.filter_map(|text| text.parse::<f64>().ok()).sum();
        cost.cpu_s = cost.cpu_s.max(ticks / 100.0);
        let memory = std::fs::read_to_string(format!("{of}/status")).unwrap_or_default();
        let peak =
            memory.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        cost.peak_bytes = peak.map_or(cost.peak_bytes, |kb: f64| kb * 1024.0);
        std::thread::sleep(Duration::from_millis(2));
    };
    assert!(status.success(), "{status}");
    cost
}

#[test]
fn three_times_as_long_takes_three_times_as_much_and_an_hour_fits() {
    let folder = tempfile::tempdir().unwrap();
    let recordings = LENGTHS.map(|seconds| {
        let dir = folder.path().join(seconds.to_string());
        let [healthy, faulty] = ["hidden-queue-fixed", "hidden-queue-faulty"].map(|f| root().join("fixtures").join(f));
        grow::Grown::of(&healthy, &faulty, seconds).unwrap().write(&dir).unwrap();
        dir
    });
    let _alone = alone();
    holdup_witness::judge("long::three_times", &holdup_witness::STALLS, || {
        let [short, long] = [0, 1].map(|i| cost(&recordings[i]));
        let times = (LENGTHS[1] / LENGTHS[0]) as f64;
        assert!(long.cpu_s <= SLACK * times * short.cpu_s, "{times} times as long: {short:?}, {long:?}");
        let a_second = (long.peak_bytes - short.peak_bytes) / (LENGTHS[1] - LENGTHS[0]) as f64;
        assert!(a_second > 1_000.0, "what does not grow was not measured: {short:?}, {long:?}");
        let an_hour = short.peak_bytes + a_second * (3_600 - LENGTHS[0]) as f64;
        assert!(an_hour <= AN_HOUR, "an hour would take {:.0} MB: {short:?}, {long:?}", an_hour / 1e6);
    });
}
