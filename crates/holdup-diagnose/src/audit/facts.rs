//! What checks use: settings by owner, the servers that run here, and the devices and mounts that
//! hold their files.

use std::collections::BTreeMap;

use holdup_recording::rows::Setting;

use crate::change::host::Place;

/// The product that a piece of advice is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Product {
    /// MySQL.
    MySql,
    /// MariaDB.
    MariaDb,
    /// PostgreSQL.
    PostgreSql,
    /// MongoDB.
    MongoDb,
    /// Redis.
    Redis,
    /// Elasticsearch or OpenSearch.
    Elasticsearch,
    /// Any of them: the advice is for the kernel.
    Linux,
}

impl Product {
    /// Its name.
    pub fn vendor(self) -> &'static str {
        match self {
            Self::MySql => "MySQL",
            Self::MariaDb => "MariaDB",
            Self::PostgreSql => "PostgreSQL",
            Self::MongoDb => "MongoDB",
            Self::Redis => "Redis",
            Self::Elasticsearch => "Elasticsearch",
            Self::Linux => "Linux",
        }
    }

    /// From a process's name (15 bytes at most) and its cgroup; none for an unknown server. Every
    /// Java program is called `java`: only its cgroup (a systemd unit, a container) shows that it
    /// is Elasticsearch.
    fn of_process(comm: &str, cgroup: &str) -> Option<Self> {
        match comm {
            "mysqld" => Some(Self::MySql),
            "mariadbd" => Some(Self::MariaDb),
            "postgres" | "postmaster" => Some(Self::PostgreSql),
            "mongod" | "mongos" => Some(Self::MongoDb),
            "redis-server" | "valkey-server" => Some(Self::Redis),
            "java" if cgroup.contains("elasticsearch") || cgroup.contains("opensearch") => Some(Self::Elasticsearch),
            _ => None,
        }
    }
}

/// A server that runs here.
#[derive(Clone, Debug)]
pub(crate) struct Server<'a> {
    /// Its product.
    pub product: Product,
    /// Its process's source (`pid:N`), if that is watched.
    pub process: Option<&'a str>,
    /// Its own source (`mysql://…`), if that is watched.
    pub own: Option<&'a str>,
    /// The process's name.
    pub name: &'a str,
}

/// Whether a server of MongoDB's protocol is MongoDB, by what it says of its `process`: FerretDB and others keep their data
/// elsewhere. Recordings up to November 2026 do not have it.
fn is_mongodb(process: &str) -> bool {
    process.is_empty() || process.starts_with("mongo")
}

/// Settings, and what follows from them.
pub(crate) struct Facts<'a> {
    by_source: BTreeMap<&'a str, BTreeMap<&'a str, &'a str>>,
    /// Servers that run here.
    pub servers: Vec<Server<'a>>,
    /// Where holdup ran: whose kernel its settings are of.
    pub place: Place,
    /// All of them.
    pub rows: &'a [Setting],
}

