//! What packets beyond a limit cost a request: connections that are asked for again, segments that
//! are sent again, and a longer way.

use crate::cause::Cause;
use holdup_recording::metrics::tcp;
use holdup_recording::words::ms;
use holdup_signals::Missing;
use holdup_signals::evidence::Evidence;

use crate::case::Case;
use crate::causes::{MATTERS, Others, Outcome};
use crate::resources::database_path::DatabasePath;
use crate::resources::late_connects::LateConnects;
use crate::resources::network_limits::{HOST, LimitKind, NetworkLimit};
use crate::resources::share;

/// Causes that a limit brings about.
const LOSS: Cause = Cause::NetworkLoss;
const BANDWIDTH: Cause = Cause::NetworkBandwidth;

/// Each with its milliseconds of a mean request and what shows them; none if it is not there.
pub(super) struct Consequences {
    connects: Option<(LateConnects, Evidence)>,
    lost: Option<(f64, Evidence)>,
    /// Segments sent again.
    resent: f64,
    delayed: Option<(f64, Evidence)>,
    /// What is missing to know of lost packets, and of those that queue.
    unknown: [Option<Missing>; 2],
}

impl Consequences {
    pub(super) fn measure(case: &Case<'_>, others: &Others) -> Self {
        let found = |cause: Cause| match others.get(&cause) {
            Some(Ok(Outcome::Found(found))) => Some((found.explains_ms, found.evidence.first()?.clone())),
            _ => None,
        };
        let unknown = |cause: Cause| others.get(&cause).and_then(|outcome| outcome.as_ref().err().cloned());
        let way = DatabasePath::for_case(case).ok().filter(|path| path.is_significant()).map(|path| {
            let (now, before) = path.awaited_ms();
            let text = format!("a request awaited the database for {}, {} in the baseline window", ms(now), ms(before));
            (path.ms(), path.awaited.clone().saying(ms(before), text))
        });
        let longer = [found(BANDWIDTH), way].into_iter().flatten();
        Self {
            connects: LateConnects::measure(case).map(|late| {
                let evidence = late.evidence(case);
                (late, evidence)
            }),
            lost: found(LOSS),
            resent: case.slow().counter(tcp::RETRANSMITTED_SEGMENTS.name, &[], HOST).map_or(0.0, |c| c.delta),
            delayed: longer.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(ms, _)| share(case, *ms) >= MATTERS),
            unknown: [unknown(LOSS), unknown(BANDWIDTH)],
        }
    }

    /// Whether there is any that a limit could explain.
    pub(super) fn are_there(&self) -> bool {
        self.connects.is_some() || self.lost.is_some() || self.delayed.is_some()
    }

    /// What could still hide a cost of a limit of `kind`, as an error.
    pub(super) fn all_judged(&self, kind: LimitKind) -> Result<(), Missing> {
        let needed = if kind.is_delay() { &self.unknown[..] } else { &self.unknown[..1] };
        needed.iter().flatten().next().map_or(Ok(()), |missing| Err(missing.clone()))
    }

    /// The greatest that the packets beyond `limit` can account for. Each of them is sent again once
    /// at least.
    pub(super) fn of_limit(&self, limit: &NetworkLimit) -> (f64, Option<Evidence>) {
        let connects = self.connects.as_ref().map(|(late, evidence)| (late.explained_ms(limit.packets), evidence));
        let of_resent = (limit.packets / self.resent.max(1.0)).min(1.0);
        let lost = self.lost.as_ref().map(|(ms, evidence)| (ms * of_resent, evidence));
        let delayed = self.delayed.as_ref().filter(|_| limit.kind.is_delay()).map(|(ms, evidence)| (*ms, evidence));
        let most = [connects, lost, delayed].into_iter().flatten().max_by(|a, b| a.0.total_cmp(&b.0));
        most.map_or((0.0, None), |(ms, evidence)| (ms, Some(evidence.clone())))
    }
}
