//! The flags of every command that sends load: a scenario's file or the quick form, overrides, and
//! sources to watch. How often it is played, and how the result is used, is up to the command.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use holdup_diagnose::Diagnosis;
use holdup_load::model::Load;
use holdup_load::scenario::{self, Inputs, Scenario, Target};
use holdup_recording::manifest::Threshold;
use holdup_recording::{clock, files};

use super::http_args::HttpArgs;
use super::load_args::LoadArgs;
use super::sql_args::SqlArgs;
use super::{LARGEST_BYTES, Sampling, duration, judge, slips};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::recorded::Recorded;
use crate::secret_values::{Values, value, values};
use crate::session::{self, Session};

#[derive(clap::Args)]
pub struct ScenarioArgs {
    /// Scenario file
    #[arg(value_name = "SCENARIO", conflicts_with = "url")]
    file: Option<PathBuf>,

    /// Value of one of the scenario's vars; repeatable; @FILE has one a line, @env:NAME reads a
    /// variable
    #[arg(long = "var", value_name = "NAME=VALUE", requires = "file", value_parser = values)]
    vars: Vec<Values>,

    /// Target, in place of the scenario's
    #[arg(long, value_name = "URL", requires = "file", value_parser = value)]
    target: Option<String>,

    /// Quick form: GET this URL, or execute --query on this database (mysql://USER@HOST/DATABASE, postgres://…,
    /// mongodb://…)
    #[arg(long, value_name = "URL", value_parser = value)]
    url: Option<String>,

    /// Most requests in flight; in a closed model, its users [default: the scenario's, or 50]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(scenario::MAX_CONNECTIONS)))]
    connections: Option<u32>,

    /// Longest wait for a free connection, and then for the response [default: the scenario's, or 10s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    timeout: Option<Duration>,

    /// Objective, e.g. 'p99 < 500ms' or 'errors < 1%'; missed, the exit code is 1; repeatable
    #[arg(long = "threshold", value_name = "OBJECTIVE")]
    thresholds: Vec<String>,

    /// Objective that ends the run when it is missed, e.g. 'errors < 5% for 10s'; repeatable
    #[arg(long, value_name = "OBJECTIVE")]
    abort_on: Vec<String>,

    /// Ignore violations of --abort-on before this time [default: 0s]
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "abort_on")]
    abort_after: Option<Duration>,

    #[command(flatten)]
    pub sampling: Sampling,

    /// Watch nothing, whatever the scenario says
    #[arg(long, conflicts_with = "watch")]
    no_collect: bool,
}

/// Flags under headings of their own: last in a command, because clap puts everything that follows
/// under them.
#[derive(clap::Args)]
pub struct LoadFlags {
    #[command(flatten)]
    load: LoadArgs,

    #[command(flatten)]
    http: HttpArgs,

    #[command(flatten)]
    sql: SqlArgs,
}

