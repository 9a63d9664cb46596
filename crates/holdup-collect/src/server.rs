//! `--watch server:PORT[?pid=N]`: any server from outside, in whatever language: its accept queue,
//! the processes that hold its port, their threads and resource usage, the connections they hold,
//! those that await an answer, and the outgoing connections on which they wait. holdup sends
//! nothing to the server. It is located anew with each sample, because servers and workers restart.
//!
//! The inside of a process is invisible: requests that it has read and queued count as `answering`,
//! like those it works on.

mod address;
mod changes;
mod figures;
mod network;
mod processes;
mod rounds;
mod turn;
mod workers;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::IpAddr;

use holdup_recording::metrics::Metric;
use holdup_recording::rows::Event;
use holdup_recording::{Batch, Coverage, Labels, clock, metrics};

use self::address::Address;
use self::changes::{Change, Changes, ServerState, role};
use self::figures::Figures;
use self::network::{Sockets, Turns};
use self::processes::Processes;
use self::rounds::Rounds;
use self::turn::Lead;
use crate::coverage::{Line as _, part};
use crate::host::cgroup::Cgroup;
use crate::host::network as host_network;
use crate::options::Options;
use crate::proc::Proc;
use crate::proc::sock_diag::DiagSocket;
use crate::reading::{Out, event, tell};
use crate::{Collector, ProbeError, ReadError};

/// Largest number of peers (port and address) of outgoing connections; the first ones seen.
const PEERS_MAX: usize = 50;

/// How to permit holdup to read other users' processes.
const PTRACE: &str = "run holdup as the server's user or as root, or give it CAP_SYS_PTRACE: \
    setcap cap_sys_ptrace+ep \"$(command -v holdup)\"; a container with --cap-add SYS_PTRACE";

/// The server on a port, as a source.
struct Server {
    source: String,
    address: Address,
    proc: Proc,
    line: Option<DiagSocket>,
    processes: Processes,
    figures: Figures,
    changes: Changes,
    peers: BTreeSet<(u16, IpAddr)>,
    /// Leads of its connections, by inode.
    leads: HashMap<u64, Lead>,
    rounds: Rounds,
    /// The cgroup of the first worker, and the worker's number.
    cgroup: Option<(u32, Cgroup)>,
    buffer: Vec<u8>,
}

/// Makes the collector for `server:PORT` or `server:PORT?pid=N`.
pub(crate) fn make(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    let parsed = Address::parse(rest)?;
    let proc = Proc::system();
    Ok(Box::new(Server {
        source: format!("server:{}", parsed.port),
        address: parsed,
        line: None,
        processes: Processes::new(&proc),
        figures: Figures::new(&proc),
        changes: Changes::default(),
        peers: BTreeSet::new(),
        leads: HashMap::new(),
        rounds: Rounds::default(),
        cgroup: None,
        buffer: Vec::new(),
        proc,
    }))
}

impl Server {
    fn look(&mut self) -> io::Result<Sockets> {
        let line = match &self.line {
            Some(line) => line,
            None => self.line.insert(network::open(self.address)?),
        };
        Sockets::read(line, self.address.port, &mut self.buffer)
    }

    fn put_queue(&self, sockets: &Sockets, out: &mut Out) {
        let port = Labels::new([("port", self.address.port.to_string())]);
        let mut put = |metric: Metric, value: f64| out.put(metric, port.clone(), value);
        if !sockets.listeners.is_empty() {
            let sum = |of: fn(&crate::proc::sock_diag::Connection) -> u32| -> f64 {
                sockets.listeners.iter().map(|listener| f64::from(of(listener))).sum()
            };
            put(metrics::tcp::ACCEPT_QUEUE_LENGTH, sum(|listener| listener.socket.receive_queue));
            put(metrics::tcp::ACCEPT_QUEUE_LIMIT, sum(|listener| listener.send_queue));
        }
        let unread = sockets.incoming.iter().map(|connection| u64::from(connection.socket.receive_queue));
        put(metrics::tcp::SERVER_CONNECTIONS, sockets.incoming.len() as f64);
        put(metrics::tcp::SERVER_UNREAD_CONNECTIONS, unread.clone().filter(|bytes| *bytes > 0).count() as f64);
        put(metrics::tcp::SERVER_UNREAD_BYTES, unread.sum::<u64>() as f64);
        put(metrics::tcp::SERVER_CLOSE_WAIT_CONNECTIONS, sockets.close_wait as f64);
    }

    /// Counts connections refused a place in the queue, in the server's network namespace.
    fn put_refused(&mut self, out: &mut Out) -> Result<(), ReadError> {
        let Self { proc, address, processes, buffer, .. } = self;
        out.begin();
        let Some(pid) = address.pid else { return host_network::listen(proc, "net/netstat", buffer, out) };
        // Process N may have ended while its network namespace lives on with the server.
        let who = if processes.members.contains_key(&pid) { Some(&pid) } else { processes.members.keys().next() };
        host_network::listen(proc, &format!("{}/net/netstat", who.unwrap_or(&pid)), buffer, out)
    }

