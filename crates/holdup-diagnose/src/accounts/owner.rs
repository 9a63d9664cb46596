//! Who can own a millisecond of a request, and amounts by owner.

/// Who owns a part of response time, in the order in which a request meets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Owner {
    /// It was due while every connection of the generator was busy.
    ClientQueue,
    /// Connecting.
    Connect,
    /// The generator's own delay.
    SendLag,
    /// Between client and app: transport, and what waits for the app to take it up.
    Network,
    /// A connection of the app's pool.
    PoolWait,
    /// Calls of neighbours over HTTP or RPC.
    Downstream,
    /// A cache.
    Cache,
    /// A message queue.
    Queue,
    /// The app itself: its request less all that it waited for in it.
    AppOther,
    /// A database call of which only one side was heard: it is not split.
    Database,
    /// Between app and database: transport there and back.
    DatabaseNetwork,
    /// In the database's machine before execution: unread in the socket, queued for the thread pool.
    AdmissionQueue,
    /// Locks that others held.
    LockWait,
    /// Execution, less locks.
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

/// Milliseconds by owner, each with how far off it may be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Amounts {
    ms: [f64; Owner::ALL.len()],
    error_ms: [f64; Owner::ALL.len()],
}

impl Amounts {
    /// Gives `owner` as much more.
    pub fn add(&mut self, owner: Owner, ms: f64, error_ms: f64) {
        self.ms[owner as usize] += ms;
        self.error_ms[owner as usize] += error_ms;
    }

    /// What `owner` has, milliseconds.
    pub fn ms(&self, owner: Owner) -> f64 {
        self.ms[owner as usize]
    }

    /// How far off that may be, milliseconds.
    pub fn error_ms(&self, owner: Owner) -> f64 {
        self.error_ms[owner as usize]
    }

    /// All of it, milliseconds.
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
