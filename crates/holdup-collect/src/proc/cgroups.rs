//! Finds the cgroups of a process: matches `/proc/PID/cgroup` (cgroups(7)) with the hierarchies
//! mounted here, in version 1, 2, or both. Each controller has its own place with all levels above
//! it, because a limit binds everything below. It reads no counters and no limits.
//!
//! In a container's own cgroup namespace the path is `/` and its files lie at the mount point. With
//! the host's namespace but only the container's part mounted, the mount's root names that part.

use std::path::{Path, PathBuf};

use crate::ReadError;
use crate::proc::mountinfo::Mount;
use crate::proc::{Proc, read_even_empty};

/// Deepest nesting followed.
const LEVELS_MAX: usize = 64;

/// One level of a hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Path of the cgroup as `/proc/PID/cgroup` writes it.
    pub path: String,
    /// Where its files are.
    pub folder: PathBuf,
}

/// The cgroup of a process for one controller: its own level first, then those above.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Whether it belongs to cgroup version 2.
    pub is_v2: bool,
    /// Never empty.
    pub levels: Vec<Level>,
}

/// One line of `/proc/PID/cgroup`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership<'a> {
    /// Version 1's controllers, comma-separated; empty for version 2.
    pub controllers: &'a str,
    /// The cgroup's path.
    pub path: &'a str,
}

/// Lines of `/proc/PID/cgroup`; malformed ones are skipped.
pub fn memberships(text: &str) -> Vec<Membership<'_>> {
    text.lines().filter_map(membership).collect()
}

fn membership(line: &str) -> Option<Membership<'_>> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    path.starts_with('/').then_some(Membership { controllers, path })
}

/// A mounted hierarchy.
#[derive(Clone, Debug)]
struct Hierarchy {
    is_v2: bool,
    /// Super options, which include the controllers.
    options: String,
    /// The cgroup visible at the mount point.
    root: String,
    point: PathBuf,
}

/// The hierarchies that are mounted here.
#[derive(Clone, Debug)]
pub struct Hierarchies(Vec<Hierarchy>);

impl Hierarchies {
    /// Those that `/proc/self/mountinfo` lists; if it lists none, those at the usual places below
    /// `/sys/fs/cgroup`.
    pub fn read(proc: &Proc) -> Self {
        let mut buffer = Vec::new();
        let text = proc.read_lines("self/mountinfo", &mut buffer).unwrap_or_default();
        let mounts = text.lines().filter(|line| line.contains("cgroup")).filter_map(Mount::parse);
        let mut found: Vec<Hierarchy> = mounts
            .filter(|mount| mount.fstype == "cgroup" || mount.fstype == "cgroup2")
            .map(|mount| Hierarchy {
                is_v2: mount.fstype == "cgroup2",
                options: mount.super_options.to_owned(),
                root: mount.root.into_owned(),
                point: proc.rooted(&mount.path),
            })
            .collect();
        if found.is_empty() {
            let usual = |is_v2, options: &str, folder: &str| {
                let point = proc.rooted("/sys/fs/cgroup").join(folder);
                point.is_dir().then(|| Hierarchy { is_v2, options: options.to_owned(), root: "/".to_owned(), point })
            };
            let v1 =
                ["cpu", "cpuacct", "memory", "blkio", "pids"].into_iter().filter_map(|name| usual(false, name, name));
            found.extend(v1.chain(usual(true, "", "unified")).chain(usual(true, "", "")));
        }
        Self(found)
    }

    /// The place of `who` (`self` or a process number), whose `/proc/PID/cgroup` is `text`, for
    /// `controller`: in version 1 if the controller is there, else in version 2. None if it is not
    /// visible from here.
    pub fn place(&self, who: &str, text: &str, controller: &str) -> Option<Place> {
        let memberships = memberships(text);
        let v1 = memberships.iter().find(|line| line.controllers.split(',').any(|name| name == controller));
        let hierarchies = self.0.iter();
        match v1 {
            Some(line) => hierarchies
                .filter(|it| !it.is_v2 && it.options.split(',').any(|option| option == controller))
                .find_map(|it| it.place(who, line.path)),
            None => self.unified(who, text),
        }
    }

    /// The place of `who` in version 2, whichever controllers that has.
    pub fn unified(&self, who: &str, text: &str) -> Option<Place> {
        let path = memberships(text).iter().find(|line| line.controllers.is_empty())?.path;
        self.0.iter().filter(|it| it.is_v2).find_map(|it| it.place(who, path))
    }
}

