//! The possible owners of a millisecond of a request, and amounts by owner.

/// The owner of a part of response time, in the order in which a request meets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Owner {
    /// Waiting for a free connection of the generator.
    ClientQueue,
    /// Connecting.
    Connect,
    /// The generator's own delay.
    SendLag,
    /// Between client and app: transport, and waiting until the app picks it up.
    Network,
    /// Waiting for a connection of the app's pool.
    PoolWait,
    /// Calls of downstream services over HTTP or RPC.
    Downstream,
    /// A cache.
    Cache,
    /// A message queue.
    Queue,
    /// The app itself: its request minus all waits in it.
    AppOther,
    /// A database call seen from one side only: it is not split.
    Database,
    /// Between app and database: transport there and back.
    DatabaseNetwork,
    /// On the database's machine before execution: unread in the socket, or queued for the thread
    /// pool.
    AdmissionQueue,
    /// Locks held by others.
    LockWait,
    /// Execution without lock waits.
    Execution,
}

impl Owner {
    /// Every owner, in order.
    pub const ALL: [Owner; 14] = [
        Owner::ClientQueue,
        Owner::Connect,
        Owner::SendLag,
        Owner::Network,
        Owner::PoolWait,
        Owner::Downstream,
        Owner::Cache,
        Owner::Queue,
        Owner::AppOther,
        Owner::Database,
        Owner::DatabaseNetwork,
        Owner::AdmissionQueue,
        Owner::LockWait,
        Owner::Execution,
    ];

    /// Its name in the ledger.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClientQueue => "client_queue",
            Self::Connect => "connect",
            Self::SendLag => "send_lag",
            Self::Network => "network",
            Self::PoolWait => "connection_pool_wait",
            Self::Downstream => "downstream",
            Self::Cache => "cache",
            Self::Queue => "queue",
            Self::AppOther => "app_other",
            Self::Database => "database",
            Self::DatabaseNetwork => "database_network",
            Self::AdmissionQueue => "database_admission_queue",
            Self::LockWait => "database_lock_wait",
            Self::Execution => "database_execution",
        }
    }
}

/// Milliseconds by owner, each with its error.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Amounts {
    ms: [f64; Owner::ALL.len()],
    error_ms: [f64; Owner::ALL.len()],
}

impl Amounts {
    /// Adds to `owner`.
    pub fn add(&mut self, owner: Owner, ms: f64, error_ms: f64) {
        self.ms[owner as usize] += ms;
        self.error_ms[owner as usize] += error_ms;
    }

    /// The amount of `owner`, milliseconds.
    pub fn ms(&self, owner: Owner) -> f64 {
        self.ms[owner as usize]
    }

    /// Its error, milliseconds.
    pub fn error_ms(&self, owner: Owner) -> f64 {
        self.error_ms[owner as usize]
    }

    /// The sum, milliseconds.
    pub fn sum(&self) -> f64 {
        self.ms.iter().sum()
    }

    /// Adds `other`, `times` times.
    pub fn add_all(&mut self, other: &Self, times: f64) {
        for owner in Owner::ALL {
            self.add(owner, other.ms(owner) * times, other.error_ms(owner) * times);
        }
    }
}
