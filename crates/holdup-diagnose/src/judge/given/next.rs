//! The commands to run next.

use std::collections::BTreeSet;

use super::suspects::Suspect;
use crate::causes::{Cause, Trait};
use crate::instant::facts::Facts;
use crate::next_command::NextCommand;
use crate::verdict::PasteNextReport;

/// Most commands to paste next.
const COMMANDS: usize = 3;

/// The commands that decide between the suspects, and then what shows most of what was not pasted.
pub(super) fn next(facts: &Facts<'_>, found: &[Suspect]) -> Vec<PasteNextReport> {
    let is_full = facts.full_disk().is_some();
    // A place in the kernel says which call waits, and not for what: the disk, or a lock.
    let has_asleep = facts.asleep.as_ref().is_some_and(|asleep| asleep.mean >= 1.0);
    let has_places = facts.asleep.as_ref().is_some_and(|asleep| asleep.groups.iter().any(|p| p.function().is_some()));
    let missing = [
        (Cause::DiskSaturated, facts.disk.is_none() && (has_asleep || !facts.has_load)),
        (Cause::UninterruptiblePileup, has_asleep && !has_places || is_full && facts.asleep.is_none()),
        (Cause::DiskSaturated, is_full),
        (Cause::LockContention, facts.sessions.is_none() && !is_full),
    ];
    let is_open = |cause: &Cause| !(cause.definition().is_answered)(facts);
    let suspects = found.iter().map(|suspect| suspect.cause).filter(is_open);
    let causes = suspects.chain(missing.into_iter().filter(|(_, is)| *is).map(|(cause, _)| cause));
    // Kubernetes' own figures are there already where these ask for more.
    let mut all = facts.pods.next(facts.accept_queue.is_some());
    let is_of_pods = !all.is_empty();
    let is_new =
        |cause: &Cause| !is_of_pods || found.iter().any(|s| s.cause == *cause) && !cause.is(Trait::NamedByKubernetes);
    let heaviest = facts.statements.heavy.first();
    if let Some((first, heaviest)) =
        found.first().zip(heaviest).filter(|(first, _)| first.cause.is(Trait::LongStatement))
    {
        all.push(PasteNextReport {
            causes: vec![first.cause],
            command: heaviest.explain(),
            seconds: 1,
            shows: "the plan of the heaviest statement".to_owned(),
        });
    }
    let mut shown = BTreeSet::new();
    for next in causes.filter(is_new).map(|cause| cause.definition().next) {
        if shown.insert(next.command) {
            all.push(report(next, facts));
        }
    }
    let pasted: Vec<String> = facts.view.recording.manifest.pasted().map(str::to_lowercase).collect();
    all.retain_mut(|next| {
        next.command = not_pasted(&next.command, &pasted);
        !next.command.is_empty()
    });
    all.truncate(COMMANDS);
    all
}

/// The commands of a line whose outputs were not pasted.
fn not_pasted(line: &str, pasted: &[String]) -> String {
    let is_pasted = |command: &&str| {
        let command = command.trim().trim_end_matches(';').to_lowercase().replace(" full ", " ");
        let words: Vec<&str> = command.split_whitespace().collect();
        // A kind is called by its program, alone or with what it does, or by its view.
        let is_of = |kind: &String| {
            let is_view = kind.contains('_') && words.contains(&kind.as_str());
            command == *kind || command.starts_with(&format!("{kind} ")) || is_view
        };
        !words.is_empty() && pasted.iter().any(is_of)
    };
    let left: Vec<&str> = line.split_inclusive(';').filter(|command| !is_pasted(command)).collect();
    left.concat().trim().to_owned()
}

/// A command as it is for the machine of `facts`, with all causes that it shows.
fn report(next: &NextCommand, facts: &Facts<'_>) -> PasteNextReport {
    let shows = |cause: &Cause| cause.definition().next.command == next.command;
    PasteNextReport {
        causes: Cause::ALL.iter().copied().filter(shows).collect(),
        command: next.command_on(facts.machine, facts.is_postgresql).to_owned(),
        seconds: next.seconds,
        shows: next.shows_on(facts.machine),
    }
}

#[cfg(test)]
mod tests {
    use super::not_pasted;

    #[test]
    fn pasted_outputs_are_not_asked_for_again() {
        let pasted = ["iostat", "show processlist", "ss"].map(str::to_owned);
        assert_eq!(not_pasted("iostat -x 1 10", &pasted), "");
        assert_eq!(not_pasted("SHOW FULL PROCESSLIST;", &pasted), "");
        let pods = "kubectl exec -n shop web-0 -- ss -ltn; sleep 9".to_owned();
        assert_eq!(not_pasted(&pods, &["kubectl get pods".to_owned(), "ss".to_owned()]), pods);
        assert_eq!(not_pasted("ss -ltn; netstat -s | grep -i listen", &pasted), "netstat -s | grep -i listen");
        assert_eq!(not_pasted("SHOW ENGINE INNODB STATUS\\G", &pasted), "SHOW ENGINE INNODB STATUS\\G");
    }
}
