//! File systems and volumes without room: by their free bytes and inodes, by a cloud's figures, and
//! by servers whose writes failed for lack of space.

mod pace;

use std::collections::BTreeMap;

pub use self::pace::Filling;
use self::pace::Outlook;
use holdup_recording::words::{bytes, percent, thousands};
use holdup_recording::{Labels, metrics};

use holdup_signals::{Evidence, Missing, View, Window};

/// Free space below this share (0-1) of a file system, and below [`FREE_BYTES`], counts as none: df prints
/// 100 % then, and the next extent or log file does not fit.
const FREE_RATIO: f64 = 0.001;
const FREE_BYTES: f64 = 64.0 * 1_048_576.0;

/// A cloud rounds the used share (0-1) of a volume to whole per cents.
const USED_RATIO: f64 = 0.995;

/// Kinds of file systems that are full by their nature: images that are only read.
const IMAGES: [&str; 4] = ["squashfs", "iso9660", "erofs", "udf"];

/// The kind of event that a log's line without space becomes.
pub const EVENT: &str = "disk_full";

const ENABLE: &str = "--watch host, or df and df -i in pasted text";

/// What has no room left.
#[derive(Clone, Debug)]
pub struct FullDisk {
    /// The mount point, the database of a cloud, or the server whose write failed.
    pub name: String,
    /// Which kind of evidence shows it.
    pub shown_by: ShownBy,
    /// From when on, nanoseconds; none if it was so from the first reading on.
    pub since: Option<i64>,
    /// The row that shows it.
    pub evidence: Evidence,
}

/// What shows that no room is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShownBy {
    /// A server's write failed with `ENOSPC`.
    Write,
    /// A cloud's figure of the volume.
    Cloud,
    /// A file system has no free bytes.
    Bytes,
    /// A file system has no free inodes: no file can be made, whatever space is left.
    Inodes,
}

/// The room on file systems and volumes.
#[derive(Clone, Debug)]
pub struct Room {
    /// Those without any, the surest first.
    pub full: Vec<FullDisk>,
    /// Those that will be full at their pace, the soonest first.
    pub filling: Vec<Filling>,
    /// Whether one has little room, and nothing shows how long that lasts.
    pub is_open: bool,
    /// The one with the least room, if none is full.
    pub least: Option<Evidence>,
}

/// What is found out of several file systems or volumes.
#[derive(Default)]
struct Found {
    full: Vec<FullDisk>,
    filling: Vec<Filling>,
    is_open: bool,
}

impl Found {
    /// Takes the outlook of what is not full; `point` makes evidence of the observed value and a sentence.
    fn take(
        &mut self,
        name: &str,
        (readings, size): (&[(i64, f64)], Option<f64>),
        (is_cloud, is_share): (bool, bool),
        point: impl Fn(String, String) -> Evidence,
    ) {
        match pace::outlook(readings, size) {
            Outlook::Fills { left_s, per_second } => {
                let free = readings.last().map_or(0.0, |(_, free)| *free);
                let observed = if is_share { percent(free) } else { bytes(free) };
                let evidence = point(observed, pace::sentence(name, free, left_s, per_second, is_share));
                self.filling.push(Filling { name: name.to_owned(), left_s, is_cloud, evidence });
            }
            Outlook::Unknown => self.is_open = true,
            Outlook::Lasts => {}
        }
    }
}

/// A file system's facts over time.
#[derive(Default)]
struct Facts {
    fstype: String,
    options: String,
    device: String,
    size: Option<f64>,
    /// Times and free bytes.
    free: Vec<(i64, f64)>,
    inodes: Option<f64>,
    free_inodes: Vec<(i64, f64)>,
}

impl Facts {
    fn is_image(&self, path: &str) -> bool {
        let is_read_only = self.options.split(',').any(|option| option == "ro");
        let is_snap = path.starts_with("/snap/") || self.device.starts_with("loop") && self.fstype.is_empty();
        IMAGES.contains(&self.fstype.as_str()) || is_read_only || is_snap
    }
}

