//! A disk that fills up under a recording: the run goes on to its end, what was written is kept, and it is said.

use std::process::Command;

use holdup_recording::Recording;

use crate::program::{finish, holdup};
use crate::service::Service;

/// In a mount namespace of its own: a disk of 160 KiB, a run on it, and a copy of what is left.
const SCRIPT: &str = r#"
mount -t tmpfs -o size=160k tmpfs "$1" || exit 97
"$2" run --url "$3" --rate 500 --duration 12s --no-collect --rows 100000 -o "$1/run"
code=$?
cp -r "$1/run" "$4"
exit $code
"#;

#[test]
fn rows_written_before_the_disk_was_full_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (disk, copy) = (dir.path().join("disk"), dir.path().join("copy"));
    std::fs::create_dir(&disk).unwrap();
    let service = Service::start();
    let mut command = Command::new("unshare");
    command.args(["--mount", "--map-root-user", "sh", "-c", SCRIPT, "sh"]);
    command.arg(&disk).arg(env!("CARGO_BIN_EXE_holdup")).arg(service.url()).arg(&copy);
    if !Command::new("unshare").args(["--mount", "--map-root-user", "true"]).output().is_ok_and(|o| o.status.success())
    {
        // Not a matter of what is installed: containers often forbid it, and nothing else makes a full disk.
        eprintln!("skipped: no mount namespace to be had here (unshare --mount)");
        return;
    }
    let done = finish(command, 90);
    if done.code() == Some(97) {
        eprintln!("skipped: no tmpfs to be had here: {}", done.stderr);
        return;
    }
    assert!(done.stderr.contains("No space left") || done.stderr.contains("os error 28"), "{}", done.stderr);
    assert!(done.stderr.contains("kept"), "it says that something is kept: {}", done.stderr);
    assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
    // Half a report is worse than none.
    let page = std::fs::read_to_string(copy.join("report.html")).unwrap_or_default();
    assert!(
        page.is_empty() || page.trim_end().ends_with("</html>"),
        "the report is cut off after {} bytes",
        page.len()
    );
    let kept = finish(holdup(["diagnose", "--json"]).arg(&copy), 60);
    assert_eq!(kept.code(), Some(0), "{}\n{}", kept.stderr, done.stderr);
    let rows = Recording::open(&copy).unwrap().tables.requests.rows.len();
    assert!((500..6_000).contains(&rows), "{rows} of 6,000 requests are left");
    // Counts need no room that was not there before: they are in the manifest.
    assert_eq!(kept.json()["load"]["operations"][0]["completed"], 6_000, "{}", done.stderr);
    assert_eq!(crate::program::manifest(&copy)["state"], "interrupted", "it did not get to its end");
}
