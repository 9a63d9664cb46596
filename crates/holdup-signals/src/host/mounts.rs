//! From a file to its mount and to the server's setting that put it there. Both come from recorded
//! settings: holdup looks nothing up on this machine.

use crate::View;

/// A mounted file system.
#[derive(Clone, Debug, PartialEq)]
pub struct Mount {
    /// Mount point.
    pub path: String,
    /// Kind, e.g. `ext4`, `tmpfs`.
    pub fstype: String,
    /// Options, comma-separated.
    pub options: String,
    /// Device, e.g. `vda1`, `loop3`; `tmpfs` and the like have none.
    pub device: String,
    /// Size, if recorded.
    pub size_bytes: Option<f64>,
    /// Free space, if recorded.
    pub free_bytes: Option<f64>,
    /// The source of this view of mounts: `host` or `pid:N`.
    pub source: String,
}

/// File systems that keep their files in memory.
const IN_MEMORY: &[&str] = &["tmpfs", "ramfs", "devtmpfs"];

impl Mount {
    /// Whether its files are only in memory.
    pub fn is_in_memory(&self) -> bool {
        IN_MEMORY.contains(&self.fstype.as_str())
    }

    /// Whether option `name` is set.
    pub fn has_option(&self, name: &str) -> bool {
        self.options.split(',').any(|option| option == name)
    }

    /// Name of the setting for its `fact`, e.g. `options`.
    pub fn setting(&self, fact: &str) -> String {
        format!("mount[{}].{fact}", self.path)
    }

    /// `/tmp (ext4 on loop3, rw,dirsync)`.
    pub fn describe(&self) -> String {
        format!("{} ({} on {}, {})", self.path, self.fstype, self.device, self.options)
    }
}

/// Whether `directory` is `path` or above it.
pub fn is_at_or_above(directory: &str, path: &str) -> bool {
    let directory = directory.trim_end_matches('/');
    path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl View<'_> {
    /// The mount of `path` (absolute) as a watched process sees it, else as the host does.
    pub fn mount_of(&self, path: &str) -> Option<Mount> {
        let rows = self.recording.tables.settings.with_columns(&["source", "name", "value"]).ok()?;
        let mut best: Option<(bool, usize, &str, &str)> = None;
        for row in rows {
            let Some(at) = row.name.strip_prefix("mount[").and_then(|n| n.strip_suffix("].fstype")) else { continue };
            let of_process = row.source.starts_with("pid:");
            let rank = (of_process, at.trim_end_matches('/').len());
            if is_at_or_above(at, path) && best.is_none_or(|(p, n, ..)| rank >= (p, n)) {
                best = Some((rank.0, rank.1, &row.source, at));
            }
        }
        let (_, _, source, at) = best?;
        let fact = |fact: &str| {
            let name = format!("mount[{at}].{fact}");
            rows.iter().rev().find(|r| r.source == source && r.name == name).map(|r| r.value.clone())
        };
        let number = |name: &str| fact(name).and_then(|value| value.parse().ok());
        Some(Mount {
            path: at.to_owned(),
            fstype: fact("fstype").unwrap_or_default(),
            options: fact("options").unwrap_or_default(),
            device: fact("device").unwrap_or_default(),
            size_bytes: number("size_bytes"),
            free_bytes: number("free_bytes"),
            source: source.to_owned(),
        })
    }

    /// Variables of database servers that name a directory at or above `path`, nearest first, with
    /// their value. Each directory of a list (`a:b:c`) counts.
    pub fn server_variables_at(&self, path: &str) -> Vec<(String, String)> {
        let Ok(rows) = self.recording.tables.settings.with_columns(&["source", "name", "value"]) else {
            return Vec::new();
        };
        let servers = rows.iter().filter(|r| r.source.contains("://"));
        let mut found: Vec<(usize, String, String)> = Vec::new();
        for row in servers {
            let directories = row.value.split(':').filter(|d| d.len() > 1 && d.starts_with('/'));
            let nearest = directories.filter(|d| is_at_or_above(d, path)).map(|d| d.trim_end_matches('/').len()).max();
            if let Some(length) = nearest
                && !found.iter().any(|(_, name, value)| *name == row.name && *value == row.value)
            {
                found.push((length, row.name.clone(), row.value.clone()));
            }
        }
        found.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        found.into_iter().map(|(_, name, value)| (name, value)).collect()
    }

    /// Directories that server variable `name` names, several for a list.
    pub fn server_directories(&self, name: &str) -> Vec<String> {
        let Ok(value) = self.setting(name, "") else { return Vec::new() };
        value.split(':').filter(|d| d.starts_with('/')).map(|d| d.trim_end_matches('/').to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::SyntheticRecording;

    fn with(rows: &[(&str, &str, &str)]) -> SyntheticRecording {
        rows.iter().fold(SyntheticRecording::new(1), |made, (source, name, value)| made.setting(source, name, value))
    }

    #[test]
    fn the_nearest_mount_and_the_process_own_view_win() {
        let made = with(&[
            ("host", "mount[/].fstype", "ext4"),
            ("host", "mount[/].device", "vda"),
            ("host", "mount[/tmp].fstype", "xfs"),
            ("pid:7", "mount[/].fstype", "overlay"),
            ("pid:7", "mount[/tmp/x].fstype", "tmpfs"),
        ]);
        let fstype = |path| made.seen(|view| view.mount_of(path).map(|m| m.fstype));
        assert_eq!(fstype("/tmp/x/a"), Some("tmpfs".into()));
        // What another mount namespace has at /tmp is not where this process's files are.
        assert_eq!((fstype("/tmp/xy"), fstype("relative")), (Some("overlay".into()), None));
    }

    #[test]
    fn variables_name_directories() {
        let server = "mysql://127.0.0.1:3306";
        let made = with(&[
            (server, "tmpdir", "/t/a:/t/b/"),
            (server, "datadir", "/t/"),
            (server, "socket", "/t/b/s.sock"),
            (server, "basedir", "/"),
            ("host", "kernel.core_pattern", "/t/b"),
        ]);
        made.seen(|view| {
            let names: Vec<String> = view.server_variables_at("/t/b").into_iter().map(|(n, _)| n).collect();
            assert_eq!(names, ["tmpdir", "datadir"]);
            assert_eq!(view.server_directories("tmpdir"), ["/t/a", "/t/b"]);
        });
    }
}
