//! `holdup doctor --for-verdict RECORDING`: names the one measurement that would decide between the
//! causes a verdict could not tell apart, and takes it where that is safe. It is safe on the
//! recorded machine, from a source that only reads and needs no account beyond a given one. holdup
//! changes nothing: where a change or a request would be needed, it says so and why.

use holdup_diagnose::Cause;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdup_collect::discover::{self, WatchableSource};
use holdup_collect::proc::Proc;
use holdup_collect::watch::{self, Options};
use holdup_diagnose::verdict::{Answer, SplitReport};
use holdup_diagnose::{Diagnosis, diagnose};
use holdup_recording::{CoverageState, Manifest, Recording};
use serde::Serialize;

use crate::commands::print_json;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::session::{self, Session};
use crate::terminal::words::told;
use holdup_recording::secret::redact_value;

/// Time between samples.
const INTERVAL: Duration = Duration::from_secs(1);

/// Sources that are read without an account and only show the service's own figures.
const OPEN: [&str; 3] = ["host", "server:", "prometheus:"];

/// Sources that do more than read, or wait for others, with the reason why holdup does not watch
/// them by itself.
const NOT_BY_ITSELF: [(&str, &str); 4] = [
    ("tracepoints", "it switches the kernel's records on"),
    ("otlp", "the app has to send to it: set its exporter first"),
    ("probe", "it sends requests to the service"),
    ("log", "only you know which file it is"),
];

#[derive(Serialize)]
struct Report {
    verdict: Answer,
    headline: String,
    /// The rivals and the measurement that would tell them apart; none if there are none.
    split: Option<SplitReport>,
    /// Sources that were watched; empty if no measurement was taken.
    taken: Vec<String>,
    /// Why the measurement was not taken.
    why_not: Option<String>,
    /// The directory of the new recording.
    recording: Option<PathBuf>,
    /// What the new recording says of each rival.
    rivals: Vec<Rival>,
    /// The result in one sentence.
    answer: Option<String>,
}

#[derive(Serialize)]
struct Rival {
    cause: Cause,
    /// `found`, `cleared`, `not_judged`.
    outcome: &'static str,
    text: String,
}

/// Names the deciding measurement, and takes it for `length` where that is safe.
pub(super) fn run(dir: &Path, given: &[String], length: Duration, json: bool) -> Result<(), Failure> {
    let recording = Recording::open(dir).map_err(Failure::unusable)?;
    let diagnosis = diagnose(&recording, None);
    let mut report = Report {
        verdict: diagnosis.verdict,
        headline: diagnosis.headline.clone(),
        split: diagnosis.split.clone(),
        taken: Vec::new(),
        why_not: None,
        recording: None,
        rivals: Vec::new(),
        answer: None,
    };
    if let Some(split) = &diagnosis.split {
        let servers = discover::local_servers(&Proc::system()).map_err(Failure::unusable)?;
        let is_here = recording.manifest.host == session::host();
        match sources(split, given, &servers, is_here.then_some(&recording.manifest)) {
            Ok(watch) => measure(&mut report, split, watch, length, dir)?,
            Err(why) => report.why_not = Some(why),
        }
    }
    if json {
        return print_json(&report);
    }
    print(&report, dir);
    Ok(())
}

/// The sources to watch, or why holdup cannot take the measurement by itself. `manifest` belongs to
/// a recording of this machine.
fn sources(
    split: &SplitReport,
    given: &[String],
    servers: &[WatchableSource],
    manifest: Option<&Manifest>,
) -> Result<Vec<String>, String> {
    let wanted = split.watch.as_deref().ok_or("it needs a change, and holdup changes nothing")?;
    let scheme = scheme(wanted);
    if let Some((_, why)) = NOT_BY_ITSELF.iter().find(|(of, _)| *of == scheme) {
        return Err((*why).to_owned());
    }
    let mut watch = Vec::new();
    if given.iter().any(|address| is_same(self::scheme(address), scheme)) {
        watch.extend(given.iter().cloned());
    } else {
        let manifest =
            manifest.ok_or("it was recorded on another machine: run this there, or name the source with --watch")?;
        if scheme == "host" {
            watch.push("host".to_owned());
        } else {
            let packets = servers.iter().filter_map(|s| super::wire_address(s.kind, s.port));
            let own = servers.iter().map(|s| s.watch.clone());
            let of = own.chain(packets).filter(|w| is_same(self::scheme(w), scheme));
            let (needs, open): (Vec<String>, Vec<String>) = of.partition(|w| w.contains("USER"));
            if let Some(address) = needs.first() {
                return Err(format!("it needs an account: name it with --watch '{address}'"));
            }
            if open.is_empty() {
                return Err(format!(
                    "no source of that kind ({wanted}) was found on this machine: name it with --watch"
                ));
            }
            watch.extend(open);
        }
        // The sources that measured response time in the recording are needed again.
        let before = manifest.coverage.iter().filter(|c| c.state != CoverageState::Absent && !c.source.contains(' '));
        let open = before.filter(|c| OPEN.iter().any(|of| c.source.starts_with(of)));
        watch.extend(open.map(|c| c.source.clone()).filter(|source| can_be_read(source)));
    }
    watch.sort_unstable();
    watch.dedup();
    Ok(watch)
}