/// Cgroups by name, without a process.
impl Hierarchies {
    /// The name of the cgroup whose files are in `folder`, as `/proc/PID/cgroup` writes it; none if
    /// the folder is not in a cgroup hierarchy.
    pub fn name_at(&self, folder: &Path) -> Option<String> {
        let inside = self.0.iter().filter_map(|it| Some((it, folder.strip_prefix(&it.point).ok()?.to_str()?)));
        let (it, inner) = inside.max_by_key(|(it, _)| it.point.components().count())?;
        Some(format!("{}/{inner}", it.root.trim_end_matches('/')))
    }

    /// The `/proc/PID/cgroup` of a process in the cgroup `name`, for every hierarchy that has it;
    /// empty if none has.
    pub fn membership_text(&self, name: &str) -> String {
        let have = self.0.iter().filter(|it| it.has(name));
        have.map(|it| format!("0:{}:{name}\n", if it.is_v2 { "" } else { &it.options })).collect()
    }

    /// The folders of the cgroup `name` in every hierarchy that has one.
    pub fn folders(&self, name: &str) -> Vec<PathBuf> {
        let have = self.0.iter().filter(|it| it.has(name));
        have.filter_map(|it| below(name, &it.root).map(|inner| it.folder(inner))).collect()
    }
}

impl Hierarchy {
    fn has(&self, name: &str) -> bool {
        below(name, &self.root).is_some_and(|inner| self.folder(inner).is_dir())
    }

    fn place(&self, who: &str, path: &str) -> Option<Place> {
        let inner = below(path, &self.root).filter(|inner| self.folder(inner).is_dir());
        // holdup itself is always below what is mounted here, whatever the path says.
        let inner = if who == "self" { inner.or(Some("")) } else { inner }?;
        let head = path.strip_suffix(inner).unwrap_or_default();
        let levels = levels(inner).map(|level| Level {
            path: if head.len() + level.len() == 0 { "/".to_owned() } else { format!("{head}{level}") },
            folder: self.folder(level),
        });
        let levels: Vec<Level> = levels.take(LEVELS_MAX).collect();
        levels.last().is_some_and(|level| level.folder.is_dir()).then_some(Place { is_v2: self.is_v2, levels })
    }

    fn folder(&self, inner: &str) -> PathBuf {
        self.point.join(inner.trim_start_matches('/'))
    }
}

impl Level {
    /// Whether it holds the whole machine, and not only what a container's namespace calls its root:
    /// of version 1 only that has `release_agent`, and of version 2 only that lacks `cgroup.type`.
    pub fn is_machine(&self) -> bool {
        let has = |file: &str| self.folder.join(file).exists();
        has("release_agent") || (has("cgroup.subtree_control") && !has("cgroup.type"))
    }

    /// A file's text, trimmed; none if it cannot be read.
    pub fn word(&self, file: &str) -> Option<String> {
        let mut buffer = Vec::new();
        let text = self.read(file, &mut buffer).ok()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Reads a file into `buffer`, as text.
    ///
    /// # Errors
    /// If it cannot be read. An empty one (`io.stat` of a cgroup without I/O so far) is valid.
    pub fn read<'a>(&self, file: &str, buffer: &'a mut Vec<u8>) -> Result<&'a str, ReadError> {
        read_even_empty(&self.folder.join(file), buffer)
    }
}

/// The part of `path` below `root`, without a trailing slash: `/a/b` below `/a` is `/b`. None if it
/// is not below, or leads out again: `/../x` is outside our namespace.
pub fn below<'a>(path: &'a str, root: &str) -> Option<&'a str> {
    let inner = path.trim_end_matches('/').strip_prefix(root.trim_end_matches('/'))?;
    let is_part = inner.is_empty() || inner.starts_with('/');
    (is_part && !inner.split('/').any(|part| part == "..")).then_some(inner)
}

