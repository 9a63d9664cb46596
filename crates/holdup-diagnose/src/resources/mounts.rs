//! Mounts of devices, and those on which reading a file also writes its access time.

use holdup_signals::evidence::Evidence;
use holdup_signals::host::disks::HOST;
use holdup_signals::{Missing, Mount, View};

use crate::change::Fix;
use crate::change::host::Place;

/// Mount options with which reads write nothing, or hardly anything.
const NO_WRITES: &[&str] = &["relatime", "noatime", "ro"];

/// Mounted file systems on devices, a watched process's view before the host's.
///
/// # Errors
/// If no source lists mounts.
pub fn on_devices(view: &View<'_>) -> Result<Vec<Mount>, Missing> {
    let missing = |what: String| Missing::new(what, HOST);
    let rows = view.recording.tables.settings.with_columns(&["source", "name", "value"]).map_err(missing)?;
    let paths = rows.iter().filter_map(|s| s.name.strip_prefix("mount[")?.strip_suffix("].options"));
    let mut found: Vec<Mount> = Vec::new();
    for path in paths {
        if let Some(mount) = view.mount_of(path).filter(|m| m.path == path && !m.is_in_memory())
            && !found.contains(&mount)
        {
            found.push(mount);
        }
    }
    if found.is_empty() { Err(missing("options of mounts".to_owned())) } else { Ok(found) }
}

/// Whether each read of a file there writes its access time.
pub fn writes_access_times(mount: &Mount) -> bool {
    !NO_WRITES.iter().any(|option| mount.has_option(option))
}

/// Evidence that points at its options.
pub fn options(view: &View<'_>, mount: &Mount, why: &str) -> Evidence {
    let text = format!("{} is mounted with {}: {why}", mount.path, mount.options);
    view.setting_evidence(&mount.source, &mount.setting("options"), "relatime or noatime", text)
}

/// Mounts it so that reads do not write.
pub fn without_access_times(view: &View<'_>, mount: &Mount) -> Fix {
    let steps = Place::find(view, &mount.source).machine(
        format!("mount -o remount,noatime {}", mount.path),
        format!("noatime among the options of {} in /etc/fstab", mount.path),
    );
    Fix {
        text: format!("Mount {} so that reads do not write.{}", mount.path, steps.note()),
        command: steps.command,
        keep: steps.keep,
        risk: Some(
            "Takes effect at once. Programs that look at access times (some mail readers, cleaners of temporary files) no longer see reads."
                .to_owned(),
        ),
    }
}
