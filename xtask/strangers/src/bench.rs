//! What stays up from draw to draw: disk, link, servers. Whatever ends the bench ends all of it; what a killed one left,
//! the next removes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};

use crate::env::database::{self, Database, Server};
use crate::env::disk::Served;
use crate::env::downstream::Downstream;
use crate::env::groups::Group;
use crate::env::link::Carried;
use crate::env::{Scratch, app_group};
use crate::topology::Engine;

/// The bench, running. Fields end in this order: servers before the disk that they are on.
pub struct Bench {
    servers: BTreeMap<Engine, Server>,
    /// The disk.
    pub disk: Served,
    /// The link; none where none can be made, with why.
    pub link: Result<Carried>,
    /// The downstream service of apps.
    pub downstream: Downstream,
    /// The group of apps.
    pub group: Option<Arc<Group>>,
    /// The program under test.
    pub holdup: PathBuf,
    /// The checkout.
    pub root: PathBuf,
    scratch: Scratch,
}

impl Bench {
    /// Starts what every draw needs; servers start with the first draw that needs them.
    pub fn start(root: &Path, holdup: &Path) -> Result<Self> {
        let scratch = Scratch::make()?;
        let disk = Served::start(holdup, &scratch.0)?;
        let link = Carried::start();
        let address = link.as_ref().map_or("127.0.0.1", |carried| &carried.link.watcher);
        // An app in the link's namespace reaches this machine by the watcher's address, others by it, too.
        let downstream = Downstream::start(address)?;
        Ok(Self {
            servers: BTreeMap::new(),
            disk,
            link,
            downstream,
            group: app_group(),
            holdup: holdup.to_owned(),
            root: root.to_owned(),
            scratch,
        })
    }

    /// Its folder.
    pub fn dir(&self) -> &Path {
        &self.scratch.0
    }

    /// The address at which apps find the downstream service.
    pub fn downstream_host(&self) -> String {
        self.link.as_ref().map_or_else(|_| "127.0.0.1".to_owned(), |carried| carried.link.watcher.clone())
    }

    /// A server of `engine`: the one that is up, or a new one.
    pub fn database(&mut self, engine: Engine) -> Result<Database> {
        if let Some(server) = self.servers.get(&engine) {
            // A fault may have ended it.
            if server.is_running() {
                return Ok(server.database.clone());
            }
            self.servers.remove(&engine);
        }
        let place = database::Place {
            root: &self.root,
            dir: &self.scratch.0,
            disk: &self.disk.disk.folder,
            link_address: self.link.as_ref().ok().map(|carried| carried.link.database.as_str()),
        };
        let server = Server::start(engine, &place).with_context(|| format!("{engine:?} does not start"))?;
        let database = server.database.clone();
        self.servers.insert(engine, server);
        Ok(database)
    }
}
