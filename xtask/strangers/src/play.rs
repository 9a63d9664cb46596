//! Plays a draw: app, load and watchers on servers that are up, the fault at its time, and then recording and truth into
//! the corpus.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use holdup_recording::clock::wall_ns;
use holdup_recording::manifest::MANIFEST;
use holdup_recording::watchers::Sources;
use holdup_recording::{Manifest, Recording};

use crate::bench::Bench;
use crate::corpus::{Corpus, size};
use crate::draw::{Dose, Draw};
use crate::env::app::{self, App, Served};
use crate::env::database::{self, Database};
use crate::env::disk::{Limits, SMALL_VOLUME};
use crate::env::link::Link;
use crate::env::pooler::Pooled;
use crate::env::proxy::Proxied;
use crate::env::{Env, Running, process, shop};
use crate::faults::{Fault, Setup};
use crate::scenario::{self, Onset, Target};
use crate::symptom::Symptom;
use crate::topology::{Between, Data, Engine, Front, Instruments, Storage, Topology};
use crate::trim::trim;
use crate::truth::Truth;

/// Between two samples.
const INTERVAL: &str = "500ms";

/// Rows of requests that are kept.
const ROWS: u32 = 3_000;

/// Memory of PostgreSQL beside its own where its data is to be out of cache: the kernel's cache of files.
const FILE_CACHE_BYTES: u64 = 96 << 20;

/// Longest that holdup may take to judge and write after the load.
const END_WITHIN: Duration = Duration::from_secs(30);

/// What became of a draw.
pub enum Outcome {
    /// It is in the corpus.
    Played(Box<Truth>),
    /// This machine can't play it, and why.
    Skipped(String),
}

/// Plays `draw` into `corpus`.
pub fn play(bench: &mut Bench, draw: &Draw, corpus: &Corpus) -> Result<Outcome> {
    let begun = Instant::now();
    if let Err(why) = is_available(&draw.topology, &bench.root) {
        return Ok(Outcome::Skipped(format!("{why:#}")));
    }
    let link = match (draw.topology.between, &bench.link) {
        (Between::Link, Err(why)) => return Ok(Outcome::Skipped(format!("no link: {why:#}"))),
        (Between::Link, Ok(carried)) => Some(carried.link.clone()),
        _ => None,
    };
    let database = bench.database(draw.topology.engine)?;
    let stage = Stage::set(bench, draw, database, link)?;
    let recording = bench.dir().join("recording");
    let played = stage.play(&recording);
    let restored = stage.strike();
    let (onset_at, end_at) = played?;
    restored?;
    let opened = Recording::open(&recording).context("holdup made no recording")?;
    let symptom = Symptom::measure(&opened, onset_at, end_at);
    if symptom.baseline.count == 0 || symptom.fault.count == 0 {
        bail!("no requests before or during the fault; see {}", bench.dir().join("holdup.log").display());
    }
    trim(&recording, &opened)?;
    let truth = Truth {
        draw: draw.clone(),
        played: Truth::played(draw),
        onset_at,
        end_at,
        symptom,
        sources: stage_sources(&recording)?,
        wall_s: begun.elapsed().as_secs_f64(),
        bytes: size(&recording),
    };
    truth.write(&recording)?;
    corpus.put(&recording, draw.seed)?;
    Ok(Outcome::Played(Box::new(truth)))
}

/// Whether the servers of a topology can be started here.
fn is_available(topology: &Topology, root: &Path) -> Result<()> {
    database::is_available(topology.engine, root)?;
    shop::install(topology.app, root)?;
    if topology.between.is_pooler() {
        database::need("pgbouncer", root)?;
    }
    match topology.front {
        Front::Nothing => Ok(()),
        Front::Haproxy => database::need("haproxy", root),
        Front::Nginx => database::need("nginx-light", root),
    }
}

/// File in which a stage notes who watches what, until the truth has it.
const SOURCES: &str = "sources.json";

fn stage_sources(recording: &Path) -> Result<Sources> {
    let path = recording.join(SOURCES);
    let sources = serde_json::from_str(&fs::read_to_string(&path)?)?;
    fs::remove_file(path)?;
    Ok(sources)
}

/// All that a draw is played with.
struct Stage<'a> {
    bench: &'a Bench,
    draw: &'a Draw,
    setup: Setup,
    database: Database,
    link: Option<Link>,
    limits: Limits,
    settings: Running,
    // They end in this order.
    proxy: Option<Proxied>,
    app: Option<Served>,
    pooler: Option<Pooled>,
    target: Target,
}

