//! `holdup doctor`: lists what holdup can see from here, what it cannot, and what would change
//! that. It also compares this host's settings with the advice of its servers' vendors. It measures
//! nothing.

mod for_verdict;
mod pipeline;

use std::path::PathBuf;
use std::time::Duration;

use holdup_collect::discover::{self, Kind};
use holdup_collect::proc::Proc;
use holdup_collect::watch::{self, Options};
use holdup_diagnose::audit;
use holdup_diagnose::verdict::Note;
use holdup_protocol::packets::Protocol;
use holdup_recording::{Batch, CoverageState};
use serde::Serialize;

use super::{duration, print_json};
use crate::failure::Failure;
use crate::secret_values::{Values, values};
use holdup_recording::secret::redact_value;

/// Show what can be seen from here, and how to see the rest
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  holdup doctor
  holdup doctor --watch mysql://holdup@127.0.0.1:3306 --json
  holdup doctor --for-verdict recordings/first --watch mysql://holdup@127.0.0.1:3306")]
pub struct Args {
    /// Also check this source, besides this machine and its servers; repeatable
    #[arg(long, value_name = "SOURCE", value_parser = values)]
    watch: Vec<Values>,

    /// Take the measurement that would firm up this recording's verdict, if it only reads
    #[arg(long, value_name = "RECORDING")]
    for_verdict: Option<PathBuf>,

    /// Measure for this long
    #[arg(long = "for", value_name = "DURATION", default_value = "15s", value_parser = duration, requires = "for_verdict")]
    length: Duration,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    sources: Vec<Source>,
    servers: Vec<Server>,
    /// The command line that would watch all of it.
    proposal: Vec<String>,
    /// Stages of a pipeline that the named sources show, as text for --pipeline; none without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pipeline: Option<String>,
    /// Settings that differ from the vendors' advice.
    notes: Vec<Note>,
}

#[derive(Serialize)]
struct Source {
    source: String,
    state: CoverageState,
    why: Option<String>,
    enable: Option<String>,
}

#[derive(Serialize)]
struct Server {
    port: u16,
    pid: u32,
    process: String,
    watch: String,
    note: String,
    /// The packets of a database, as a further source.
    packets: Option<Source>,
}

pub fn run(args: Args) -> Result<(), Failure> {
    let watched = Values::list(&args.watch);
    if let Some(dir) = &args.for_verdict {
        return for_verdict::run(dir, &watched, args.length, args.json);
    }
    let mut report = Report {
        sources: Vec::new(),
        servers: Vec::new(),
        proposal: vec!["host".to_owned()],
        pipeline: None,
        notes: Vec::new(),
    };
    let servers = discover::local_servers(&Proc::system()).map_err(Failure::unusable)?;
    for server in servers {
        // A database with two ports (MariaDB's extra_port) is watched once: holdup finds the extra
        // port itself.
        let is_database = server.watch.starts_with("mysql://");
        let twice =
            is_database && report.servers.iter().any(|s| s.pid == server.pid && s.watch.starts_with("mysql://"));
        if !server.watch.is_empty() && !twice && !report.proposal.contains(&server.watch) {
            report.proposal.push(server.watch.clone());
        }
        let packets = wire_address(server.kind, server.port).map(|address| source(&address));
        report.servers.push(Server {
            packets,
            port: server.port,
            pid: server.pid,
            process: server.process,
            watch: server.watch,
            note: server.note,
        });
    }
    let options = Options { partial: true, ..Options::default() };
    for address in std::iter::once("host").chain(watched.iter().map(String::as_str)) {
        // An unusable source is an answer here, not an error.
        match watch::collector(address, &options).and_then(|mut c| c.probe()) {
            Ok(coverage) => report.sources.extend(coverage.into_iter().map(|c| Source {
                source: c.source,
                state: c.state,
                why: c.why,
                enable: c.enable,
            })),
            Err(error) => report.sources.push(Source {
                source: redact_value(address),
                state: CoverageState::Absent,
                why: Some(error.to_string()),
                enable: None,
            }),
        }
    }
    report.pipeline = pipeline::proposed(&watched, &options);
    report.notes = notes(&report.servers, &watched, &options);
    if args.json {
        return print_json(&report);
    }
    print(&report);
    Ok(())
}

/// The `--watch` address of its packets; none unless holdup understands its protocol.
fn wire_address(kind: Kind, port: u16) -> Option<String> {
    let protocol = match kind {
        Kind::Mysql | Kind::ProxySql => Protocol::Mysql,
        Kind::Postgres | Kind::PgBouncer => Protocol::Postgres,
        Kind::MongoDb => Protocol::Mongodb,
        _ => return None,
    };
    let is_known = Protocol::by_port(port) == Some(protocol);
    Some(if is_known { format!("wire:{port}") } else { format!("wire:{port}={}", protocol.name()) })
}

