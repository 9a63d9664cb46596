//! The app of a draw: started for it, on the servers that are up. Faults move its knobs while it serves.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::database::Database;
use super::groups::Group;
use super::link::Link;
use super::process::{self, Guarded, free_port};
use super::running::Running;
use super::shop;
use crate::load::Operation;
use crate::statements;
use crate::topology::{App as Kind, Instruments};

/// Connections of either app's pool.
pub const POOL: u32 = 16;

/// Threads of the Python app that handle requests.
pub const WORKERS: u32 = 24;

/// Where it runs.
pub struct Place<'a> {
    /// The checkout, with the Python app.
    pub root: &'a Path,
    /// The bench's folder.
    pub dir: &'a Path,
    /// The folder on the disk, for the app's log.
    pub disk: &'a Path,
    /// The program that is the Rust app.
    pub holdup: &'a Path,
    /// The link to the database, if it is on the other side of one.
    pub link: Option<&'a Link>,
    /// Port of the pooler, if one is between app and database.
    pub pooler: Option<u16>,
    /// Address and port of the downstream service.
    pub downstream: String,
    /// The app's group.
    pub group: Option<Arc<Group>>,
}

/// A handle on the app, for faults.
#[derive(Clone)]
pub struct App {
    /// Its process.
    pub pid: u32,
    /// Its address for the load.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Port of its metrics, on loopback of its own network.
    pub admin: u16,
    /// Address and port to which it sends spans.
    pub spans: Option<String>,
    /// Its group.
    pub group: Option<Arc<Group>>,
    /// Knobs of the Python app.
    knobs: Arc<Mutex<BTreeMap<String, f64>>>,
    /// The file that they are in.
    file: PathBuf,
    /// Knobs that it reads at SIGHUP only.
    at_reload: &'static [&'static str],
}

impl App {
    /// Moves knobs.
    pub fn set(&self, knobs: &[(&str, f64)]) -> Result<()> {
        let mut all = self.knobs.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(knobs.iter().map(|(name, value)| ((*name).to_owned(), *value)));
        let text = serde_json::to_string(&*all)?;
        let new = self.file.with_extension("new");
        fs::write(&new, text).and_then(|()| fs::rename(&new, &self.file)).context("failed to move the app's knobs")?;
        let is_read_late = |(name, _): &(&str, f64)| self.at_reload.contains(name);
        if self.pid > 0 && knobs.iter().any(is_read_late) { process::signal(self.pid, "HUP") } else { Ok(()) }
    }

    /// Moves a knob until the fault ends.
    pub fn set_until(&self, name: &str, value: f64, after: f64) -> Result<Running> {
        self.set(&[(name, value)])?;
        let (app, name) = (self.clone(), name.to_owned());
        Ok(Running::until(move || app.set(&[(&name, after)])))
    }
}

/// An app that runs until this value goes.
pub struct Served {
    _process: Guarded,
    /// The handle.
    pub app: App,
}

impl Served {
    /// Starts it; none where the draw has no app. `knobs` are those of its start.
    pub fn start(
        kind: Kind,
        instruments: Instruments,
        database: &Database,
        place: &Place<'_>,
        knobs: &[(&str, f64)],
    ) -> Result<Option<Self>> {
        if kind == Kind::None {
            return Ok(None);
        }
        let host = place.link.map_or_else(|| "127.0.0.1".to_owned(), |link| link.app.clone());
        let watcher = place.link.map_or_else(|| "127.0.0.1".to_owned(), |link| link.watcher.clone());
        let spans = match instruments {
            Instruments::Spans => Some(format!("{watcher}:{}", free_port()?)),
            _ => None,
        };
        let mut app = App {
            pid: 0,
            host,
            port: free_port()?,
            admin: free_port()?,
            spans,
            group: place.group.clone(),
            knobs: Arc::default(),
            file: place.dir.join("knobs.json"),
            at_reload: if kind == Kind::Flask { shop::AT_RELOAD } else { &[] },
        };
        let usual = [("workers", f64::from(WORKERS)), ("pool", f64::from(POOL))];
        app.set(&[&usual[..], knobs].concat())?;
        let mut words = Vec::new();
        if let Some(link) = place.link {
            words.extend(["ip", "netns", "exec", &link.namespace].map(str::to_owned));
        }
        let mut variables = Vec::new();
        match kind {
            Kind::Rust => words.extend(rust_words(&app, database, place)),
            Kind::Python => words.extend(python_words(&app, database, place)),
            _ => {
                words.extend(shop::words(kind, place.root));
                let told = shop::Told {
                    listen: format!("{}:{}", app.host, app.port),
                    database: format!("app@{}:{}/shop", database_host(place), database.port),
                    downstream: place.downstream.clone(),
                    knobs: app.file.clone(),
                };
                variables = told.variables(place.root);
            }
        }
        let process = Guarded::start(place.dir, "app", "TERM", &words, &variables)?;
        app.pid = process.pid;
        if let Some(group) = &app.group {
            group.take(process.pid)?;
        }
        let log = place.dir.join("app.log");
        let is_ready = || fs::read_to_string(&log).is_ok_and(|text| text.contains("ready "));
        process::until("the app", Duration::from_secs(40), is_ready)
            .with_context(|| fs::read_to_string(&log).unwrap_or_default())?;
        let served = Self { _process: process, app };
        if kind.is_shop() {
            shop::warm_up(&served.app.host, served.app.port)?;
        }
        Ok(Some(served))
    }
}

fn database_host<'a>(place: &'a Place<'_>) -> &'a str {
    place.link.map_or("127.0.0.1", |link| &link.database)
}

fn rust_words(app: &App, database: &Database, place: &Place<'_>) -> Vec<String> {
    let mut words = vec![
        place.holdup.display().to_string(),
        "service".to_owned(),
        format!("--listen={}:{}", app.host, app.port),
        "--allow-remote".to_owned(),
        format!("--admin={}:{}", app.host, app.admin),
        format!("--database={}", database.address("app", database_host(place))),
        format!("--pool={POOL}"),
    ];
    words.extend(app.spans.iter().map(|address| format!("--otlp=http://{address}")));
    for operation in Operation::ALL {
        let statements = statements::of_operation(operation);
        let all = match statements {
            [only] => (*only).to_owned(),
            several => format!("BEGIN; {}; COMMIT", several.join("; ")),
        };
        words.push(format!("--route=/{}={all}", operation.name()));
    }
    words
}

fn python_words(app: &App, database: &Database, place: &Place<'_>) -> Vec<String> {
    let script = place.root.join("xtask/strangers/app/orders.py");
    let protocol = if database.engine.is_mysql() { "mysql" } else { "postgresql" };
    let mut words = vec!["python3".to_owned(), "-uB".to_owned(), script.display().to_string()];
    let mut flag = |name: &str, value: String| words.push(format!("--{name}={value}"));
    flag("listen", format!("{}:{}", app.host, app.port));
    flag("admin", format!("{}:{}", app.host, app.admin));
    flag("protocol", protocol.to_owned());
    flag("database", format!("{}:{}", database_host(place), place.pooler.unwrap_or(database.port)));
    flag("knobs", app.file.display().to_string());
    flag("downstream", place.downstream.clone());
    flag("log", place.disk.join("app-orders.log").display().to_string());
    for operation in Operation::ALL {
        flag("route", format!("/{}={}", operation.name(), statements::of_operation(operation).join("; ")));
    }
    flag("route", format!("/released={}", statements::RELEASED));
    words
}
