//! `--watch cgroup:PATH`: one cgroup by its name, with all processes in it: the figures that
//! [`host`](crate::host) reads for holdup's own cgroup. A container that restarts under the same
//! name is followed; its end and its return are events.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Instant;

use holdup_recording::{Batch, Coverage, Labels, clock, metrics};

use crate::host::cgroup::Cgroup;
use crate::options::Options;
use crate::proc::Proc;
use crate::proc::cgroups::Hierarchies;
use crate::reading::{Out, event, tell};
use crate::{Collector, ProbeError, ReadError};

/// Largest number of descendant cgroups whose processes are counted: more belong to a machine, not
/// to a service.
const FOLDERS_MAX: usize = 1_000;

/// One cgroup as a source.
pub struct NamedCgroup {
    source: String,
    proc: Proc,
    /// The name as `/proc/PID/cgroup` writes it.
    name: String,
    hierarchies: Hierarchies,
    cgroup: Cgroup,
    /// Inode of its folder, which a new cgroup under the same name does not share; none while the
    /// cgroup does not exist.
    folder: Option<u64>,
    gone_since: Option<Instant>,
}

impl NamedCgroup {
    /// The cgroup `given` of the tree `proc`: a name as in `/proc/PID/cgroup`, or its folder.
    ///
    /// # Errors
    /// If it is not a path.
    pub fn new(proc: Proc, given: &str) -> Result<Self, String> {
        if !given.starts_with('/') || given.split('/').any(|part| part == "..") {
            return Err("after `cgroup:` comes a path: a name as in /proc/PID/cgroup, e.g. cgroup:/system.slice/app.service, or \
                        its folder below /sys/fs/cgroup"
                .to_owned());
        }
        let hierarchies = Hierarchies::read(&proc);
        let folder = proc.rooted(given);
        let folder = std::fs::canonicalize(&folder).unwrap_or(folder);
        let name = hierarchies.name_at(&folder).unwrap_or_else(|| given.to_owned());
        let name = if name.len() > 1 { name.trim_end_matches('/').to_owned() } else { name };
        let cgroup = Cgroup::named(&name, hierarchies.clone());
        let source = format!("cgroup:{given}");
        Ok(Self { source, proc, name, hierarchies, cgroup, folder: None, gone_since: None })
    }

    /// Checks whether the cgroup exists, and whether it is still the same one.
    fn look(&mut self, batch: &mut Batch) {
        let folder = self.hierarchies.folders(&self.name).first().and_then(|path| std::fs::metadata(path).ok());
        let now = folder.map(|it| it.ino());
        let before = std::mem::replace(&mut self.folder, now);
        let mut say = |kind: &str, text: String, labels: Labels| {
            batch.events.push(event(&self.source, clock::now_ns(), kind, text, labels));
        };
        let cgroup = Labels::new([("cgroup", self.name.as_str())]);
        if before.is_some() && before != now {
            self.gone_since = Some(Instant::now());
            let text = format!("cgroup {} was removed: no process runs in it any more", self.name);
            say("cgroup_gone", text, cgroup.clone());
        }
        if let (Some(_), Some(since)) = (now, self.gone_since) {
            self.gone_since = None;
            // The limits may have changed with it.
            self.cgroup = Cgroup::named(&self.name, self.hierarchies.clone());
            let absent_ms = since.elapsed().as_millis().to_string();
            let text = format!("cgroup {} was created again: its counters restarted at 0", self.name);
            say("cgroup_back", text, cgroup.with("absent_ms", absent_ms));
        }
    }

    /// Processes in it and in all cgroups below, in the hierarchy with the most: in version 1 a
    /// process can be missing from some.
    fn members(&self, out: &mut Out) {
        out.begin();
        let counts = self.hierarchies.folders(&self.name).into_iter().filter_map(members_below);
        if let Some(count) = counts.max() {
            out.put(metrics::cgroup::MEMBER_PROCESSES, Labels::new([("cgroup", self.name.as_str())]), count as f64);
        }
    }
}

/// The number of processes; none if a folder cannot be read or if there are too many.
fn members_below(folder: PathBuf) -> Option<usize> {
    let (mut folders, mut at, mut count) = (vec![folder], 0, 0);
    while let Some(folder) = folders.get(at).cloned() {
        at += 1;
        count += std::fs::read_to_string(folder.join("cgroup.procs")).ok()?.lines().count();
        let inside = std::fs::read_dir(&folder).ok()?.flatten();
        folders.extend(inside.filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir())).map(|entry| entry.path()));
        if folders.len() > FOLDERS_MAX {
            return None;
        }
    }
    Some(count)
}

/// Makes the collector for `cgroup:PATH`.
pub(crate) fn make(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    Ok(Box::new(NamedCgroup::new(Proc::system(), rest)?))
}

impl Collector for NamedCgroup {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        let mut batch = Batch::default();
        if let Err(error) = self.cgroup.sample(&self.proc, &mut Out::new(&mut batch, &self.source)) {
            let why = format!(
                "{error}; take the name from /proc/PID/cgroup, e.g. for a service: cat /proc/$(pgrep -of NAME)/cgroup"
            );
            return Err(ProbeError::unreachable(&self.source, why));
        }
        Ok(Coverage::with_parts(&self.source, Vec::new()))
    }

    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let found = self.cgroup.settings(&self.proc);
        if found.is_empty() {
            return Err(ReadError(format!("cgroup {} does not exist", self.name)));
        }
        tell(batch, &self.source, found);
        Ok(())
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        self.look(batch);
        let source = self.source.clone();
        let mut out = Out::new(batch, &source);
        self.cgroup.sample(&self.proc, &mut out)?;
        self.members(&mut out);
        Ok(())
    }
}