/// Whether the source at `address` can be used.
fn source(address: &str) -> Source {
    let probed = watch::collector(address, &Options::default()).and_then(|mut collector| collector.probe());
    let why = probed.err().map(|error| error.to_string());
    let state = if why.is_none() { CoverageState::Complete } else { CoverageState::Absent };
    Source { source: address.to_owned(), state, why, enable: None }
}

/// Notes on the settings of this host, of its servers' processes and of the named sources. Sources
/// that cannot be read are left out here, because the list of sources shows them.
fn notes(servers: &[Server], watch: &[String], options: &Options) -> Vec<Note> {
    let processes = servers.iter().map(|server| format!("pid:{}", server.pid));
    let mut addresses: Vec<String> =
        std::iter::once("host".to_owned()).chain(processes).chain(watch.iter().cloned()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let mut batch = Batch::default();
    for address in addresses {
        if let Ok(mut collector) = watch::collector(&address, options)
            && collector.probe().is_ok()
        {
            let _ = collector.settings(&mut batch);
        }
    }
    audit::of_settings(&batch.settings)
}

fn print(report: &Report) {
    use crate::terminal::style::AnsiColor;
    let bold = crate::terminal::style::Style::new().bold();
    outln!("{bold}What can be seen from here{bold:#}");
    for source in &report.sources {
        let (word, color) = match source.state {
            CoverageState::Complete => ("complete", AnsiColor::Green),
            CoverageState::Partial => ("partial", AnsiColor::Yellow),
            CoverageState::Absent => ("absent", AnsiColor::Red),
            CoverageState::Failed => ("failed", AnsiColor::Red),
        };
        let style = color.on_default();
        outln!("  {style}{word:<9}{style:#} {}", source.source);
        if let Some(why) = &source.why {
            outln!("            {why}");
        }
        if let Some(enable) = &source.enable {
            outln!("            turn on: {bold}{enable}{bold:#}");
        }
    }
    outln!("\n{bold}Servers that listen here{bold:#}");
    if report.servers.is_empty() {
        outln!("  none that this account can see");
    }
    for server in &report.servers {
        outln!("  {:>5}  {:<16} pid {:<8} {}", server.port, server.process, server.pid, server.watch);
        if !server.note.is_empty() {
            outln!("         {}", server.note);
        }
        if let Some(packets) = &server.packets {
            match &packets.why {
                None => outln!("         also: --watch {} (its packets; you may read them here)", packets.source),
                Some(why) => outln!("         also: {why}"),
            }
        }
    }
    if !report.notes.is_empty() {
        outln!("\n{bold}Settings that differ from the vendors' advice{bold:#} (only load shows whether they matter)");
        for note in &report.notes {
            let Note { check, subject, observed, vendor, advised, reference, .. } = note;
            outln!("  {check:<22}{subject}: {observed}; {vendor} advises {advised}");
            if let Some(command) = note.fix.as_ref().and_then(|fix| fix.command.as_ref()) {
                outln!("{:24}{bold}{command}{bold:#}", "");
            }
            outln!("{:24}{reference}", "");
        }
    }
    if let Some(pipeline) = &report.pipeline {
        outln!("\n{bold}A pipeline{bold:#} (put its stages in order, save it, and add --pipeline FILE)\n{pipeline}");
    }
    let list: Vec<String> = report.proposal.iter().map(|w| format!("--watch '{w}'")).collect();
    if report.proposal.iter().any(|w| w.contains("USER")) {
        outln!("\nReplace USER by an account; docs/security.md lists the grants it needs.");
    }
    outln!("\n{bold}To watch all of it{bold:#}\n  holdup watch {} --for 60s", list.join(" "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_databases_alone() {
        let address = wire_address;
        assert_eq!(address(Kind::Mysql, 3306).as_deref(), Some("wire:3306"));
        assert_eq!(address(Kind::MongoDb, 27_017).as_deref(), Some("wire:27017"));
        assert_eq!(address(Kind::Postgres, 6432).as_deref(), Some("wire:6432=postgresql"));
        assert_eq!(address(Kind::PgBouncer, 6432).as_deref(), Some("wire:6432=postgresql"));
        assert_eq!(address(Kind::Mysql, 5432).as_deref(), Some("wire:5432=mysql"), "whatever its usual owner speaks");
        assert_eq!((address(Kind::Process, 3306), address(Kind::Prometheus, 9100)), (None, None));
        // Each is understood: only rights may be missing.
        for (kind, port) in [(Kind::Mysql, 3306), (Kind::Postgres, 6432)] {
            let told = source(&address(kind, port).unwrap());
            assert!(told.why.is_none_or(|why| why.contains("packets")), "{}", told.source);
        }
    }
}