/// `/a/b` -> `/a/b`, `/a`, and the root as an empty string.
fn levels(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| path.rsplit_once('/').map(|(parent, _)| parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Proc) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let proc = Proc::at(dir.path());
        (dir, proc)
    }

    fn paths(place: &Place, dir: &tempfile::TempDir) -> Vec<(String, String)> {
        let folder = |level: &Level| {
            level.folder.strip_prefix(dir.path()).unwrap().to_string_lossy().trim_end_matches('/').to_owned()
        };
        place.levels.iter().map(|level| (level.path.clone(), folder(level))).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn lines_of_both_versions() {
        let found = memberships("5:cpu,cpuacct:/a:b\n1:name=systemd:/\n0::/x\nrubbish\n7:memory:x\n");
        let found: Vec<_> = found.iter().map(|it| (it.controllers, it.path)).collect();
        assert_eq!(found, [("cpu,cpuacct", "/a:b"), ("name=systemd", "/"), ("", "/x")]);
    }

    #[test]
    fn below_a_root() {
        assert_eq!(below("/a/b", "/a"), Some("/b"));
        assert_eq!(below("/a/b", "/"), Some("/a/b"));
        assert_eq!((below("/", "/"), below("/a", "/a")), (Some(""), Some("")));
        assert_eq!((below("/ab", "/a"), below("/a/../..", "/"), below("/../x", "/")), (None, None, None));
    }

    #[test]
    fn version_2_with_levels_up_to_the_mount() {
        let (dir, proc) = tree(&[
            ("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("sys/fs/cgroup/a/b/cpu.max", "max 100000\n"),
        ]);
        let place = Hierarchies::read(&proc).place("7", "0::/a/b\n", "cpu").unwrap();
        assert!(place.is_v2);
        assert_eq!(
            paths(&place, &dir),
            pairs(&[("/a/b", "sys/fs/cgroup/a/b"), ("/a", "sys/fs/cgroup/a"), ("/", "sys/fs/cgroup")])
        );
        // Gone, or out of our namespace's sight: nothing of another process, the mount point of our own.
        for path in ["0::/gone\n", "0::/../x\n"] {
            assert_eq!(Hierarchies::read(&proc).place("7", path, "cpu"), None);
            let own = Hierarchies::read(&proc).place("self", path, "cpu").unwrap();
            assert_eq!(own.levels.len(), 1);
        }
    }

    #[test]
    fn version_1_at_other_places_and_beside_version_2() {
        let (dir, proc) = tree(&[
            (
                "proc/self/mountinfo",
                "\
35 31 0:32 / /cgroup/mem rw - cgroup cgroup rw,memory
36 31 0:33 / /cgroup/cpu\\040x rw - cgroup cgroup rw,cpu,cpuacct
37 31 0:34 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
",
            ),
            ("cgroup/mem/m/memory.limit_in_bytes", "1\n"),
            ("cgroup/cpu x/c/cpu.shares", "1\n"),
            ("sys/fs/cgroup/unified/u/cpu.pressure", "x\n"),
        ]);
        let text = "3:memory:/m\n2:cpu,cpuacct:/c\n1:blkio:/\n0::/u\n";
        let hierarchies = Hierarchies::read(&proc);
        let memory = hierarchies.place("7", text, "memory").unwrap();
        assert_eq!(paths(&memory, &dir), pairs(&[("/m", "cgroup/mem/m"), ("/", "cgroup/mem")]));
        assert_eq!(paths(&hierarchies.place("7", text, "cpu").unwrap(), &dir)[0].1, "cgroup/cpu x/c");
        assert_eq!(hierarchies.place("7", text, "blkio"), None);
        assert_eq!(paths(&hierarchies.unified("7", text).unwrap(), &dir)[0].1, "sys/fs/cgroup/unified/u");
    }

    /// The same name in several hierarchies, by name and by folder.
    #[test]
    fn a_cgroup_by_its_name() {
        let (dir, proc) = tree(&[
            (
                "proc/self/mountinfo",
                "\
35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
36 31 0:33 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
37 31 0:34 /docker /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
",
            ),
            ("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "1\n"),
            ("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.shares", "1\n"),
            ("sys/fs/cgroup/cpu,cpuacct/c/cpu.shares", "1\n"),
            ("sys/fs/cgroup/unified/x/cpu.stat", "1\n"),
        ]);
        let hierarchies = Hierarchies::read(&proc);
        let text = hierarchies.membership_text("/a/b");
        assert_eq!(text, "0:rw,memory:/a/b\n0:rw,cpu,cpuacct:/a/b\n");
        let place = hierarchies.place("", &text, "cpuacct").unwrap();
        assert_eq!(paths(&place, &dir)[0].1, "sys/fs/cgroup/cpu,cpuacct/a/b");
        assert_eq!(hierarchies.folders("/a/b").len(), 2);
        assert_eq!(hierarchies.place("", &hierarchies.membership_text("/c"), "memory"), None);
        assert_eq!(hierarchies.membership_text("/docker/x"), "0::/docker/x\n");
        assert_eq!(
            (hierarchies.membership_text("/x"), hierarchies.membership_text("/../a")),
            (String::new(), String::new())
        );
        let name = |path: &str| hierarchies.name_at(&dir.path().join(path));
        assert_eq!(name("sys/fs/cgroup/memory/a/b").as_deref(), Some("/a/b"));
        assert_eq!(name("sys/fs/cgroup/unified/x").as_deref(), Some("/docker/x"));
        assert_eq!(name("sys/fs"), None);
    }

    /// Docker on version 1: the host's path, of which the container sees its own part.
    #[test]
    fn a_container_with_its_part_mounted() {
        let (dir, proc) = tree(&[
            ("proc/self/mountinfo", "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1\n"),
        ]);
        let place = Hierarchies::read(&proc).place("self", "4:memory:/docker/abc\n", "memory").unwrap();
        assert_eq!(paths(&place, &dir), pairs(&[("/docker/abc", "sys/fs/cgroup/memory")]));
    }
}
