//! `holdup gate`: whether a build is worse than the builds of its base branch, for pipelines. Baselines
//! are recordings in a folder: `DIR/BRANCH/COMMIT/RECORDING`.

use std::fs;
use std::path::{Path, PathBuf};

use holdup_compare::recordings::gate::{Gate, Question, gate};
use holdup_compare::recordings::{Change, Group, Options, words};
use holdup_recording::Recording;
use holdup_recording::files::replace;

use super::compare_groups::{NamedGroup, inside, read_any};
use super::compare_history::in_order;
use super::store::fetched::Inputs;
use super::window::WindowArgs;
use super::{REPORT, print_json};
use crate::failure::Failure;
use crate::outputs::junit::{Case, End, document};
use crate::{markdown, terminal};

/// Fail a pipeline whose build is worse than its base branch
///
/// A build of another branch is compared with the base branch's builds since their last lasting change.
/// A build of the base branch itself fails if the branch got worse and stayed so.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  holdup gate recordings/build --baselines baselines --branch feature-7 --commit 3f2a91c
  holdup gate recordings/build --baselines baselines --branch main --commit 3f2a91c --keep 60
  holdup gate rec/1,rec/2,rec/3 --baselines baselines --branch feature-7 --commit 3f2a91c --markdown comment.md
  holdup gate recordings/build --baselines baselines --branch main --commit 3f2a91c --since 90ab12c --junit gate.xml

Three repeats of a build tell smaller changes than one. Without a baseline the gate passes and says so.

Exit codes: 0 not worse, 1 worse, 2 unusable input or nothing to compare with measured the same.")]
pub struct Args {
    /// Recording of this build, its repeats, a folder of repeats, or an address in a store
    #[arg(value_name = "PATH[,PATH…]")]
    recording: String,

    /// Folder of baselines: BRANCH/COMMIT/RECORDING
    #[arg(long, value_name = "DIR")]
    baselines: PathBuf,

    /// Branch of this build
    #[arg(long, value_name = "NAME", value_parser = named)]
    branch: String,

    /// Commit of this build
    #[arg(long, value_name = "NAME", value_parser = named)]
    commit: String,

    /// Branch to compare with
    #[arg(long, value_name = "NAME", value_parser = named, default_value = "main")]
    base: String,

    /// Begin the baseline with this commit, e.g. after a change that is meant to stay
    #[arg(long, value_name = "COMMIT")]
    since: Option<String>,

    /// Add this build to the baselines, and keep the newest N of its branch
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    keep: Option<u16>,

    /// Write a test case for each figure that counts, as JUnit's XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,

    /// Write the pull request's comment
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    /// Print all rows, also those without a difference
    #[arg(long)]
    all: bool,

    /// Print the answer as JSON
    #[arg(long)]
    json: bool,

    /// Compare although the measuring machines have different CPUs
    #[arg(long)]
    across_machines: bool,

    /// Print only errors
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
}

/// Longest name of a branch or commit, bytes.
const NAME_BYTES_MAX: usize = 250;

/// Reads the name of a branch or commit.
fn named(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && text.len() <= NAME_BYTES_MAX && !text.starts_with(['.', '-']);
    if is_name {
        Ok(text.to_owned())
    } else {
        Err(format!("expected a name of 1 to {NAME_BYTES_MAX} bytes, e.g. feature/search"))
    }
}

/// The folder of a branch or commit: `feature/search` is `feature%2fsearch`.
fn folder(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    name.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") }).collect()
}

pub fn run(args: Args) -> Result<(), Failure> {
    let inputs = Inputs::fetch(std::slice::from_ref(&args.recording), &WindowArgs::default())?;
    let commit = folder(&args.commit);
    let baselines = baselines(&args, &commit, &inputs)?;
    let named = read_any(&[format!("{commit}={}", inputs.texts.concat())])?;
    let build = in_order(&named, &inputs)?.pop();
    let build = build.ok_or_else(|| Failure::Unusable(format!("{}: not a recording", args.recording)))?;
    let question = if args.branch == args.base { Question::Lasting } else { Question::Change };
    let found = gate(&baselines, &args.base, &build, question, Options { across_machines: args.across_machines });
    let write = |path: &Option<PathBuf>, text: &dyn Fn() -> String| match path {
        Some(path) => replace(path, text().as_bytes()).map_err(cannot("write", path)),
        None => Ok(()),
    };
    write(&args.junit, &|| document(&format!("gate {}", args.base), 0.0, &cases(&found)))?;
    write(&args.markdown, &|| markdown::gate(&found, args.all))?;
    if let Some(most) = args.keep.filter(|_| found.verdict != Change::NotComparable) {
        keep(&named, &args.baselines.join(folder(&args.branch)), usize::from(most))?;
    }
    match &found.comparison {
        _ if args.json => print_json(&found)?,
        _ if args.quiet => {}
        Some(comparison) => terminal::print(&terminal::comparison(comparison, args.all)),
        None if question == Question::Lasting => terminal::print(&terminal::history(&found.history, args.all)),
        None => outln!("{}", found.headline),
    }
    match found.verdict {
        Change::Worse | Change::Mixed => Err(Failure::No(found.headline)),
        Change::NotComparable => Err(Failure::Unusable(found.headline)),
        _ => Ok(()),
    }
}

