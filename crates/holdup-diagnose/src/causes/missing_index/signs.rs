//! Statements that read many rows for few, collections read as a whole, and large reads in a row.

use holdup_recording::words::{ms, percent, thousands};
use holdup_signals::evidence::Evidence;

use super::scan::Scan;
use super::{EXAMINED_PER_USED, ROW_MS, ROWS};
use crate::instant::facts::{DiskWork, Facts};
use crate::instant::statements::Heavy;
use crate::instant::{MOST, SOME, Share, Signs, plans};
use crate::strength::{CERTAIN, FAIR, NONE, STRONG, Strength, WEAK};

/// Totals do not say which operation it is.
const WHICH: &str = "next, which operation it is: db.currentOp({active: true}) with planSummary COLLSCAN, or mongod's log (holdup import mongod.log)";

/// What a session of MongoDB does that reads every entry of an index.
const UNBOUNDED: &str = "IXSCAN without a condition on the index";

/// A read of this time by the server's own account is felt, seconds.
const FELT_S: f64 = 0.1;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    signs.extend(WEAK, facts.disk_that(|work| work == DiskWork::ReadsMuch));
    signs.extend(FAIR, facts.sessions_in(MOST, "read a whole collection", |_, state| state == "COLLSCAN"));
    let unbounded = |_: &str, state: &str| state == UNBOUNDED;
    signs.extend(FAIR, facts.sessions_in(MOST, "went through an index that their filter does not use", unbounded));
    collections(facts, signs);
    plans(facts, signs);
    for heavy in &facts.statements.heavy {
        match heavy.plan.as_ref().and_then(|plan| Scan::worst(&facts.view, plan)) {
            Some(scan) => by_plan(facts, heavy, &scan, signs),
            None => by_rows(facts, heavy, signs),
        }
    }
}

/// The check of a foreign key by an index takes a few hundredths of this, milliseconds.
const CHECK_MS: f64 = 1.0;

/// A foreign key whose check took much of the statement's time: the table that refers to the changed rows was
/// read as a whole for each of them.
fn constraint(facts: &Facts<'_>, plan: &plans::Executed<'_>, signs: &mut Signs) {
    let nodes = plan.tree.all();
    let checks = nodes.into_iter().filter(|node| node.kind == holdup_recording::plan::CONSTRAINT_TRIGGER);
    for (node, each_ms) in checks.filter_map(|node| Some((node, node.time_ms?))) {
        let share = plan.part(node);
        if each_ms >= CHECK_MS && share.ratio >= SOME {
            let text = format!(
                "the check of the foreign key {} took {} for each of {} rows, {} of the time: the column that refers to them has no index",
                node.relation.as_deref().unwrap_or_default(),
                ms(each_ms),
                thousands(node.loops.unwrap_or(1.0)),
                percent(share.ratio)
            );
            signs.accounting(STRONG, plan.evidence(&facts.view, ms(each_ms), &text), share);
        }
    }
}

/// Plans by themselves: those of a heavy statement are weighed with it.
fn plans(facts: &Facts<'_>, signs: &mut Signs) {
    let is_heavy = |digest: &str| facts.statements.heavy.iter().any(|heavy| heavy.of.digest == digest);
    for plan in plans::telling(&facts.view).iter().filter(|plan| !is_heavy(&plan.row.digest)) {
        constraint(facts, plan, signs);
        let Some(scan) = Scan::worst(&facts.view, &plan.tree).filter(is_in_vain) else { continue };
        let share = plan.part(&scan.node);
        let took = if share.ratio > 0.0 { format!(", {} of its time", percent(share.ratio)) } else { String::new() };
        let text = format!("{}{took}", rows_read(&scan));
        let evidence = plan.evidence(&facts.view, format!("{} rows", thousands(scan.examined)), &text);
        // What a plan only expects, or did in no time, is not why the statement is slow.
        let is_felt = plan.row.duration_ns.is_some_and(|ns| ns as f64 / 1e9 >= FELT_S);
        match share.ratio {
            ratio if is_felt && ratio >= SOME => signs.accounting(STRONG * (0.5 + 0.5 * ratio), evidence, share),
            _ if is_felt => signs.add(FAIR * 0.9, evidence),
            _ => signs.add(WEAK, evidence),
        }
    }
}

