//! Files that holdup is given and makes: what is no plain file is refused as an input, and a recording is its owner's alone and
//! never written through somebody else's link.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use crate::program::{finish, holdup};
use crate::service::Service;

fn fifo(path: &Path) {
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: mkfifo(3) reads the name, which lives through the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
}

/// Each input, as a pipe that nobody writes to and as a device without an end.
#[test]
fn pipes_and_devices_are_no_inputs() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    fifo(&pipe);
    let pipe = pipe.display().to_string();
    let head = "target: http://127.0.0.1:9\nload: {rate: 1, duration: 1s}\n";
    let scenario = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, format!("{head}{text}")).unwrap();
        path.display().to_string()
    };
    let recording = dir.path().join("recording");
    std::fs::create_dir(&recording).unwrap();
    fifo(&recording.join("manifest.json"));
    for bad in [pipe.as_str(), "/dev/zero", "/dev/null"] {
        let feeder = scenario("feeder.yaml", &format!("feeders: {{f: {{csv: {bad}}}}}\nsteps: [get: /]\n"));
        let body = scenario("body.yaml", &format!("operations: [{{post: /, body_file: {bad}}}]\n"));
        let include = scenario("include.yaml", &format!("include: {bad}\noperations: [get: /]\n"));
        let password = format!("mysql://u@127.0.0.1:9?password_file={bad}");
        let commands: [&[&str]; 17] = [
            &["watch", "--for=1s", "--watch", &format!("log:{bad}")],
            &["watch", "--for=1s", "--watch", &password],
            &["watch", "--for=1s", "--watch", &format!("mysql://u@127.0.0.1:9?tls_ca={bad}")],
            &["watch", "--for=1s", "--watch", &format!("postgresql://u@127.0.0.1:9/x?sslrootcert={bad}")],
            &["run", "--url", "https://127.0.0.1:9", "--rate=1", "--duration=1s", "--tls-ca", bad],
            &["run", bad],
            &["run", &feeder],
            &["run", &body],
            &["run", &include],
            &["run", "--url", "http://127.0.0.1:9", "--replay", bad],
            &["watch", "--for=1s", "--watch", &format!("@{bad}")],
            &["digest", bad],
            &["digest", "--follow", bad],
            &["advise", bad],
            &["replay", bad, "--to", "mysql://u@127.0.0.1:9/x"],
            &["import", "scenario", bad],
            &["import", bad, "-o", "imported"],
        ];
        for command in commands {
            let done = finish(limited(command).current_dir(dir.path()), 60);
            assert_eq!(done.code(), Some(2), "{command:?}: {}{}", done.stdout, done.stderr);
            assert!(done.stderr.contains("not a regular file"), "{command:?}: {}", done.stderr);
        }
    }
    let done = finish(limited(&["diagnose", &recording.display().to_string()]), 60);
    assert!(done.code() == Some(2) && done.stderr.contains("not a regular file"), "{}", done.stderr);
}

/// holdup with these arguments, which is killed if it waits for what never comes.
fn limited(arguments: &[&str]) -> std::process::Command {
    let mut command = std::process::Command::new("timeout");
    command.args(["-k", "1", "20", env!("CARGO_BIN_EXE_holdup")]).args(arguments).env("NO_COLOR", "1");
    command.stdin(std::process::Stdio::null());
    command
}

/// In a shell's hands a pipe is an input like standard input: documented for logs.
#[test]
fn a_pipe_that_the_shell_hands_over_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("slow.log");
    std::fs::write(
        &log,
        "# Time: 2030-01-01T00:00:00.000000Z\n# User@Host: u[u] @ h []  Id: 1\n# Query_time: 1.0  Lock_time: 0.0  Rows_sent: 1  Rows_examined: 1\nSET timestamp=1893456000;\nSELECT a FROM t WHERE a = 1;\n",
    )
    .unwrap();
    let mut shell = std::process::Command::new("bash");
    shell.arg("-c").arg(format!("{} digest <(cat {})", env!("CARGO_BIN_EXE_holdup"), log.display()));
    let done = finish(shell.env("NO_COLOR", "1"), 30);
    assert!(done.code() == Some(0) && done.stdout.contains("SELECT a FROM t"), "{}{}", done.stdout, done.stderr);
}

fn modes(dir: &Path, into: &mut Vec<(PathBuf, u32)>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let kind = path.symlink_metadata().unwrap();
        into.push((path.clone(), kind.permissions().mode() & 0o777));
        if kind.is_dir() {
            modes(&path, into);
        }
    }
}

fn record(dir: &Path, out: &str) -> crate::program::Finished {
    let service = Service::start();
    let url = service.url();
    let arguments = ["run", "--url", &url, "--rate=50", "--duration=3s", "--no-collect", "-o", out];
    finish(holdup(arguments).current_dir(dir), 60)
}

fn is_root() -> bool {
    // SAFETY: geteuid takes nothing and always succeeds.
    unsafe { libc::geteuid() == 0 }
}

#[test]
fn what_root_records_is_roots_alone() {
    let dir = tempfile::tempdir().unwrap();
    let done = record(dir.path(), "deep/out");
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let out = dir.path().join("deep/out");
    let mut found = vec![(out.clone(), out.metadata().unwrap().permissions().mode() & 0o777)];
    modes(&out, &mut found);
    assert!(found.len() > 5, "{found:?}");
    for (path, mode) in found {
        let most = if path.is_dir() { 0o700 } else { 0o600 };
        assert!(!is_root() || mode == most, "{} is {mode:o}", path.display());
    }
}

/// A folder of another account, and links to what is not ours, are refused; nothing behind them is touched.
#[test]
fn nothing_is_written_through_what_belongs_to_another() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (theirs, link) = (dir.path().join("theirs"), dir.path().join("link"));
    std::fs::create_dir(&theirs).unwrap();
    chown(&theirs, Some(65_534), Some(65_534)).unwrap();
    symlink(&theirs, &link).unwrap();
    let planted = dir.path().join("planted");
    let ours = dir.path().join("ours");
    std::fs::create_dir(&ours).unwrap();
    symlink(&ours, &planted).unwrap();
    std::os::unix::fs::lchown(&planted, Some(65_534), Some(65_534)).unwrap();
    for out in ["theirs", "link", "planted", "planted/inside", "planted/in/side"] {
        let done = record(dir.path(), out);
        assert_eq!(done.code(), Some(2), "{out}: {}", done.stdout);
        assert!(done.stderr.contains("another user") && done.stderr.contains("-o"), "{out}: {}", done.stderr);
        for folder in [&theirs, &ours] {
            assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0, "{out} left something");
        }
    }
    assert_eq!(theirs.metadata().unwrap().uid(), 65_534);
    // A report beside a recording: its partial file and itself are links that somebody has put there.
    let done = record(dir.path(), "mine");
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let victim = dir.path().join("victim");
    std::fs::write(&victim, "kept").unwrap();
    symlink(&victim, dir.path().join("mine/report.html.tmp")).unwrap();
    let _ = finish(holdup(["report", "mine"]).current_dir(dir.path()), 60);
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "kept");
}
