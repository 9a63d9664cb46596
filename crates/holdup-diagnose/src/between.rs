//! Time between two sources that no third one splits: which causes it may be, and what would tell
//! them apart.

use crate::case::Case;
use crate::cause::Cause;
use crate::resources::statements;
use holdup_recording::words::ms;
use holdup_signals::app::accounts::{Accounts, Owner, SPEAKS, mean};
use holdup_signals::app::timing;

/// From this share (0-1) of the excess it deserves a sentence.
const MUCH: f64 = 0.5;

/// The possible causes of a stretch of time between two sources.
pub(crate) struct UnsplitTime {
    /// In a sentence: how much it is, its possible causes, what would tell them apart.
    pub text: String,
    /// The causes.
    pub rivals: &'static [Cause],
    /// What to measure.
    pub measure: &'static str,
    /// The source that tells them apart, as an address for `--watch`.
    pub watch: &'static str,
}

/// Waits on the database's machine.
const INSIDE: &[Cause] = &[Cause::ThreadPoolQueue, Cause::LockContention, Cause::MissingIndex];

/// Waits between app and database.
const OUTSIDE: &[Cause] = &[Cause::NetworkLoss, Cause::NetworkBandwidth, Cause::ThreadPoolQueue];

/// All of these, if the server does not report its execution times.
const ANYWHERE: &[Cause] = &[Cause::ThreadPoolQueue, Cause::LockContention, Cause::MissingIndex, Cause::NetworkLoss];

/// The source of the server's own timing.
const SERVER: &str = "mysql://USER@HOST:PORT";

/// The possible causes, if most of the excess lies between two sources.
pub(crate) fn between(case: &Case<'_>) -> Option<UnsplitTime> {
    let accounts = case.accounts();
    let told = accounts.all.iter().filter(|a| a.has_app || a.is_joined || a.has_wire).count();
    if (told as f64) < SPEAKS * accounts.all.len() as f64 || told == 0 {
        return by_metrics(case);
    }
    let (unsplit, unexplained, executed) = means(accounts);
    let (has_wire, has_server) = (accounts.all.iter().any(|a| a.has_wire), accounts.all.iter().any(|a| a.has_server));
    match () {
        () if case.share(unsplit) >= MUCH && has_wire => Some(UnsplitTime {
            text: format!(
                "{} of a request lie between its arrival on the database's machine and the response: in a queue in front of execution, in locks, or in execution itself. Turn on --watch mysql://USER@HOST:PORT with performance_schema's statement history to tell them apart",
                ms(unsplit)
            ),
            rivals: INSIDE,
            measure: "the server's own timing of its statements (performance_schema's statement history)",
            watch: SERVER,
        }),
        () if case.share(unsplit) >= MUCH => Some(one_sided(unsplit)),
        () if case.share(unexplained) >= MUCH && has_server && executed < unexplained => Some(UnsplitTime {
            text: format!(
                "{} of a request lie between app and database: in the network or in a queue in front of execution. Turn on --watch wire:PORT on the database's machine to tell them apart",
                ms(unexplained)
            ),
            rivals: OUTSIDE,
            measure: "when statements arrive on the database's machine, and when it answers them",
            watch: "wire:PORT",
        }),
        () => None,
    }
}

fn means(accounts: &Accounts<'_>) -> (f64, f64, f64) {
    let told = || accounts.all.iter().filter(|a| a.has_app || a.is_joined || a.has_wire);
    let of = |owner: Owner| mean(told(), |a| a.amounts.ms(owner));
    (of(Owner::Database), mean(told(), |a| a.unexplained_ms()), of(Owner::Execution))
}

/// Without single requests: only the app's metrics.
fn by_metrics(case: &Case<'_>) -> Option<UnsplitTime> {
    let view = case.slow();
    let (per_request, ..) = statements::database_of_app(case)?;
    let completed = case.completed_in(view.window).ok()?.max(1.0);
    let is_server_known = timing::server_timing(&view, completed).is_ok() || view.session_instants() > 0;
    (case.share(per_request) >= MUCH && !is_server_known).then(|| one_sided(per_request))
}

fn one_sided(per_request_ms: f64) -> UnsplitTime {
    UnsplitTime {
        text: format!(
            "{} of a request lie between app and database: in the network, in a queue in front of execution, or in execution. Turn on --watch mysql://USER@HOST:PORT (or postgresql://), or --watch wire:PORT on the database's machine, to tell them apart",
            ms(per_request_ms)
        ),
        rivals: ANYWHERE,
        measure: "the server's own timing of the same statements",
        watch: SERVER,
    }
}
