//! Statements wait in the database's thread pool before they execute, where no ordinary view counts them.

use holdup_recording::Labels;

use super::{Doc, Found, MATTERS, Outcome, Rule, ms, percent, thousands, timing};
use crate::case::Case;
use crate::signals::latency::Origin;
use crate::signals::{Missing, View};
use crate::verdict::{Evidence, Fix, Role};

/// The rule.
pub const RULE: Rule = Rule {
    cause: "thread_pool_queue",
    doc: Doc {
        title: "Statements queue for the database's thread pool",
        what: "With thread_handling=pool-of-threads a statement that has reached the server waits until its thread group has a free thread. Until then its connection is shown as Sleep, and the wait is in none of the server's timings.",
        hurts: "The client waits seconds for a statement that the server says took a millisecond; each side blames the other.",
        needs: "MariaDB's THREAD_POOL_GROUPS and THREAD_POOL_QUEUES (10.5 and later), or the app's timing of its statements beside the server's own.",
        predicts: "Connections wait in the pool's queue; sessions with a queued statement show Sleep; the app's timing of a statement exceeds the server's by about queue length over statement rate (Little's law).",
        clears: "One thread per connection is in use, or the queue is empty in every sample.",
        looks_like: "A slow network (the gap is there, the queue is empty), a connection pool in the app (the wait is before the statement is sent), locks (the server's own timing is long too).",
        fix: "More thread groups and a shorter stall limit; take long statements off the pool (a replica, another port); fewer of them at once.",
        prove: "The same load again: queue length 0, and the app's timing of a statement is the server's own.",
        references: "MariaDB documentation: Thread Pool in MariaDB, Information Schema THREAD_POOL_GROUPS and THREAD_POOL_QUEUES; MDEV on CONNECTION_ID being NULL before 10.5.13 and 10.6.5.",
    },
    judge,
};

const ENABLE: &str = "--watch mysql://USER@HOST:PORT with PROCESS, on MariaDB 10.5 or later";

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    view.sessions(&["observed_at", "true_state", "command"])?;
    let handling = view.setting("thread_handling", ENABLE)?;
    if handling != "pool-of-threads" {
        let text = format!("the server has thread_handling={handling}: there is no pool to queue for");
        return Ok(Outcome::Cleared(vec![Evidence::new(
            "settings",
            "value",
            Labels::of([("name", "thread_handling")]),
            view.window,
            handling,
            "pool-of-threads",
            text,
        )]));
    }
    let queue = view.gauge("mysql_thread_pool_queue_length", &[], ENABLE)?;
    let completed = case.completed_in(view.window)?.max(1.0);
    let statements = timing::server_timing(&view, completed);
    let app = timing::app_operations(&view);

    // Two ways to the same number: the gap between both accounts, and Little's law over the queue.
    let questions = view.counter("mysql_global_status_questions", &[], ENABLE)?;
    let little = queue.mean / (questions.delta / view.window.seconds()).max(1e-9) * 1e3;
    let gap = app.as_ref().ok().zip(statements.as_ref().ok()).map(|(a, s)| (a.ms - s.mean_ms).max(0.0));
    let per_request = app.as_ref().map_or(1.0, |a| a.count / completed);
    let explains_ms = gap.unwrap_or(little) * per_request;

    let length = queue.evidence(
        format!("{:.1} on average, {:.0} at most", queue.mean, queue.max),
        "0",
        format!("{:.0} statements waited in the thread pool's queue on average, {:.0} at most", queue.mean, queue.max),
    );
    if queue.max == 0.0 || case.share(explains_ms) < MATTERS {
        return Ok(Outcome::Cleared(vec![length]));
    }
    let mut evidence = vec![length];
    let mut weights = vec![0.85 * queue.positive_ratio];
    if let (Ok(app), Ok(server)) = (&app, &statements) {
        evidence.push(app.evidence(
            ms(app.ms),
            format!("about {}", ms(server.mean_ms)),
            format!("the app waits {} for a statement, the server says it takes {}", ms(app.ms), ms(server.mean_ms)),
        ));
        weights.push(0.7);
    }
    if let Ok(server) = &statements {
        evidence.push(server.evidence(
            "most of the client's time, if execution were slow",
            format!(
                "by the server's own timing {} of the same statements took {} at p50 and {} at p99",
                thousands(server.count as f64),
                ms(server.p50_ms),
                ms(server.p99_ms)
            ),
        ));
    }
    if let Some(p99) = client_p99(case) {
        evidence.push(p99);
    }
    if let Some(asleep) = asleep(&view)? {
        evidence.push(asleep);
        weights.push(0.6);
    }
    if let Ok(longest) = view.gauge("mysql_thread_pool_queueing_time_seconds_max", &[], ENABLE) {
        evidence.push(longest.evidence(
            ms(longest.max * 1e3),
            "0 ms",
            format!("the longest wait in the queue that was seen was {}", ms(longest.max * 1e3)),
        ));
    }
    let fixes = fixes(&view);
    Ok(Outcome::Found(Found {
        explains_ms,
        evidence,
        weights,
        fixes,
        prove: "Run the same scenario again: mysql_thread_pool_queue_length stays 0 and the admission queue leaves the ledger.".to_owned(),
        role: Role::Root,
    }))
}

