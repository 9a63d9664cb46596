//! What a draw is played on: database, app, what stands between them, where the data is, and the app's own telemetry.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::edition::Edition;
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
    /// Flask and SQLAlchemy in gunicorn's threads. It tells nothing.
    Flask,
    /// Express and pg, in one process. It tells nothing.
    Express,
    /// Spring Boot with Hikari. It tells nothing.
    Spring,
}

impl App {
    /// Whether it has the bench's knobs, which faults move.
    pub fn has_knobs(self) -> bool {
        self == Self::Python || self.is_shop()
    }

    /// Whether it is a shop in somebody else's framework.
    pub fn is_shop(self) -> bool {
        matches!(self, Self::Flask | Self::Express | Self::Spring)
    }

    /// Whether a request keeps a thread, so that few threads make requests wait.
    pub fn has_threads(self) -> bool {
        self.has_knobs() && self != Self::Express
    }
}

/// What stands between app and database, or between load and database where the draw has no app.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Between {
    /// A connection over loopback.
    Nothing,
    /// A link with delay, loss and bandwidth of its own, see `env::link`.
    Link,
    /// PgBouncer, which gives a client a server connection for one transaction.
    PoolerTransaction,
    /// PgBouncer, which gives a client a server connection for as long as it stays.
    PoolerSession,
}

impl Between {
    /// Whether it is a pooler.
    pub fn is_pooler(self) -> bool {
        matches!(self, Self::PoolerTransaction | Self::PoolerSession)
    }
}

/// What stands between load and app.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Front {
    /// Nothing: the load connects to the app, if the draw has one.
    #[default]
    Nothing,
    /// HAProxy, with slots for the app.
    Haproxy,
    /// nginx, with a limit on connections.
    Nginx,
}

impl Front {
    fn is_nothing(&self) -> bool {
        *self == Self::Nothing
    }
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
    /// What is in front of the app. Draws that were played before there were proxies do not name it.
    #[serde(default, skip_serializing_if = "Front::is_nothing")]
    pub front: Front,
    /// What the app tells.
    pub instruments: Instruments,
    /// Where rows come from.
    pub data: Data,
    /// What the disk does.
    pub storage: Storage,
}

impl Topology {
    /// A topology by its stream of numbers.
    pub fn draw(random: &mut Random, edition: Edition) -> Self {
        let first = Self::draw_first(random);
        match edition {
            Edition::First => first,
            Edition::Proxies => first.with_proxies(random),
            Edition::Shops => first.with_proxies(random).with_shops(random),
        }
    }

    fn draw_first(random: &mut Random) -> Self {
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
            _ => Instruments::None,
        };
        let is_far = app != App::None && random.chance(0.25);
        Self {
            engine,
            app,
            between: if is_far { Between::Link } else { Between::Nothing },
            front: Front::Nothing,
            instruments,
            data: if random.chance(0.3) { Data::OutOfCache } else { Data::InCache },
            storage: if random.chance(0.4) { Storage::Throttled } else { Storage::Free },
        }
    }

    /// The same with a pooler or a proxy, where they may stand: PgBouncer speaks PostgreSQL's protocol only, and an
    /// app on the other side of a link has its database there.
    fn with_proxies(mut self, random: &mut Random) -> Self {
        let can_pool = self.engine == Engine::Postgresql && self.between == Between::Nothing;
        if can_pool && random.chance(0.4) {
            let modes = [(Between::PoolerTransaction, 3.0), (Between::PoolerSession, 2.0)];
            self.between = random.weighted(&modes, Between::PoolerTransaction);
        }
        if self.app != App::None && random.chance(0.3) {
            self.front = random.weighted(&[(Front::Haproxy, 3.0), (Front::Nginx, 2.0)], Front::Haproxy);
        }
        self
    }

    /// The same, or one with a shop of somebody else's on PostgreSQL.
    fn with_shops(mut self, random: &mut Random) -> Self {
        if !random.chance(0.5) {
            return self;
        }
        self.engine = Engine::Postgresql;
        self.app = random.weighted(&[(App::Flask, 2.0), (App::Express, 1.0), (App::Spring, 1.0)], App::Flask);
        self.instruments = Instruments::None;
        if self.between.is_pooler() {
            self.between = Between::Nothing;
        }
        self
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
            (App::Flask, _) => "Flask",
            (App::Express, _) => "Express",
            (App::Spring, _) => "Spring",
        };
        write!(f, "{engine}, {app}")?;
        f.write_str(match self.between {
            Between::Nothing => "",
            Between::Link => ", link",
            Between::PoolerTransaction => ", PgBouncer (transactions)",
            Between::PoolerSession => ", PgBouncer (sessions)",
        })?;
        f.write_str(match self.front {
            Front::Nothing => "",
            Front::Haproxy => ", behind HAProxy",
            Front::Nginx => ", behind nginx",
        })?;
        if self.data == Data::OutOfCache {
            f.write_str(", out of cache")?;
        }
        if self.storage == Storage::Throttled {
            f.write_str(", throttled disk")?;
        }
        Ok(())
    }
}