impl ScenarioArgs {
    /// The scenario with all overrides. Each call makes another set of users.
    ///
    /// # Errors
    /// If something is wrong with it; the message names file and line, or the flag.
    pub fn scenario(&self, flags: &LoadFlags) -> Result<Scenario, Failure> {
        let given = Inputs {
            vars: Values::all(&self.vars).map(|text| variable(text)).collect::<Result<_, _>>()?,
            target: self.target.clone(),
            // Two runs are two sets of users, so keys and the like that they make up must differ.
            luck: clock::now_ns().unsigned_abs() ^ u64::from(std::process::id()),
            share: flags.load.share(),
        };
        let mut scenario = match &self.file {
            Some(path) => {
                let file = path.display().to_string();
                let text = files::read_text(path, LARGEST_BYTES).map_err(|error| slips::scenario(path, &error))?;
                Scenario::read(&text, &file, &given).map_err(Failure::unusable)?
            }
            None if self.url.is_none() => {
                let what = "nothing to play: name a scenario's file, or --url URL with a load, e.g. --rate 500";
                return Err(Failure::Unusable(what.to_owned()));
            }
            None => self.quick(flags)?,
        };
        if let Some(connections) = self.connections {
            scenario.connections = connections;
            if let Load::Closed(closed) = &mut scenario.load {
                closed.users = connections;
            }
        }
        flags.load.apply(&mut scenario)?;
        scenario.timeout = self.timeout.unwrap_or(scenario.timeout);
        for text in &self.thresholds {
            let threshold = scenario::parse_threshold(text, &scenario.operations);
            scenario.thresholds.push(threshold.map_err(|why| Failure::Unusable(format!("--threshold: {why}")))?);
        }
        for text in &self.abort_on {
            let threshold = scenario::parse_threshold(text, &scenario.operations)
                .map_err(|why| Failure::Unusable(format!("--abort-on: {why}")))?;
            let abort_after_ns = self.abort_after.unwrap_or_default().as_nanos() as i64;
            scenario.thresholds.push(Threshold { abort: true, abort_after_ns, ..threshold });
        }
        scenario.watch.extend(self.sampling.watched());
        if self.no_collect {
            scenario.watch.clear();
            scenario.probes.clear();
        } else if scenario.watch.is_empty() && scenario.target.is_local() {
            // The CPUs and disks of a service on this machine are suspects that cost nothing to
            // watch.
            scenario.watch.push("host".to_owned());
        }
        let is_alone = scenario.watch.is_empty();
        flags.http.apply(&mut scenario, is_alone)?;
        Ok(scenario)
    }

    /// The session that records `scenario` into `dir`.
    pub fn session<'s>(&'s self, scenario: &'s Scenario, dir: &'s Path) -> Session<'s> {
        Session { scenario: Some(scenario), ..self.sampling.session(&scenario.name, &scenario.watch, dir) }
    }

    /// Reads the scenario again and plays it into `dir`. The report is written beside the
    /// recording, which may fail.
    ///
    /// # Errors
    /// If the scenario cannot be played; `dir` then stays empty.
    pub fn play(
        &self,
        flags: &LoadFlags,
        change: impl Fn(&mut Scenario),
        dir: &Path,
        quiet: bool,
        stop: &AtomicBool,
    ) -> Result<(Recorded, Diagnosis, Result<(), Failure>), Failure> {
        let mut scenario = self.scenario(flags)?;
        change(&mut scenario);
        let mut progress = Progress::for_scenario(&scenario, quiet);
        let recorded = session::record(&self.session(&scenario, dir), &mut progress, stop)?;
        let (diagnosis, reported) = judge(&recorded);
        let reported = recorded.whole().and(reported);
        Ok((recorded, diagnosis, reported))
    }

    /// The scenario of the quick form.
    fn quick(&self, flags: &LoadFlags) -> Result<Scenario, Failure> {
        let url = self.url.as_deref().unwrap_or_default();
        let bad = |why: String| Failure::Unusable(format!("--url: {why}"));
        if Target::is_database(url) {
            let target = Target::database(url).map_err(bad)?;
            return flags.sql.scenario(target, &flags.load, self.connections);
        }
        flags.sql.check_none()?;
        let (target, path) = Target::parse(url).map_err(bad)?;
        scenario::check_path(&path).map_err(bad)?;
        let mut demand = flags.load.demand(self.connections)?;
        if flags.load.is_replay() {
            if path != "/" {
                return Err(bad(format!("with --replay the paths are the log's; use {}", target.url())));
            }
            let given = flags.http.operation(path)?;
            demand.operations.iter_mut().for_each(|operation| operation.headers.clone_from(&given.headers));
        } else {
            demand.operations.push(flags.http.operation(path)?);
        }
        let text = format!("target: {}\n{}", target.url(), demand.text);
        let search = demand.search;
        Ok(Scenario {
            text: Some(scenario::mask(&text)),
            search,
            ..Scenario::new("run", target, demand.load, demand.operations)
        })
    }
}

/// `NAME=VALUE`.
fn variable(text: &str) -> Result<(String, String), Failure> {
    // The text may be a secret whose name was forgotten, so the error does not repeat it.
    let why = "--var: expected NAME=VALUE, e.g. tenant=acme";
    let (name, value) = text.split_once('=').ok_or_else(|| Failure::Unusable(why.to_owned()))?;
    Ok((name.to_owned(), value.to_owned()))
}
