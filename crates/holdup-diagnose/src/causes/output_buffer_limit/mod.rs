//! A Redis server disconnects clients that do not read their answers.

use super::parts::one_thread::ENABLE;
use super::parts::present::{self, Shown};
use super::{Cause, Definition, Doc, Judge, Occurs, Outcome, Trait, thousands};
use crate::case::Case;
use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::next_command::NextCommand;
use crate::strength::{FAIR, NONE, STRONG};
use holdup_recording::metrics::redis::INFO_CLIENT_OUTPUT_BUFFER_LIMIT_DISCONNECTIONS as DISCONNECTIONS;
use holdup_signals::{Missing, View};

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::OnRedis,
    traits: &[Trait::Harm],
    signs: Some(find),
    ..Definition::new(Cause::OutputBufferLimit, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "A Redis server disconnects clients that do not read their answers",
    what: "Answers that a client has not read wait in the server's memory. Where they pass client-output-buffer-limit, Redis and Valkey drop them and end the connection. The client is a subscriber that reads more slowly than others publish, a replica that cannot follow, or one that asked for a huge answer.",
    hurts: "The client loses all that waited and has to connect again. A subscriber misses messages; a replica copies all data anew, for which the server forks. Until then the buffers take memory, and a server at maxmemory evicts keys for them.",
    needs: "The server's count of such disconnections (--watch redis://…, version 7.2 or later).",
    predicts: "The server's count of such disconnections grows.",
    clears: "The server's count stays as it is.",
    looks_like: "A client that ends its connection by itself, a limit of connections, or an idle time-out of the server or of a proxy: the count stays.",
    fix: "Find the client and let it read faster or ask for less at a time: SCAN and ranges instead of whole collections, subscribers that hand messages over. Give replicas more room (client-output-buffer-limit replica).",
    prove: "The same load again: the count of disconnections stays.",
    references: "Redis documentation: Redis client handling (output buffer limits); INFO (client_output_buffer_limit_disconnections); redis.conf, client-output-buffer-limit.",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::anywhere(
    "redis-cli INFO stats | grep disconnections",
    1,
    "how many clients the server disconnected because they did not read their answers",
);

/// One or two may be clients that hung.
const SOME: f64 = 3.0;

fn find(facts: &Facts<'_>, signs: &mut Signs) {
    present::signs(shown(&facts.view), signs);
}

/// The count of each server; one that stayed clears.
fn shown(view: &View<'_>) -> Shown {
    let of = |source: &str| {
        let counter = view.counter_where(|of| of == source, DISCONNECTIONS.name, &[], ENABLE).ok()?;
        let count = thousands(counter.delta);
        let text = format!("{source} disconnected {count} clients that had not read their answers");
        let strength = match counter.delta {
            none if none <= 0.0 => NONE,
            some if some >= SOME => STRONG,
            _ => FAIR,
        };
        Some((strength, counter.evidence(count, "0", text)))
    };
    view.sources_of(DISCONNECTIONS.name).into_iter().filter_map(of).collect()
}

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let shown = shown(&case.view(case.whole()));
    if shown.is_empty() {
        let needs = format!("{ENABLE}, of version 7.2 or later");
        return Err(Missing::new("clients that were disconnected for their output buffers", needs));
    }
    let fixes = vec![
        present::step(
            "Find the clients with the largest buffers.",
            Some("redis-cli CLIENT LIST | grep -v 'omem=0 '"),
            Some("With thousands of clients it keeps the one thread for milliseconds."),
        ),
        present::step("Let them read faster, or ask for parts instead of whole collections.", None, None),
    ];
    let unknown = Missing::new("which requests lost their connection", "load from holdup run, or the app's errors");
    Ok(present::outcome(shown, fixes, "Run the same load again: no client is disconnected.", unknown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    fn made(disconnected: impl Fn(i64) -> f64) -> SyntheticRecording {
        SyntheticRecording::new(60).counted("redis://cache:6379", DISCONNECTIONS.name, &[], disconnected)
    }

    #[test]
    fn clients_that_are_disconnected_again_and_again_are_found() {
        let Ok(Outcome::Uncounted(found, _)) = made(|s| (s / 10) as f64).judge(&DEFINITION) else {
            panic!("not found")
        };
        assert!(found.evidence[0].text.contains("disconnected 6 clients"), "{:?}", found.evidence);
    }

    #[test]
    fn a_count_of_before_clears_it_and_an_old_server_is_not_judged() {
        assert_eq!(made(|_| 812.0).explains(&DEFINITION), Some(0.0));
        assert_eq!(SyntheticRecording::new(60).explains(&DEFINITION), None);
    }
}