/// `mysql` of `mysql://…`, `host` of `host`.
fn scheme(address: &str) -> &str {
    address.split_once(':').map_or(address, |(scheme, _)| scheme)
}

/// Databases report the same figures, of whichever kind they are.
fn is_same(a: &str, b: &str) -> bool {
    let is_database = |of: &str| matches!(of, "mysql" | "postgresql" | "postgres");
    a == b || is_database(a) && is_database(b)
}

fn can_be_read(source: &str) -> bool {
    watch::collector(source, &Options::default()).and_then(|mut c| c.probe()).is_ok()
}

/// Watches, judges the new recording, and says what it means for the rivals.
fn measure(
    report: &mut Report,
    split: &SplitReport,
    watch: Vec<String>,
    length: Duration,
    dir: &Path,
) -> Result<(), Failure> {
    let stop = crate::stop::stop_flag()?;
    let to = session::default_dir("for-verdict");
    let mut progress = Progress::new(true, Some(length));
    let watched = Session::new("for-verdict", &watch, INTERVAL, &to);
    let session = Session { watch_for: Some(length), partial: true, ..watched };
    let recorded = match session::record(&session, &mut progress, &stop) {
        Ok(recorded) => recorded,
        Err(Failure::Interrupted) => return Err(Failure::Interrupted),
        Err(Failure::No(why) | Failure::Unusable(why)) => {
            report.why_not = Some(why);
            return Ok(());
        }
    };
    recorded.whole()?;
    let diagnosis = diagnose(&recorded.recording, None);
    report.taken = watch.iter().map(|address| redact_value(address)).collect();
    report.rivals = split.rivals.iter().map(|cause| rival(&diagnosis, *cause)).collect();
    report.answer = Some(answer(&diagnosis, &report.rivals, dir));
    report.recording = Some(to);
    Ok(())
}

fn rival(diagnosis: &Diagnosis, cause: Cause) -> Rival {
    let found = diagnosis.findings.iter().find(|f| f.cause == cause);
    let cleared = diagnosis.cleared.iter().find(|c| c.cause == cause);
    let open = diagnosis.not_judged.iter().find(|n| n.cause == cause);
    let (outcome, text) = match (found, cleared, open) {
        (Some(found), ..) => ("found", found.evidence.first().map_or_else(String::new, |e| e.text.clone())),
        (_, Some(cleared), _) => ("cleared", cleared.evidence.last().map_or_else(String::new, |e| e.text.clone())),
        (.., Some(open)) => ("not_judged", format!("needs {}", open.missing)),
        _ => ("not_judged", "counters alone name it, and no rule judges it".to_owned()),
    };
    Rival { cause, outcome, text }
}

/// The result of the measurement in one sentence.
fn answer(diagnosis: &Diagnosis, rivals: &[Rival], dir: &Path) -> String {
    let with =
        |outcome: &str| rivals.iter().filter(|r| r.outcome == outcome).map(|r| r.cause.slug()).collect::<Vec<_>>();
    if diagnosis.verdict == Answer::Healthy {
        return format!(
            "Nothing was slow meanwhile: measure again during an episode like the one in {}.",
            dir.display()
        );
    }
    match (with("found").as_slice(), with("cleared").as_slice()) {
        ([one, ..], _) => format!("It is {one}."),
        ([], cleared) if !cleared.is_empty() => format!("It is not {}.", cleared.join(", and not ")),
        _ => "It does not tell them apart.".to_owned(),
    }
}

