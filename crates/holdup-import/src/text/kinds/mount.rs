//! `mount`, `/proc/mounts` and `/etc/fstab`: file system, device and options of each mount, named
//! and sorted as the collector does. Values that may be secrets are replaced.

use holdup_recording::secret::settings::mount_option;

use super::{Context, HOST, Kind, Line, text};

pub(super) const KIND: Kind =
    Kind::lines("mount", |lines| mounted(text(lines, 0)).is_some(), |lines, context| read(lines, context, mounted));

pub(super) const FSTAB: Kind = Kind::lines(
    "/proc/mounts or fstab",
    |lines| listed(text(lines, 0)).is_some(),
    |lines, context| read(lines, context, listed),
);

/// File systems of the kernel's own, which hold no data.
const KERNEL: [&str; 14] = [
    "proc",
    "sysfs",
    "devpts",
    "cgroup",
    "cgroup2",
    "securityfs",
    "debugfs",
    "tracefs",
    "pstore",
    "bpf",
    "mqueue",
    "hugetlbfs",
    "configfs",
    "fusectl",
];

struct Mount<'t> {
    device: &'t str,
    path: String,
    kind: &'t str,
    options: &'t str,
}

/// `/dev/sda1 on / type ext4 (rw,relatime)`
fn mounted(line: &str) -> Option<Mount<'_>> {
    let (device, rest) = line.split_once(" on ")?;
    let (path, rest) = rest.split_once(" type ")?;
    let (kind, options) = rest.split_once(" (")?;
    let options = options.split(')').next()?;
    let is_whole = path.starts_with('/') && !kind.contains(' ') && !device.contains(' ');
    is_whole.then(|| Mount { device, path: path.to_owned(), kind, options })
}

/// `/dev/sda1 / ext4 rw,relatime 0 0`
fn listed(line: &str) -> Option<Mount<'_>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (device, path, kind, options, numbers) = match words.as_slice() {
        [device, path, kind, options, numbers @ ..] if numbers.len() <= 2 => (*device, *path, *kind, *options, numbers),
        _ => return None,
    };
    let is_option = |option: &str| {
        option.split('=').next().is_some_and(|name| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
        })
    };
    let is_whole = (path.starts_with('/') || path == "none" && kind == "swap")
        && kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.')
        && kind.starts_with(|c: char| c.is_ascii_lowercase())
        && (numbers.len() == 2 || device.starts_with("UUID=") || device.starts_with("/dev/"))
        && numbers.iter().all(|number| number.len() == 1 && number.parse::<u8>().is_ok())
        && options.split(',').all(is_option);
    is_whole.then(|| Mount { device, path: path.replace("\\040", " "), kind, options })
}

fn read(lines: &[Line], context: &mut Context, parse: fn(&str) -> Option<Mount<'_>>) -> usize {
    let at = context.instant();
    let mut used = 0;
    for line in lines {
        if line.text.starts_with('#') {
            used += 1;
            continue;
        }
        let Some(mount) = parse(&line.text) else { break };
        used += 1;
        if KERNEL.contains(&mount.kind) || !mount.path.starts_with('/') {
            continue;
        }
        let mut options: Vec<String> = mount.options.split(',').map(mount_option).collect();
        options.sort_unstable();
        // Credentials may precede a share's host.
        let device = mount.device.rsplit('@').next().unwrap_or_default().trim_start_matches("/dev/");
        for (fact, value) in [("fstype", mount.kind), ("device", device), ("options", &options.join(","))] {
            context.out.setting(at, HOST, format!("mount[{}].{fact}", mount.path), value);
        }
    }
    used
}
