//! The holdups of a soak: two that put load on the servers, and the one that watches everything. They are run as a user runs them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::record::End;
use super::sample::{self, Sample};
use super::servers::{ROWS, Servers};
use crate::steps::{command, run as run_command};

/// Operations a second of each load.
const RATE: u32 = 20;

/// The load goes on for so long after the watch should have ended, so that no slice is without load; it is stopped with the watch.
const LONGER: Duration = Duration::from_secs(300);

/// What the load does: mostly reads, some writes in a transaction.
const OPERATIONS: &str = "operations:
  - {name: read, weight: 8, query: 'SELECT stock FROM item WHERE id = ?', params: ['${random(1, ROWS)}']}
  - {name: count, weight: 1, query: 'SELECT COUNT(*) FROM item WHERE stock > ?', params: ['${random(1, 9)}']}
  - name: sell
    weight: 1
    transaction:
      - {query: 'UPDATE item SET stock = stock + 1 WHERE id = ?', params: ['${random(1, ROWS)}']}
";

/// What is to be started.
pub struct Plan<'a> {
    pub root: &'a Path,
    /// Where recordings and output go; empty.
    pub folder: &'a Path,
    pub servers: &'a Servers,
    /// Processes to watch.
    pub pids: &'a [u32],
    /// How long the watch lasts.
    pub length: Duration,
}

/// The running ones.
pub struct Holdup {
    begun: Instant,
    folder: PathBuf,
    /// Name and process; the first watches.
    processes: Vec<(&'static str, Child)>,
}

impl Drop for Holdup {
    fn drop(&mut self) {
        for (_, process) in &mut self.processes {
            // One that was waited for has no number any more.
            if process.try_wait().is_ok_and(|status| status.is_none()) {
                let _ = run_command(command(Path::new("/"), "kill", &["-INT", &process.id().to_string()]));
                let _ = process.wait();
            }
        }
    }
}

impl Holdup {
    /// Starts the loads, then the watch.
    pub fn start(plan: &Plan<'_>) -> Result<Self> {
        let mut holdup = Self { begun: Instant::now(), folder: plan.folder.to_owned(), processes: Vec::new() };
        let loads =
            [("run mysql", plan.servers.mariadb_address()), ("run postgresql", plan.servers.postgres_address())];
        for (name, address) in loads {
            holdup.load(plan, name, &address)?;
        }
        let seconds = plan.length.as_secs();
        let mut arguments: Vec<String> = ["watch", "--interval=1s", "--quiet"].into_iter().map(str::to_owned).collect();
        arguments.push(format!("--for={seconds}s"));
        arguments.push("--watch=host".to_owned());
        arguments.extend(plan.pids.iter().map(|pid| format!("--watch=pid:{pid}")));
        arguments.push(format!("--watch={}", plan.servers.mariadb_address()));
        arguments.push(format!("--watch={}", plan.servers.postgres_address()));
        let child = holdup.spawn(plan.root, "watch", &arguments)?;
        holdup.processes.insert(0, ("watch", child));
        holdup.begun = Instant::now();
        Ok(holdup)
    }

    fn load(&mut self, plan: &Plan<'_>, name: &'static str, address: &str) -> Result<()> {
        let scenario = self.folder.join(format!("{name}.yaml"));
        let seconds = (plan.length + LONGER).as_secs();
        let head = format!("target: {address}\nload: {{rate: {RATE}, duration: {seconds}s, connections: 10}}\n");
        fs::write(&scenario, head + &OPERATIONS.replace("ROWS", &ROWS.to_string()))
            .with_context(|| format!("failed to write {}", scenario.display()))?;
        let arguments = ["run", "--no-collect", "--quiet"].map(str::to_owned);
        let child = self.spawn(plan.root, name, &[&arguments[..], &[scenario.display().to_string()]].concat())?;
        self.processes.push((name, child));
        Ok(())
    }

    fn spawn(&self, root: &Path, name: &str, arguments: &[String]) -> Result<Child> {
        let log = self.folder.join(format!("{name}.log"));
        let log = File::create(&log).with_context(|| format!("failed to create {}", log.display()))?;
        let mut command = Command::new(root.join("target/release/holdup"));
        command.args(arguments).arg("--output").arg(self.folder.join(name)).current_dir(&self.folder);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        command.spawn().context("could not start holdup")
    }

    /// What all of them take now.
    pub fn sample(&mut self) -> Result<Sample> {
        let mut sample = Sample { seconds: self.begun.elapsed().as_secs_f64(), ..Sample::default() };
        for (name, process) in &mut self.processes {
            let own = sample::process(process.id());
            let Some(own) = own.filter(|_| process.try_wait().is_ok_and(|status| status.is_none())) else {
                bail!("holdup ended early: {name}: {}", said(&self.folder, name));
            };
            sample.processes.push(((*name).to_owned(), own));
        }
        (sample.recording_bytes, sample.recording_files) = sample::folder(&self.folder.join("watch"))?;
        Ok(sample)
    }

    /// Exit code of the watch, once it has ended.
    pub fn ended(&mut self) -> Result<Option<i32>> {
        let Some((_, watch)) = self.processes.first_mut() else { bail!("no watch was started") };
        Ok(watch.try_wait()?.map(|status| status.code().unwrap_or(-1)))
    }

    /// Most memory that the watch has had, bytes; 0 once it has ended.
    pub fn peak_bytes(&self) -> u64 {
        self.processes.first().and_then(|(_, watch)| sample::peak_bytes(watch.id())).unwrap_or(0)
    }

    /// What the watch left behind.
    pub fn end(&self, code: i32, took: Duration, peak_bytes: u64) -> Result<End> {
        let dir = self.folder.join("watch");
        let path = dir.join("manifest.json");
        let text = fs::read_to_string(&path)
            .with_context(|| format!("no manifest; the watch said: {}", said(&self.folder, "watch")))?;
        let manifest: Value = serde_json::from_str(&text).context("the manifest is not JSON")?;
        let sum = |key: &str| -> u64 {
            let parts = manifest["coverage"].as_array().into_iter().flatten();
            parts.filter_map(|part| part[key].as_u64()).sum()
        };
        let tables = manifest["tables"].as_object().into_iter().flatten();
        let (bytes, files) = sample::folder(&dir)?;
        Ok(End {
            code,
            seconds: took.as_secs_f64(),
            peak_bytes,
            recording_bytes: bytes,
            recording_files: files,
            reads: sum("reads_total"),
            gaps: sum("gaps_total"),
            rows: tables.map(|(name, rows)| (name.clone(), rows.as_u64().unwrap_or(0))).collect(),
        })
    }
}

/// The end of what one of them printed.
fn said(folder: &Path, name: &str) -> String {
    let text = fs::read_to_string(folder.join(format!("{name}.log"))).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(10)..].join("\n")
}