    fn put_connections(&mut self, sockets: &Sockets, out: &mut Out) {
        self.leads.retain(|inode, _| sockets.inodes.contains(inode));
        self.rounds.begin();
        let mut by_peer = self.peers.iter().map(|peer| (*peer, Turns::default())).collect();
        for (pid, member) in &self.processes.members {
            let is_held = |inode| member.held.has(inode);
            let labels = [("pid", pid.to_string()), ("role", role(self.processes.is_parent(*pid)).to_owned())];
            let Turns { connections, open, undecided } =
                network::accepted(&sockets.incoming, is_held, &mut self.leads, &mut self.rounds);
            let mut put = |metric: Metric, value: u32| out.put(metric, Labels::new(labels.clone()), f64::from(value));
            put(metrics::server::ACCEPTED_CONNECTIONS, connections);
            put(metrics::server::ANSWERING_CONNECTIONS, open);
            put(metrics::server::UNDECIDED_CONNECTIONS, undecided);
            network::outgoing(&sockets.outgoing, is_held, &mut self.leads, &mut by_peer);
        }
        if let Some(requests) = self.rounds.end().filter(|_| !self.processes.members.is_empty()) {
            out.put_plain(metrics::server::REQUESTS_SINCE_LAST, f64::from(requests));
        }
        for ((port, peer), Turns { connections, open, undecided }) in by_peer {
            // A peer whose connections are all closed has none, and needs a row to say so.
            if !self.peers.contains(&(port, peer)) && self.peers.len() >= PEERS_MAX {
                continue;
            }
            self.peers.insert((port, peer));
            let labels = [("peer_port", port.to_string()), ("peer", peer.to_string())];
            let mut put = |metric: Metric, value: u32| out.put(metric, Labels::new(labels.clone()), f64::from(value));
            put(metrics::server::OUTGOING_CONNECTIONS, connections);
            put(metrics::server::OUTGOING_PENDING_CONNECTIONS, open);
            put(metrics::server::OUTGOING_UNDECIDED_CONNECTIONS, undecided);
        }
    }

    fn standing(&self, sockets: &Sockets, at: i64) -> ServerState {
        let listening = sockets.listening();
        let holders = self.processes.members.iter().filter(|(_, member)| member.listens);
        let processes = holders.map(|(pid, _)| (*pid, self.processes.is_parent(*pid))).collect();
        ServerState { listening, processes, at }
    }

    fn say(&self, change: Change, at: i64) -> Event {
        let port = self.address.port.to_string();
        let list = |pids: &[u32]| pids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let mut labels = vec![("port", port.clone())];
        let (kind, text) = match change {
            Change::Stopped { pids } => {
                labels.push(("pids", list(&pids)));
                ("server_stopped", format!("no process listens on port {port} any more"))
            }
            Change::Started { pids, absent_ms } => {
                labels.extend([("pids", list(&pids)), ("absent_ms", absent_ms.to_string())]);
                ("server_started", format!("a process listens on port {port} again, after {absent_ms} ms at most"))
            }
            Change::Exited { pid, role } => {
                labels.extend([("pid", pid.to_string()), ("role", role.to_owned())]);
                ("worker_exited", format!("process {pid} ({role}) has ended; others hold port {port}"))
            }
            Change::Came { pid, role } => {
                labels.extend([("pid", pid.to_string()), ("role", role.to_owned())]);
                ("worker_started", format!("process {pid} ({role}) holds port {port} too"))
            }
        };
        event(&self.source, at, kind, text, Labels::new(labels))
    }

    /// The first process that does work, rather than only starting others.
    fn first_worker(&self) -> Option<u32> {
        let members = || self.processes.members.keys().copied();
        members().find(|pid| !self.processes.is_parent(*pid)).or_else(|| members().next())
    }

    fn cgroup(&mut self) -> Option<&mut Cgroup> {
        let worker = self.first_worker()?;
        if self.cgroup.as_ref().is_none_or(|(pid, _)| *pid != worker) {
            self.cgroup = Some((worker, Cgroup::for_process(&worker.to_string())));
        }
        self.cgroup.as_mut().map(|(_, cgroup)| cgroup)
    }

