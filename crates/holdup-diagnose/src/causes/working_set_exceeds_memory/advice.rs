//! What to do about a cache that is too small: more memory for the server or its cgroup.

use crate::causes::bytes;
use crate::change::database::Server;
use crate::change::host::Place;
use crate::change::parameters::{BUFFER_POOL, Engine};
use crate::change::{Bounds, Direction, Fix, SettingChange, Unit, host};
use holdup_recording::metrics;
use holdup_signals::host::memory::{HOST, Memory};
use holdup_signals::{Disk, View};

/// Room for everything on the file system of `disk` if its size is known: all of it then stays.
/// Else for what was read again, which is a start.
pub(super) fn more_memory(view: &View<'_>, disk: &Disk, memory: &Memory, read_again: f64) -> Fix {
    let now = memory.limit_bytes;
    let on_disk = stored(view, disk).filter(|(_, bytes)| *bytes > memory.file_bytes.unwrap_or(0.0));
    let more = on_disk.as_ref().map_or(read_again, |(_, bytes)| bytes - memory.file_bytes.unwrap_or(0.0));
    let to = ((now + more) / (64.0 * 1048576.0)).ceil().max((now / (64.0 * 1048576.0)).floor() + 1.0) * 64.0;
    let seconds = view.window.seconds();
    let again = format!("{} were read again in these {seconds:.0} s", bytes(read_again));
    let why = match &on_disk {
        Some((path, all)) => format!(
            ": {again}, and {} lie on {path}. All of that then stays in memory; another run shows whether less would suffice.",
            bytes(*all)
        ),
        None => format!(" to start with: {again}."),
    };
    if !memory.is_cgroup() {
        let text = format!("Give the machine {to:.0} MiB instead of {}{why}", bytes(now));
        return Fix { text, command: None, keep: None, risk: None };
    }
    let bounds = Bounds { least: 0.0, most: host::memory_bytes(view).unwrap_or(f64::MAX) / 1_048_576.0 };
    let from = Some(now / 1_048_576.0);
    match SettingChange::new(Direction::Raise, "its memory limit", Unit::Mebibytes, from, to, bounds) {
        Ok(change) if change.to == to => {
            let steps = Place::find(view, &memory.source).memory(to, &cgroup_file(view, memory));
            let text = format!("Raise its memory limit from {} to {to:.0} MiB{why}{}", bytes(now), steps.note());
            let risk = format!("{} The machine must have that much free.", steps.effect).trim_start().to_owned();
            Fix { text, command: steps.command, keep: steps.keep, risk: Some(risk) }
        }
        _ => {
            let text = format!(
                "The machine itself needs more memory before its limit of {} can become {to:.0} MiB{why}",
                bytes(now)
            );
            Fix { text, command: None, keep: None, risk: None }
        }
    }
}

/// The file that holds the memory limit.
fn cgroup_file(view: &View<'_>, memory: &Memory) -> String {
    let path = view.cgroup_of(&memory.source, metrics::cgroup::MEMORY_USAGE_BYTES.name);
    match view.setting_of(&memory.source, "cgroup.version") {
        Some("2") => format!("/sys/fs/cgroup{path}/memory.max"),
        _ => format!("/sys/fs/cgroup/memory{path}/memory.limit_in_bytes"),
    }
}

/// A larger buffer pool. A pool larger by the bytes read in this time would have had room for them;
/// a fifth of the available memory stays for others.
pub(super) fn larger_pool(view: &View<'_>, now: f64, read_past: f64) -> Fix {
    const STEP: f64 = 128.0 * 1_048_576.0;
    let server = Server::find(view, Engine::MySql);
    let available = available_bytes(view);
    let from = server.number(&BUFFER_POOL).unwrap_or(now);
    let room = 0.8 * available;
    let to = ((now + read_past.min(room)) / STEP).ceil().max(1.0) * STEP;
    // Rounded up it may be more than there is.
    let to = if to - from > available { from } else { to };
    let of = &BUFFER_POOL;
    match SettingChange::new(Direction::Raise, of.name, of.unit, Some(from), to, of.bounds) {
        Ok(change) => {
            let why = format!(
                "{} were read past it in these {:.0} s, and {} of memory are available",
                bytes(read_past),
                view.window.seconds(),
                bytes(available)
            );
            change.fix(
                &why,
                server.steps(&[(&BUFFER_POOL, &change)]),
                "Memory that other processes need must stay free.",
            )
        }
        Err(stay) => {
            let text =
                format!("Give the machine more memory, then the buffer pool ({} are available).", bytes(available));
            stay.fix(&text)
        }
    }
}

/// Memory that the server's pool may still take: what the machine has available, and at most what
/// its own cgroup has left.
fn available_bytes(view: &View<'_>) -> f64 {
    let of_host = view.gauge(metrics::host::MEMORY_AVAILABLE_BYTES.name, &[], HOST).map_or(0.0, |g| g.min);
    let of_cgroup = view.memory().ok().filter(Memory::is_cgroup).map(|m| (1.0 - m.in_use_ratio) * m.limit_bytes);
    of_cgroup.map_or(of_host, |left| left.max(0.0).min(of_host))
}

/// Mount point of the file system of `disk`, and the bytes on it.
fn stored(view: &View<'_>, disk: &Disk) -> Option<(String, f64)> {
    let settings = view.recording.tables.settings.with_columns(&["name", "value"]).ok()?;
    let paths = settings.iter().filter_map(|s| s.name.strip_prefix("mount[")?.strip_suffix("].fstype"));
    let mounts = paths.filter_map(|path| view.mount_of(path).filter(|m| m.path == path));
    let mut on_disk = mounts.filter(|m| view.whole_device(&m.device) == disk.device);
    let mount = on_disk.next()?;
    Some((mount.path, mount.size_bytes? - mount.free_bytes?))
}
