//! A process has reached its limit of open files, so it can't accept connections or open files.

mod signs;

use super::{Cause, CauseFinding, Definition, Doc, Judge, MATTERS, Outcome, Role, ms, of_failures, thousands};
use crate::case::Case;
use crate::change::host::Place;
use crate::change::{Bounds, Direction, Fix, SettingChange, Unit};
use crate::failures;
use crate::next_command::NextCommand;
use crate::resources::share;
use crate::strength::{FAIR, STRONG};
use holdup_recording::metrics;
use holdup_signals::host::processes::Process;
use holdup_signals::{Gauge, Missing, View, Window};

pub const DEFINITION: Definition = Definition {
    signs: Some(signs::find),
    ..Definition::new(Cause::FileDescriptorLimit, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "A process is out of file descriptors",
    what: "A process holds as many open files and sockets as its limit (RLIMIT_NOFILE) allows. Each further accept, connect or open fails with EMFILE.",
    hurts: "New connections stay in the accept queue, set up by the kernel and never answered, until the client gives up; or the service answers with an error because it can't open a file or reach its database.",
    needs: "The process's open file descriptors and its limit (--watch pid:N as its user or root), and the accept queues (--watch host).",
    predicts: "The count stands at the limit, and requests fail or wait in the accept queue meanwhile.",
    clears: "The count stays clear of the limit; or it reaches it without failures and without an accept queue.",
    looks_like: "Exhausted workers fill the accept queue too, with descriptors to spare. A connection limit of the server itself (max_connections, worker_connections) refuses with an answer.",
    fix: "Raise the limit of the process; if the count grows without end, find what is never closed.",
    prove: "The same load again: the count stays below the limit, and the failures are gone.",
    references: "getrlimit(2), accept(2) (EMFILE, ENFILE); proc_pid_limits(5); systemd.exec(5), LimitNOFILE=.",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::on_machine(
    "ls /proc/PID/fd | wc -l; grep 'open files' /proc/PID/limits",
    1,
    "whether the process is at its limit of open files",
);

/// Files that a process may have open at most: the default of fs.nr_open.
const MOST_FILES: f64 = 1_048_576.0;

const PROCESS: &str = "--watch pid:N for the app and the database, as their user or as root";

/// From this share (0-1) of the limit a process counts as at it: between two samples it opens and
/// closes a few.
const AT_LIMIT: f64 = 0.95;

/// A sample speaks for this long before and after it, nanoseconds: samples are a second apart.
const SAMPLE_REACH_NS: i64 = 1_000_000_000;

/// A process compared with its limit.
struct DescriptorUse<'a> {
    process: Process<'a>,
    open: Gauge,
    limit: f64,
}

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let Some(fullest) = fullest(&view)? else {
        return Err(Missing::new("the limit of open files of any watched process (settings, limit.nofile)", PROCESS));
    };
    let DescriptorUse { process, open, limit } = &fullest;
    let mut evidence = vec![open.evidence(
        format!("{} of {}", thousands(open.max), thousands(*limit)),
        "well below the limit",
        format!("{} had up to {} of at most {} files open", process.name, thousands(open.max), thousands(*limit)),
    )];
    if open.max < AT_LIMIT * limit {
        return Ok(Outcome::Cleared(evidence));
    }
    evidence.push(view.setting_evidence(
        process.source,
        "limit.nofile",
        "more than it needs at most",
        format!("{} may have {} files open (RLIMIT_NOFILE)", process.name, thousands(*limit)),
    ));

    let at_limit = at_limit(&view, &fullest);
    let failed = failures::failed_share(case, &at_limit)?;
    let queue =
        view.gauge_where(|source| source == "host", metrics::tcp::ACCEPT_QUEUE_LENGTH.name, &[], "--watch host");
    let queue = queue.or_else(|_| view.outside().map(|server| server.waiting));
    let ended = case.slow_requests()?.iter().map(|r| r.count()).sum::<u64>() as f64 / view.window.seconds();
    let waited = queue.as_ref().map_or(0.0, |q| q.mean) / ended.max(1e-9) * 1e3;
    if let Ok(queue) = &queue
        && queue.max > 0.0
    {
        evidence.push(queue.evidence(
            format!("{:.1} on average, {:.0} at most", queue.mean, queue.max),
            "0",
            format!(
                "{:.1} connections on average waited in accept queues, {:.0} at most: {} per request",
                queue.mean,
                queue.max,
                ms(waited)
            ),
        ));
    }
    if share(case, waited) < MATTERS && failed < MATTERS {
        // If the accept queue was not recorded, requests may wait just there.
        return queue.map(|_| Outcome::Cleared(evidence));
    }
    if failed > 0.0 {
        evidence.push(of_failures(case, failed, "were in flight while it was at its limit"));
    }
    let weights = vec![STRONG, FAIR * queue.as_ref().map_or(0.0, |q| q.positive_ratio), FAIR * failed];
    let most = open.max + queue.map_or(0.0, |q| q.max);
    let found = CauseFinding {
        explains_ms: waited,
        evidence,
        weights,
        fixes: fixes(&view, &fullest, most),
        prove: "Run the same scenario again: process_open_file_descriptors stays below the limit, and nothing fails."
            .to_owned(),
        role: Role::Root,
    };
    Ok(Outcome::Fails(found, failed))
}

