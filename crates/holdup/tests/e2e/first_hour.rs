//! What a new user meets first: the version, the completion of names, man pages, and a program that has a name.

use std::process::Command;

use crate::program::{finish, holdup, root};
use crate::service::Service;

/// The build script, for the part of it that must work without git.
#[allow(dead_code)]
#[path = "../../build.rs"]
mod build;

#[test]
fn the_version_has_its_commit_where_there_is_one() {
    let said = finish(holdup(["--version"]), 30).stdout;
    let rest = said.trim().strip_prefix("holdup ").unwrap().strip_prefix(env!("CARGO_PKG_VERSION")).unwrap();
    if std::env::var_os("HOLDUP_COMMIT").is_none() {
        let commit = build::commit(root());
        assert_eq!(commit.is_some(), !rest.is_empty(), "{said}");
    }
    if !rest.is_empty() {
        let inside = rest.strip_prefix(" (").and_then(|rest| rest.strip_suffix(')')).unwrap();
        let (hash, day) = inside.split_once(' ').unwrap();
        assert!(hash.len() >= 7 && hash.chars().all(|c| c.is_ascii_hexdigit()), "{said}");
        assert!(day.len() == 10 && day.split('-').all(|part| part.parse::<u32>().is_ok()), "{said}");
    }
    // A tarball, even within somebody else's checkout, has no commit.
    let tarball = tempfile::tempdir_in(root().join("crates")).unwrap();
    assert_eq!(build::commit(tarball.path()), None);
}

/// What bash offers for `line`, at whose end the cursor is.
fn offered(line: &str) -> Vec<String> {
    let script = "source /dev/stdin; COMP_WORDS=($HOLDUP_LINE); [[ $HOLDUP_LINE == *' ' ]] && COMP_WORDS+=(''); \
                  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _holdup_names \"${COMP_WORDS[0]}\" \"${COMP_WORDS[COMP_CWORD]}\" \
                  \"${COMP_WORDS[COMP_CWORD-1]}\"; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let completion = finish(holdup(["completion", "bash"]), 30).stdout;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("completion");
    std::fs::write(&file, completion).unwrap();
    let script = script.replace("/dev/stdin", &file.display().to_string());
    let program = env!("CARGO_BIN_EXE_holdup");
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", &script]).env("HOLDUP_LINE", line.replacen("holdup", program, 1)).current_dir(root());
    let done = finish(&mut bash, 30);
    done.stdout.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_completes_causes_labs_and_recordings() {
    assert_eq!(offered("holdup explain thread_pool_q"), ["thread_pool_queue"]);
    assert!(offered("holdup explain ").len() > 30);
    assert_eq!(offered("holdup lab hidden-q"), ["hidden-queue"]);
    for command in ["diagnose", "report", "compare fixtures/demo-fixed"] {
        let recordings = offered(&format!("holdup {command} fixtures/demo-f"));
        assert_eq!(recordings, ["fixtures/demo-faulty", "fixtures/demo-fixed"], "{command}");
    }
    assert_eq!(offered("holdup diagnose fixtures/demo-fixed --against fixtures/demo-fa"), ["fixtures/demo-faulty"]);
    // All else is the generated script's.
    assert!(offered("holdup diag").contains(&"diagnose".to_owned()));
    assert!(offered("holdup diagnose --verb").contains(&"--verbose".to_owned()));
}

#[test]
fn man_pages_are_written() {
    let dir = tempfile::tempdir().unwrap();
    let done = finish(holdup(["man"]).arg(dir.path().join("man1")), 30);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let page = std::fs::read_to_string(dir.path().join("man1/holdup-diagnose.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("threshold"), "{page}");
    assert!(finish(holdup(["man"]), 30).stdout.contains(".TH"));
}

#[test]
fn the_bundled_service_has_a_name() {
    let service = Service::start();
    let name = std::fs::read_to_string(format!("/proc/{}/comm", service.pid())).unwrap();
    assert_eq!(name.trim(), "holdup-service");
}
