//! Finds the servers on this machine that could be watched, for the list that `doctor` proposes. It
//! goes from listening sockets to the processes that hold them, names the kinds it knows, and sends
//! the unknown ones `GET /metrics`. It never logs in, and it connects only over loopback.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::ReadError;
use crate::proc::socket::{LISTEN, Socket};
use crate::proc::sockets;
use crate::proc::task::{self, Stat};
use crate::proc::{Proc, Tree};
use crate::prometheus;

/// Time limit for an unknown port to answer `GET /metrics`.
const METRICS_TIMEOUT: Duration = Duration::from_millis(400);

/// Largest number of ports to try, all at once: `doctor` should answer within a second.
const PORTS_ASKED_MAX: usize = 32;

/// The kind of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// MariaDB or MySQL.
    Mysql,
    /// PostgreSQL.
    Postgres,
    /// PgBouncer.
    PgBouncer,
    /// ProxySQL.
    ProxySql,
    /// MongoDB, or a server that speaks its protocol.
    MongoDb,
    /// Redis or Valkey.
    Redis,
    /// Kafka.
    Kafka,
    /// Elasticsearch or OpenSearch.
    Elasticsearch,
    /// Anything that answers `GET /metrics` in Prometheus' text format.
    Prometheus,
    /// A server of applications, seen from outside.
    Server,
    /// Another process that listens.
    Process,
}

/// One source that could be watched. A server of a known kind yields two: its own source, and its
/// process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchableSource {
    /// The port it listens on.
    pub port: u16,
    /// The process that listens; if several share the socket, the one with the lowest number.
    pub pid: u32,
    /// Its name.
    pub process: String,
    /// Its kind.
    pub kind: Kind,
    /// The address for `--watch`. `USER` stands where an account must be filled in.
    pub watch: String,
    /// A hint for the user; may be empty.
    pub note: String,
}

/// A server that is read by its own protocol.
struct Known {
    /// Prefixes of its process's name. The kernel cuts names at 15 bytes.
    names: &'static [&'static str],
    /// Its port, where other programs have that name, too.
    port: Option<u16>,
    kind: Kind,
    /// The address for `--watch`, with `HOST` for host and port.
    watch: &'static str,
    note: &'static str,
    /// The note if it listens on several ports, `N`.
    of_several: &'static str,
}

const KNOWN: [Known; 8] = [
    Known {
        of_several: "it listens on N ports: prefer its extra_port, which answers when the thread pool does not",
        ..known(&["mariadbd", "mysqld"], Kind::Mysql, "mysql://USER@HOST", ACCOUNT)
    },
    known(
        &["postgres"],
        Kind::Postgres,
        "postgresql://USER@HOST/postgres",
        "fill in the account; pid: covers only its first process, host the threads of all",
    ),
    known(&["pgbouncer"], Kind::PgBouncer, "pgbouncer://USER@HOST/pgbouncer", "fill in a user of stats_users"),
    Known {
        of_several: "it listens on N ports: take its admin interface's, 6032 unless it was moved",
        ..known(&["proxysql"], Kind::ProxySql, "proxysql://USER@HOST", "fill in an account of admin-stats_credentials")
    },
    known(&["mongod", "mongos", "ferretdb"], Kind::MongoDb, "mongodb://USER@HOST/", ACCOUNT),
    known(&["redis-server", "valkey-server"], Kind::Redis, "redis://HOST", "with an account: redis://USER@HOST"),
    Known {
        port: Some(9092),
        ..known(&["java"], Kind::Kafka, "kafka://HOST", "if it is Kafka; with an account: kafka://USER@HOST")
    },
    Known {
        port: Some(9200),
        ..known(
            &["java"],
            Kind::Elasticsearch,
            "elasticsearch://HOST",
            "if it is Elasticsearch; for OpenSearch opensearch://HOST; with an account USER@HOST, over TLS ?tls=verify",
        )
    },
];

const ACCOUNT: &str = "fill in the account";

const fn known(names: &'static [&'static str], kind: Kind, watch: &'static str, note: &'static str) -> Known {
    Known { names, port: None, kind, watch, note, of_several: note }
}

/// App servers by the prefix of their name: the servers themselves, and the language runtimes they
/// run as. A compiled program can have any name: it is recognized by having workers.
#[rustfmt::skip]
const APP_SERVERS: [&str; 26] = [
    "puma", "unicorn", "rackup", "falcon", "thin", "ruby", "bundle", "passenger", "Passenger", "gunicorn", "uvicorn", "hypercorn",
    "uwsgi", "python", "php-fpm", "node", "deno", "bun", "java", "dotnet", "beam.smp", "apache2", "httpd", "nginx", "caddy", "haproxy",
];

/// Servers that do not speak HTTP and would log a stray request as an error or an attack.
const NOT_ASKED: [&str; 7] = ["sshd", "systemd", "memcached", "smtpd", "master", "dovecot", "named"];

