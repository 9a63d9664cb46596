//! What cases are played on: PostgreSQL, which stays up, and for each case the shop, its fault, a load and holdup.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use holdup_recording::Recording;

use super::cases::{Case, Reach};
use super::{FELT, Felt, Source, client};
use crate::env::app::{Place, Served};
use crate::env::database::{self, Database, Server};
use crate::env::downstream::Downstream;
use crate::env::{Running, Scratch, process, shop};
use crate::load::{Load, Shape, Share};
use crate::scenario::{self, Target};
use crate::symptom;
use crate::topology::{App, Engine, Instruments};

/// Length of a recording, seconds.
const SECONDS: u64 = 30;

/// Another tool's load begins so much earlier, and goes on so much longer, than what is recorded of it, seconds.
const AROUND: u64 = 3;

/// Orders of other customers, beside those that every database of the bench has.
const MORE_ORDERS: u64 = 300_000;

/// Longest that holdup may take to judge and write.
const END_WITHIN: Duration = Duration::from_secs(60);

/// The account that holdup watches with, as its documents say, and settings of an ordinary server.
const SETTINGS: &[&str] = &[
    "CREATE ROLE holdup LOGIN",
    "GRANT pg_monitor TO holdup",
    "ALTER SYSTEM SET autovacuum = on",
    "ALTER SYSTEM SET synchronous_commit = on",
    "SELECT pg_reload_conf()",
];

/// PostgreSQL and the third party, running.
pub struct Stage {
    server: Server,
    downstream: Downstream,
    root: PathBuf,
    holdup: PathBuf,
    dir: Scratch,
}

impl Stage {
    /// Starts both on loopback, with some hundred thousand rows.
    pub fn start(root: &Path, holdup: &Path) -> Result<Self> {
        database::is_available(Engine::Postgresql, root)?;
        database::need("wrk", root)?;
        shop::install(App::Flask, root)?;
        let dir = Scratch::make()?;
        let data = dir.0.join("data");
        fs::create_dir(&data).with_context(|| format!("failed to make {}", data.display()))?;
        // PostgreSQL does not run as root.
        process::run("chmod", &["777", &data.display().to_string()])?;
        let place = database::Place { root, dir: &dir.0, disk: &data, link_address: None };
        let server = Server::start(Engine::Postgresql, &place).context("PostgreSQL does not start")?;
        let rows = format!(
            "INSERT INTO orders (customer, item, quantity, note) SELECT {} + n % 50000, 1 + n % {}, 1 + n % 9, \
             CONCAT('order ', md5(n::text), md5((n + 1)::text)) FROM generate_series(1, {MORE_ORDERS}) n",
            crate::statements::CUSTOMERS + 1,
            crate::statements::ITEMS
        );
        server.database.execute(&[rows, "VACUUM ANALYZE".to_owned()])?;
        for setting in SETTINGS {
            server.database.sql(setting)?;
        }
        let downstream = Downstream::start("127.0.0.1")?;
        Ok(Self { server, downstream, root: root.to_owned(), holdup: holdup.to_owned(), dir })
    }

    /// Plays a case, and puts its recording into `to` once it is whole.
    pub fn play(&self, case: &Case, source: Source, to: &Path) -> Result<()> {
        let (dir, database) = (&self.dir.0, &self.server.database);
        let place = Place {
            root: &self.root,
            dir,
            disk: dir,
            holdup: &self.holdup,
            link: None,
            pooler: None,
            downstream: format!("127.0.0.1:{}", self.downstream.port),
            group: None,
        };
        let program = |script: &str| programs(dir, script);
        let fault = (case.start)(&Reach { database, downstream: &self.downstream, program: &program })?;
        let app = Served::start(App::Flask, Instruments::None, database, &place, case.knobs)?;
        let app = app.context("the shop did not start")?;
        let recording = dir.join("recording");
        let _ = fs::remove_dir_all(&recording);
        let url = format!("http://127.0.0.1:{}", app.app.port);
        let felt = match source {
            Source::Own => self.run(case, &url, &watched(&app, database), &recording),
            Source::Foreign => self.watch(case, &url, &watched(&app, database), &recording),
        };
        drop(app);
        fault.stop()?;
        let orders = crate::statements::ORDERS + MORE_ORDERS;
        database.execute(&[format!("DELETE FROM orders WHERE id > {orders}"), "VACUUM orders, item".to_owned()])?;
        keep(&recording, felt?, to)
    }