impl<'a> Facts<'a> {
    /// From recorded settings; `processes` are names of processes from other sources.
    pub fn new(settings: &'a [Setting], processes: &[&'a str]) -> Self {
        let mut by_source = BTreeMap::<&str, BTreeMap<&str, &str>>::new();
        for setting in settings {
            by_source.entry(&setting.source).or_default().insert(&setting.name, &setting.value);
        }
        let place = Place::among(settings, "host");
        let mut facts = Self { by_source, servers: Vec::new(), place, rows: settings };
        facts.find_servers(processes);
        facts
    }

    fn find_servers(&mut self, processes: &[&'a str]) {
        let mut servers: Vec<Server<'_>> = Vec::new();
        for (source, settings) in &self.by_source {
            let of = |name: &str| settings.get(name).copied().unwrap_or_default();
            if source.starts_with("pid:") {
                if let Some(product) = Product::of_process(of("comm"), of("cgroup.path")) {
                    servers.push(Server { product, process: Some(source), own: None, name: of("comm") });
                }
            } else if source.starts_with("mysql://") {
                let is_mariadb = of("version").contains("MariaDB") || of("version_comment").contains("MariaDB");
                let product = if is_mariadb { Product::MariaDb } else { Product::MySql };
                servers.push(Server { product, process: None, own: Some(source), name: product.vendor() });
            } else if source.starts_with("mongodb://") && !of("version").is_empty() && is_mongodb(of("process")) {
                let product = Product::MongoDb;
                servers.push(Server { product, process: None, own: Some(source), name: product.vendor() });
            }
        }
        // A watched process and a watched server of the same kind are taken to be one.
        let owns: Vec<Server<'_>> = servers.iter().filter(|s| s.own.is_some()).cloned().collect();
        for own in owns {
            let is_same = |s: &&mut Server<'_>| {
                let is_mysql = |product| matches!(product, Product::MySql | Product::MariaDb);
                s.process.is_some()
                    && s.own.is_none()
                    && (s.product == own.product || is_mysql(s.product) && is_mysql(own.product))
            };
            if let Some(process) = servers.iter_mut().find(is_same) {
                // MariaDB's process may be called mysqld: the server knows better.
                (process.own, process.product) = (own.own, own.product);
                servers.retain(|s| s.own != own.own || s.process.is_some());
            }
        }
        for name in processes {
            let product = Product::of_process(name, "");
            if let Some(product) = product.filter(|p| servers.iter().all(|s| s.product != *p && s.name != *name)) {
                servers.push(Server { product, process: None, own: None, name });
            }
        }
        if !servers.is_empty() {
            servers.push(Server { product: Product::Linux, process: None, own: None, name: "Linux" });
        }
        self.servers = servers;
    }

    /// A setting of the host.
    pub fn host(&self, name: &str) -> Option<&'a str> {
        self.by_source.get("host")?.get(name).copied()
    }

    /// A setting of a server's process.
    pub fn process(&self, server: &Server<'_>, name: &str) -> Option<&'a str> {
        self.by_source.get(server.process?)?.get(name).copied()
    }

    /// A variable of the server.
    pub fn own(&self, server: &Server<'_>, name: &str) -> Option<&'a str> {
        self.by_source.get(server.own?)?.get(name).copied()
    }

    /// Mount points that may hold the server's files, with their device: the mount of its data
    /// directory, if the server reports that; else every mount of a device, as its process sees
    /// them if known.
    pub fn mounts(&self, server: &Server<'_>) -> Vec<(&'a str, &'a str)> {
        let seen = |source: &str| -> Vec<(&'a str, &'a str)> {
            let Some(settings) = self.by_source.get(source) else { return Vec::new() };
            let device = |name: &'a str, value: &'a str| {
                let path = name.strip_prefix("mount[")?.strip_suffix("].device")?;
                self.is_device(value).then_some((path, value))
            };
            settings.iter().filter_map(|(name, value)| device(name, value)).collect()
        };
        let mut mounts = server.process.map(seen).filter(|m| !m.is_empty()).unwrap_or_else(|| seen("host"));
        if let Some(data) = self.own(server, "datadir").or_else(|| self.own(server, "storage.dbPath")) {
            let longest = mounts
                .iter()
                .filter(|(path, _)| holdup_signals::host::mounts::is_at_or_above(path, data))
                .max_by_key(|(path, _)| path.len());
            mounts = longest.into_iter().copied().collect();
        }
        mounts
    }

    /// A property of a mount as the server's process sees it, else as the host does.
    pub fn mount(&self, server: &Server<'_>, path: &str, fact: &str) -> Option<&'a str> {
        let name = format!("mount[{path}].{fact}");
        let of = |source: &str| self.by_source.get(source)?.get(name.as_str()).copied();
        server.process.and_then(of).or_else(|| of("host"))
    }

    /// Block devices below those mounts, whole disks for partitions.
    pub fn devices(&self, server: &Server<'_>) -> Vec<&'a str> {
        let mut devices: Vec<&str> = self
            .mounts(server)
            .into_iter()
            .map(|(_, device)| self.host(&format!("block.{device}.parent")).unwrap_or(device))
            .collect();
        devices.sort_unstable();
        devices.dedup();
        devices
    }

    fn is_device(&self, name: &str) -> bool {
        let has = |fact: &str| self.host(&format!("block.{name}.{fact}")).is_some();
        has("read_ahead_kb") || has("scheduler") || has("parent")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(source: &str, name: &str, value: &str) -> Setting {
        Setting { observed_at: 0, source: source.into(), name: name.into(), value: value.into() }
    }

    #[test]
    fn a_server_is_the_process_that_it_is() {
        let settings = [
            setting("pid:7", "comm", "mysqld"),
            setting("mysql://127.0.0.1:3306", "version", "10.11.6-MariaDB"),
            setting("pid:8", "comm", "java"),
            setting("pid:8", "cgroup.path", "/system.slice/elasticsearch.service"),
        ];
        let facts = Facts::new(&settings, &["mysqld", "postgres"]);
        let found: Vec<(Product, Option<&str>)> = facts.servers.iter().map(|s| (s.product, s.process)).collect();
        let expected = [
            (Product::MariaDb, Some("pid:7")),
            (Product::Elasticsearch, Some("pid:8")),
            (Product::PostgreSql, None),
            (Product::Linux, None),
        ];
        assert_eq!(found, expected);
        assert_eq!(facts.own(&facts.servers[0], "version"), Some("10.11.6-MariaDB"));
    }

    #[test]
    fn the_mount_below_the_data() {
        let settings = [
            setting("host", "block.vda.read_ahead_kb", "128"),
            setting("host", "block.vda1.parent", "vda"),
            setting("host", "block.vdb.read_ahead_kb", "128"),
            setting("host", "mount[/].device", "vda1"),
            setting("host", "mount[/data].device", "vdb"),
            setting("host", "mount[/run].device", "tmpfs"),
            setting("mysql://a:1", "datadir", "/data/mysql/"),
            setting("pid:9", "comm", "mongod"),
        ];
        let facts = Facts::new(&settings, &[]);
        let of = |product| facts.servers.iter().find(|s| s.product == product).unwrap();
        assert_eq!(facts.devices(of(Product::MySql)), ["vdb"]);
        assert_eq!(facts.devices(of(Product::MongoDb)), ["vda", "vdb"]);
    }
}