/// The visible local servers by port, the source of each kind before its process.
///
/// # Errors
/// If the list of sockets can't be read.
pub fn local_servers(proc: &Proc) -> Result<Vec<WatchableSource>, ReadError> {
    let listening = listening(proc)?;
    let holders = holders(proc, &listening);
    let mut servers: Vec<Server> = Vec::new();
    for socket in &listening {
        let Some(held) = holders.get(&socket.inode) else { continue };
        // One port may have several sockets (IP versions, addresses, workers): one entry is enough.
        if servers.iter().any(|it| it.port == socket.port && it.process == held.process) {
            continue;
        }
        servers.push(Server { port: socket.port, address: socket.address, ..held.clone() });
    }
    let metrics = ask_for_metrics(proc, &servers);
    let mut found = Vec::new();
    for server in &servers {
        let ports = servers.iter().filter(|it| it.pid == server.pid).count();
        describe(server, ports, metrics.contains(&server.port), &mut found);
    }
    found.sort_by_key(|it| (it.port, it.kind, it.pid));
    Ok(found)
}

/// A process at a listening socket.
#[derive(Clone, Debug)]
struct Server {
    port: u16,
    address: IpAddr,
    pid: u32,
    process: String,
    sharers: usize,
}

impl Server {
    fn known(&self) -> Option<&'static Known> {
        let is_port = |known: &Known| known.port.is_none_or(|port| port == self.port);
        KNOWN.iter().find(|known| self.is_one_of(known.names) && is_port(known))
    }

    fn is_one_of(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.process.starts_with(name))
    }

    /// Where to reach it from here: on loopback if it listens on all addresses.
    fn reached_at(&self) -> SocketAddr {
        let address = if self.address.is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { self.address };
        SocketAddr::new(address, self.port)
    }

    fn is_on_loopback(&self) -> bool {
        self.address.is_unspecified() || self.address.is_loopback()
    }
}

fn listening(proc: &Proc) -> Result<Vec<Socket>, ReadError> {
    let mut found = Vec::new();
    sockets::each(proc, &mut Vec::new(), |socket| {
        if socket.state == LISTEN && socket.inode != 0 {
            found.push(socket);
        }
    })?;
    found.sort_by_key(|socket| (socket.port, socket.address));
    Ok(found)
}

/// The process that holds each socket, by inode. A descriptor folder that holdup may not read is
/// skipped.
fn holders(proc: &Proc, listening: &[Socket]) -> BTreeMap<u64, Server> {
    let mut holders = BTreeMap::<u64, Server>::new();
    let (mut pids, mut descriptors) = (Vec::new(), Vec::new());
    if proc.numbers("", &mut pids).is_err() {
        return holders;
    }
    pids.sort_unstable();
    let own = std::process::id();
    for pid in pids {
        if (proc.is_live() && pid == own) || proc.numbers(&format!("{pid}/fd"), &mut descriptors).is_err() {
            continue;
        }
        for descriptor in &descriptors {
            let link = std::fs::read_link(proc.path(Tree::Proc, &format!("{pid}/fd/{descriptor}"))).ok();
            let inode = link.as_deref().and_then(|target| socket_inode(target.to_str()?));
            let Some(socket) = inode.and_then(|inode| listening.iter().find(|s| s.inode == inode)) else { continue };
            match holders.get_mut(&socket.inode) {
                // An init system holds sockets that it opened for others.
                Some(known) if known.pid != 1 => known.sharers += usize::from(known.pid != pid),
                _ => {
                    let Some(process) = name(proc, pid) else { continue };
                    let server = Server { port: socket.port, address: socket.address, pid, process, sharers: 0 };
                    holders.insert(socket.inode, server);
                }
            }
        }
    }
    holders
}

fn name(proc: &Proc, pid: u32) -> Option<String> {
    let mut buffer = Vec::new();
    let _ = proc.read(&format!("{pid}/stat"), &mut buffer);
    Stat::parse(task::text(&mut buffer)).ok().map(|stat| stat.comm.to_owned())
}

/// `socket:[4711]` -> 4711.
fn socket_inode(target: &str) -> Option<u64> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// Ports whose `/metrics` answers. Servers of a known other protocol are skipped, and on a made-up
/// tree no port is tried.
fn ask_for_metrics(proc: &Proc, servers: &[Server]) -> Vec<u16> {
    if !proc.is_live() {
        return Vec::new();
    }
    let asked = servers
        .iter()
        .filter(|it| it.known().is_none() && it.is_on_loopback() && it.pid != 1 && !it.is_one_of(&NOT_ASKED))
        .take(PORTS_ASKED_MAX);
    let mut answered = Vec::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = asked
            .map(|it| (it.port, scope.spawn(move || prometheus::answers(&metrics_url(it), METRICS_TIMEOUT))))
            .collect();
        for (port, thread) in threads {
            if thread.join().unwrap_or(false) {
                answered.push(port);
            }
        }
    });
    answered
}

fn metrics_url(server: &Server) -> String {
    format!("http://{}/metrics", server.reached_at())
}