/// The process closest to its limit; none if no limit is known.
fn fullest<'a>(view: &View<'a>) -> Result<Option<DescriptorUse<'a>>, Missing> {
    const METRIC: &str = metrics::process::OPEN_FILE_DESCRIPTORS.name;
    let processes = view.processes_with(METRIC);
    if processes.is_empty() {
        return Err(Missing::new("open file descriptors of the service's processes", PROCESS));
    }
    let mut fullest: Option<DescriptorUse<'_>> = None;
    for process in processes {
        let Some(limit) = view.setting_of(process.source, "limit.nofile").and_then(|v| v.parse::<f64>().ok()) else {
            continue;
        };
        // A process that had ended before held none.
        let Ok(open) = view.gauge_where(|s| s == process.source, METRIC, &[], PROCESS) else { continue };
        if limit > 0.0 && fullest.as_ref().is_none_or(|f| open.max / limit > f.open.max / f.limit) {
            fullest = Some(DescriptorUse { process, open, limit });
        }
    }
    Ok(fullest)
}

/// When it was at its limit.
fn at_limit(view: &View<'_>, held: &DescriptorUse<'_>) -> Vec<Window> {
    let series = view.index.series(metrics::process::OPEN_FILE_DESCRIPTORS.name, &[]);
    series
        .filter(|((source, _), _)| source == held.process.source)
        .flat_map(|(_, samples)| samples)
        .filter(|(at, open)| view.window.contains(*at) && *open >= AT_LIMIT * held.limit)
        .map(|(at, _)| Window { from: at - SAMPLE_REACH_NS, to: at + SAMPLE_REACH_NS })
        .collect()
}

/// Safest first.
fn fixes(view: &View<'_>, held: &DescriptorUse<'_>, most: f64) -> Vec<Fix> {
    let process = &held.process;
    vec![
        more_files(view, held, most),
        Fix {
            text: "If the count keeps growing under a steady load, some descriptors are never closed: find which."
                .to_owned(),
            command: Some(format!("ls -l /proc/{}/fd", process.pid())),
            keep: None,
            risk: None,
        },
    ]
}

/// Twice the most it needed, as a power of two, and at most what the kernel lets any process have.
fn more_files(view: &View<'_>, held: &DescriptorUse<'_>, most: f64) -> Fix {
    let DescriptorUse { process, limit, .. } = held;
    let enough = ((2.0 * most).clamp(1024.0, MOST_FILES) as u64).next_power_of_two() as f64;
    let name = format!("the open files of {}", process.name);
    let bounds = Bounds { least: 1.0, most: MOST_FILES };
    let change = match SettingChange::new(Direction::Raise, &name, Unit::Count, Some(*limit), enough, bounds) {
        Ok(change) => change,
        Err(stay) => return stay.fix("Let it keep fewer files and connections open."),
    };
    let hard = view.setting_of(process.source, "limit.nofile_hard").and_then(|v| v.parse::<f64>().ok());
    let mut steps = Place::find(view, process.source).files(process.pid(), change.to, hard);
    if process.name.starts_with("mysqld") || process.name.starts_with("mariadbd") {
        steps.keep =
            steps.keep.map(|keep| format!("{keep}; and open_files_limit = {:.0} in the [mysqld] section", change.to));
    }
    let why = format!("with the waiting connections it needed {}", thousands(most));
    change.fix(
        &why,
        steps,
        "Each descriptor takes some kernel memory; a program that uses select(2) breaks above 1,023.",
    )
}
