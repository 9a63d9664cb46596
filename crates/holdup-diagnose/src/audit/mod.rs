//! The host's settings compared with the advice of the servers' vendors. A check is a row of a
//! table ([`memory`], [`disks`], [`limits`], [`servers`]): what it reads, for which server, the
//! advice, its source and the reason.
//!
//! Advice does not diagnose: hosts run well for years against all of it. A note names a finding
//! only if the measurements show that the setting matters here, which rules decide; otherwise it
//! says that nothing shows it. A setting that was not recorded gets no note: silence is not
//! evidence.

mod disks;
mod facts;
mod limits;
mod memory;
mod numa;
mod servers;

use crate::cause::Cause;
use holdup_recording::rows::Setting;

use crate::case::Case;
use crate::change::Fix;
use crate::verdict::{Finding, Note};
pub use facts::Product;
use facts::{Facts, Server};

/// One piece of advice.
pub(crate) struct Check {
    /// The check's name; several vendors may share it.
    check: &'static str,
    /// Whose advice it is.
    product: Product,
    /// Settings that deviate from the advice.
    against: fn(&Facts<'_>, &Server<'_>) -> Vec<Deviation>,
    /// The advice.
    advised: &'static str,
    /// Why, as the beginning of a sentence.
    why: &'static str,
    /// Document and section.
    reference: &'static str,
    /// Causes whose finding shows that the setting matters.
    matters: &'static [Cause],
}

/// A setting that deviates from the advice.
pub(crate) struct Deviation {
    /// Its subject, e.g. a device or a mount.
    subject: String,
    /// Its value.
    observed: String,
    /// How to change it.
    fix: Option<Fix>,
    /// Word that a finding's evidence must contain for the finding to be about this setting, e.g. a
    /// device; empty if any finding will do.
    word: String,
}

impl Deviation {
    /// A setting of the whole host.
    fn of_host(name: &str, observed: &str, fix: Option<Fix>) -> Self {
        Self { subject: name.to_owned(), observed: observed.to_owned(), fix, word: String::new() }
    }
}

/// `sysctl -w NAME=VALUE`, and how to keep it; from within a container what to do on the node.
fn sysctl(facts: &Facts<'_>, name: &str, value: &str) -> Option<Fix> {
    let keep = format!("{name} = {value} in a file of /etc/sysctl.d/");
    let steps = facts.place.machine(format!("sysctl -w {name}={value}"), keep);
    Some(Fix {
        text: format!("Set {name} to {value}.{}", steps.note()),
        command: steps.command,
        keep: steps.keep,
        risk: Some("Applies to everything on this host.".to_owned()),
    })
}

/// The value of sysctl `name` if `is_against` rejects it, with the advised one as the fix.
fn sysctl_against(facts: &Facts<'_>, name: &str, advised: &str, is_against: impl Fn(i64) -> bool) -> Vec<Deviation> {
    let value = facts.host(name).and_then(|v| v.parse::<i64>().ok().filter(|n| is_against(*n)));
    value.map(|v| Deviation::of_host(name, &v.to_string(), sysctl(facts, name, advised))).into_iter().collect()
}

/// Settings of the recorded host that deviate from advice; `findings` show which of them matter.
pub fn notes(case: &Case<'_>, findings: &[Finding]) -> Vec<Note> {
    let needed = &["source", "name", "value"];
    let Ok(settings) = case.recording.tables.settings.with_columns(needed) else { return Vec::new() };
    let threads = case.recording.tables.threads.with_columns(&["process"]).unwrap_or_default();
    let mut processes: Vec<&str> = threads.iter().map(|t| t.process.as_str()).collect();
    processes.sort_unstable();
    processes.dedup();
    let mut notes = compare(&Facts::new(settings, &processes), |check, set| match finding(check, set, findings) {
        Some(found) => (format!("it matters here: {found} was found"), Some(found)),
        None => ("no measurement shows that it matters here".to_owned(), None),
    });
    let storm = findings.iter().find(|f| f.cause == Cause::FlushStorm).map(|f| f.cause);
    notes.extend(servers::log_size(case, storm));
    numa::complete(case, &mut notes);
    // Those that matter come first.
    notes.sort_by_key(|note| note.finding.is_none());
    notes
}

/// Settings that deviate from advice, without any measurement.
pub fn of_settings(settings: &[Setting]) -> Vec<Note> {
    compare(&Facts::new(settings, &[]), |_, _| {
        ("only a measurement under load shows whether it matters".to_owned(), None)
    })
}

