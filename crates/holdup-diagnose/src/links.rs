//! The answer's outline as data: episodes if there are several, the work left, and the chain of
//! causes: contributors, the root, and its consequences, each with what would change if it were
//! absent. That is what tells them apart: without the root the delay is gone; without a contributor
//! the demand is lower, and the same limit may bind or not; without a symptom nothing changes.

use crate::case::Case;
use crate::cause::Cause;
use crate::resources::volume::demand;
use crate::verdict::{
    AgainstReport, ChainLink, DebtReport, EpisodeReport, Finding, Role, Span, TableDebtReport, round,
};
use holdup_recording::words::{ms, percent, thousands};
use holdup_signals::database::debt::TableDebt;
use holdup_signals::time::requests::Second;
use holdup_signals::{Degradation, Distribution, Window};

/// Every episode as data, if there are several.
pub fn episodes(case: &Case<'_>, degradation: &Degradation) -> Vec<EpisodeReport> {
    let start = case.recording.manifest.started_at;
    let at = |t: i64| round((t - start) as f64 / 1e9, 3);
    let report = |window: &Window| {
        let seconds: Vec<&Second> = case.client.seconds.iter().filter(|s| window.contains(s.window.from)).collect();
        let times = Distribution::merged(seconds.iter().map(|s| &s.response_ms));
        EpisodeReport {
            from_s: at(window.from),
            to_s: at(window.to),
            requests: seconds.iter().map(|s| s.offered).sum(),
            response_ms: round(times.mean().unwrap_or(0.0), 1),
            baseline_ms: round(degradation.baseline_mean_ms, 1),
            judged: *window == degradation.slow,
        }
    };
    let several = degradation.episodes.iter().filter(|_| degradation.episodes.len() > 1);
    several.map(report).collect()
}

/// The baseline recording; none if there was none.
pub fn against(case: &Case<'_>) -> Option<AgainstReport> {
    let against = case.against.as_ref()?;
    let manifest = &against.healthy.recording.manifest;
    let at = |t: i64| round((t - manifest.started_at) as f64 / 1e9, 3);
    let Window { from, to } = against.baseline.window;
    let times = Distribution::merged(against.baseline.seconds.iter().map(|s| &s.response_ms));
    let mean = times.mean().unwrap_or(0.0);
    let lacks = &against.lacks;
    let missing = if lacks.is_empty() {
        String::new()
    } else {
        format!("; it has no source of the kind {}, whose figures therefore have no baseline", lacks.join(", "))
    };
    let text = format!(
        "compared with {}, from {:.0} s to {:.0} s, in which a mean request took {}{missing}",
        manifest.name,
        at(from),
        at(to),
        ms(mean)
    );
    Some(AgainstReport {
        recording: manifest.name.clone(),
        window: Span { from_s: at(from), to_s: at(to) },
        response_ms: round(mean, 3),
        lacks: lacks.clone(),
        text,
    })
}

/// The work that a database still has to do at the end; none without any.
pub fn debt(case: &Case<'_>) -> Option<DebtReport> {
    let debt = case.view(case.whole()).debt();
    let first = debt.tables.first()?;
    let whole = |value: f64| value.round();
    let name = match &first.toast_of {
        Some(owner) => format!("{} (TOAST of {owner})", first.table),
        None => first.table.clone(),
    };
    let work = if first.under_way { "vacuum is working on" } else { "vacuum has not started on" };
    let takes = debt.seconds().map_or_else(String::new, |s| format!(", for about {} s more at its pace", thousands(s)));
    let checkpoint = if debt.checkpoint { ", and a checkpoint is being written" } else { "" };
    let text = format!(
        "{work} {name} with {} dead rows (now {} more per second){takes}{checkpoint}: measure a fix after that (`holdup settle`)",
        thousands(first.dead),
        thousands(first.made_per_second)
    );
    let of = |t: &TableDebt| TableDebtReport {
        table: t.table.clone(),
        toast_of: t.toast_of.clone(),
        dead_rows: whole(t.dead),
        fires_at_rows: whole(t.fires_at),
        made_per_second: round(t.made_per_second, 1),
        under_way: t.under_way,
    };
    Some(DebtReport {
        text,
        tables: debt.tables.iter().map(of).collect(),
        checkpoint: debt.checkpoint,
        seconds: debt.seconds().map(whole),
    })
}

/// The end of a chain.
const LATENCY: &str = "latency";

/// The links of the chain of `findings`, first cause first; empty if nothing is linked.
pub fn chain(case: &Case<'_>, findings: &[Finding]) -> Vec<ChainLink> {
    let is_linked = |f: &Finding| {
        let names = |of: &Option<Cause>| *of == Some(f.cause);
        f.follows_from.is_some()
            || f.adds_to.is_some()
            || findings.iter().any(|other| names(&other.follows_from) || names(&other.adds_to))
    };
    let mut linked: Vec<&Finding> = findings.iter().filter(|f| is_linked(f)).collect();
    linked.sort_by_key(|f| depth(f, findings));
    linked.into_iter().map(|f| link(case, f, findings)).collect()
}

/// A symptom that makes up this share (0-1) of the delay is worth naming if nothing explains it.
const MOST: f64 = 0.5;

/// A large symptom of which no found cause is the reason, in a sentence; none without one.
pub fn symptom_of_nothing(findings: &[Finding]) -> Option<String> {
    let unexplained = findings.iter().filter(|f| f.role == Role::Symptom && f.follows_from.is_none());
    let most = unexplained.max_by(|a, b| a.explains_ratio.total_cmp(&b.explains_ratio));
    most.filter(|f| f.explains_ratio >= MOST).map(|f| {
        format!(" {} of it is a symptom ({}): what it follows from is not visible.", percent(f.explains_ratio), f.title)
    })
}

/// A finding's place in the chain: below zero what adds to a root, above it what follows from one.
fn depth(finding: &Finding, all: &[Finding]) -> i64 {
    let steps = |next: fn(&Finding) -> Option<Cause>| {
        let (mut at, mut count) = (finding, 0);
        while let Some(cause) = next(at).filter(|_| count < all.len() as i64) {
            count += 1;
            let Some(found) = all.iter().find(|f| f.cause == cause) else { break };
            at = found;
        }
        (count, at)
    };
    let (below, root) = steps(|f| f.adds_to);
    if below > 0 && root.cause != finding.cause {
        return depth(root, all) - below;
    }
    steps(|f| f.follows_from).0
}

fn link(case: &Case<'_>, finding: &Finding, all: &[Finding]) -> ChainLink {
    let follows = all.iter().find(|f| f.follows_from == Some(finding.cause));
    let leads_to = finding.adds_to.or_else(|| follows.map(|f| f.cause));
    let left = (case.excess_ms() - finding.explains_ms).max(0.0);
    let without = match (finding.role, &finding.follows_from) {
        (Role::Symptom, Some(root)) => format!("it would return: it follows from {root}"),
        (Role::Contributor, _) => demand::without(case, finding.cause).unwrap_or_else(|| {
            format!("the load on the binding limit would be lower; {} of the delay is its own", ms(finding.explains_ms))
        }),
        _ => format!("{} of the {} that the average request lost would remain", ms(left), ms(case.excess_ms())),
    };
    ChainLink {
        cause: finding.cause,
        role: finding.role,
        leads_to: leads_to.map_or(LATENCY, Cause::slug).to_owned(),
        without,
    }
}
