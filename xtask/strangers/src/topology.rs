//! What a draw is played on: database, app, what stands between them, where the data is, and the app's own telemetry.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::random::Random;

/// A database server. Each has its own folder and stays up from draw to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// MariaDB with a thread per connection.
    Mariadb,
    /// MariaDB with a pool of two thread groups.
    MariadbThreadPool,
    /// The system's PostgreSQL.
    Postgresql,
    /// MySQL 5.6, where the machine has it; else the draw is skipped.
    Mysql56,
}

impl Engine {
    /// Whether it speaks MySQL's protocol.
    pub fn is_mysql(self) -> bool {
        self != Self::Postgresql
    }

    /// Whether it is a MariaDB.
    pub fn is_mariadb(self) -> bool {
        matches!(self, Self::Mariadb | Self::MariadbThreadPool)
    }
}

/// The service between load and database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum App {
    /// The load sends statements.
    None,
    /// The lab's service in Rust.
    Rust,
    /// The bench's own service in Python: threads and a connection pool.
    Python,
}

/// What stands between app and database. A pooler or proxy becomes a variant here when holdup can watch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Between {
    /// A connection over loopback.
    Nothing,
    /// A link with delay, loss and bandwidth of its own, see `env::link`.
    Link,
}

/// The app's own telemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Instruments {
    /// Nothing.
    None,
    /// Histograms and pool metrics.
    Metrics,
    /// The same, and spans.
    Spans,
}

/// Where rows come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Data {
    /// All tables that the load reads are in the server's cache.
    InCache,
    /// A part of the load reads documents that are not.
    OutOfCache,
}

/// What the disk under the server does at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Storage {
    /// Whatever the machine gives.
    Free,
    /// As much as a small cloud volume.
    Throttled,
}

/// All of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// The database.
    pub engine: Engine,
    /// The service in front of it.
    pub app: App,
    /// What is between the two.
    pub between: Between,
    /// What the app tells.
    pub instruments: Instruments,
    /// Where rows come from.
    pub data: Data,
    /// What the disk does.
    pub storage: Storage,
}

impl Topology {
    /// A topology by its stream of numbers.
    pub fn draw(random: &mut Random) -> Self {
        let engine = random.weighted(
            &[
                (Engine::Mariadb, 4.0),
                (Engine::MariadbThreadPool, 2.0),
                (Engine::Postgresql, 5.0),
                (Engine::Mysql56, 0.5),
            ],
            Engine::Mariadb,
        );
        // The service in Rust speaks MySQL's protocol only.
        let rust = if engine.is_mysql() { 3.0 } else { 0.0 };
        let app = random.weighted(&[(App::None, 3.0), (App::Rust, rust), (App::Python, 4.0)], App::None);
        let instruments = match app {
            App::None => Instruments::None,
            App::Rust => random.weighted(
                &[(Instruments::None, 1.0), (Instruments::Metrics, 2.0), (Instruments::Spans, 2.0)],
                Instruments::None,
            ),
            App::Python => random.weighted(&[(Instruments::None, 1.0), (Instruments::Metrics, 3.0)], Instruments::None),
        };
        let is_far = app != App::None && random.chance(0.25);
        Self {
            engine,
            app,
            between: if is_far { Between::Link } else { Between::Nothing },
            instruments,
            data: if random.chance(0.3) { Data::OutOfCache } else { Data::InCache },
            storage: if random.chance(0.4) { Storage::Throttled } else { Storage::Free },
        }
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engine = match self.engine {
            Engine::Mariadb => "MariaDB",
            Engine::MariadbThreadPool => "MariaDB (thread pool)",
            Engine::Postgresql => "PostgreSQL",
            Engine::Mysql56 => "MySQL 5.6",
        };
        let app = match (self.app, self.instruments) {
            (App::None, _) => "no app",
            (App::Rust, Instruments::None) => "Rust app",
            (App::Rust, Instruments::Metrics) => "Rust app with metrics",
            (App::Rust, Instruments::Spans) => "Rust app with spans",
            (App::Python, Instruments::None) => "Python app",
            (App::Python, _) => "Python app with metrics",
        };
        write!(f, "{engine}, {app}")?;
        if self.between == Between::Link {
            f.write_str(", link")?;
        }
        if self.data == Data::OutOfCache {
            f.write_str(", out of cache")?;
        }
        if self.storage == Storage::Throttled {
            f.write_str(", throttled disk")?;
        }
        Ok(())
    }
}
