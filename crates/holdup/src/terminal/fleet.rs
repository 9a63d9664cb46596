//! Several hosts as one case, in words: where a cause is, what ran on which host, how far the clocks
//! were apart, and which recordings or shards lack something.

use holdup_diagnose::Diagnosis;
use holdup_diagnose::verdict::{Evidence, Finding, FleetReport, HostReport};

/// ` on db1`, or ` between app1 and db1`; empty for a recording of one host.
pub fn place(finding: &Finding) -> String {
    match &finding.hosts[..] {
        [] => String::new(),
        [one] => format!(" on {one}"),
        several => format!(" between {}", several.join(" and ")),
    }
}

/// The sentence of `evidence`, with its host before it.
pub fn told(evidence: &Evidence) -> String {
    match &evidence.host {
        Some(host) => format!("{host}: {}", evidence.text),
        None => evidence.text.clone(),
    }
}

/// Each host, what ran there, and its clock, in one line.
pub fn line(fleet: &FleetReport) -> String {
    let one = |host: &HostReport| {
        let clock = host
            .clock
            .as_ref()
            .map_or_else(String::new, |clock| format!(", clock {:+.2} ms ± {:.2} ms", clock.offset_ms, clock.error_ms));
        format!("{} ({}{clock})", host.host, host.roles.join(" and "))
    };
    fleet.hosts.iter().map(one).collect::<Vec<String>>().join(", ")
}

/// What the recordings lack.
pub fn warnings(d: &Diagnosis) -> Vec<String> {
    let Some(fleet) = &d.fleet else { return Vec::new() };
    let mut all: Vec<String> = Vec::new();
    if let Some(shards) = &fleet.shards {
        let missing: Vec<String> = shards.missing.iter().map(u32::to_string).collect();
        if !missing.is_empty() {
            let (s, are) = if missing.len() == 1 { ("", "is") } else { ("s", "are") };
            let (numbers, of) = (missing.join(", "), shards.of);
            all.push(format!(
                "Shard{s} {numbers} of {of} {are} not among the recordings: the load was more than is shown here."
            ));
        }
        all.extend(shards.notes.iter().map(|note| format!("{}.", holdup_recording::words::capital(note))));
    }
    let lacks = |host: &HostReport| host.lacks.as_ref().map(|lacks| format!("{} {lacks}.", host.host));
    all.extend(fleet.hosts.iter().filter_map(lacks));
    all.extend(unmeasured(fleet));
    all
}

/// Hosts whose clocks were taken as right.
fn unmeasured(fleet: &FleetReport) -> Option<String> {
    let open = fleet.hosts.iter().filter(|host| host.clock.is_none()).map(|host| host.host.as_str());
    let open: Vec<&str> = open.collect();
    // The clock of one host counts.
    (open.len() > 1)
        .then(|| format!("The clocks of {} were taken as right: these hosts share no requests.", open.join(", ")))
}