impl<'a> Stage<'a> {
    /// Settings, disk, memory and app as the draw's baseline has them.
    fn set(bench: &'a Bench, draw: &'a Draw, database: Database, link: Option<Link>) -> Result<Self> {
        let setup = draw.setup();
        let limits = if draw.topology.storage == Storage::Throttled { SMALL_VOLUME } else { Limits::NONE };
        let mut settings = apply(&setup, &database)?;
        if draw.topology.data == Data::OutOfCache
            && draw.topology.engine == Engine::Postgresql
            && let Some(group) = database.group.clone()
        {
            group.squeeze(FILE_CACHE_BYTES)?;
            settings = settings.and(Running::until(move || group.set_memory(None)));
        }
        let topology = &draw.topology;
        let pooler = Pooled::start(topology, bench.dir(), database.port)?;
        let pooler_port = pooler.as_ref().map(|pooled| pooled.pooler.port);
        let place = app::Place {
            root: &bench.root,
            dir: bench.dir(),
            disk: &bench.disk.disk.folder,
            holdup: &bench.holdup,
            link: link.as_ref(),
            pooler: pooler_port,
            downstream: format!("{}:{}", bench.downstream_host(), bench.downstream.port),
            group: bench.group.clone(),
        };
        let app = Served::start(topology.app, topology.instruments, &database, &place, &setup.knobs)?;
        let proxy = match &app {
            Some(served) => Proxied::start(topology.front, bench.dir(), &served.app)?,
            None => None,
        };
        bench.disk.disk.limit(limits)?;
        let url = match (&app, &proxy) {
            (_, Some(proxied)) => format!("http://127.0.0.1:{}", proxied.proxy.port),
            (Some(served), None) => format!("http://{}:{}", served.app.host, served.app.port),
            (None, None) => database.address_at("app", "127.0.0.1", pooler_port.unwrap_or(database.port)),
        };
        let target = Target { url, app: topology.app, keep_alive: setup.keep_alive };
        Ok(Self { bench, draw, setup, database, link, limits, settings, proxy, app, pooler, target })
    }

    fn app(&self) -> Option<&App> {
        self.app.as_ref().map(|served| &served.app)
    }

    /// Load, watchers and fault. When the fault began and ended.
    fn play(&self, recording: &Path) -> Result<(i64, i64)> {
        for (dose, fault) in self.faults()? {
            (fault.stage)(&self.env(), &Dose::values(dose)).with_context(|| format!("{} is not staged", dose.fault))?;
        }
        let mut holdup = self.record(recording)?;
        let result = self.bring_about(recording);
        let ended = wait(&mut holdup, END_WITHIN);
        let times = result?;
        ended.with_context(|| fs::read_to_string(self.bench.dir().join("holdup.log")).unwrap_or_default())?;
        fs::write(recording.join(SOURCES), serde_json::to_string(&self.sources())?)?;
        Ok(times)
    }

    fn record(&self, recording: &Path) -> Result<Child> {
        let _ = fs::remove_dir_all(recording);
        let draw = self.draw;
        let mix = self.setup.mix.clone();
        let is_of_load = self.setup.load_factor.is_some() || !mix.is_empty();
        let factor = self.setup.load_factor.unwrap_or(1.0);
        let onset = is_of_load.then_some(Onset { begin: draw.onset_s, end: draw.end_s, factor, mix });
        let phases = scenario::phases(&self.setup.load, draw.seconds, onset);
        let name = format!("stranger {}", draw.seed);
        let text = scenario::yaml(&name, &self.target, &self.setup.load, &phases);
        let path = self.bench.dir().join("scenario.yaml");
        fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(&self.bench.holdup).arg("run").arg(path).arg("--quiet");
        command.args(["--interval", INTERVAL, "--rows", &ROWS.to_string(), "--output"]).arg(recording);
        command.args(self.watched().into_iter().flat_map(|address| ["--watch".to_owned(), address]));
        process::spawn(command, self.bench.dir(), "holdup")
    }

    fn watched(&self) -> Vec<String> {
        let mut all = vec!["host".to_owned(), self.database.watch_address()];
        // PostgreSQL's main process only starts others.
        if self.database.engine.is_mysql() {
            all.push(format!("pid:{}", self.database.pid));
        }
        if let Some(app) = self.app() {
            all.push(format!("pid:{}", app.pid));
            let network = if self.link.is_some() { format!("?pid={}", app.pid) } else { String::new() };
            all.push(format!("server:{}{network}", app.port));
            if self.draw.topology.instruments != Instruments::None {
                all.push(format!("prometheus:http://{}:{}/metrics", app.host, app.admin));
            }
            all.extend(app.spans.iter().map(|address| format!("otlp:{address}")));
        }
        all.extend(self.pooler.iter().map(|pooled| pooled.pooler.watch_address()));
        all.extend(self.proxy.iter().map(|proxied| proxied.proxy.watch_address()));
        all
    }

