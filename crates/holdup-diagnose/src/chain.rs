//! Which cause leads to which: the mechanisms in one explicit table, each checked against its
//! magnitude. A finding that follows from another is a symptom; one that follows from none is a
//! root.
//!
//! - *Demand fills a disk*: temporary tables, readahead or a working set that does not fit push the
//!   disk to its ceiling. The ceiling makes the queue, and the queue puts threads to
//!   uninterruptible sleep.
//! - *A group's CPU quota is used up*: its threads stand in the run queue as if CPUs were short;
//!   *needless work fills the CPUs*.
//! - *A lock holder waits for something itself*: for its commit, for pages to be written, for rows
//!   read without an index. Those behind the lock then wait for that. A holder that does nothing
//!   follows from no other cause.
//! - *A disk without room stops writes*: the commit that waits for it keeps its locks, its thread of
//!   a pool and its connection.
//! - *Long statements fill the thread pool*: each holds a thread longer, so statements queue for
//!   one.
//! - *What keeps an operation of MongoDB at work keeps its ticket*: a disk, the cache or rows read
//!   without an index bring about the queue for tickets.
//! - *A statement with another plan reads rows that it did not read before*, without the index that
//!   is gone.
//! - *More requests arrive, each as expensive as before*: CPUs, a disk or the network run out, and
//!   nothing is broken. A working set that did not fit in memory before is then what the load
//!   meets.
//! - *A statement that reads too much fills CPUs and disks; a slow disk makes the log slow, and
//!   pages that have to be written fill it.*
//! - *A limit of the machine or its cloud drops packets or holds them back*: they are lost, or late.
//! - *The way to the database is long, loses packets or is full*: each statement takes longer for the
//!   app, and holds its worker and its connections.
//! - *A connection is held longer, so the pool runs dry*: an exhausted pool is a symptom of a cause
//!   that makes up most of the growth of the time for which one is held. Held as long as before, it
//!   is too small for the load, and nothing behind it leads to that.
//! - *A worker of the app server is held longer, so all are busy*: the same for workers. *All are
//!   busy, so connections are not accepted*: the queue in front of them overflows, which loses
//!   packets, and *the liveness probe stands in the same queue* beyond its timeout.
//! - *The app's runtime gets no CPU, or touches pages that are swapped out*: its collections take
//!   longer, its event loop is late, and its goroutines wait. *More load* allocates more.
//! - *A process is stopped from outside*: its workers, its pool's threads and its event loop stand
//!   still with it, and to the app a stopped database looks like a long way.
//! - *A disk at its limit gets more work*: rewritten values and vacuum raise the service's own
//!   demand. They contribute: the limit binds, and is the root. Removing one contributor lowers the
//!   demand, which may or may not be enough. One that began with the episode and makes up most of
//!   the growth, or without which the limit would not be reached, is what changed: it is the root,
//!   and the limit is how it hurts.
//! - *A bulk change fills the log*: pages have to be written, locks are held for longer, its own for as
//!   long as it works, and a copy of what is in memory fills the CPUs.
//! - *A cause that could not be judged may lie behind*: where a finding and its possible cause are
//!   the same time seen at two places, the finding is less certain to be the root if that cause
//!   could not be judged.
//! - *Requests return later, so the generator's connections run out*: waiting for one of them
//!   follows from whatever makes the service slow, in the same proportion.

mod mechanisms;

use self::mechanisms::{
    BURST, CEILINGS, CONTRIBUTIONS, CPUS, Contribution, DEMANDS, DISKS, GENERATOR, GREW, IN_FRONT, LINES, LOAD,
    MECHANISMS, Mechanism, OUTSIDE, OVERFLOW, POOLS, QUEUES, SEEN_AS, SIZES, STANDING,
};
use crate::case::Case;
use crate::resources::volume::demand;
use crate::rules::{Role, Rule, RuleFinding};
use crate::strength::UNSEEN;
use holdup_signals::time::requests::{client_queue_ms, mean_over};

/// A cause leads to another if it makes up at least this share (0-1) of it: most of it would go
/// with the cause.
const BRINGS_ABOUT: f64 = 0.5;

