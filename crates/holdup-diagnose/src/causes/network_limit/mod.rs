//! Packets exceed a limit that has a name: the kernel's own, or what a cloud allows an instance.

mod advice;
mod consequences;
mod signs;
#[cfg(test)]
mod tests;

use self::consequences::Consequences;
use super::Source::With;
use super::{
    Cause, CauseFinding, Definition, Doc, Edge, Judge, MATTERS, Occurs, Others, Outcome, Role, Trait, of_failures,
};
use crate::case::Case;
use crate::failures::{self, Failed};
use crate::next_command::NextCommand;
use crate::resources::network_limits::{NetworkLimit, NetworkLimits};
use crate::resources::{is_too_small, share};
use crate::strength::{CERTAIN, FAIR};
use holdup_signals::Missing;
use holdup_signals::evidence::Evidence;

pub const DEFINITION: Definition = Definition {
    // Its own counters show it, and machines without them mostly have no such limit.
    occurs: Occurs::Rarely,
    traits: &[Trait::OnTheWay, Trait::OnGenerator],
    follows_from: &[
        // More load makes more packets and more connections.
        Edge::same_time(&[&[With(Trait::Load)]]),
    ],
    signs: Some(signs::find),
    ..Definition::new(Cause::NetworkLimit, DOC, Judge::Beside(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "Packets exceed a limit of the machine or its cloud",
    what: "The kernel tracks connections in a table of nf_conntrack_max, and drops the packets of new ones when it is full. Each CPU has a backlog of net.core.netdev_max_backlog received packets, and all packets of one receive queue are one CPU's work. A cloud allows an instance so many bytes and packets per second and so many tracked connections; its hypervisor queues or drops what is beyond that.",
    hurts: "Dropped packets are sent again after 200 ms, and the first one of a connection after 1, 3 or 7 seconds, while CPUs, disks and the interface's speed have room.",
    needs: "The limits' own counters (--watch host): conntrack's, softnet_stat, soft interrupts of each CPU, and the driver's counters of a cloud's allowances (Amazon's ENA: *_allowance_exceeded). And what it costs requests: their connect times, TCP's counters, or the way to the database.",
    predicts: "A counter of packets beyond a limit grows in the slow seconds and not before, and connections take 1, 3 or 7 seconds, segments are sent again, or the way to the database takes longer. Or one CPU spends its time in soft interrupts while others idle.",
    clears: "No counter of a limit grew more than in the baseline window; or the packets beyond it, with the timers that wait for them, amount to a small share of the delay and of the failures.",
    looks_like: "Packets lost elsewhere (network_loss without such a counter). A link at its speed (network_bandwidth). A full accept queue (its own overflows are counted). A cloud's driver without these counters hides the allowance.",
    fix: "By the limit that was exceeded: more room for tracked connections, fewer new connections, several receive queues, or a larger instance.",
    prove: "The same load again: the counter of the limit stands still.",
    references: "Linux: Documentation/networking/nf_conntrack-sysctl.rst, scaling.rst (RSS, RPS), Documentation/admin-guide/sysctl/net.rst (netdev_max_backlog); Amazon EC2 User Guide: Network performance metrics for ENA.",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::on_machine(
    "dmesg -T | tail -n 200; ethtool -S DEVICE | grep -E 'allowance|ratelimit'",
    1,
    "whether the table of tracked connections was full, and what exceeded a cloud's allowance",
);

/// What a limit that was exceeded costs.
struct Cost<'a> {
    limit: &'a NetworkLimit,
    explains_ms: f64,
    /// What shows it.
    evidence: Option<Evidence>,
    failed: f64,
}

fn judge(case: &Case<'_>, others: &Others) -> Result<Outcome, Missing> {
    let NetworkLimits { exceeded, mut within, has_allowances } =
        NetworkLimits::measure(&case.slow(), case.baseline().as_ref())?;
    let consequences = Consequences::measure(case, others);
    let costs = exceeded.iter().map(|limit| cost(case, limit, &consequences)).collect::<Result<Vec<_>, _>>()?;
    let size = |cost: &Cost<'_>| share(case, cost.explains_ms).max(cost.failed);
    let Some(most) = costs.into_iter().max_by(|a, b| size(a).total_cmp(&size(b))) else {
        // Its packets are late or lost, and what a cloud does with them is not counted.
        if !has_allowances && consequences.are_there() {
            let missing = "what exceeded a cloud's allowances: no network device of this machine counts it";
            return Err(Missing::new(missing, "the cloud's own network metrics of the instance"));
        }
        return Ok(Outcome::Cleared(within));
    };
    if most.failed < MATTERS && share(case, most.explains_ms) < MATTERS {
        consequences.all_judged(most.limit.kind)?;
        is_too_small(case, most.explains_ms)?;
        within.extend(exceeded.into_iter().map(|limit| limit.evidence));
        return Ok(Outcome::Cleared(within));
    }
    let mut evidence = vec![most.limit.evidence.clone()];
    evidence.extend(most.evidence);
    if most.failed > 0.0 {
        evidence.push(of_failures(case, most.failed, "got no answer while packets exceeded it"));
    }
    let found = CauseFinding {
        explains_ms: most.explains_ms,
        evidence,
        weights: vec![CERTAIN, FAIR],
        fixes: advice::fixes(&case.slow(), most.limit),
        prove: "Run the same scenario again: the counter of that limit does not grow.".to_owned(),
        role: Role::Root,
    };
    Ok(Outcome::Fails(found, most.failed))
}

fn cost<'a>(case: &Case<'_>, limit: &'a NetworkLimit, consequences: &Consequences) -> Result<Cost<'a>, Missing> {
    let unanswered = failures::unanswered_share(case, &limit.windows);
    let failed = Failed::of(unanswered.and_then(|share| failures::at_most(case, share, limit.packets)))?;
    let (explains_ms, evidence) = consequences.of_limit(limit);
    // Without requests the consequences alone say whether it matters.
    match failed.uncounted {
        Some(missing) if share(case, explains_ms) < MATTERS => Err(missing),
        _ => Ok(Cost { limit, explains_ms, evidence, failed: failed.share }),
    }
}
