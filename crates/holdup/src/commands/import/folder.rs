//! The files of a folder of collected outputs: of pt-stalk, of a sosreport, or of anything. Folders
//! in it are walked some levels deep. Links below the folder are not followed: they may lead
//! anywhere, and those of a sosreport lead to files that are there already.

use std::fs::{DirEntry, FileType};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Most files of a folder: all of them are open at once.
const FILES_MAX: usize = 500;

/// Most entries that are looked at.
const ENTRIES_MAX: usize = 50_000;

/// Levels of folders below the given one.
const LEVELS: usize = 6;

/// The folder by which a sosreport is known.
const SOS: &str = "sos_commands";

/// Parts of a sosreport that are read: a folder, and the beginning of a file's name.
const SOS_PARTS: [(&str, &str); 27] = [
    ("sos_commands/block", "blockdev"),
    ("sos_commands/block", "lsblk"),
    ("sos_commands/filesys", "df"),
    ("sos_commands/filesys", "mount"),
    ("sos_commands/general", "uptime"),
    ("sos_commands/host", "uptime"),
    ("sos_commands/kernel", "dmesg"),
    ("sos_commands/kernel", "sysctl"),
    ("sos_commands/mariadb", ""),
    ("sos_commands/memory", "free"),
    ("sos_commands/mongodb", ""),
    ("sos_commands/mysql", ""),
    ("sos_commands/networking", "netstat"),
    ("sos_commands/networking", "nstat"),
    ("sos_commands/networking", "ss"),
    ("sos_commands/postgresql", ""),
    ("sos_commands/process", "pidstat"),
    ("sos_commands/process", "ps"),
    ("sos_commands/process", "top"),
    ("sos_commands/processor", "lscpu"),
    ("sos_commands/redis", ""),
    ("sos_commands/sar", "sar"),
    ("sos_commands/virtmem", "vmstat"),
    ("etc", "fstab"),
    ("proc", "loadavg"),
    ("proc", "meminfo"),
    ("proc", "mounts"),
];

/// A file to import.
pub(super) struct FoundFile {
    pub path: PathBuf,
    /// Its place below the folder that it was found in; none if it was given itself.
    pub name: Option<String>,
}

/// Replaces each folder by its files, sorted by name; the time since boot comes first, because
/// kernel logs count from it.
pub(super) fn with_folders(paths: &[PathBuf]) -> Result<Vec<FoundFile>, Failure> {
    let mut all = Vec::new();
    for path in paths {
        if !path.is_dir() {
            all.push(FoundFile { path: path.clone(), name: None });
            continue;
        }
        let mut walk = Walk { files: Vec::new(), entries: 0 };
        walk.folder(path, "", 0)?;
        let mut files = walk.files;
        keep_parts_of_sos(&mut files);
        keep_diagnostics_of_mongod(&mut files);
        if files.len() > FILES_MAX {
            let why = format!("{} files; at most {FILES_MAX} are read", files.len());
            return Err(Failure::Unusable(format!("{}: {why}; name those that matter", path.display())));
        }
        files.sort_by_cached_key(|(_, name)| (!name.contains("uptime"), name.clone()));
        all.extend(files.into_iter().map(|(path, name)| FoundFile { path, name: Some(name) }));
    }
    Ok(all)
}

struct Walk {
    files: Vec<(PathBuf, String)>,
    entries: usize,
}

impl Walk {
    fn folder(&mut self, folder: &Path, below: &str, level: usize) -> Result<(), Failure> {
        let unreadable = |e: std::io::Error| Failure::Unusable(format!("{}: {e}", folder.display()));
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                let why = format!("more than {ENTRIES_MAX} files; name the folders that matter");
                return Err(Failure::Unusable(format!("{}: {why}", folder.display())));
            }
            let own = entry.file_name().to_string_lossy().into_owned();
            let name = if below.is_empty() { own.clone() } else { format!("{below}/{own}") };
            let kind = entry.file_type().map_err(unreadable)?;
            if own.starts_with('.') {
                continue;
            }
            if kind.is_dir() && level < LEVELS {
                self.folder(&entry.path(), &name, level + 1)?;
            } else if is_file(&entry, kind, level) {
                self.files.push((entry.path(), name));
            }
        }
        Ok(())
    }
}