fn compare(facts: &Facts<'_>, judged: impl Fn(&Check, &Deviation) -> (String, Option<Cause>)) -> Vec<Note> {
    let mut notes: Vec<Note> = Vec::new();
    for check in [memory::CHECKS, disks::CHECKS, limits::CHECKS, servers::CHECKS].into_iter().flatten() {
        for server in facts.servers.iter().filter(|s| s.product == check.product) {
            for set in (check.against)(facts, server) {
                let twice =
                    |n: &Note| n.check == check.check && n.vendor == check.product.vendor() && n.subject == set.subject;
                if notes.iter().any(twice) {
                    continue;
                }
                let (whether, finding) = judged(check, &set);
                notes.push(Note {
                    check: check.check.to_owned(),
                    vendor: check.product.vendor().to_owned(),
                    subject: set.subject,
                    observed: set.observed,
                    advised: check.advised.to_owned(),
                    text: format!("{}; {whether}.", check.why),
                    finding,
                    fix: set.fix,
                    reference: check.reference.to_owned(),
                });
            }
        }
    }
    notes
}

/// The finding that shows that it matters.
fn finding(check: &Check, set: &Deviation, findings: &[Finding]) -> Option<Cause> {
    let names = |f: &Finding| {
        let is = |text: &str| text.split(|c: char| !c.is_alphanumeric() && !"/_-.".contains(c)).any(|w| w == set.word);
        set.word.is_empty()
            || f.evidence.iter().any(|e| is(&e.text) || is(&e.observed) || e.labels.iter().any(|(_, v)| is(v)))
    };
    findings.iter().find(|f| check.matters.contains(&f.cause) && names(f)).map(|f| f.cause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::Role;
    use holdup_signals::evidence::Evidence;

    fn setting(source: &str, name: &str, value: &str) -> Setting {
        Setting { observed_at: 0, source: source.into(), name: name.into(), value: value.into() }
    }

    fn host() -> Vec<Setting> {
        [
            ("vm.swappiness", "60"),
            ("vm.overcommit_memory", "0"),
            ("vm.zone_reclaim_mode", "0"),
            ("numa_nodes", "1"),
            ("vm.max_map_count", "65530"),
            ("net.core.somaxconn", "128"),
            ("transparent_hugepage.enabled", "always"),
            ("clock_source", "xen"),
            ("block.vdb.read_ahead_kb", "128"),
            ("block.vdb.scheduler", "bfq"),
            ("block.vdc.read_ahead_kb", "128"),
            ("mount[/data].device", "vdb"),
            ("mount[/data].fstype", "ext4"),
            ("mount[/data].options", "relatime,rw"),
        ]
        .map(|(name, value)| setting("host", name, value))
        .into()
    }

    fn names(notes: &[Note]) -> Vec<(&str, &str)> {
        notes.iter().map(|n| (n.check.as_str(), n.subject.as_str())).collect()
    }

    #[test]
    fn a_host_without_a_known_server_gets_no_advice() {
        let mut settings = host();
        settings.push(setting("pid:7", "comm", "java"));
        settings.push(setting("pid:8", "comm", "holdup"));
        assert_eq!(of_settings(&settings), []);
    }

    #[test]
    fn each_vendor_has_its_own_advice() {
        let mut settings = host();
        settings.extend([setting("pid:7", "comm", "mongod"), setting("pid:7", "limit.nofile", "1024")]);
        let notes = of_settings(&settings);
        let found = names(&notes);
        for expected in [
            ("transparent_hugepage", "transparent_hugepage.enabled"),
            ("swappiness", "vm.swappiness"),
            ("readahead", "vdb"),
            ("atime", "/data"),
            ("io_scheduler", "vdb"),
            ("open_files", "mongod"),
        ] {
            assert!(found.contains(&expected), "{expected:?} is not in {found:?}");
        }
        // On a device that nothing is mounted from, and of what is as advised, there is nothing to say.
        assert!(!found.contains(&("readahead", "vdc")), "{found:?}");
        assert!(notes.iter().all(|n| n.vendor == "MongoDB" && n.check != "zone_reclaim"), "{notes:?}");

        settings.push(setting("pid:9", "comm", "redis-server"));
        let notes = of_settings(&settings);
        let redis: Vec<&str> = notes.iter().filter(|n| n.vendor == "Redis").map(|n| n.check.as_str()).collect();
        for expected in ["overcommit", "somaxconn", "clock_source", "transparent_hugepage"] {
            assert!(redis.contains(&expected), "{expected} is not in {redis:?}");
        }
    }

    #[test]
    fn advice_for_mongodb_depends_on_its_version_and_on_where_its_data_are() {
        let advice = |version: &str, huge: &str| {
            let mut settings = host();
            settings.retain(|it| it.name != "transparent_hugepage.enabled");
            let own = "mongodb://127.0.0.1:27017";
            settings.extend([
                setting("host", "transparent_hugepage.enabled", huge),
                setting("host", "mount[/].device", "vda"),
                setting("host", "mount[/].fstype", "xfs"),
                setting("host", "block.vda.read_ahead_kb", "8"),
                setting(own, "version", version),
                setting(own, "storage.dbPath", "/data/db"),
            ]);
            of_settings(&settings)
        };
        let huge = |version, huge| {
            let notes = advice(version, huge);
            let note = notes.iter().find(|n| n.check == "transparent_hugepage");
            note.and_then(|n| n.fix.as_ref()?.command.clone()).unwrap_or_default()
        };
        assert!(huge("7.0.14", "always").contains("madvise") && huge("7.0.14", "never").is_empty());
        assert!(huge("8.0.4", "never").contains("always") && huge("8.0.4", "always").is_empty());
        let notes = advice("8.0.4", "always");
        let found = names(&notes);
        assert!(found.contains(&("file_system", "/data")) && !found.contains(&("file_system", "/")), "{found:?}");
        assert!(found.contains(&("memory_maps", "vm.max_map_count")), "{found:?}");
    }

    #[test]
    fn another_server_of_mongodb_s_protocol_gets_none_of_its_advice() {
        let advice = |process: &str| {
            let own = "mongodb://127.0.0.1:27017";
            let mut settings = host();
            settings.extend([setting(own, "version", "7.0.42"), setting(own, "process", process)]);
            of_settings(&settings).len()
        };
        assert_eq!(advice("ferretdb"), 0);
        assert!(advice("mongod") > 0 && advice("mongos") > 0);
    }

    #[test]
    fn several_nodes_and_a_kernel_that_reclaims_on_one_of_them_are_against_the_advice() {
        let advice = |nodes: &str, reclaim: &str| -> Vec<(String, String)> {
            let settings = [
                setting("host", "numa_nodes", nodes),
                setting("host", "vm.zone_reclaim_mode", reclaim),
                setting("pid:7", "comm", "mongod"),
            ];
            let notes = of_settings(&settings).into_iter().filter(|n| n.vendor == "MongoDB");
            let command = |fix: Option<Fix>| fix.and_then(|fix| fix.command.or(fix.keep)).unwrap_or_default();
            notes
                .map(|n| (n.check, command(n.fix)))
                .filter(|(check, _)| check.contains("numa") || check.contains("zone"))
                .collect()
        };
        assert_eq!(advice("1", "0"), []);
        let found = advice("2", "1");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().any(|(check, keep)| check == "numa_interleave" && keep.contains("--interleave=all")));
        assert!(found.iter().any(|(check, command)| check == "zone_reclaim" && command.contains("=0")));
    }

    #[test]
    fn only_a_finding_about_the_same_thing_shows_that_it_matters() {
        let mut settings = host();
        settings.push(setting("pid:7", "comm", "mongod"));
        let evidence = |device: &str| {
            let labels = holdup_recording::Labels::new([("device", device)]);
            let window = holdup_signals::Window { from: 0, to: 1 };
            Evidence::new("samples", "value", labels, window, "", "", "reads are too large")
        };
        let found = |device| Finding {
            cause: Cause::ReadaheadTooLarge,
            title: String::new(),
            role: Role::Root,
            follows_from: None,
            adds_to: None,
            hosts: Vec::new(),
            confidence: 0.9,
            explains_ms: 1.0,
            explains_ratio: 1.0,
            share: None,
            evidence: vec![evidence(device)],
            fixes: Vec::new(),
            prove: String::new(),
        };
        let facts = Facts::new(&settings, &[]);
        let check = disks::CHECKS.iter().find(|c| c.check == "readahead").unwrap();
        let set = (check.against)(&facts, &facts.servers[0]).remove(0);
        assert_eq!(finding(check, &set, &[found("vdb")]), Some(Cause::ReadaheadTooLarge));
        assert_eq!(finding(check, &set, &[found("vdc")]), None);
    }

    #[test]
    fn every_check_says_where_it_stands() {
        for check in [memory::CHECKS, disks::CHECKS, limits::CHECKS, servers::CHECKS].into_iter().flatten() {
            assert!(check.reference.contains("https://"), "{} of {}", check.check, check.product.vendor());
        }
    }
}
