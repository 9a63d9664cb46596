//! Logs of more different statements than memory is to hold: `advise` and `replay` keep the slowest exactly, say what the others are
//! together, and take no more memory for a log of twice as many.

use std::io::{BufWriter, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use crate::program::holdup;

/// Different statements of the shorter log: more than the caches of statements hold.
const STATEMENTS: usize = 140_000;

/// Bytes of each one's literal.
const TEXT: usize = 400;

/// The statement that took longest, and comes last.
const SLOWEST: &str = "SELECT c FROM slowest WHERE id = 7";

fn log(dir: &Path, statements: usize) -> PathBuf {
    // Not in memory: the peak of a child begins with what its parent had.
    let path = dir.join(format!("{statements}.log"));
    let mut file = BufWriter::new(std::fs::File::create(&path).unwrap());
    let mut number = 0;
    let mut entry = |time: &str, sql: &str| {
        // A thousand a second, as a replay holds back what came at one time.
        let (second, timestamp) = (number / 1_000 % 60, 1_795_341_600 + number / 1_000);
        let minute = number / 60_000;
        number += 1;
        write!(
            file,
            "# Time: 2026-11-22T10:{minute:02}:{second:02}.000000Z\n# User@Host: a[a] @ h []  Id: 1\n# Query_time: {time}  Lock_time: 0.0 \
             Rows_sent: 1  Rows_examined: 2\nSET timestamp={timestamp};\n{sql};\n"
        )
        .unwrap();
    };
    // Long enough for the shorter log to fill the 64 MiB that a replay holds back.
    let value = "x".repeat(TEXT);
    (0..statements).for_each(|number| entry("0.001000", &format!("SELECT c FROM light{number} WHERE id = '{value}'")));
    (0..5).for_each(|_| entry("3.000000", SLOWEST));
    file.flush().unwrap();
    path
}

/// What it said, and the most memory that it had, KiB.
#[expect(clippy::zombie_processes, reason = "wait4(2) waits for it, and tells its memory")]
fn peak_kib(mut command: Command, dir: &Path) -> (String, i64) {
    let said = dir.join("said");
    let file = std::fs::File::create(&said).unwrap();
    let child = command.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    let pid = libc::pid_t::try_from(child.id()).unwrap();
    // SAFETY: it fills a number and a structure that live through the call; the child is this test's own, and not waited for twice.
    let (ended, usage) = unsafe { (libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()), usage.assume_init()) };
    let said = std::fs::read_to_string(said).unwrap();
    assert_eq!((ended, ExitStatus::from_raw(status).code()), (pid, Some(0)), "{said}");
    (said, usage.ru_maxrss)
}

/// With twice as many statements it takes no more memory. What it said of the longer log.
fn is_flat(what: &str, command: impl Fn(&Path) -> Command) -> String {
    let dir = tempfile::tempdir().unwrap();
    let [(_, half), (said, whole)] =
        [STATEMENTS, 2 * STATEMENTS].map(|number| peak_kib(command(&log(dir.path(), number)), dir.path()));
    eprintln!("{what}: {half} KiB for {STATEMENTS} statements, {whole} KiB for twice as many");
    // A statement without room is a number in a set, of which there are at most four million. With room it takes several times its text.
    let each = (whole - half) * 1_024 / STATEMENTS as i64;
    assert!(each < TEXT as i64, "{what}: {half} KiB, then {whole} KiB: {each} bytes for each more statement");
    said
}

#[test]
fn advice_on_any_number_of_statements_takes_bounded_memory() {
    let said = is_flat("advise", |log| {
        holdup([Path::new("advise"), Path::new("--max-memory=8MiB"), Path::new("--json"), log])
    });
    let advice: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(advice["advice"][0]["text"], "SELECT c FROM slowest WHERE id = ?", "{advice:#}");
    assert_eq!(advice["advice"][0]["calls"], 5);
    let rest = &advice["rest"];
    let left = rest["statements"].as_u64().unwrap();
    assert!(left > 2 * STATEMENTS as u64 - 2_000 && rest["calls"].as_u64() == Some(left), "{rest}");
    // The log took 200 s and 15 s, of which all but the statements with room are the rest's.
    let ratio = advice["rest_ratio"].as_f64().unwrap();
    assert!((ratio - left as f64 / (2.0 * STATEMENTS as f64 + 15_000.0)).abs() < 1e-6, "{ratio}");
    let ratios = ["replica_never_stale_ratio", "replica_stale_ratio", "stays_ratio"];
    let sum: f64 = ratios.iter().map(|name| advice[name].as_f64().unwrap()).sum();
    assert!((sum + ratio - 1.0).abs() < 1e-6, "{advice:#}");
}

#[test]
fn a_replay_of_any_number_of_statements_takes_bounded_memory() {
    let said = is_flat("replay", |log| {
        let mut command = holdup(["replay", "--check", "--max-memory=8MiB", "--to", "mysql://u@127.0.0.1:9/x"]);
        command.arg(log);
        command
    });
    let (all, distinct) = (2 * STATEMENTS + 5, 2 * STATEMENTS + 1);
    let first = format!("{all} of the log's {all} statements (100.0 %), {distinct} distinct");
    assert!(said.contains(&first), "{said}");
    assert!(said.contains("distinct statements did not fit in memory (--max-memory): they are sent"), "{said}");
    assert!(said.contains("none of the statements more than 0."), "{said}");
}