fn client_p99(case: &Case<'_>) -> Option<Evidence> {
    let complaint = case.complaint.as_ref().filter(|_| case.origin == Origin::Client)?;
    Some(Evidence::new(
        "requests",
        "done_at",
        Labels::none(),
        complaint.slow,
        ms(complaint.slow_p99_ms),
        String::new(),
        format!("the client's p99 was {}, from the intended start", ms(complaint.slow_p99_ms)),
    ))
}

/// Sessions whose statement is queued and which the server itself calls `Sleep`.
fn asleep(view: &View<'_>) -> Result<Option<Evidence>, Missing> {
    let sessions = view.sessions(&["observed_at", "true_state", "command"])?;
    let queued = sessions.iter().filter(|s| s.true_state == "queued").count();
    let asleep = sessions.iter().filter(|s| s.true_state == "queued" && s.command == "Sleep").count();
    if asleep == 0 {
        return Ok(None);
    }
    let share = asleep as f64 / queued as f64;
    let labels = Labels::of([("true_state", "queued"), ("command", "Sleep")]);
    let text = format!(
        "{} of the sampled sessions with a queued statement are shown as Sleep ({} of {})",
        percent(share),
        thousands(asleep as f64),
        thousands(queued as f64)
    );
    let evidence = Evidence::new("sessions", "true_state", labels, view.window, percent(share), "0 %", text);
    Ok(Some(evidence))
}

fn fixes(view: &View<'_>) -> Vec<Fix> {
    let size = view.setting("thread_pool_size", ENABLE).unwrap_or("?");
    let stall = view.setting("thread_pool_stall_limit", ENABLE).unwrap_or("?");
    vec![
        Fix {
            text: format!("Let a group start another thread sooner: thread_pool_stall_limit is {stall} ms."),
            command: Some("SET GLOBAL thread_pool_stall_limit = 10;".to_owned()),
            keep: None,
            risk: Some("Takes effect at once. More threads run at the same time; keep it in the option file too.".to_owned()),
        },
        Fix {
            text: format!("More thread groups, so that a long statement blocks fewer others: thread_pool_size is {size}."),
            command: Some("SET GLOBAL thread_pool_size = 16;".to_owned()),
            keep: None,
            risk: Some("Takes effect at once. With many more groups than cores the pool protects the server less.".to_owned()),
        },
        Fix {
            text: "Find the statements that hold the threads (longest by total time) and make them shorter, or move them to a replica.".to_owned(),
            command: None,
            keep: None,
            risk: None,
        },
    ]
}