    /// Who watches what, by the names that sources have in recordings.
    fn sources(&self) -> Sources {
        let scheme = if self.database.engine.is_mysql() { "mysql" } else { "postgresql" };
        let app = self.app().map_or_else(Vec::new, |app| {
            let metrics = format!("prometheus:http://{}:{}/metrics", app.host, app.admin);
            let mut all = vec![format!("pid:{}", app.pid), format!("server:{}", app.port), metrics];
            all.extend(app.spans.iter().flat_map(|address| [format!("otlp:{address}"), "otlp".to_owned()]));
            all
        });
        let pooler = self.pooler.iter().map(|pooled| pooled.pooler.source());
        let proxy = self.proxy.iter().map(|proxied| proxied.proxy.watch_address());
        Sources {
            database: vec![format!("{scheme}://127.0.0.1:{}", self.database.port)],
            database_process: vec![format!("pid:{}", self.database.pid)],
            app,
            between: pooler.chain(proxy).collect(),
            host: vec!["host".to_owned()],
        }
    }

    /// Waits for the onset, starts the faults, and takes them back at their end.
    fn bring_about(&self, recording: &Path) -> Result<(i64, i64)> {
        let mut start = None;
        process::until("the load", Duration::from_secs(15), || {
            start = load_start(recording);
            start.is_some()
        })?;
        let start = start.context("the load has no start")?;
        let at = |seconds: f64| start + (seconds * 1e9) as i64;
        sleep_until(at(self.draw.onset_s));
        let onset_at = wall_ns();
        let mut running = Running::nothing();
        for (dose, fault) in self.faults()? {
            let begun = (fault.start)(&self.env(), &Dose::values(dose));
            running = running.and(begun.with_context(|| format!("{} does not begin", dose.fault))?);
        }
        sleep_until(at(self.draw.end_s));
        let end_at = wall_ns();
        running.stop().context("the fault is not taken back")?;
        Ok((onset_at, end_at))
    }

    fn faults(&self) -> Result<Vec<(&Dose, &'static Fault)>> {
        let known = |dose: &'a Dose| match dose.fault() {
            Some(fault) => Ok((dose, fault)),
            None => bail!("this bench has no fault {}", dose.fault),
        };
        self.draw.doses.iter().map(known).collect()
    }

    fn env(&self) -> Env<'_> {
        Env {
            database: &self.database,
            app: self.app(),
            disk: &self.bench.disk.disk,
            disk_limits: self.limits,
            link: self.link.as_ref(),
            pooler: self.pooler.as_ref().map(|pooled| &pooled.pooler),
            proxy: self.proxy.as_ref().map(|proxied| &proxied.proxy),
            downstream: &self.bench.downstream,
            load: &self.setup.load,
            target: &self.target,
            holdup: &self.bench.holdup,
            dir: self.bench.dir(),
        }
    }

    /// Everything as it was before the draw.
    fn strike(self) -> Result<()> {
        drop((self.proxy, self.app, self.pooler));
        self.bench.disk.disk.limit(Limits::NONE)?;
        self.settings.stop()?;
        let orders = crate::statements::ORDERS;
        let mut restore = vec![format!("DELETE FROM orders WHERE id > {orders}")];
        if !self.database.engine.is_mysql() {
            // Autovacuum is off: what a draw leaves dead must not slow the next one down.
            restore.push("VACUUM orders, item, daily, article".to_owned());
            restore.push("CHECKPOINT".to_owned());
        }
        self.database.execute(&restore).map(drop)
    }
}

fn apply(setup: &Setup, database: &Database) -> Result<Running> {
    let mut running = Running::nothing();
    if database.engine.is_mysql() {
        for (name, value) in &setup.mysql {
            running = running.and(database.set_global(name, value)?);
        }
    } else if !setup.postgresql.is_empty() {
        running = running.and(database.alter_system(&setup.postgresql)?);
    }
    Ok(running)
}

/// When the load of a recording began, once it has.
fn load_start(recording: &Path) -> Option<i64> {
    let text = fs::read_to_string(recording.join(MANIFEST)).ok()?;
    let manifest: Manifest = serde_json::from_str(&text).ok()?;
    Some(manifest.phases.first()?.from)
}

fn sleep_until(at: i64) {
    let left = at - wall_ns();
    if left > 0 {
        thread::sleep(Duration::from_nanos(left.unsigned_abs()));
    }
}

fn wait(child: &mut Child, within: Duration) -> Result<()> {
    // The load itself is as long as the draw; what comes after is bounded.
    let ended = process::until("holdup", within + Duration::from_secs(30), || {
        child.try_wait().is_ok_and(|status| status.is_some())
    });
    if ended.is_err() {
        let _ = child.kill();
        let _ = child.wait();
    }
    ended
}

/// The program under test beside this one, or where `given` says.
pub fn program(given: Option<PathBuf>) -> Result<PathBuf> {
    let beside = std::env::current_exe().context("could not find this program")?.with_file_name("holdup");
    let program = given.unwrap_or(beside);
    if !program.is_file() {
        bail!("no program at {}; build it with: cargo build --release -p holdup --features labs", program.display());
    }
    program.canonicalize().with_context(|| format!("failed to find {}", program.display()))
}
