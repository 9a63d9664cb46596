//! The server's processes: those that hold its listening sockets, and their children that hold its
//! connections (Node's workers receive theirs from the parent). They are found by `/proc/PID/fd`.
//!
//! **Its cost.** It searches all processes only for a new listening socket, and for at most a
//! fiftieth of the time. In between it reads only the members' descriptors, when there are new
//! sockets or their number has changed, and skips descriptors whose socket still exists; and it
//! checks new processes, of which only children of members matter.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use super::network::Sockets;
use crate::ReadError;
use crate::proc::task::{self, Stat};
use crate::proc::{Proc, Tree, number};

/// Largest number of processes read of one server: those with the lowest numbers.
pub(super) const MEMBERS_MAX: usize = 64;

/// Largest number of members' children checked for connections in one sample.
const CHILDREN_MAX: usize = 64;

/// Largest number of descriptors read of a process.
const DESCRIPTORS_MAX: usize = 20_000;

/// Pause between two searches of all processes, as a multiple of a search's duration.
const SEARCH_PAUSE: u32 = 50;

/// A process that was forked in order to exec another program holds all its parent's sockets until
/// then. One that still holds them after this time was forked to serve.
const BECOMES: Duration = Duration::from_millis(10);

/// One process of the server.
#[derive(Default)]
pub(super) struct Member {
    pub(super) parent: u32,
    pub(super) name: String,
    start_ticks: u64,
    /// Whether it holds a listening socket.
    pub(super) listens: bool,
    pub(super) held: DescriptorTable,
}

/// The sockets and descriptors of a process.
#[derive(Default)]
pub(super) struct DescriptorTable {
    /// Sockets of any kind, by descriptor.
    sockets: HashMap<u32, u64>,
    inodes: HashSet<u64>,
    /// All open descriptors.
    pub(super) descriptors: usize,
}

impl DescriptorTable {
    pub(super) fn has(&self, inode: u64) -> bool {
        inode != 0 && self.inodes.contains(&inode)
    }

    pub(super) fn sockets(&self) -> usize {
        self.sockets.len()
    }

    fn has_any<'a>(&self, mut inodes: impl Iterator<Item = &'a u64>) -> bool {
        inodes.any(|inode| self.has(*inode))
    }

    /// The number of a process' descriptors: since Linux 6.2 it is their folder's size, readable by
    /// all users; none on older kernels.
    fn count(proc: &Proc, pid: u32) -> Option<usize> {
        let folder = fs::metadata(proc.path(Tree::Proc, &format!("{pid}/fd"))).ok()?;
        usize::try_from(folder.len()).ok().filter(|count| *count > 0)
    }

    /// Reads a process' descriptors. A known socket that is still `there` need not be read again:
    /// if it had been closed, it would be gone.
    fn read(&mut self, proc: &Proc, pid: u32, there: &HashSet<u64>) -> io::Result<()> {
        let folder = proc.path(Tree::Proc, &format!("{pid}/fd"));
        let before = std::mem::take(&mut self.sockets);
        self.descriptors = 0;
        for entry in fs::read_dir(&folder)? {
            let name = entry?.file_name();
            let Some(number) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
            self.descriptors += 1;
            if self.descriptors > DESCRIPTORS_MAX {
                continue;
            }
            let known = before.get(&number).copied().filter(|inode| there.contains(inode));
            let inode = known.or_else(|| {
                let target = fs::read_link(folder.join(&name)).ok()?;
                target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
            });
            if let Some(inode) = inode {
                self.sockets.insert(number, inode);
            }
        }
        self.inodes = self.sockets.values().copied().collect();
        Ok(())
    }
}

/// A server's processes across samples.
pub(super) struct Processes {
    proc: Proc,
    pub(super) members: BTreeMap<u32, Member>,
    /// Children of members that have held none of the server's sockets so far.
    children: BTreeSet<u32>,
    /// All processes of the last sample.
    known: HashSet<u32>,
    /// All sockets of the last sample.
    seen: HashSet<u64>,
    /// Listening sockets for which all processes were searched.
    searched: BTreeSet<u64>,
    /// No search before this time.
    rests_until: Option<Instant>,
    /// Number of processes whose descriptors the last search could not read.
    pub(super) unreadable: usize,
}

impl Processes {
    pub(super) fn new(proc: &Proc) -> Self {
        Self {
            proc: proc.clone(),
            members: BTreeMap::new(),
            children: BTreeSet::new(),
            known: HashSet::new(),
            seen: HashSet::new(),
            searched: BTreeSet::new(),
            rests_until: None,
            unreadable: 0,
        }
    }

    /// Updates the members.
    ///
    /// # Errors
    /// If processes cannot be listed.
    pub(super) fn look(&mut self, sockets: &Sockets) -> Result<(), ReadError> {
        let (listening, accepted) = (sockets.listening(), sockets.accepted());
        let mut pids = Vec::new();
        self.proc.numbers("", &mut pids)?;
        pids.sort_unstable();
        let before: BTreeSet<u32> = self.members.keys().copied().collect();
        let is_new = listening.iter().any(|inode| !self.searched.contains(inode));
        if is_new && self.rests_until.is_none_or(|until| Instant::now() >= until) {
            let begun = Instant::now();
            self.search(&pids, &listening, &accepted);
            self.rests_until = Some(Instant::now() + (begun.elapsed() * SEARCH_PAUSE).max(Duration::from_millis(500)));
            self.searched.clone_from(&listening);
        }
        self.look_at_members(sockets, &listening, &accepted);
        for pid in pids.iter().filter(|pid| !self.known.contains(pid)) {
            let parent = identity(&self.proc, *pid).map(|member| member.parent);
            if parent.is_some_and(|parent| self.members.contains_key(&parent)) && !self.members.contains_key(pid) {
                self.children.insert(*pid);
            }
        }
        self.known = pids.into_iter().collect();
        self.children.retain(|pid| self.known.contains(pid));
        self.promote(sockets, &listening, &accepted);
        self.confirm(&before, sockets, &listening, &accepted);
        self.seen.clone_from(&sockets.inodes);
        Ok(())
    }