    fn unreachable(&self, error: &io::Error) -> ProbeError {
        let Address { port, pid } = self.address;
        match (pid, error.raw_os_error()) {
            (Some(pid), Some(libc::EPERM)) => ProbeError::denied(
                &self.source,
                format!(
                    "entering the network namespace of process {pid} requires CAP_SYS_ADMIN: run holdup as root, or inside it: \
                     nsenter -t {pid} -n holdup … --watch server:{port}"
                ),
            ),
            (Some(pid), _) if error.kind() == io::ErrorKind::NotFound => {
                let why = format!("the process {pid}, whose network namespace is to be watched, does not exist here");
                ProbeError::unreachable(&self.source, why)
            }
            _ => ProbeError::unreachable(
                &self.source,
                format!(
                    "the kernel does not answer sock_diag queries: {error}; modprobe tcp_diag inet_diag, and let \
                     the sandbox pass netlink sockets"
                ),
            ),
        }
    }

    fn lacking(&mut self, sockets: &Sockets) -> Vec<Coverage> {
        let mut parts = Vec::new();
        let part = |name| part(&self.source, name);
        let (seen, unreadable) = (self.processes.members.len(), self.processes.unreadable);
        if seen == 0 {
            let why = format!(
                "cannot see which process holds port {} ({unreadable} processes are unreadable): queues and connections are \
                 recorded, but not its workers and their connections, waits and resource usage",
                self.address.port
            );
            parts.push(part("processes").absent(why).enable(PTRACE));
        }
        if seen >= processes::MEMBERS_MAX {
            let why = format!("it has {seen} processes or more: holdup reads those with the lowest numbers");
            parts.push(part("processes").partial(why).enable("watch the host, too: it counts all threads"));
        }
        if sockets.incoming.iter().chain(&sockets.outgoing).any(|c| c.info.is_some_and(|info| info.segments.is_none()))
        {
            let why = "this kernel does not count segments: on busy connections it is unknown which side must answer";
            parts.push(part("turns").partial(why).enable("use Linux 4.6 or later"));
        }
        let entry = part("cgroup");
        let (mut batch, source, proc) = (Batch::default(), self.source.clone(), self.proc.clone());
        if let Some(cgroup) = self.cgroup()
            && let Err(error) = cgroup.sample(&proc, &mut Out::new(&mut batch, &source))
        {
            let enable =
                "mount the cgroup file systems at /sys/fs/cgroup; for a container's process run holdup on its host";
            parts.push(entry.absent(error.0).enable(enable));
            self.cgroup = None;
        }
        parts
    }
}

impl Collector for Server {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        let sockets = self.look().map_err(|error| self.unreachable(&error))?;
        if sockets.listeners.is_empty() {
            let port = self.address.port;
            let why = format!(
                "no process listens on TCP port {port} here: start the server first; one in a container's network namespace is \
                 found by the number of one of its processes: server:{port}?pid=N (ss -ltn lists listening ports)"
            );
            return Err(ProbeError::unreachable(&self.source, why));
        }
        self.processes.look(&sockets).map_err(|error| ProbeError::unreachable(&self.source, error.0))?;
        self.changes.take(self.standing(&sockets, clock::now_ns()));
        let parts = self.lacking(&sockets);
        Ok(Coverage::with_parts(&self.source, parts))
    }

    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let mut found = Vec::new();
        let workers = self.processes.members.keys().filter(|pid| !self.processes.is_parent(**pid)).count();
        let name =
            self.first_worker().and_then(|pid| self.processes.members.get(&pid)).map(|member| member.name.clone());
        if let Some(name) = name {
            found.push(("server.name".to_owned(), name));
            found.push(("server.workers".to_owned(), workers.to_string()));
        }
        let proc = self.proc.clone();
        if let Some(cgroup) = self.cgroup() {
            found.extend(cgroup.settings(&proc));
        }
        tell(batch, &self.source, found);
        Ok(())
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let source = self.source.clone();
        let mut out = Out::new(batch, &source);
        let sockets = self.look().map_err(|error| ReadError(format!("sock_diag: {error}")))?;
        self.put_queue(&sockets, &mut out);
        let at = out.at();
        let mut errors = Vec::new();
        errors.extend(self.processes.look(&sockets).err());
        let now = self.standing(&sockets, at);
        let port = Labels::new([("port", self.address.port.to_string())]);
        // No members means zero only if no process listens; otherwise they are merely invisible.
        if now.listening.is_empty() || !self.processes.members.is_empty() {
            out.put(metrics::server::PROCESSES, port, self.processes.members.len() as f64);
        }
        for change in self.changes.take(now) {
            let event = self.say(change, at);
            out.batch.events.push(event);
        }
        self.put_connections(&sockets, &mut out);
        errors.extend(self.put_refused(&mut out).err());
        errors.extend(self.figures.put(&self.processes, &mut out).err());
        let proc = self.proc.clone();
        let had_cgroup = self.cgroup.is_some();
        if let Some(cgroup) = self.cgroup() {
            // A worker may end during the read; and if none had a cgroup at the start, the coverage
            // says so.
            let result = cgroup.sample(&proc, &mut out);
            errors.extend(result.err().filter(|_| had_cgroup));
        }
        ReadError::all(errors.into_iter().map(|error| error.0).collect())
    }
}
