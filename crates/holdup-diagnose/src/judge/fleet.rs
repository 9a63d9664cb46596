//! Several hosts as one case. Requests, spans, statements and sessions are facts of the case, and
//! every rule sees them. Of the source `host` a rule means one machine, so the rules judge once from
//! each machine that was recorded: the database's first, which also gives the ledger and the notes.
//! Of one cause the outcome that explains most counts, and says which host it is on.
//!
//! A machine that only made load has no resource that the service could lack, so only causes of
//! the network and of the generator are judged there.

use holdup_recording::clock;
use holdup_recording::fleet::{Clock, Fleet, Part, Role as HostRole};

use super::excerpt;
use crate::case::Case;
use crate::causes::{self, Cause, Occurs, Outcome, Outcomes, Trait};
use crate::verdict::{ClockReport, Diagnosis, Evidence, FleetReport, HostReport, ShardsReport, round};
use holdup_signals::{Missing, Window};

/// Share by which another machine's outcome must explain more than the first one's: what does not
/// depend on the machine comes out the same.
const MORE: f64 = 1.01;

/// Judges the recordings of `fleet` as one case, or the part of it in `window`.
pub fn diagnose_fleet(fleet: &mut Fleet, window: Option<Window>) -> Diagnosis {
    let machines = fleet.machines();
    let mut elsewhere = Vec::new();
    for number in machines.iter().skip(1) {
        fleet.look_from(*number);
        elsewhere.push(outcomes(fleet, window));
    }
    if let Some(first) = machines.first() {
        fleet.look_from(*first);
    }
    let elsewhere = std::cell::Cell::new(elsewhere);
    let mut diagnosis = super::diagnose_beside(&fleet.recording, window, || elsewhere.take()).named();
    name_hosts(&mut diagnosis, fleet);
    diagnosis.fleet = Some(report(fleet));
    diagnosis
}

/// What the rules say from the machine that `fleet` is looked at from.
fn outcomes(fleet: &Fleet, window: Option<Window>) -> Outcomes {
    let recording = &fleet.recording;
    let of_excerpt = recording.excerpt.as_ref().and_then(|of| excerpt::cases(recording, of, window, None).ok()?);
    let case = of_excerpt.map_or_else(|| Case::new(recording, window), |(_, stretch)| stretch);
    if case.client.seconds.is_empty() {
        return Vec::new();
    }
    let Some(part) = fleet.seen_from() else { return Vec::new() };
    let has_database = fleet.with_role(HostRole::Database).next().is_some();
    let mut all = causes::judge_all(&case);
    all.retain(|(cause, _)| is_judged_on(*cause, &part.roles, has_database));
    for (_, outcome) in &mut all {
        evidence_of(outcome).into_iter().flatten().for_each(|piece| name(piece, fleet));
    }
    all
}

/// Whether `cause` is judged on a machine with `roles`.
fn is_judged_on(cause: Cause, roles: &[HostRole], has_database: bool) -> bool {
    match roles {
        [HostRole::Generator] => cause.is(Trait::OnGenerator),
        _ if cause == Cause::LoadGeneratorLimit => roles.contains(&HostRole::Generator),
        _ => !(has_database && cause.acts_on_disks()) || roles.contains(&HostRole::Database),
    }
}

fn evidence_of(outcome: &mut Result<Outcome, Missing>) -> Option<&mut Vec<Evidence>> {
    match outcome {
        Ok(Outcome::Found(found) | Outcome::Fails(found, _) | Outcome::Uncounted(found, _)) => {
            Some(&mut found.evidence)
        }
        Ok(Outcome::Cleared(evidence)) => Some(evidence),
        Err(_) => None,
    }
}

/// The first machine's outcomes, each replaced where another machine's says more.
pub(super) fn merged(first: Outcomes, elsewhere: Vec<Outcomes>) -> Outcomes {
    let mut all = first;
    for (cause, outcome) in elsewhere.into_iter().flatten() {
        if let Some((_, known)) = all.iter_mut().find(|(of, _)| *of == cause) {
            if cause == Cause::LoadGeneratorLimit || says_more(&outcome, known) {
                *known = outcome;
            } else if let (Ok(Outcome::Cleared(known)), Ok(Outcome::Cleared(more))) = (known, outcome) {
                let more: Vec<Evidence> = more.into_iter().filter(|m| known.iter().all(|k| k.text != m.text)).collect();
                known.splice(0..0, more);
            }
        }
    }
    all
}