/// A file, or at the top a link to one.
fn is_file(entry: &DirEntry, kind: FileType, level: usize) -> bool {
    kind.is_file() || kind.is_symlink() && level == 0 && entry.path().is_file()
}

/// Leaves of a sosreport those parts that show what the host did.
fn keep_parts_of_sos(files: &mut Vec<(PathBuf, String)>) {
    // The report may be in a folder of its own.
    let start = |name: &str| match name.strip_prefix(SOS) {
        Some(rest) if rest.starts_with('/') => Some(String::new()),
        _ => name.split_once(&format!("/{SOS}/")).map(|(root, _)| format!("{root}/")),
    };
    let Some(root) = files.iter().find_map(|(_, name)| start(name)) else { return };
    files.retain(|(_, name)| {
        let Some((folder, file)) = name.strip_prefix(&root).and_then(|name| name.rsplit_once('/')) else {
            return false;
        };
        SOS_PARTS.iter().any(|(part, beginning)| folder == *part && file.starts_with(beginning))
    });
}

/// The folder in which a mongod keeps its figures, below that of its data.
const DIAGNOSTICS: &str = "diagnostic.data";

/// A file that the data folder of every mongod has.
const STORAGE: &str = "WiredTiger";

/// Leaves of a mongod's data folder its figures and its logs: a file for each collection and index
/// says nothing, and there are thousands.
fn keep_diagnostics_of_mongod(files: &mut Vec<(PathBuf, String)>) {
    let below = |name: &str| match name.rsplit_once('/') {
        Some((folder, file)) => (folder.to_owned(), file.to_owned()),
        None => (String::new(), name.to_owned()),
    };
    let data: Vec<String> = files
        .iter()
        .map(|(_, name)| below(name))
        .filter(|(_, file)| file == STORAGE)
        .map(|(folder, _)| folder)
        .collect();
    files.retain(|(_, name)| {
        let is_inside = data.iter().any(|folder| folder.is_empty() || name.starts_with(&format!("{folder}/")));
        !is_inside || name.split('/').any(|part| part == DIAGNOSTICS) || name.ends_with(".log")
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept_by(keep: fn(&mut Vec<(PathBuf, String)>), names: &[&str]) -> Vec<String> {
        let mut files: Vec<(PathBuf, String)> = names.iter().map(|name| (PathBuf::new(), (*name).to_owned())).collect();
        keep(&mut files);
        files.into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn a_mongod_s_data_folder_gives_its_diagnostics() {
        let names =
            ["WiredTiger", "collection-0--17.wt", "diagnostic.data/metrics.interim", "mongod.lock", "mongod.log"];
        let kept = kept_by(keep_diagnostics_of_mongod, &names);
        assert_eq!(kept, ["diagnostic.data/metrics.interim", "mongod.log"]);
        let nested: Vec<String> = names.iter().map(|name| format!("var/db/{name}")).collect();
        let nested: Vec<&str> = nested.iter().map(String::as_str).chain(["uptime"]).collect();
        let kept = kept_by(keep_diagnostics_of_mongod, &nested);
        assert_eq!(kept, ["var/db/diagnostic.data/metrics.interim", "var/db/mongod.log", "uptime"]);
    }

    fn kept(names: &[&str]) -> Vec<String> {
        kept_by(keep_parts_of_sos, names)
    }

    #[test]
    fn parts_of_a_sosreport() {
        let names = ["sos_commands/kernel/dmesg_-T", "sos_commands/kernel/lsmod", "etc/passwd", "proc/meminfo", "free"];
        assert_eq!(kept(&names), ["sos_commands/kernel/dmesg_-T", "proc/meminfo"]);
        let nested = names.map(|name| format!("sosreport-db1/{name}"));
        let nested: Vec<&str> = nested.iter().map(String::as_str).collect();
        assert_eq!(kept(&nested), ["sosreport-db1/sos_commands/kernel/dmesg_-T", "sosreport-db1/proc/meminfo"]);
        assert_eq!(kept(&["a/b", "c"]), ["a/b", "c"]);
    }
}