/// The room on file systems and volumes, up to the end of the window.
///
/// # Errors
/// If no source tells.
pub fn room(view: &View<'_>) -> Result<Room, Missing> {
    let mut found = Found { full: failed_writes(view), ..Found::default() };
    let cloud_least = cloud_room(view, &mut found);
    let least = mounts_room(view, &mut found).or(cloud_least);
    let Found { mut full, mut filling, is_open } = found;
    full.sort_by_key(|disk| disk.shown_by);
    filling.sort_by(|a, b| a.left_s.total_cmp(&b.left_s));
    if full.is_empty() && least.is_none() {
        return Err(Missing::new("the free space of file systems", ENABLE));
    }
    Ok(Room { full, filling, is_open, least })
}

fn failed_writes(view: &View<'_>) -> Vec<FullDisk> {
    let rows = view.recording.tables.events.with_columns(&["observed_at", "kind", "text"]).unwrap_or_default();
    let mut events = rows.iter().filter(|row| row.kind == EVENT && view.window.contains(row.observed_at));
    let Some(first) = events.next() else { return Vec::new() };
    let more = events.count();
    let again = if more > 0 { format!(", and {more} more times") } else { String::new() };
    let labels = Labels::new([("kind", EVENT)]);
    let text = format!("{}{again}", first.text);
    let observed = format!("{} failed writes", more + 1);
    let evidence = Evidence::new("events", "kind", labels, view.window, observed, "no such event", text);
    let name = first.labels.get("server").unwrap_or("a server").to_owned();
    vec![FullDisk { name, shown_by: ShownBy::Write, since: Some(first.observed_at), evidence }]
}

/// Clouds' volumes: the least room of those that are not full.
fn cloud_room(view: &View<'_>, found: &mut Found) -> Option<Evidence> {
    const LABEL: &str = "db_instance";
    let mut least = None;
    let free = metrics::aws::FREE_STORAGE_SPACE_BYTES.name;
    let used = metrics::aws::STORAGE_UTILIZATION_RATIO.name;
    for metric in [used, free] {
        for name in view.label_values(metric, LABEL) {
            if found.full.iter().any(|disk| disk.name == name) || found.filling.iter().any(|disk| disk.name == name) {
                continue;
            }
            let labels = [(LABEL, name.as_str())];
            let series = view.index.series(metric, &labels).min_by_key(|((_, labels), _)| labels.iter().count());
            let Some((_, points)) = series else { continue };
            let within = points.iter().filter(|(at, _)| view.window.contains(*at));
            let free_at: Vec<(i64, f64)> =
                within.clone().map(|(at, value)| (*at, if metric == used { 1.0 - value } else { *value })).collect();
            let is_full = |value: f64| if metric == used { value >= USED_RATIO } else { value < FREE_BYTES };
            let since = within.clone().find(|(_, value)| is_full(*value)).map(|(at, _)| *at);
            let values = within.map(|(_, value)| *value);
            let worst = if metric == used { values.reduce(f64::max) } else { values.reduce(f64::min) };
            let Some(worst) = worst else { continue };
            let (observed, room) = match metric == used {
                true => (percent(worst), format!("{} of its storage was in use", percent(worst))),
                false => (bytes(worst), format!("{} of its storage were free", bytes(worst))),
            };
            let labels = Labels::new([("metric", metric), (LABEL, name.as_str())]);
            let text = format!("{name}: {room}, at the least room");
            let point = |observed: String, text: String| {
                Evidence::new("samples", "value", labels.clone(), view.window, observed, "room", text)
            };
            let evidence = point(observed, text);
            match since {
                Some(at) => {
                    found.full.push(FullDisk { name, shown_by: ShownBy::Cloud, since: Some(at), evidence });
                }
                None => {
                    let size = (metric == used).then_some(1.0);
                    found.take(&name, (&free_at, size), (true, metric == used), point);
                    least = least.or(Some(evidence));
                }
            }
        }
    }
    least
}

