//! What draws are played on: servers, apps, disk, link and groups, and how a fault gets at them.

pub mod app;
pub mod database;
pub mod disk;
pub mod downstream;
pub mod groups;
pub mod link;
pub mod pooler;
pub mod process;
pub mod proxy;
pub mod running;
pub mod sessions;
pub mod shop;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context as _, Result};

use crate::load::Load;
use crate::scenario::{self, Phase, Target};
use app::App;
use database::Database;
use disk::{Disk, Limits};
use downstream::Downstream;
use link::Link;
use pooler::Pooler;
use proxy::Proxy;
pub use running::Running;

/// What a fault may reach.
pub struct Env<'a> {
    /// The database of the draw.
    pub database: &'a Database,
    /// Its app, if it has one.
    pub app: Option<&'a App>,
    /// The disk under the database.
    pub disk: &'a Disk,
    /// The disk's limits while nothing is wrong.
    pub disk_limits: Limits,
    /// The link, if the draw has one.
    pub link: Option<&'a Link>,
    /// The pooler between app and database, if the draw has one.
    pub pooler: Option<&'a Pooler>,
    /// The proxy in front of the app, if the draw has one.
    pub proxy: Option<&'a Proxy>,
    /// The downstream service.
    pub downstream: &'a Downstream,
    /// The load of the draw.
    pub load: &'a Load,
    /// Where the load goes.
    pub target: &'a Target,
    /// The program that makes load.
    pub holdup: &'a Path,
    /// Folder of the bench.
    pub dir: &'a Path,
}

impl Env<'_> {
    /// The app, for faults that are of one.
    pub fn app(&self) -> Result<&App> {
        self.app.context("the fault is of an app, and the draw has none")
    }

    /// The link, for faults that are of one.
    pub fn link(&self) -> Result<&Link> {
        self.link.context("the fault is of a link, and the draw has none")
    }

    /// The pooler, for faults that are of one.
    pub fn pooler(&self) -> Result<&Pooler> {
        self.pooler.context("the fault needs a pooler, and the draw has none")
    }

    /// The proxy, for faults that are of one.
    pub fn proxy(&self) -> Result<&Proxy> {
        self.proxy.context("the fault needs a proxy, and the draw has none")
    }

    /// Programs that run until the fault ends.
    pub fn processes(&self, count: f64, words: &[&str]) -> Result<Running> {
        let mut children = Vec::new();
        for number in 0..count.round().max(1.0) as usize {
            let mut command = Command::new("setpriv");
            command.args(["--pdeathsig", "KILL"]).args(words);
            children.push(process::spawn(command, self.dir, &format!("fault-{number}"))?);
        }
        Ok(Running::until(move || {
            for child in &mut children {
                let _ = child.kill();
            }
            for child in &mut children {
                child.wait().context("a fault's process does not end")?;
            }
            Ok(())
        }))
    }

    /// Other clients: a load of their own, which is not recorded, until the fault ends.
    pub fn other_clients(&self, load: &Load) -> Result<Running> {
        let phases = [Phase { name: "load", from: load.rate, to: load.rate, seconds: 60.0, mix: Vec::new() }];
        let path = self.dir.join("others.yaml");
        let text = scenario::yaml("others", self.target, load, &phases);
        fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))?;
        let recording = self.dir.join("others");
        let _ = fs::remove_dir_all(&recording);
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(self.holdup).args(["run", "--no-collect", "--quiet", "--no-trace"]);
        command.arg(&path).arg("--output").arg(&recording);
        let mut child = process::spawn(command, self.dir, "others")?;
        Ok(Running::until(move || {
            let _ = child.kill();
            child.wait().map(drop).context("the other clients do not end")
        }))
    }
}

/// The bench's folder in the machine's temporary one: PostgreSQL does not run as root and has to get through to it. It
/// goes with this value.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Makes it, and removes what benches left that were killed.
    pub fn make() -> Result<Self> {
        const PREFIX: &str = "holdup-strangers-";
        let temporary = std::env::temp_dir();
        for left in process::leftovers(&temporary, PREFIX) {
            let _ = fs::remove_dir_all(left);
        }
        let dir = temporary.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&dir).with_context(|| format!("failed to create {}", dir.display()))?;
        Ok(Self(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The group of apps.
pub fn app_group() -> Option<Arc<groups::Group>> {
    groups::Group::make("app").map(Arc::new)
}
