//! The processes that the watched one forked and that run the same program: a server that gives each connection or each
//! worker a process of its own (PostgreSQL, Apache, PHP-FPM, Gunicorn) is all of them. What they use counts with the watched
//! process; commands that it runs do not. A command looks like such a process until it runs its program, so what ended children
//! used counts only once one has been seen at two looks.
//!
//! Grandchildren are not looked for. Of a child that lives between two looks, the kernel passes CPU time, faults and bytes on to
//! its parent; what it waited for is missing, as it is for a thread.

use std::collections::BTreeMap;

use crate::ReadError;
use crate::proc::census::Sums;
use crate::proc::shared_census::{self, SharedCensus};
use crate::proc::task::{self, Collected, Stat};
use crate::proc::{Proc, number};

/// What processes have used since their start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    pub(super) user_ticks: u64,
    pub(super) system_ticks: u64,
    pub(super) major_faults: u64,
    pub(super) minor_faults: u64,
    /// Memory in pages; of a child without what it shares, e.g. the server's buffers.
    pub(super) resident_pages: u64,
}

/// One child.
pub(super) struct Child {
    start_ticks: u64,
    pub(super) census: SharedCensus,
    pub(super) sums: Sums,
}

/// All of them.
#[derive(Default)]
pub(super) struct Forked {
    pub(super) children: BTreeMap<u32, Child>,
    /// Waits of those that have ended.
    pub(super) ended: Sums,
    /// What ended children had used when one was first seen at two looks.
    before: Option<Collected>,
    buffer: Vec<u8>,
}

impl Used {
    fn of(stat: &Stat, resident_pages: u64) -> Self {
        Self {
            user_ticks: stat.user_ticks,
            system_ticks: stat.system_ticks,
            major_faults: stat.major_faults,
            minor_faults: stat.minor_faults,
            resident_pages,
        }
    }

    fn add(&mut self, other: Self) {
        self.user_ticks += other.user_ticks;
        self.system_ticks += other.system_ticks;
        self.major_faults += other.major_faults;
        self.minor_faults += other.minor_faults;
        self.resident_pages += other.resident_pages;
    }
}

impl Forked {
    /// Looks for the children of process `pid`, whose `stat` is `text`; what it and they have used, ended ones included.
    ///
    /// # Errors
    /// If the parent's `stat` is malformed.
    pub(super) fn look(&mut self, proc: &Proc, pid: u32, text: &str) -> Result<Used, ReadError> {
        let parent = Stat::parse(text)?;
        let collected = Collected::parse(text)?;
        let mut used = Used::of(&parent, parent.resident_pages);
        let (mut alive, mut stays) = (BTreeMap::new(), false);
        for child in self.numbers(proc, pid) {
            // It may have ended since the list was read.
            let Some((start_ticks, own)) = self.child(proc, child, parent.comm) else { continue };
            used.add(own);
            let known = self.children.remove(&child).filter(|known| known.start_ticks == start_ticks);
            stays |= known.is_some();
            let new = || Child { start_ticks, census: shared_census::join(proc, child), sums: Sums::default() };
            alive.insert(child, known.unwrap_or_else(new));
        }
        for (_, child) in std::mem::replace(&mut self.children, alive) {
            self.ended.add(child.sums);
        }
        if self.before.is_none() && stays {
            self.before = Some(collected);
        }
        if let Some(before) = self.before {
            used.add(Used {
                user_ticks: collected.user_ticks.saturating_sub(before.user_ticks),
                system_ticks: collected.system_ticks.saturating_sub(before.system_ticks),
                major_faults: collected.major_faults.saturating_sub(before.major_faults),
                minor_faults: collected.minor_faults.saturating_sub(before.minor_faults),
                resident_pages: 0,
            });
        }
        Ok(used)
    }

    /// The children that its main thread forked; none where the kernel does not list them.
    fn numbers(&mut self, proc: &Proc, pid: u32) -> Vec<u32> {
        let list = proc.read(&format!("{pid}/task/{pid}/children"), &mut self.buffer).unwrap_or_default();
        list.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect()
    }

    /// Start and use of process `pid`, if it runs the program called `comm`: another name means that it is another program, or is
    /// about to be.
    fn child(&mut self, proc: &Proc, pid: u32, comm: &str) -> Option<(u64, Used)> {
        let resident_pages = self.own_pages(proc, pid).unwrap_or(0);
        let read = proc.read(&format!("{pid}/stat"), &mut self.buffer).is_ok();
        let stat = Stat::parse(task::text(&mut self.buffer)).ok().filter(|stat| read && stat.comm == comm)?;
        Some((stat.start_ticks, Used::of(&stat, resident_pages)))
    }

    /// Pages that it does not share; a child that has ended has none.
    fn own_pages(&mut self, proc: &Proc, pid: u32) -> Option<u64> {
        let mut fields = proc.read(&format!("{pid}/statm"), &mut self.buffer).ok()?.split_ascii_whitespace().skip(1);
        let resident: u64 = number("statm", "resident", fields.next()).ok()?;
        let shared: u64 = number("statm", "shared", fields.next()).ok()?;
        Some(resident.saturating_sub(shared))
    }
}