fn print(report: &Report, dir: &Path) {
    let bold = crate::terminal::style::Style::new().bold();
    outln!("{}", report.headline);
    let Some(split) = &report.split else {
        outln!("\nThis verdict has no rivals: no measurement would change it.");
        return;
    };
    outln!("\n{bold}Rivals{bold:#}  {}", Cause::join(&split.rivals, ", "));
    outln!("{bold}Deciding measurement{bold:#}  {}", told(&split.measure));
    if let Some(command) = &split.command {
        outln!("                {bold}{command}{bold:#}");
    }
    if let Some(why) = &report.why_not {
        outln!("\nNot taken: {why}.");
        return;
    }
    outln!("\n{bold}Measured{bold:#} with {}", report.taken.join(", "));
    for rival in &report.rivals {
        outln!("  {:<26} {:<11} {}", rival.cause, rival.outcome.replace('_', " "), told(&rival.text));
    }
    if let Some(answer) = &report.answer {
        outln!("\n{answer}");
    }
    if let Some(to) = &report.recording {
        outln!("The new recording is {}: holdup diagnose {} --against {}", to.display(), dir.display(), to.display());
    }
}

#[cfg(test)]
mod tests {
    use holdup_collect::discover::Kind;
    use holdup_recording::manifest::Host;

    use super::*;

    fn split(watch: Option<&str>) -> SplitReport {
        SplitReport {
            rivals: vec![Cause::LockContention, Cause::ThreadPoolQueue],
            measure: "sessions".into(),
            command: None,
            watch: watch.map(str::to_owned),
        }
    }

    fn server(kind: Kind, watch: &str) -> WatchableSource {
        let (process, note) = (String::new(), String::new());
        WatchableSource { port: 1, pid: 1, process, kind, watch: watch.to_owned(), note }
    }

    #[test]
    fn only_what_is_safe_is_taken() {
        let here = Manifest::starting("t", 0, Host::default());
        let servers = [server(Kind::Mysql, "mysql://USER@127.0.0.1:3306"), server(Kind::Server, "server:8080")];
        let of = |watch: Option<&str>, given: &[String], manifest: Option<&Manifest>| {
            sources(&split(watch), given, &servers, manifest)
        };
        let refused = |watch, given: &[String], manifest| of(watch, given, manifest).unwrap_err();

        assert_eq!(of(Some("host"), &[], Some(&here)).unwrap(), ["host"]);
        assert_eq!(of(Some("server:PORT"), &[], Some(&here)).unwrap(), ["server:8080"]);
        assert!(refused(None, &[], Some(&here)).contains("changes nothing"));
        assert!(refused(Some("tracepoints"), &[], Some(&here)).contains("switches"));
        assert!(refused(Some("otlp"), &[], Some(&here)).contains("exporter"));
        assert!(refused(Some("host"), &[], None).contains("another machine"));
        assert_eq!(of(Some("wire:PORT"), &[], Some(&here)).unwrap(), ["wire:1=mysql"]);
        assert!(refused(Some("puma:URL"), &[], Some(&here)).contains("was found"));
        let why = refused(Some("mysql://USER@HOST:PORT"), &[], Some(&here));
        assert!(why.contains("account") && why.contains("mysql://USER@127.0.0.1:3306"), "{why}");
        // An account that was given may be used, and another machine's too; another database's is as good.
        let given = ["postgresql://holdup@db/app".to_owned(), "host".to_owned()];
        assert_eq!(of(Some("mysql://USER@HOST:PORT"), &given, None).unwrap(), ["host", "postgresql://holdup@db/app"]);
    }

    #[test]
    fn what_came_of_the_rivals_is_a_sentence() {
        let rival = |cause, outcome| Rival { cause, outcome, text: String::new() };
        let dir = tempfile::tempdir().unwrap();
        let manifest = Manifest::starting("t", 0, Host::default());
        let recorder = holdup_recording::Recorder::create(dir.path(), &manifest).unwrap();
        recorder.finish(manifest, holdup_recording::RunState::Complete).unwrap();
        let recording = Recording::open(dir.path()).unwrap();
        let undecided = diagnose(&recording, None);
        let of = |rivals: &[Rival]| answer(&undecided, rivals, Path::new("first"));
        assert_eq!(
            of(&[rival(Cause::DiskFull, "cleared"), rival(Cause::DiskSaturated, "found")]),
            "It is disk_saturated."
        );
        assert_eq!(
            of(&[rival(Cause::DiskFull, "cleared"), rival(Cause::DiskSaturated, "not_judged")]),
            "It is not disk_full."
        );
        assert_eq!(of(&[rival(Cause::DiskFull, "not_judged")]), "It does not tell them apart.");
    }
}
