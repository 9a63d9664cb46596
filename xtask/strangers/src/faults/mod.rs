//! The faults that draws are made of, one a file. A fault is data (name, mechanism, what counts as naming it, how its
//! parameters follow from the intensity) and what brings it about. Nothing here reads a verdict: whether a fault was
//! felt is measured by the client's response times alone.

mod parameters;
mod parts;
#[cfg(test)]
mod tests;

use anyhow::Result;

use crate::edition::Edition;
use crate::env::{Env, Running};
use crate::load::Load;
use crate::topology::Topology;
pub use parameters::{Parameter, Values};

/// Which layer a fault is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// The database: locks, plans, memory, log, other clients' statements.
    Database,
    /// The app: pools, workers, code, downstream services.
    App,
    /// The host: CPU, memory, disk, limits.
    Host,
    /// The network between app and database.
    Network,
    /// Poolers between app and database, proxies in front of the app.
    Proxy,
    /// The load itself.
    Load,
    /// Something that happens and harms no request.
    Control,
}

impl Family {
    /// Every family.
    pub const ALL: [Self; 7] =
        [Self::Database, Self::App, Self::Host, Self::Network, Self::Proxy, Self::Load, Self::Control];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::App => "app",
            Self::Host => "host",
            Self::Network => "network",
            Self::Proxy => "proxy",
            Self::Load => "load",
            Self::Control => "control",
        }
    }
}

/// What a fault may change before the draw begins. It is there in the baseline as well.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The load.
    pub load: Load,
    /// Factor by which the rate grows at the onset; none for faults that are not of the load.
    pub load_factor: Option<f64>,
    /// Knobs of the Python app.
    pub knobs: Vec<(&'static str, f64)>,
    /// Settings of MySQL's, while the draw lasts.
    pub mysql: Vec<(&'static str, String)>,
    /// Settings of PostgreSQL's, while the draw lasts.
    pub postgresql: Vec<(&'static str, String)>,
}

impl Setup {
    /// That of a draw without wishes.
    pub fn new(load: Load) -> Self {
        Self { load, load_factor: None, knobs: Vec::new(), mysql: Vec::new(), postgresql: Vec::new() }
    }
}

/// One kind of fault.
pub struct Fault {
    /// Its name, which is its file's.
    pub name: &'static str,
    /// Its layer.
    pub family: Family,
    /// What it does to requests, in one sentence.
    pub mechanism: &'static str,
    /// Slugs of `holdup explain` that name it. None for a control, and for a fault that holdup has no cause for yet: then
    /// the right answer is to name nothing.
    pub causes: &'static [&'static str],
    /// What its intensity moves.
    pub parameters: &'static [Parameter],
    /// Whether it can be played on a topology.
    pub fits: fn(&Topology) -> bool,
    /// What it needs in the baseline already.
    pub prepare: fn(&mut Setup, &Values),
    /// What it leaves in the servers before the recording begins.
    pub stage: fn(&Env<'_>, &Values) -> Result<()>,
    /// Brings it about.
    pub start: fn(&Env<'_>, &Values) -> Result<Running>,
}

impl Fault {
    /// What faults that say no more have: they fit everywhere, need nothing and do nothing.
    const BASE: Self = Self {
        name: "",
        family: Family::Control,
        mechanism: "",
        causes: &[],
        parameters: &[],
        fits: |_| true,
        prepare: |_, _| {},
        stage: |_, _| Ok(()),
        start: |_, _| Ok(Running::nothing()),
    };

    /// Whether it is harmless.
    pub fn is_control(&self) -> bool {
        self.family == Family::Control
    }
}

/// Declares one module a fault, and the lists of the first edition's and of all.
macro_rules! faults {
    (first: [$($name:ident),* $(,)?], later: [$($later:ident),* $(,)?] $(,)?) => {
        $(mod $name;)*
        $(mod $later;)*

        /// Faults of the first edition, by layer. Seeds were played with these, so the list stays as it is.
        pub const FIRST: &[&Fault] = &[$(&$name::FAULT),*];

        /// Every fault.
        pub const ALL: &[&Fault] = &[$(&$name::FAULT,)* $(&$later::FAULT),*];
    };
}

faults! { first: [
    // database
    lock_holder,
    hot_row,
    table_lock,
    metadata_lock,
    global_read_lock,
    index_dropped,
    join_index_dropped,
    stale_statistics,
    long_transaction,
    vacuum,
    small_redo_log,
    checkpoint,
    durable_commits,
    temporary_tables,
    small_buffer_pool,
    connection_limit,
    thread_pool_scans,
    small_table_cache,
    bulk_insert,
    dump,
    bad_query,
    mix_changed,
    rows_grow,
    many_indexes,
    large_values,
    purge,
    table_rebuild,
    long_sorts,
    // app
    few_workers,
    small_pool,
    pool_leak,
    connections_held,
    downstream_slow,
    cpu_loop,
    interpreter_busy,
    collector_pauses,
    sleep_in_handler,
    synchronous_log,
    reconnecting,
    app_lock,
    statement_per_row,
    cache_lost,
    // host
    cpu_neighbor,
    process_churn,
    app_cpu_quota,
    database_cpu_quota,
    database_memory,
    disk_throughput,
    disk_operations,
    disk_neighbor,
    descriptor_limit,
    app_pauses,
    database_pauses,
    // network
    network_delay,
    network_jitter,
    network_loss,
    network_bandwidth,
    // load
    workload_spike,
    other_clients,
    generator_limit,
    overload,
    // control
    healthy,
    more_load_carried,
    harmless_backup,
    harmless_index,
    harmless_analyze,
    harmless_neighbor,
    deploy,
], later: [
    // proxy
    small_pooler,
    pooler_transactions,
    pooler_sessions,
    few_slots,
    few_proxy_connections,
] }

/// The faults that an edition deals.
pub fn of_edition(edition: Edition) -> &'static [&'static Fault] {
    match edition {
        Edition::First => FIRST,
        Edition::Proxies => ALL,
    }
}

/// The fault of that name.
pub fn by_name(name: &str) -> Option<&'static Fault> {
    ALL.iter().copied().find(|fault| fault.name == name)
}