/// The builds of the base branch in order of time, without `commit` itself.
fn baselines(args: &Args, commit: &str, inputs: &Inputs) -> Result<Vec<Group>, Failure> {
    let mut texts: Vec<String> = Vec::new();
    for path in kept(&args.baselines.join(folder(&args.base)))? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name != commit {
            texts.push(format!("{name}={}", path.display()));
        }
    }
    let mut builds = if texts.is_empty() { Vec::new() } else { in_order(&read_any(&texts)?, inputs)? };
    if let Some(since) = &args.since {
        let at = builds.iter().position(|build| build.name == folder(since)).ok_or_else(|| {
            let (base, all) = (&args.base, builds.len());
            Failure::Unusable(format!(
                "--since {since} names none of the {all} builds of {base} in {}",
                args.baselines.display()
            ))
        })?;
        builds.drain(..at);
    }
    Ok(builds)
}

/// The folders of a branch's builds; none if the branch has no folder yet.
fn kept(branch: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !branch.exists() {
        return Ok(Vec::new());
    }
    let entries = branch.read_dir().map_err(cannot("read", branch))?;
    let mut builds: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    builds.retain(|path| path.is_dir() && inside(path).is_ok());
    builds.sort();
    Ok(builds)
}

/// Copies a build's recordings into the folder of its branch, and removes the oldest beyond `most`.
fn keep(build: &[NamedGroup], branch: &Path, most: usize) -> Result<(), Failure> {
    for (recording, name) in build.iter().flat_map(|one| one.recordings.iter().map(|(path, _)| (path, &one.name))) {
        // A recording that is kept already has the same name.
        let place = branch.join(name).join(began(recording)?.to_string());
        if place.exists() {
            continue;
        }
        // Unfinished, it is not taken for a build.
        let partial = branch.join(format!(".{name}.partial"));
        if partial.exists() {
            fs::remove_dir_all(&partial).map_err(cannot("remove", &partial))?;
        }
        fs::create_dir_all(&partial).map_err(cannot("make", &partial))?;
        for entry in recording.read_dir().map_err(cannot("read", recording))?.filter_map(Result::ok) {
            let path = entry.path();
            if path.is_file() && entry.file_name() != REPORT {
                fs::copy(&path, partial.join(entry.file_name())).map_err(cannot("copy", &path))?;
            }
        }
        fs::create_dir_all(branch.join(name)).map_err(cannot("make", branch))?;
        fs::rename(&partial, &place).map_err(cannot("make", &place))?;
    }
    let mut builds: Vec<(i64, PathBuf)> = Vec::new();
    for path in kept(branch)? {
        let times = inside(&path)?.iter().map(|path| began(path)).collect::<Result<Vec<i64>, Failure>>()?;
        builds.push((times.into_iter().min().unwrap_or(i64::MIN), path));
    }
    builds.sort();
    let surplus = builds.len().saturating_sub(most);
    builds.iter().take(surplus).try_for_each(|(_, path)| fs::remove_dir_all(path).map_err(cannot("remove", path)))
}

/// When a recording began, nanoseconds since the Unix epoch.
fn began(recording: &Path) -> Result<i64, Failure> {
    Ok(Recording::manifest(recording).map_err(Failure::unusable)?.started_at)
}

fn cannot<'p>(what: &'static str, path: &'p Path) -> impl FnOnce(std::io::Error) -> Failure + 'p {
    move |error| Failure::Unusable(format!("failed to {what} {}: {error}", path.display()))
}

/// A test case for each figure that counts; the answer itself if none was judged.
fn cases(gate: &Gate) -> Vec<Case> {
    let end = |verdict: Change, text: String| match verdict {
        Change::Worse | Change::Mixed => End::Missed(text),
        Change::CantTell | Change::NotComparable | Change::Missing => End::NotJudged(text),
        Change::Better | Change::Different | Change::NoDifference => End::Met,
    };
    let compared = gate.comparison.iter().flat_map(|comparison| &comparison.rows).filter(|row| row.is_headline);
    let compared = compared.filter_map(|row| {
        let [base, build] = row.cells.as_slice() else { return None };
        let against = build.against.as_ref()?;
        let (before, now) = (words::cell(base, &row.unit), words::cell(build, &row.unit));
        let why = against.why.as_ref().map_or_else(String::new, |why| format!("; {why}"));
        let text = format!("{}: {now} instead of {before}{why}", words::verdict(against.verdict));
        Some(Case { name: row.indicator.clone(), end: end(against.verdict, text) })
    });
    let lasting = gate.history.figures.iter().filter(|f| gate.comparison.is_none() && f.is_headline);
    let is_judged = !matches!(gate.verdict, Change::CantTell | Change::NotComparable);
    let lasting = lasting.filter(|_| is_judged).map(|figure| {
        let text = figure.standing().map_or_else(String::new, |change| {
            let value = |value| words::value(value, &figure.unit);
            format!("{} instead of {} since {}", value(change.level), value(change.before), change.since_build)
        });
        Case { name: figure.indicator.clone(), end: end(figure.verdict, text) }
    });
    let mut all: Vec<Case> = compared.chain(lasting).collect();
    if all.iter().all(|case| matches!(case.end, End::NotJudged(_))) {
        all.push(Case { name: "gate".to_owned(), end: end(gate.verdict, gate.headline.clone()) });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_one_folder_and_leads_nowhere_else() {
        assert_eq!(folder("feature/search_2.x"), "feature%2fsearch_2.x");
        assert_eq!(folder("a%2fb"), "a%252fb");
        for wrong in ["", "..", ".git", "-x", &"b".repeat(251)] {
            assert!(named(wrong).is_err(), "{wrong}");
        }
    }
}