/// Whether `outcome` is to stand in place of `known`.
fn says_more(outcome: &Result<Outcome, Missing>, known: &Result<Outcome, Missing>) -> bool {
    let weight = |of: &Result<Outcome, Missing>| match of {
        Ok(Outcome::Fails(found, failed)) => (3, failed.max(found.explains_ms)),
        Ok(Outcome::Found(found)) => (3, found.explains_ms),
        Ok(Outcome::Uncounted(..)) => (2, 0.0),
        Ok(Outcome::Cleared(_)) => (1, 0.0),
        Err(_) => (0, 0.0),
    };
    let ((a, ms), (b, known_ms)) = (weight(outcome), weight(known));
    a > b || a == b && ms > MORE * known_ms
}

/// Names the host of a piece of evidence, if it has one.
fn name(piece: &mut Evidence, fleet: &Fleet) {
    if piece.host.is_some() {
        return;
    }
    let hosts = fleet.hosts_of(&piece.table, &piece.labels);
    piece.host = hosts.first().filter(|_| hosts.len() == 1).map(|host| (*host).to_owned());
}

/// Names the hosts of all that `diagnosis` says.
fn name_hosts(diagnosis: &mut Diagnosis, fleet: &Fleet) {
    let Diagnosis { findings, cleared, next, coverage, .. } = diagnosis;
    let of_findings = findings.iter_mut().chain(next.iter_mut()).flat_map(|finding| &mut finding.evidence);
    of_findings.chain(cleared.iter_mut().flat_map(|one| &mut one.evidence)).for_each(|piece| name(piece, fleet));
    for finding in findings.iter_mut().chain(next) {
        finding.hosts = hosts(finding.cause, &finding.evidence, fleet);
    }
    for (entry, host) in coverage.iter_mut().zip(&fleet.coverage_hosts) {
        entry.host = Some(host.clone());
    }
}

/// Where `cause` is, by its evidence. Requests show only who asked, unless nothing else is there.
fn hosts(cause: Cause, evidence: &[Evidence], fleet: &Fleet) -> Vec<String> {
    let with_role = |role| fleet.with_role(role).map(|part| part.host.clone()).collect::<Vec<String>>();
    match cause.definition().occurs {
        Occurs::BetweenMachines => {
            let databases = with_role(HostRole::Database);
            let clients = [HostRole::App, HostRole::Generator].map(with_role).into_iter();
            let mut clients =
                clients.map(|of| of.into_iter().filter(|host| !databases.contains(host)).collect::<Vec<_>>());
            let nearest = clients.find(|of| !of.is_empty()).unwrap_or_default();
            return [nearest, databases].concat();
        }
        _ if cause == Cause::LoadGeneratorLimit => return with_role(HostRole::Generator),
        _ => {}
    }
    let mut counted: Vec<(&str, usize)> = Vec::new();
    let of_service = evidence.iter().filter(|piece| piece.table != "requests");
    for host in of_service.filter_map(|piece| piece.host.as_deref()) {
        match counted.iter_mut().find(|(known, _)| *known == host) {
            Some((_, count)) => *count += 1,
            None => counted.push((host, 1)),
        }
    }
    let most = counted.iter().rev().max_by_key(|(_, count)| *count);
    most.map(|(host, _)| (*host).to_owned()).into_iter().collect()
}

fn report(fleet: &Fleet) -> FleetReport {
    let hosts = fleet.parts.iter().map(|part| {
        let covered = part.covered();
        HostReport {
            host: part.host.clone(),
            recording: part.shown.clone(),
            roles: part.roles.iter().map(|role| role.name().to_owned()).collect(),
            from: clock::rfc3339(covered.start),
            to: (covered.end != i64::MAX).then(|| clock::rfc3339(covered.end)),
            lacks: fleet.gap(part),
            clock: part.clock.as_ref().map(|clock| clock_report(part, clock)),
            sources: part.sources.clone(),
            left_out: part.left_out.clone(),
        }
    });
    let shards =
        fleet.shards().map(|shards| ShardsReport { of: shards.of, missing: shards.missing, notes: shards.notes });
    FleetReport { hosts: hosts.collect(), shards }
}

fn clock_report(part: &Part, clock: &Clock) -> ClockReport {
    let (offset, error) = (clock.offset_ns as f64 / 1e6, clock.error_ns as f64 / 1e6);
    let Clock { by, against, .. } = clock;
    let way = if clock.offset_ns > 0 { "behind" } else { "ahead" };
    let text = match clock.offset_ns.saturating_abs() > clock.error_ns {
        true => format!(
            "the clock of {} was {:.2} ms {way} (± {error:.2} ms, by {by} with {against})",
            part.host,
            offset.abs()
        ),
        false => format!("the clock of {} agrees (± {error:.2} ms, by {by} with {against})", part.host),
    };
    ClockReport {
        offset_ms: round(offset, 6),
        error_ms: round(error, 6),
        by: by.clone(),
        against: against.clone(),
        text,
    }
}