/// The links of a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link {
    /// The cause that it is a consequence of.
    pub follows_from: Option<&'static str>,
    /// The cause that it adds to.
    pub adds_to: Option<&'static str>,
}

/// Causes that may lead to `consequence`, nearest first; empty if any cause may.
pub(crate) fn may_bring_about(consequence: &str) -> impl Iterator<Item = &'static str> {
    let of = MECHANISMS.iter().filter(move |m| m.consequence == consequence);
    of.flat_map(|m| m.causes.iter().flat_map(|tier| tier.iter().copied()))
}

/// Whether `cause` can make a disk's operations take longer: a limit of the disk, or demand on it.
pub(crate) fn acts_on_disks(cause: &str) -> bool {
    DISKS.contains(&cause) || cause == BURST || is_demand(cause)
}

/// Whether `cause` raises the demand on a disk.
pub(crate) fn is_demand(cause: &str) -> bool {
    let adds = |c: &Contribution| c.cause == cause && c.adds_to.contains(&CEILINGS);
    DEMANDS.contains(&cause) || LOAD.contains(&cause) || CONTRIBUTIONS.iter().any(adds)
}

/// Whether `cause` lies outside of the service.
pub(crate) fn is_outside(cause: &str) -> bool {
    OUTSIDE.contains(&cause)
}

/// Whether requests wait in line for what `cause` names, rather than being worked on by it.
pub(crate) fn is_queue(cause: &str) -> bool {
    QUEUES.contains(&cause)
}