/// Of a MongoDB its own counters: which operation it is they do not say.
fn collections(facts: &Facts<'_>, signs: &mut Signs) {
    let (Some(scans), Some((each, examined))) = (&facts.documents.scans, &facts.documents.examined) else { return };
    let rows = scans.examined / scans.count.max(1.0);
    if *each < EXAMINED_PER_USED || rows < ROWS || scans.read_s < FELT_S {
        return;
    }
    let ratio = scans.reads_ratio * (scans.examined * ROW_MS / 1e3 / scans.seconds.max(1e-9)).min(1.0);
    let share = Share { ratio, of: "of the time of all operations, by the server's own timing".to_owned() };
    signs.accounting(STRONG, scans.evidence.clone(), share);
    signs.add(FAIR, examined.clone());
    signs.add(NONE, scans.evidence.clone().saying("", WHICH));
}

/// Whether a node reads many rows for few.
fn is_in_vain(scan: &Scan) -> bool {
    scan.examined >= ROWS && scan.examined >= EXAMINED_PER_USED * scan.kept.max(1.0)
}

/// What a node read and kept.
fn rows_read(scan: &Scan) -> String {
    let (examined, kept) = (thousands(scan.examined), thousands(scan.kept));
    format!("{} read {examined} rows ({}) and kept {kept}", scan.node.name(), scan.known)
}

/// By the plan that the server logged with its slowest execution.
fn by_plan(facts: &Facts<'_>, heavy: &Heavy, scan: &Scan, signs: &mut Signs) {
    if is_in_vain(scan) {
        add(facts, heavy, (CERTAIN, part(heavy, scan.examined)), "duration_ns", &rows_read(scan), signs);
    }
}

/// By rows examined and sent.
fn by_rows(facts: &Facts<'_>, heavy: &Heavy, signs: &mut Signs) {
    let of = &heavy.of;
    let without = of.no_index / of.calls;
    let is_without = without >= super::by_counters::WITHOUT || !heavy.is_scan_known;
    if !super::by_counters::reads_in_vain(of) || !is_without {
        return;
    }
    let why = format!(
        "a call examined {} rows to send or change {:.1}",
        thousands(of.examined_each()),
        of.rows_used / of.calls
    );
    // One row sent may stand for many that were needed; and a file on disk takes longer than rows.
    let strength = match () {
        () if heavy.sums_up() && heavy.spilled() > 0.0 => WEAK * 0.5,
        () if heavy.sums_up() => FAIR,
        () => STRONG,
    };
    add(facts, heavy, (strength, part(heavy, of.examined_each())), "rows_examined", &why, signs);
    if heavy.is_scan_known && strength >= FAIR {
        let used = percent(without.min(1.0));
        let text = format!("{used} of its calls used no index for a table, by the server's own count");
        let evidence = facts.view.digest_evidence(of, "no_index", used, "0 %", text);
        signs.add(FAIR * without.min(1.0), evidence);
    }
}

/// The part (0-1) of its time that reading so many rows accounts for.
fn part(heavy: &Heavy, rows: f64) -> f64 {
    let free = 1.0 - heavy.locked();
    free.min(rows * ROW_MS / 1e3 / heavy.each_s().max(1e-9))
}

fn add(
    facts: &Facts<'_>,
    heavy: &Heavy,
    (strength, part): (Strength, f64),
    column: &str,
    why: &str,
    signs: &mut Signs,
) {
    if heavy.share * part >= SOME {
        let evidence = heavy.evidence(&facts.view, column, percent(heavy.share * part), why);
        signs.accounting(strength * part, evidence, heavy.share(part));
        signs.add(NONE, looks_at(facts, heavy));
    }
}

/// What to look at in its plan: the columns that it compares.
fn looks_at(facts: &Facts<'_>, heavy: &Heavy) -> Evidence {
    let columns = super::conditions::columns(&heavy.of.text);
    let text = match columns.is_empty() {
        true => format!("next, its plan: {}", heavy.explain()),
        false => format!("it compares {}; next, its plan: {}", columns.join(", "), heavy.explain()),
    };
    facts.view.digest_evidence(&heavy.of, "digest_text", "", "", text)
}
