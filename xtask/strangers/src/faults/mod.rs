//! The faults that draws are made of, a file for what they are about. A fault is data (name, mechanism, what counts as naming it, how its
//! parameters follow from the intensity) and what brings it about. Nothing here reads a verdict: whether a fault was
//! felt is measured by the client's response times alone.

mod changed;
mod code;
mod control;
mod host;
mod limits;
mod load;
mod locks;
mod log;
mod network;
mod parameters;
mod plans;
mod pools;
mod proxy;
mod statements;
#[cfg(test)]
mod tests;

use anyhow::Result;

use crate::edition::Edition;
use crate::env::{Env, Running};
use crate::load::{Load, Share};
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
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// What a fault may change before the draw begins. It is there in the baseline as well.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The load.
    pub load: Load,
    /// Factor by which the rate grows at the onset; none for faults that are not of the load.
    pub load_factor: Option<f64>,
    /// What the mix has other weights of from the onset on.
    pub mix: Vec<Share>,
    /// Whether clients keep their connections.
    pub keep_alive: bool,
    /// Knobs of the app.
    pub knobs: Vec<(&'static str, f64)>,
    /// Settings of MySQL's, while the draw lasts.
    pub mysql: Vec<(&'static str, String)>,
    /// Settings of PostgreSQL's, while the draw lasts.
    pub postgresql: Vec<(&'static str, String)>,
}

impl Setup {
    /// That of a draw without wishes.
    pub fn new(load: Load) -> Self {
        Self {
            load,
            load_factor: None,
            mix: Vec::new(),
            keep_alive: true,
            knobs: Vec::new(),
            mysql: Vec::new(),
            postgresql: Vec::new(),
        }
    }
}

/// One kind of fault.
pub struct Fault {
    /// Its name.
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

/// The kinds that an edition deals. Seeds were played with the order of the first one's, so it stays as it is.
pub fn dealt(edition: Edition) -> Vec<&'static Fault> {
    let parts = match edition {
        Edition::First => &ALL[..ALL.len() - 2],
        Edition::Proxies => &ALL[..ALL.len() - 1],
        Edition::Shops => ALL,
    };
    parts.iter().copied().flatten().collect()
}

/// Every fault by what it is about; those about proxies came with the second edition, those about what changed with the
/// third.
const ALL: &[&[Fault]] = &[
    locks::FAULTS,
    plans::FAULTS,
    log::FAULTS,
    limits::FAULTS,
    statements::FAULTS,
    pools::FAULTS,
    code::FAULTS,
    host::FAULTS,
    network::FAULTS,
    load::FAULTS,
    control::FAULTS,
    proxy::FAULTS,
    changed::FAULTS,
];

/// Every fault.
pub fn all() -> Vec<&'static Fault> {
    dealt(Edition::Shops)
}

/// The fault of that name.
pub fn by_name(name: &str) -> Option<&'static Fault> {
    all().into_iter().find(|fault| fault.name == name)
}
