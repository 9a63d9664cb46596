//! Arguments that a slip has made wrong, and what was probably meant: a scenario or a file to import that is not there, a server
//! where a log belongs, a recording that has no end yet.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use holdup_recording::nearest::nearest;
use holdup_recording::{Recording, RunState};

use crate::failure::Failure;

/// Why the scenario `path` cannot be read, and what to do.
pub fn scenario(path: &Path, error: &std::io::Error) -> Failure {
    unread(path, error, is_yaml, "`holdup init` writes a scenario to start from")
}

/// Why the file `path` cannot be imported, and what to do.
pub fn to_import(path: &Path, error: &std::io::Error) -> Failure {
    let way = match error.kind() {
        ErrorKind::PermissionDenied => {
            "; run it as a user who may read it, or pass it by sudo cat FILE | holdup import -"
        }
        _ => "",
    };
    let hint = "give the path of a file or a folder, or - and paste";
    match unread(path, error, |_| true, hint) {
        Failure::Unusable(why) => Failure::Unusable(format!("{why}{way}")),
        other => other,
    }
}

/// Why `path` cannot be read; for a missing file with the one in its folder that was probably
/// meant, or else with `hint`.
fn unread(path: &Path, error: &std::io::Error, is_one: fn(&str) -> bool, hint: &str) -> Failure {
    let shown = path.display();
    if error.kind() != ErrorKind::NotFound {
        return Failure::Unusable(format!("{shown}: {error}"));
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = std::fs::read_dir(here).into_iter().flatten().flatten();
    let known: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| is_one(name)).collect();
    let hint = match nearest(&name, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean {}?", folder.join(near).display()),
        None => hint.to_owned(),
    };
    Failure::Unusable(format!("{shown}: No such file; {hint}"))
}

fn is_yaml(name: &str) -> bool {
    name.ends_with(".yaml") || name.ends_with(".yml")
}

/// Refuses a server's address where `command` reads files.
///
/// # Errors
/// If one of `files` is an address; the error names the commands that take one.
pub fn no_server_among(files: &[PathBuf], command: &str) -> Result<(), Failure> {
    let address = files.iter().filter_map(|file| file.to_str()).find(|file| file.contains("://"));
    let Some(address) = address else { return Ok(()) };
    let (scheme, dump) = match address.split("://").next() {
        Some("postgresql" | "postgres") => {
            ("postgresql://USER@HOST:PORT/DATABASE", "psql --csv -c 'SELECT * FROM pg_stat_statements'")
        }
        Some("mysql") => (
            "mysql://USER@HOST:PORT",
            "mysql -B -e 'SELECT * FROM performance_schema.events_statements_summary_by_digest'",
        ),
        _ => return Err(Failure::Unusable(format!("{command} reads files, not addresses: give it a log's path"))),
    };
    let counters = if command == "digest" {
        format!("\n  {dump} | holdup digest -   its counters, ranked")
    } else {
        String::new()
    };
    Err(Failure::Unusable(format!(
        "{command} reads logs, not servers. Of a running server:{counters}\n  holdup top {scheme}   what its sessions do now\n  \
         holdup watch --watch {scheme} --for 60s   a recording with its statements, and a verdict"
    )))
}

/// Says on stderr that `recording` has no end yet.
pub fn say_if_running(recording: &Recording) {
    if recording.manifest.state == RunState::Running {
        say_running(&recording.dir);
    }
}

/// Says that the recording `dir` goes on, or was cut off.
pub fn say_running(dir: &Path) {
    errln!("{}: still being recorded, or its holdup was killed: this is about what was written so far", dir.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(failure: Failure) -> String {
        let Failure::Unusable(text) = failure else { panic!("exit code 2") };
        text
    }

    #[test]
    fn a_scenario_that_is_not_there_is_told_the_nearest() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("shop.yaml"), "").unwrap();
        let missing = std::io::Error::from(ErrorKind::NotFound);
        let near = said(scenario(&dir.path().join("shop.yml"), &missing));
        assert!(near.ends_with(&format!("did you mean {}?", dir.path().join("shop.yaml").display())), "{near}");
        let far = said(scenario(&dir.path().join("entirely-else.yaml"), &missing));
        assert!(far.contains("No such file") && far.contains("holdup init"), "{far}");
        let paste = said(to_import(&dir.path().join("nowhere/paste.txt"), &missing));
        assert!(paste.ends_with("No such file; give the path of a file or a folder, or - and paste"), "{paste}");
        let near = said(to_import(&dir.path().join("shop.yam"), &missing));
        assert!(near.ends_with("shop.yaml?"), "{near}");
    }

    #[test]
    fn a_server_is_no_log() {
        let refused = |address: &str, command| said(no_server_among(&[address.into()], command).unwrap_err());
        let pg = refused("postgres://u:canary@h/shop", "digest");
        assert!(
            pg.contains("pg_stat_statements' | holdup digest -") && pg.contains("holdup top postgresql://"),
            "{pg}"
        );
        assert!(!pg.contains("canary"));
        assert!(refused("mysql://u@h", "digest").contains("summary_by_digest' | holdup digest -"));
        assert!(!refused("mysql://u@h", "replay").contains("holdup digest"));
        assert!(no_server_among(&["slow.log".into(), "-".into()], "digest").is_ok());
    }
}