/// File systems: the least room of those that are not full.
fn mounts_room(view: &View<'_>, found: &mut Found) -> Option<Evidence> {
    let columns = ["observed_at", "source", "name", "value"];
    let rows = view.recording.tables.settings.with_columns(&columns).unwrap_or_default();
    let mut all: BTreeMap<(&str, &str), Facts> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.observed_at <= view.window.to) {
        let Some((path, fact)) = row.name.strip_prefix("mount[").and_then(|rest| rest.rsplit_once("].")) else {
            continue;
        };
        let facts = all.entry((path, row.source.as_str())).or_default();
        let number = || row.value.parse::<f64>().ok().filter(|value| value.is_finite());
        match fact {
            "fstype" => facts.fstype.clone_from(&row.value),
            "options" => facts.options.clone_from(&row.value),
            "device" => facts.device.clone_from(&row.value),
            "size_bytes" => facts.size = number().filter(|size| *size > 0.0),
            "inodes" => facts.inodes = number().filter(|inodes| *inodes > 0.0),
            "free_bytes" => facts.free.extend(number().map(|free| (row.observed_at, free))),
            "free_inodes" => facts.free_inodes.extend(number().map(|free| (row.observed_at, free))),
            _ => {}
        }
    }
    let mut least: Option<(f64, Evidence)> = None;
    for ((path, _), facts) in all.iter().filter(|((path, _), facts)| !facts.is_image(path)) {
        // Several sources see the same file system.
        if found.full.iter().any(|disk| disk.name == *path) || found.filling.iter().any(|disk| disk.name == *path) {
            continue;
        }
        match full_mount(view, path, facts) {
            Some(full) => found.full.push(full),
            None if facts.free.is_empty() => {}
            None => found.take(path, (&facts.free, facts.size), (false, false), |observed, text| {
                mount_evidence(path, "free_bytes", view.window, observed, text)
            }),
        }
        let free = facts.size.zip(facts.free.last()).map(|(size, (_, free))| free / size);
        if let Some(ratio) = free.filter(|ratio| least.as_ref().is_none_or(|(known, _)| ratio < known)) {
            let text = format!("{path} had {} of its space free, the least of all file systems", percent(ratio));
            least = Some((ratio, mount_evidence(path, "free_bytes", view.window, percent(ratio), text)));
        }
    }
    least.map(|(_, evidence)| evidence)
}

fn full_mount(view: &View<'_>, path: &str, facts: &Facts) -> Option<FullDisk> {
    let name = path.to_owned();
    let no_bytes = |size: f64| {
        let is_full = |free: f64| free <= FREE_RATIO * size && free < FREE_BYTES;
        // It counts as it was left: room that was made again is room.
        let (_, last) = facts.free.last().filter(|(_, free)| is_full(*free))?;
        let text = format!("the file system {path} is full: {} of {} are free", bytes(*last), bytes(size));
        Some((since(&facts.free, is_full), mount_evidence(path, "free_bytes", view.window, bytes(*last), text)))
    };
    if let Some((since, evidence)) = facts.size.and_then(no_bytes) {
        return Some(FullDisk { name, shown_by: ShownBy::Bytes, since, evidence });
    }
    let inodes = facts.inodes?;
    let is_full = |free: f64| free <= FREE_RATIO * inodes / 10.0;
    let (_, last) = facts.free_inodes.last().filter(|(_, free)| is_full(*free))?;
    let text = format!(
        "the file system {path} has {} of {} inodes free: no file can be made, whatever space is left",
        thousands(*last),
        thousands(inodes)
    );
    let evidence = mount_evidence(path, "free_inodes", view.window, thousands(*last), text);
    let since = since(&facts.free_inodes, is_full);
    Some(FullDisk { name, shown_by: ShownBy::Inodes, since, evidence })
}

/// When it became full; none if it was full at the first reading.
fn since(readings: &[(i64, f64)], is_full: impl Fn(f64) -> bool) -> Option<i64> {
    let last_free = readings.iter().rposition(|(_, free)| !is_full(*free))?;
    // At some time between both readings: from the last one with room on it may have been full.
    readings.get(last_free).map(|(at, _)| *at)
}

fn mount_evidence(path: &str, fact: &str, window: Window, observed: String, text: String) -> Evidence {
    let labels = Labels::new([("name", format!("mount[{path}].{fact}"))]);
    Evidence::new("settings", "value", labels, window, observed, "room", text)
}

#[cfg(test)]
mod tests;