    /// Whether other members are its children and it does nothing but start them.
    pub(super) fn is_parent(&self, pid: u32) -> bool {
        self.members.values().any(|member| member.parent == pid)
    }

    fn search(&mut self, pids: &[u32], listening: &BTreeSet<u64>, accepted: &HashSet<u64>) {
        self.unreadable = 0;
        let none = HashSet::new();
        let mut parents = Vec::new();
        for pid in pids {
            let mut held = DescriptorTable::default();
            match held.read(&self.proc, *pid, &none) {
                Ok(()) => {}
                Err(error) => {
                    self.unreadable += usize::from(error.kind() == ErrorKind::PermissionDenied);
                    continue;
                }
            }
            let listens = held.has_any(listening.iter());
            if listens || held.has_any(accepted.iter()) {
                self.add(*pid, held, listens);
            } else if held.descriptors > 0 {
                parents.push(*pid);
            }
        }
        for pid in parents {
            let parent = identity(&self.proc, pid).map(|member| member.parent);
            if parent.is_some_and(|parent| parent > 1 && self.members.contains_key(&parent)) {
                self.children.insert(pid);
            }
        }
    }

    fn add(&mut self, pid: u32, held: DescriptorTable, listens: bool) {
        let is_known = self.members.contains_key(&pid);
        if !is_known && self.members.len() >= MEMBERS_MAX {
            return;
        }
        if let Some(found) = identity(&self.proc, pid) {
            self.members.insert(pid, Member { held, listens, ..found });
        }
    }

    fn look_at_members(&mut self, sockets: &Sockets, listening: &BTreeSet<u64>, accepted: &HashSet<u64>) {
        let (proc, seen) = (&self.proc, &self.seen);
        let are_new = sockets.inodes.iter().any(|inode| !seen.contains(inode));
        self.members.retain(|pid, member| {
            let Some(now) = identity(proc, *pid).filter(|now| now.start_ticks == member.start_ticks) else {
                return false;
            };
            (member.parent, member.name) = (now.parent, now.name);
            let is_as_before = !are_new && DescriptorTable::count(proc, *pid) == Some(member.held.descriptors);
            if !is_as_before && member.held.read(proc, *pid, &sockets.inodes).is_err() {
                return false;
            }
            member.listens = member.held.has_any(listening.iter());
            true
        });
        let pids: BTreeSet<u32> = self.members.keys().copied().collect();
        // An idle member stays; one that has given up the server's sockets and is not a member's
        // child is removed.
        self.members.retain(|_, member| {
            member.listens || pids.contains(&member.parent) || member.held.has_any(accepted.iter())
        });
    }

    /// Children that now hold one of the server's sockets become members.
    fn promote(&mut self, sockets: &Sockets, listening: &BTreeSet<u64>, accepted: &HashSet<u64>) {
        let tried: Vec<u32> = self.children.iter().copied().take(CHILDREN_MAX).collect();
        for pid in tried {
            let mut held = DescriptorTable::default();
            if held.read(&self.proc, pid, &sockets.inodes).is_err() {
                self.children.remove(&pid);
                continue;
            }
            let listens = held.has_any(listening.iter());
            if listens || held.has_any(accepted.iter()) {
                self.children.remove(&pid);
                self.add(pid, held, listens);
            }
        }
    }

    /// Of the members that were not there `before` and are children of others, keeps those that
    /// have not exec'ed another program.
    fn confirm(
        &mut self,
        before: &BTreeSet<u32>,
        sockets: &Sockets,
        listening: &BTreeSet<u64>,
        accepted: &HashSet<u64>,
    ) {
        let is_child = |member: &Member| self.members.contains_key(&member.parent);
        let came = self.members.iter().filter(|(pid, member)| !before.contains(pid) && is_child(member));
        let came: Vec<u32> = came.map(|(pid, _)| *pid).collect();
        if came.is_empty() {
            return;
        }
        std::thread::sleep(BECOMES);
        for pid in came {
            let mut held = DescriptorTable::default();
            let is_there = held.read(&self.proc, pid, &sockets.inodes).is_ok();
            if !is_there || !(held.has_any(listening.iter()) || held.has_any(accepted.iter())) {
                self.members.remove(&pid);
                self.children.insert(pid);
            }
        }
    }
}

/// A process without its sockets; none if it has ended.
fn identity(proc: &Proc, pid: u32) -> Option<Member> {
    let mut buffer = Vec::new();
    let _ = proc.read(&format!("{pid}/stat"), &mut buffer);
    let text = task::text(&mut buffer);
    let stat = Stat::parse(text).ok()?;
    if stat.state == 'Z' && stat.threads <= 1 {
        return None;
    }
    let parent = number("stat", "ppid", task::head(text).ok()?.2.next()).ok()?;
    Some(Member { parent, name: stat.comm.to_owned(), start_ticks: stat.start_ticks, ..Member::default() })
}