    fn run(&self, case: &Case, url: &str, watched: &[String], recording: &Path) -> Result<Felt> {
        let mix = case.mix.iter().map(|&(operation, weight)| Share { operation, weight }).collect();
        let load = Load { rate: case.rate, shape: Shape::Poisson, mix, connections: 100, has_objectives: false };
        let phases = scenario::phases(&load, SECONDS as f64, None);
        let target = Target { url: url.to_owned(), app: App::Flask, keep_alive: true };
        let path = self.dir.0.join("scenario.yaml");
        let text = scenario::yaml(case.name, &target, &load, &phases);
        fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
        self.record(&["run", &path.display().to_string()], watched, recording)?;
        let recording = Recording::open(recording).context("holdup made no recording")?;
        let p50_ms = symptom::median_ms(&recording).context("no request was answered")?;
        Ok(Felt { p50_ms })
    }

    fn watch(&self, case: &Case, url: &str, watched: &[String], recording: &Path) -> Result<Felt> {
        let mut client = client::start(case, url, SECONDS + 2 * AROUND, &self.dir.0)?;
        thread::sleep(Duration::from_secs(AROUND));
        let recorded = self.record(&["watch", "--for", &format!("{SECONDS}s")], watched, recording);
        wait("wrk", &mut client, END_WITHIN)?;
        recorded?;
        Ok(Felt { p50_ms: client::median_ms(&self.dir.0)? })
    }

    fn record(&self, words: &[&str], watched: &[String], recording: &Path) -> Result<()> {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(&self.holdup).args(words).args(["--quiet", "--output"]);
        command.arg(recording);
        command.args(watched.iter().flat_map(|address| ["--watch", address]));
        let mut holdup = process::spawn(command, &self.dir.0, "holdup")?;
        wait("holdup", &mut holdup, Duration::from_secs(SECONDS) + END_WITHIN)
            .with_context(|| fs::read_to_string(self.dir.0.join("holdup.log")).unwrap_or_default())
    }
}

/// Host, ports, processes and PostgreSQL.
fn watched(app: &Served, database: &Database) -> Vec<String> {
    vec![
        "host".to_owned(),
        format!("server:{}", app.app.port),
        format!("pid:{}", app.app.pid),
        format!("server:{}", database.port),
        format!("pid:{}", database.pid),
        format!("postgresql://holdup@127.0.0.1:{}/shop", database.port),
    ]
}

/// Runs a shell's script until the fault ends, with all that it has started.
fn programs(dir: &Path, script: &str) -> Result<Running> {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "sh", "-c", script]);
    let mut child = process::spawn(command, dir, "beside")?;
    Ok(Running::until(move || {
        // The child is a process group of its own.
        process::run("kill", &["-s", "KILL", "--", &format!("-{}", child.id())])?;
        child.wait().map(drop).context("what ran beside the service does not end")
    }))
}

fn wait(name: &str, child: &mut Child, within: Duration) -> Result<()> {
    let ended = process::until(name, within, || child.try_wait().is_ok_and(|status| status.is_some()));
    if ended.is_err() {
        let _ = child.kill();
        let _ = child.wait();
    }
    ended
}

/// Moves the recording to its place with what clients felt beside it: a case is there whole or not at all.
fn keep(recording: &Path, felt: Felt, to: &Path) -> Result<()> {
    ensure!(recording.is_dir(), "holdup made no recording");
    let path = recording.join(FELT);
    fs::write(&path, serde_json::to_string(&felt)?).with_context(|| format!("failed to write {}", path.display()))?;
    let _ = fs::remove_dir_all(to);
    // The machine's temporary folder may be another file system, where a rename does not reach.
    let part = to.with_extension("part");
    let _ = fs::remove_dir_all(&part);
    fs::create_dir_all(&part).with_context(|| format!("failed to make {}", part.display()))?;
    process::run("cp", &["-r", &format!("{}/.", recording.display()), &part.display().to_string()])?;
    fs::rename(&part, to).with_context(|| format!("failed to make {}", to.display()))
}