fn describe(server: &Server, ports: usize, has_metrics: bool, found: &mut Vec<WatchableSource>) {
    let mut put = |kind, watch: String, note: String| {
        let Server { port, pid, .. } = *server;
        found.push(WatchableSource { port, pid, process: server.process.clone(), kind, watch, note });
    };
    let shared = match server.sharers {
        0 => String::new(),
        more => format!("{more} more processes share its socket; each has its own pid:N"),
    };
    let is_postgres = if let Some(known) = server.known() {
        let note = if ports > 1 { known.of_several } else { known.note };
        let watch = known.watch.replace("HOST", &server.reached_at().to_string());
        put(known.kind, watch, note.replace('N', &ports.to_string()));
        known.kind == Kind::Postgres
    } else {
        if has_metrics {
            put(Kind::Prometheus, format!("prometheus:{}", metrics_url(server)), String::new());
        }
        let is_other = server.is_one_of(&NOT_ASKED) || server.pid == 1;
        if !is_other && (server.sharers > 0 || server.is_one_of(&APP_SERVERS)) {
            put(Kind::Server, format!("server:{}", server.port), own_figures(&server.process).to_owned());
        }
        false
    };
    put(Kind::Process, format!("pid:{}", server.pid), if is_postgres { String::new() } else { shared });
}

/// How to read more of an app server with this name.
fn own_figures(process: &str) -> &'static str {
    match process {
        name if name.starts_with("puma") => "if its control server is on, watch puma:http://HOST:PORT?token=T too",
        name if name.starts_with("uwsgi") => "if it sets stats = HOST:PORT, watch uwsgi:HOST:PORT too",
        name if name.starts_with("php-fpm") => "if it sets pm.status_path, watch php-fpm:HOST:PORT?status=PATH too",
        name if name.starts_with("haproxy") => "if it sets stats socket PATH, watch haproxy:PATH too",
        name if name.starts_with("nginx") => "if it has a stub_status location, watch nginx:http://HOST:PORT/PATH too",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(process: &str, address: &str) -> Server {
        Server { port: 3306, address: address.parse().unwrap(), pid: 71, process: process.to_owned(), sharers: 0 }
    }

    fn watches(server: &Server, ports: usize, has_metrics: bool) -> Vec<String> {
        let mut found = Vec::new();
        describe(server, ports, has_metrics, &mut found);
        found.into_iter().map(|it| it.watch).collect()
    }

    #[test]
    fn each_kind_of_server_gets_its_sources_proposed() {
        assert_eq!(watches(&server("mariadbd", "0.0.0.0"), 1, false), ["mysql://USER@127.0.0.1:3306", "pid:71"]);
        assert_eq!(watches(&server("mysqld", "10.0.0.7"), 1, false), ["mysql://USER@10.0.0.7:3306", "pid:71"]);
        assert_eq!(watches(&server("mysqld", "::1"), 1, false), ["mysql://USER@[::1]:3306", "pid:71"]);
        assert_eq!(
            watches(&server("postgres", "::"), 1, false),
            ["postgresql://USER@127.0.0.1:3306/postgres", "pid:71"]
        );
        let pool = ["pgbouncer://USER@127.0.0.1:3306/pgbouncer", "pid:71"];
        assert_eq!(watches(&server("pgbouncer", "::"), 1, false), pool);
        assert_eq!(watches(&server("proxysql", "::"), 2, false), ["proxysql://USER@127.0.0.1:3306", "pid:71"]);
        assert_eq!(watches(&server("mongod", "::"), 1, false), ["mongodb://USER@127.0.0.1:3306/", "pid:71"]);
        assert_eq!(watches(&server("java", "::"), 1, false), ["server:3306", "pid:71"]);
        let kafka = Server { port: 9092, ..server("java", "::") };
        assert_eq!(watches(&kafka, 2, false), ["kafka://127.0.0.1:9092", "pid:71"]);
        let search = Server { port: 9200, ..server("java", "::") };
        assert_eq!(watches(&search, 2, false), ["elasticsearch://127.0.0.1:9200", "pid:71"]);
        assert_eq!(watches(&server("app", "::"), 1, true), ["prometheus:http://127.0.0.1:3306/metrics", "pid:71"]);
        assert_eq!(watches(&server("app", "::"), 1, false), ["pid:71"]);
        assert_eq!(watches(&server("puma 5.6.5 (tcp", "::"), 1, false), ["server:3306", "pid:71"]);
        assert_eq!(watches(&server("haproxy", "::"), 2, false), ["server:3306", "pid:71"]);
        assert!(own_figures("haproxy").contains("haproxy:PATH") && own_figures("nginx").contains("stub_status"));
        let forked = Server { sharers: 3, ..server("app", "::") };
        assert_eq!(watches(&forked, 1, false), ["server:3306", "pid:71"]);
        assert_eq!(watches(&Server { sharers: 3, ..server("sshd", "::") }, 1, false), ["pid:71"]);
    }

    #[test]
    fn inodes_of_descriptors() {
        assert_eq!(socket_inode("socket:[4711]"), Some(4711));
        assert_eq!(socket_inode("pipe:[4711]"), None);
        assert_eq!(socket_inode("socket:[4711"), None);
    }
}