/// Makes symptoms of the findings that follow from others and contributors of those that add to
/// others, and returns the links of each. A finding that may follow from one of the `not_judged`
/// causes becomes less certain.
pub(crate) fn link(found: &mut [(&'static Rule, RuleFinding)], not_judged: &[&str], case: &Case<'_>) -> Vec<Link> {
    let mut follows = vec![None; found.len()];
    set_aside(found);
    let contributors = |is: fn(&Case<'_>, &str) -> bool| -> Vec<&str> {
        let causes = CONTRIBUTIONS.iter().map(|contribution| contribution.cause);
        causes.filter(|cause| found.iter().any(|(rule, _)| rule.cause == *cause) && is(case, cause)).collect()
    };
    let (began, tipped) = (contributors(demand::began), contributors(demand::tips));
    let came_down = found.iter().any(|(rule, _)| CEILINGS.contains(&rule.cause)) && demand::came_down(case);
    for mechanism in MECHANISMS {
        // A limit that came down under an unchanged demand does not follow from that demand.
        if came_down && CEILINGS.contains(&mechanism.consequence) {
            continue;
        }
        let Some(of) = found.iter().position(|(rule, _)| rule.cause == mechanism.consequence) else { continue };
        // A nearer mechanism has settled it.
        if follows[of].is_some() {
            continue;
        }
        let Some(least) = (mechanism.magnitude)(&found[of].1, case).map(|ms| BRINGS_ABOUT * ms) else { continue };
        let is_limit = CEILINGS.contains(&mechanism.consequence);
        let tips = || contributor(mechanism.consequence, found, of, 0.0, &tipped).filter(|_| is_limit);
        let changed = contributor(mechanism.consequence, found, of, least, &began).or_else(tips);
        let Some(cause) = changed.or_else(|| nearest(mechanism, found, of, least, case)) else {
            doubt(&mut found[of].1, mechanism, not_judged);
            if POOLS.contains(&mechanism.consequence) && found[of].1.role == Role::Symptom {
                spread(found, of, least / BRINGS_ABOUT);
            }
            continue;
        };
        follows[of] = Some(found[cause].0.cause);
        found[of].1.role = Role::Symptom;
        let waited_ms = found[of].1.explains_ms;
        let is_line = LINES.contains(&mechanism.consequence) || tipped.contains(&found[cause].0.cause) && is_limit;
        let mut at = Some(cause).filter(|_| mechanism.is_added || is_line);
        while let Some(i) = at {
            // What leads to the cause has that much on top of it, or as much as all in line wait.
            let own_ms = &mut found[i].1.explains_ms;
            *own_ms = if mechanism.is_added { *own_ms + waited_ms } else { own_ms.max(waited_ms) };
            at = follows[i].and_then(|cause| found.iter().position(|(rule, _)| rule.cause == cause));
        }
    }
    // The resource that ran out is the root, and does not share the time.
    for (rule, finding) in found.iter_mut().filter(|(rule, _)| follows.contains(&Some(rule.cause))) {
        if LOAD.contains(&rule.cause) {
            finding.role = Role::Root;
        }
    }
    add_up(found, &follows);
    let generator = found.iter().any(|(rule, _)| rule.cause == GENERATOR);
    let waited = case
        .slow_requests()
        .ok()
        .and_then(|rows| mean_over(rows.iter().copied(), |r| Some(client_queue_ms(r))))
        .unwrap_or(0.0);
    let inside_service = case.excess_ms() - waited;
    if !generator && waited > 0.0 && inside_service > 0.0 {
        for (_, finding) in found.iter_mut() {
            finding.explains_ms *= 1.0 + waited / inside_service;
        }
    }
    for (_, finding) in found.iter_mut() {
        finding.explains_ms = finding.explains_ms.min(case.excess_ms());
    }
    let mut links: Vec<Link> = follows.into_iter().map(|follows_from| Link { follows_from, adds_to: None }).collect();
    contribute(found, &mut links, case, came_down);
    links
}

/// A thread waits for a CPU or for a disk, never for both at a time: what leads to both waits explains
/// their sum.
fn add_up(found: &mut [(&'static Rule, RuleFinding)], follows: &[Option<&'static str>]) {
    let above = |i: usize| follows[i].and_then(|cause| found.iter().position(|(rule, _)| rule.cause == cause));
    let root = |i: usize| (0..found.len()).fold(i, |at, _| above(at).unwrap_or(at));
    let led_to = |of: usize, waits: &[&str]| {
        let led =
            found.iter().enumerate().filter(|(i, (rule, _))| *i != of && waits.contains(&rule.cause) && root(*i) == of);
        led.map(|(_, (_, finding))| finding.explains_ms).fold(0.0, f64::max)
    };
    let sums: Vec<f64> = (0..found.len())
        .map(|i| match (led_to(i, CPUS), led_to(i, DISKS)) {
            (cpu_ms, disk_ms) if cpu_ms > 0.0 && disk_ms > 0.0 => cpu_ms + disk_ms,
            _ => 0.0,
        })
        .collect();
    for ((_, finding), sum) in found.iter_mut().zip(sums) {
        finding.explains_ms = finding.explains_ms.max(sum);
    }
}

/// A statement that grew hurts by what it makes the server do, if that is known: queues follow from that,
/// and the statement adds to it.
fn set_aside(found: &mut [(&'static Rule, RuleFinding)]) {
    let of_statements =
        CONTRIBUTIONS.iter().filter(|contribution| contribution.cause == GREW && contribution.least > 0.0);
    for contribution in of_statements {
        let Some(of) = found.iter().position(|(rule, _)| rule.cause == contribution.cause) else { continue };
        let least = contribution.least * found[of].1.explains_ms;
        if contribution.adds_to.iter().any(|tier| strongest(found, of, tier, least).is_some()) {
            found[of].1.role = Role::Contributor;
        }
    }
}

/// Makes contributors of the findings that only add to others.
fn contribute(found: &mut [(&'static Rule, RuleFinding)], links: &mut [Link], case: &Case<'_>, came_down: bool) {
    for contribution in CONTRIBUTIONS {
        let Some(of) = found.iter().position(|(rule, _)| rule.cause == contribution.cause) else { continue };
        if follows_from(links, found[of].0.cause) {
            continue;
        }
        let least = contribution.least * found[of].1.explains_ms;
        let Some(to) = contribution.adds_to.iter().find_map(|tier| strongest(found, of, tier, least)) else { continue };
        links[of].adds_to = Some(found[to].0.cause);
        found[of].1.role = Role::Contributor;
    }
    // It existed before: not the change, if a limit came down or load grew.
    let is_spike = found.iter().any(|(rule, f)| LOAD.contains(&rule.cause) && f.role == Role::Root && is_all(f, case));
    let standing = STANDING.iter().filter(|_| came_down).map(|cause| (cause, CEILINGS));
    let sizes = SIZES.iter().filter(|_| is_spike).map(|cause| (cause, DISKS));
    for (cause, limits) in standing.chain(sizes) {
        let Some(of) = found.iter().position(|(rule, f)| rule.cause == *cause && f.role == Role::Root) else {
            continue;
        };
        let Some(to) = strongest(found, of, limits, 0.0) else { continue };
        links[of].adds_to = Some(found[to].0.cause);
        found[of].1.role = Role::Contributor;
    }
}

/// Whether the spike is the only change: at the old rate the whole delay would be gone.
fn is_all(spike: &RuleFinding, case: &Case<'_>) -> bool {
    spike.explains_ms >= case.excess_ms()
}

/// Whether a finding already follows from `cause`.
fn follows_from(links: &[Link], cause: &str) -> bool {
    links.iter().any(|link| link.follows_from == Some(cause))
}

/// A contributor to `consequence` that `began` with the episode and explains at least `least`
/// milliseconds: then it is what changed.
fn contributor(
    consequence: &str,
    found: &[(&'static Rule, RuleFinding)],
    of: usize,
    least: f64,
    began: &[&str],
) -> Option<usize> {
    let adds = |c: &&Contribution| began.contains(&c.cause) && c.adds_to.iter().any(|tier| tier.contains(&consequence));
    let causes: Vec<&str> = CONTRIBUTIONS.iter().filter(adds).map(|c| c.cause).collect();
    if causes.is_empty() { None } else { strongest(found, of, &causes, least) }
}

/// What leads to the finding `of`, by at least `least` milliseconds. More load leads to it only if
/// nothing else changed; unchanged sizes then do not.
fn nearest(
    mechanism: &Mechanism,
    found: &[(&'static Rule, RuleFinding)],
    of: usize,
    least: f64,
    case: &Case<'_>,
) -> Option<usize> {
    let is_in = |i: usize, causes: &[&str]| causes.contains(&found[i].0.cause);
    // All of the delay is enough for a load, whatever the resource that it meets is held for.
    let of_tier = |tier: &&[&str]| {
        let least = if *tier == LOAD { 0.0 } else { least };
        strongest(found, of, tier, least).filter(|i| !is_in(*i, LOAD) || is_all(&found[*i].1, case))
    };
    let nearest = mechanism.causes.iter().find_map(of_tier)?;
    let load = mechanism.causes.contains(&LOAD).then(|| of_tier(&LOAD)).flatten();
    load.filter(|_| is_in(nearest, SIZES)).or(Some(nearest))
}

/// A queue whose holders are held longer by several causes, none of which makes up most of it: each
/// has its part of the queue, as of the `grown_ms` for which they are held longer.
fn spread(found: &mut [(&'static Rule, RuleFinding)], of: usize, grown_ms: f64) {
    let factor = 1.0 + found[of].1.explains_ms / grown_ms.max(1e-9);
    let is_behind = |cause: &str| !IN_FRONT.contains(&cause) && !is_outside(cause);
    for (i, (rule, finding)) in found.iter_mut().enumerate() {
        if i != of && is_behind(rule.cause) && finding.explains_ms < grown_ms {
            finding.explains_ms *= factor;
        }
    }
}

/// Lowers the evidence for a finding without a found cause by what its unjudged causes may be
/// worth. If a cause's time comes before the finding's own, that time was measured, and bounds what
/// there is to find.
fn doubt(found: &mut RuleFinding, mechanism: &Mechanism, not_judged: &[&str]) {
    let causes = mechanism.causes.iter().copied().flatten();
    let unseen = if mechanism.is_added { 0 } else { causes.filter(|cause| not_judged.contains(cause)).count() };
    found.weights.iter_mut().for_each(|weight| *weight = *weight * UNSEEN.powi(unseen as i32));
}

/// The finding of `tier` that explains most, if that is at least `least` milliseconds.
fn strongest(found: &[(&'static Rule, RuleFinding)], of: usize, tier: &[&str], least: f64) -> Option<usize> {
    let overflows = found.iter().any(|(rule, _)| rule.cause == OVERFLOW);
    // Packets that a full queue dropped were lost in front of the app.
    let is_behind = |cause: &str| !(overflows && cause == SEEN_AS);
    // What only adds to a queue, by its own rule, is not what brings it about.
    let is_any = |(rule, f): &(&'static Rule, RuleFinding)| {
        !is_outside(rule.cause) && !IN_FRONT.contains(&rule.cause) && f.role != Role::Contributor
    };
    let is_in = |found: &(&'static Rule, RuleFinding)| {
        is_behind(found.0.cause) && if tier.is_empty() { is_any(found) } else { tier.contains(&found.0.cause) }
    };
    let candidates = || (0..found.len()).filter(|i| *i != of && is_in(&found[*i]));
    let most = |among: &mut dyn Iterator<Item = usize>| {
        let most = among.max_by(|a, b| found[*a].1.explains_ms.total_cmp(&found[*b].1.explains_ms));
        most.filter(|i| found[*i].1.explains_ms >= least)
    };
    // A root and its symptom are the same time: the root gets it.
    let roots = most(&mut candidates().filter(|i| found[*i].1.role != Role::Symptom));
    roots.or_else(|| most(&mut candidates()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules;
    use crate::testing::{Judged as _, SyntheticRecording};
    use holdup_recording::rows::Session;

    /// 50 requests of 400 ms a second: session 7 is in `state` and holds what 18 others wait for; a flush takes 15 ms.
    fn locked(true_state: &str, state: &str) -> SyntheticRecording {
        let row = |second: i64, id: i64| Session {
            observed_at: second * 1_000_000_000,
            source: "mysql://db".into(),
            session_id: id,
            true_state: if id == 7 { true_state } else { "lock_wait" }.into(),
            state: (id == 7).then(|| state.into()),
            blocked_by: (id != 7).then_some(7),
            ..Session::default()
        };
        let disk = [("device", "vda")];
        SyntheticRecording::new(12)
            .requests(50, 400)
            .session_rows((0..=12).flat_map(|s| (0..18).map(move |i| row(s, 100 + i)).chain([row(s, 7)])).collect())
            // Two more commit at any time, so that commits are a tenth of the delay by themselves.
            .session_rows(
                (0..=12)
                    .flat_map(|s| {
                        (0..2).map(move |i| Session {
                            session_id: 200 + i,
                            true_state: "executing".into(),
                            state: Some("Commit".into()),
                            blocked_by: None,
                            ..row(s, 7)
                        })
                    })
                    .collect(),
            )
            .setting("mysql://db", "innodb_flush_log_at_trx_commit", "1")
            .disk("vda", (0.0, 0.0, 0.0), (20.0, 4096.0, 1.0))
            .counter("host", "system_disk_flushes_total", &disk, 60.0)
            .counter("host", "system_disk_flush_time_seconds_total", &disk, 0.9)
    }

    #[test]
    fn waits_for_a_lock_follow_from_what_its_holder_waits_for() {
        let diagnosis = locked("executing", "Commit").diagnose();
        assert_eq!(diagnosis.culprit.as_deref(), Some("commit_log_bound"), "{:#?}", diagnosis.findings);
        let locks = diagnosis.findings.iter().find(|f| f.cause == "lock_contention").unwrap();
        assert_eq!(locks.follows_from.as_deref(), Some("commit_log_bound"));
        // A holder that does nothing is the app's own doing.
        assert_eq!(locked("idle", "").diagnose().culprit.as_deref(), Some("lock_contention"));
    }

    fn of(cause: &str, explains_ms: f64) -> (&'static Rule, RuleFinding) {
        let (evidence, weights, fixes, prove) = (Vec::new(), Vec::new(), Vec::new(), String::new());
        let finding = RuleFinding { explains_ms, evidence, weights, fixes, prove, role: Role::Root };
        (rules::by_cause(cause).unwrap(), finding)
    }

    #[test]
    fn a_disk_explains_what_all_in_line_behind_its_writer_wait() {
        let explained = |consequence: &str| {
            let mut found = [of("throughput_ceiling", 80.0), of(consequence, 120.0)];
            let links = SyntheticRecording::new(12).requests(50, 400).with(|case| link(&mut found, &[], case));
            assert_eq!(links[1].follows_from, Some("throughput_ceiling"), "{consequence}");
            found[0].1.explains_ms
        };
        assert!((explained("commit_log_bound") - 120.0).abs() < 1e-9);
        // The same time, but no line: what the disk does not explain may have another cause.
        assert!((explained("disk_saturated") - 80.0).abs() < 1e-9);
    }

    #[test]
    fn a_contributor_that_began_is_what_changed() {
        let of = |cause: &str| of(cause, 100.0);
        let found = [of("throughput_ceiling"), of("toast_rewrite")];
        let changed = |least: f64, began: &[&str]| contributor("throughput_ceiling", &found, 0, least, began);
        assert_eq!(changed(50.0, &["toast_rewrite"]), Some(1));
        assert_eq!(changed(50.0, &[]), None, "it was there before");
        assert_eq!(changed(150.0, &["toast_rewrite"]), None, "it is a small part");
        assert_eq!(contributor("cpu_saturated", &found, 0, 50.0, &["toast_rewrite"]), None);
    }

    #[test]
    fn queues_follow_from_what_a_grown_statement_makes_the_server_do() {
        // Any cause may lead to a pool that runs dry.
        let behind_the_pool = |rewritten_ms: f64| {
            let mut found = [of(GREW, 61.0), of("toast_rewrite", rewritten_ms), of("connection_pool_exhausted", 38.0)];
            set_aside(&mut found);
            strongest(&found, 2, &[], 0.0).map(|i| found[i].0.cause)
        };
        assert_eq!(behind_the_pool(48.0), Some("toast_rewrite"));
        // Its known work is a small part of its cost.
        assert_eq!(behind_the_pool(10.0), Some(GREW));
    }

    #[test]
    fn waits_for_a_cpu_and_for_a_disk_add_up() {
        let sum = |follows: [Option<&'static str>; 4]| {
            let mut found = [
                of("backup_or_bulk_load", 40.0),
                of("cpu_saturated", 40.0),
                of("throughput_ceiling", 30.0),
                of("disk_saturated", 35.0),
            ];
            add_up(&mut found, &follows);
            found[0].1.explains_ms
        };
        let bulk = Some("backup_or_bulk_load");
        assert!((sum([None, bulk, bulk, Some("throughput_ceiling")]) - 75.0).abs() < 1e-9);
        assert!((sum([None, bulk, None, Some("throughput_ceiling")]) - 40.0).abs() < 1e-9, "another fills the disk");
    }

    #[test]
    fn the_table_names_rules_and_no_circle() {
        let known = |cause: &str| rules::by_cause(cause).is_some();
        for (i, mechanism) in MECHANISMS.iter().enumerate() {
            assert!(known(mechanism.consequence), "{}", mechanism.consequence);
            for cause in mechanism.causes.iter().copied().flatten() {
                assert!(known(cause), "{cause}");
                // Lost packets are settled last, and lead to nothing where a full queue lost them.
                let later = *cause != SEEN_AS && MECHANISMS[i..].iter().any(|m| m.consequence == *cause);
                assert!(!later, "{cause} is settled after what it brings about");
            }
        }
        for (i, contribution) in CONTRIBUTIONS.iter().enumerate() {
            assert!(known(contribution.cause), "{}", contribution.cause);
            for cause in contribution.adds_to.iter().copied().flatten() {
                assert!(known(cause), "{cause}");
                assert!(CONTRIBUTIONS[..=i].iter().all(|c| c.cause != *cause), "{cause} comes after what adds to it");
            }
        }
        assert!(OUTSIDE.iter().chain(QUEUES).all(|cause| known(cause)));
        // Any cause may bring about an exhausted pool: only what stands in front of the app comes after it.
        let after = MECHANISMS.iter().rev().take_while(|m| m.consequence != "connection_pool_exhausted");
        assert!(
            after.clone().count() > 0
                && after.into_iter().all(|m| m.consequence == SEEN_AS || IN_FRONT.contains(&m.consequence))
        );
        assert!(IN_FRONT.iter().all(|cause| known(cause)) && known(SEEN_AS));
    }
}
