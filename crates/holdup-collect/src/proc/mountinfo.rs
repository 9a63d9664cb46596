//! `/proc/PID/mountinfo` (proc_pid_mountinfo(5)): the reachable file systems and their places. It
//! parses the file and detects mounts that a later one covers; callers choose the mounts they need.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Largest number of lines read: a host with a thousand containers has some ten thousand.
const LINES_MAX: usize = 50_000;

/// One mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount<'a> {
    /// Its number.
    pub id: u64,
    /// The mount that it is mounted on.
    pub parent: u64,
    /// Device as `MAJOR:MINOR`; file systems without a block device have artificial ones, `0:35`.
    pub number: &'a str,
    /// The file system's folder that is mounted; `/` unless it is a bind mount or a subvolume.
    pub root: Cow<'a, str>,
    /// The mount point.
    pub path: Cow<'a, str>,
    /// Options of this mount, comma-separated, as they are written.
    pub options: &'a str,
    /// Kind of file system.
    pub fstype: &'a str,
    /// The mounted source: a device, `server:/export`, or any word.
    pub source: Cow<'a, str>,
    /// Options of the file system, comma-separated, as they are written.
    pub super_options: &'a str,
}

impl<'a> Mount<'a> {
    /// Parses one line; none if it is malformed.
    pub fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.split(' ');
        let (id, parent) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let (number, root, path, options) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        // Any number of optional fields, ended by a single dash.
        fields.by_ref().find(|field| *field == "-")?;
        let (fstype, source) = (fields.next()?, fields.next()?);
        let super_options = fields.next()?;
        let path = unescape(path);
        path.starts_with('/').then(|| Self {
            id,
            parent,
            number,
            root: unescape(root),
            path,
            options,
            fstype,
            source: unescape(source),
            super_options,
        })
    }
}

/// Decodes the kernel's escapes of white space and backslashes: `\040` -> a space. Other text stays
/// unchanged.
pub fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let octal = bytes.get(at + 1..at + 4).filter(|digits| digits.iter().all(|d| (b'0'..=b'7').contains(d)));
        let value = octal.map(|digits| digits.iter().fold(0_u32, |sum, digit| sum * 8 + u32::from(digit - b'0')));
        match value.and_then(|value| u8::try_from(value).ok()).filter(|_| bytes[at] == b'\\') {
            Some(byte) => {
                plain.push(byte);
                at += 4;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&plain).into_owned())
}

/// The mounts that a path can lead to, in the file's order. Mounts covered by a later one, and
/// malformed lines, are left out.
pub fn visible(text: &str) -> Vec<Mount<'_>> {
    let mounts: Vec<Mount> = text.lines().take(LINES_MAX).filter_map(Mount::parse).collect();
    let ids: HashSet<u64> = mounts.iter().map(|mount| mount.id).collect();
    // Of two mounts on the same place of the same parent the later one is on top.
    let mut children: HashMap<(u64, &str), usize> = HashMap::new();
    let mut roots: HashMap<&str, usize> = HashMap::new();
    for (at, mount) in mounts.iter().enumerate() {
        if mount.parent == mount.id || !ids.contains(&mount.parent) {
            roots.insert(&mount.path, at);
        } else {
            children.insert((mount.parent, &mount.path), at);
        }
    }
    let has_root = roots.contains_key("/");
    let reached = |path: &str| {
        let (mut current, mut steps) = (None, 0);
        for prefix in prefixes(path) {
            // A changed root that is not a mount itself has several mounts without a parent.
            if current.is_none() || !has_root {
                current = roots.get(prefix).copied().or(current);
            }
            // A mount may lie on another at the same place; the counter ends a cycle in a corrupt
            // file.
            while let Some(next) = current.and_then(|at| children.get(&(mounts[at].id, prefix)).copied()) {
                if steps > mounts.len() {
                    return None;
                }
                steps += 1;
                current = Some(next);
            }
        }
        current
    };
    let seen: HashSet<usize> = (0..mounts.len()).filter(|at| reached(&mounts[*at].path) == Some(*at)).collect();
    mounts.into_iter().enumerate().filter(|(at, _)| seen.contains(at)).map(|(_, mount)| mount).collect()
}

/// `/a/b` -> `/`, `/a`, `/a/b`.
fn prefixes(path: &str) -> impl Iterator<Item = &str> {
    let inner = path.char_indices().skip(1).filter(|(_, letter)| *letter == '/').map(|(at, _)| at);
    let ends = inner.chain((path.len() > 1).then_some(path.len()));
    std::iter::once("/").chain(ends.map(|end| &path[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<(u64, String)> {
        visible(text).into_iter().map(|mount| (mount.id, mount.path.into_owned())).collect()
    }

    #[test]
    fn a_line() {
        let line =
            r"36 35 98:0 /mnt1 /mnt\0402 rw,noatime master:1 propagate_from:2 - ext3 /dev/root\134x rw,errors=continue";
        let mount = Mount::parse(line).unwrap();
        assert_eq!((mount.id, mount.parent, mount.number), (36, 35, "98:0"));
        assert_eq!((&*mount.root, &*mount.path, mount.options), ("/mnt1", "/mnt 2", "rw,noatime"));
        assert_eq!((mount.fstype, &*mount.source, mount.super_options), ("ext3", r"/dev/root\x", "rw,errors=continue"));
        assert!(Mount::parse("36 35 98:0 / /x rw shared:1 ext3 /dev/root rw").is_none());
        assert!(Mount::parse("36 35 98:0 / x rw - ext3 /dev/root rw").is_none());
        assert!(Mount::parse("").is_none());
        // No source: a field of nothing, as the kernel writes it.
        assert_eq!(&*Mount::parse("36 35 0:5 / /x rw - tmpfs  rw").unwrap().source, "");
    }

    #[test]
    fn escapes() {
        assert_eq!(unescape(r"a\040b\011\012\134"), "a b\t\n\\");
        assert_eq!(unescape(r"a\04"), r"a\04");
        assert_eq!(unescape(r"\999\777\"), r"\999\777\");
        assert_eq!(unescape(r"caf\303\251"), "café");
    }

    #[test]
    fn mounts_under_a_later_mount_are_left_out() {
        let text = "\
27 1 254:0 / / rw - ext4 /dev/vda rw
30 27 8:0 / /mnt rw - ext4 /dev/sda rw
31 30 8:1 / /mnt/a rw - ext4 /dev/sda1 rw
32 30 0:40 / /mnt rw - tmpfs tmpfs rw
33 32 8:2 / /mnt/b rw - ext4 /dev/sda2 rw
34 27 0:41 / /x rw - tmpfs tmpfs rw
35 27 0:42 / /x rw - tmpfs tmpfs rw
36 99 0:43 / /else rw - tmpfs tmpfs rw
not a mount at all
";
        let found: Vec<_> = paths(text).into_iter().map(|(id, path)| format!("{id} {path}")).collect();
        assert_eq!(found, ["27 /", "32 /mnt", "33 /mnt/b", "35 /x"]);
    }

    #[test]
    fn a_changed_root_that_is_no_mount() {
        let text = "5 1 8:0 / /a rw - ext4 /dev/sda rw\n6 2 8:1 / /a/b rw - ext4 /dev/sda1 rw\n7 6 8:2 / /a/b/c rw - ext4 /dev/sda2 rw\n";
        assert_eq!(paths(text).len(), 3);
    }

    #[test]
    fn a_circle_ends() {
        let text = "1 9 0:1 / / rw - a b c\n2 1 0:1 / / rw - a b c\n1 2 0:1 / / rw - a b c\n";
        assert!(paths(text).len() <= 3);
    }
}
