//! Who the server is: the processes that hold its listening sockets, and children of theirs that hold its connections (Node's workers are
//! handed theirs). They are found by `/proc/PID/fd`.
//!
//! **What it may cost.** All processes are searched only for a listening socket that is new, and no more than a fiftieth of the time. In
//! between only the members' own descriptors are looked at, when there are sockets that were not there before or their number has
//! changed, and of them a socket that is still there is not looked at again; and new processes, of whom only children of members matter.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use super::network::Sockets;
use crate::ReadError;
use crate::proc::task::{self, Stat};
use crate::proc::{Proc, Tree, number};

/// Most processes of one server that are looked at: the oldest by number.
pub(super) const MEMBERS_MAX: usize = 64;

/// Most children of members that are tried for connections in one sample.
const CHILDREN_MAX: usize = 64;

/// Most descriptors of a process that are looked at.
const DESCRIPTORS_MAX: usize = 20_000;

/// Between two searches of all processes lie so many times what one takes.
const SEARCH_PAUSE: u32 = 50;

/// A process that was forked to become another program holds all that its parent does until then. What still holds it after this
/// time was forked to serve.
const BECOMES: Duration = Duration::from_millis(10);

/// One process of the server.
#[derive(Default)]
pub(super) struct Member {
    pub(super) parent: u32,
    pub(super) name: String,
    start_ticks: u64,
    /// Whether it holds a listening socket.
    pub(super) listens: bool,
    pub(super) held: Held,
}

/// What a process holds.
#[derive(Default)]
pub(super) struct Held {
    /// Sockets of any kind, by descriptor.
    sockets: HashMap<u32, u64>,
    inodes: HashSet<u64>,
    /// All open descriptors.
    pub(super) descriptors: usize,
}

impl Held {
    pub(super) fn has(&self, inode: u64) -> bool {
        inode != 0 && self.inodes.contains(&inode)
    }

    pub(super) fn sockets(&self) -> usize {
        self.sockets.len()
    }

    fn has_any<'a>(&self, mut inodes: impl Iterator<Item = &'a u64>) -> bool {
        inodes.any(|inode| self.has(*inode))
    }

    /// How many descriptors a process has: since Linux 6.2 the size of their folder, for everybody; before none.
    fn count(proc: &Proc, pid: u32) -> Option<usize> {
        let folder = fs::metadata(proc.path(Tree::Proc, &format!("{pid}/fd"))).ok()?;
        usize::try_from(folder.len()).ok().filter(|count| *count > 0)
    }

    /// Looks at a process' descriptors. Those that were a socket which is still `there` are it still: closed, it would not be there.
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

/// A server's processes, from one sample to the next.
pub(super) struct Processes {
    proc: Proc,
    pub(super) members: BTreeMap<u32, Member>,
    /// Children of members that have held nothing of the server's so far.
    children: BTreeSet<u32>,
    /// All processes of the last sample.
    known: HashSet<u32>,
    /// All sockets of the last sample.
    seen: HashSet<u64>,
    /// Listening sockets that all processes were searched for.
    searched: BTreeSet<u64>,
    /// Before this there is no further search.
    rests_until: Option<Instant>,
    /// Processes whose descriptors could not be seen in the last search.
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

    /// Brings the members up to date.
    ///
    /// # Errors
    /// If processes can't be listed.
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

    /// Processes that other members are children of, and have nothing to do but to start those.
    pub(super) fn is_parent(&self, pid: u32) -> bool {
        self.members.values().any(|member| member.parent == pid)
    }

    fn search(&mut self, pids: &[u32], listening: &BTreeSet<u64>, accepted: &HashSet<u64>) {
        self.unreadable = 0;
        let none = HashSet::new();
        let mut parents = Vec::new();
        for pid in pids {
            let mut held = Held::default();
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

    fn add(&mut self, pid: u32, held: Held, listens: bool) {
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
            let is_as_before = !are_new && Held::count(proc, *pid) == Some(member.held.descriptors);
            if !is_as_before && member.held.read(proc, *pid, &sockets.inodes).is_err() {
                return false;
            }
            member.listens = member.held.has_any(listening.iter());
            true
        });
        let pids: BTreeSet<u32> = self.members.keys().copied().collect();
        // One that is idle now stays; one that has given up the server's sockets, and is nobody's child, is it no more.
        self.members.retain(|_, member| {
            member.listens || pids.contains(&member.parent) || member.held.has_any(accepted.iter())
        });
    }

    /// Children that hold something of the server's by now are members.
    fn promote(&mut self, sockets: &Sockets, listening: &BTreeSet<u64>, accepted: &HashSet<u64>) {
        let tried: Vec<u32> = self.children.iter().copied().take(CHILDREN_MAX).collect();
        for pid in tried {
            let mut held = Held::default();
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

    /// Of members that were not there `before` and are children of others, leaves those that have not become another program.
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
            let mut held = Held::default();
            let is_there = held.read(&self.proc, pid, &sockets.inodes).is_ok();
            if !is_there || !(held.has_any(listening.iter()) || held.has_any(accepted.iter())) {
                self.members.remove(&pid);
                self.children.insert(pid);
            }
        }
    }
}

/// What a process is, without what it holds; none if it has ended.
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
