//! Mounted file systems, as settings: kind, device, options, size. File systems without user files
//! (`proc`, `cgroup`, …) are left out.
//!
//! Only file systems on this machine's own devices and memory are asked for their size: with a dead
//! server behind it (NFS, CIFS, any FUSE) the call would block holdup forever. For the same reason
//! holdup asks for nothing beneath such a mount.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use holdup_recording::secret::settings::mount_option;

use crate::proc::devices::Devices;
use crate::proc::mountinfo::{Mount, visible};
use crate::proc::{Proc, Tree};

/// Largest number of mounts kept; those on devices and in memory come first.
const MOUNTS_MAX: usize = 200;

/// Longest value of one option: an overlay's dozens of layers would fill a page.
const OPTION_BYTES_MAX: usize = 200;

/// Kinds on one or several block devices.
const ON_DEVICES: [&str; 18] = [
    "bcachefs", "btrfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "hfsplus", "iso9660", "jfs", "msdos",
    "ntfs3", "reiserfs", "squashfs", "vfat", "xfs", "zfs",
];

/// Kinds in memory.
const IN_MEMORY: [&str; 2] = ["ramfs", "tmpfs"];

/// Kinds without user files.
const PSEUDO: [&str; 27] = [
    "autofs",
    "binderfs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "cpuset",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fuse.gvfsd-fuse",
    "fuse.lxcfs",
    "fuse.portal",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "rootfs",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "sysfs",
    "tracefs",
];

/// The kinds of [`PSEUDO`] whose folders may lead to another program or machine.
const LEADS_AWAY: [&str; 4] = ["autofs", "fuse.gvfsd-fuse", "fuse.lxcfs", "fuse.portal"];

/// Names and values of the mounts visible to process `who` (a number, or `self`); empty if they may
/// not be read.
pub(crate) fn read(proc: &Proc, who: &str) -> Vec<(String, String)> {
    let mut buffer = Vec::new();
    let Ok(text) = proc.read_lines(&format!("{who}/mountinfo"), &mut buffer) else { return Vec::new() };
    let all = visible(text);
    let mut chosen: Vec<&Mount> = all.iter().filter(|mount| !is_pseudo(mount.fstype)).collect();
    // A stable sort keeps the kernel's order within each kind.
    chosen.sort_by_key(|mount| !is_local(mount.fstype));
    chosen.truncate(MOUNTS_MAX);
    let root = process_root(proc, who, &all);
    let mut devices = Devices::default();
    let mut found = Vec::new();
    for mount in chosen {
        let mut put = |fact: &str, value: String| found.push((format!("mount[{}].{fact}", mount.path), value));
        put("fstype", mount.fstype.to_owned());
        put("options", options(mount));
        put("device", device(proc, &mut devices, mount));
        if !is_safe(mount, &all) {
            continue;
        }
        if let Some(sizes) = root.as_ref().and_then(|root| sizes(root, &mount.path)) {
            put("size_bytes", sizes.size_bytes.to_string());
            put("free_bytes", sizes.free_bytes.to_string());
            // Some file systems make inodes as they need them, and count none.
            if sizes.inodes > 0 {
                put("inodes", sizes.inodes.to_string());
                put("free_inodes", sizes.free_inodes.to_string());
            }
        }
    }
    found
}

fn is_local(fstype: &str) -> bool {
    ON_DEVICES.contains(&fstype) || IN_MEMORY.contains(&fstype)
}

fn is_pseudo(fstype: &str) -> bool {
    PSEUDO.contains(&fstype)
}

/// Whether `mount` and every mount on the path to it answer without another machine or program.
fn is_safe(mount: &Mount, all: &[Mount]) -> bool {
    let passes =
        |fstype: &str| is_local(fstype) || fstype == "overlay" || (is_pseudo(fstype) && !LEADS_AWAY.contains(&fstype));
    let is_above = |other: &Mount| {
        let above = other.path.trim_end_matches('/');
        mount.path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
    };
    is_local(mount.fstype) && all.iter().filter(|other| is_above(other)).all(|other| passes(other.fstype))
}

/// Options of the mount and of its file system, sorted and without duplicates.
fn options(mount: &Mount) -> String {
    let both = mount.options.split(',').chain(mount.super_options.split(','));
    let mut options: Vec<String> = both.filter_map(option).collect();
    options.sort_unstable();
    options.dedup();
    options.join(",")
}

fn option(option: &str) -> Option<String> {
    let shown = mount_option(option);
    let value = shown.split_once('=').map_or(shown.as_str(), |(_, value)| value);
    (!shown.is_empty() && value.len() <= OPTION_BYTES_MAX).then_some(shown)
}

/// The device's name; without a device, the mounted source or the kind of file system.
fn device(proc: &Proc, devices: &mut Devices, mount: &Mount) -> String {
    if IN_MEMORY.contains(&mount.fstype) || mount.fstype == "overlay" {
        return mount.fstype.to_owned();
    }
    if let Some(name) = devices.name(proc, mount.number) {
        return name.to_owned();
    }
    let source = &*mount.source;
    if let Some(name) = source.strip_prefix("/dev/") {
        // A name such as `/dev/mapper/data` links to the kernel's (`../dm-0`). Btrfs uses its own
        // device number.
        let link = proc.is_live().then(|| std::fs::read_link(source).ok()).flatten();
        let target = link.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        return target.unwrap_or_else(|| name.to_owned());
    }
    // The account in `//user:password@server/share` is left out.
    match source.rsplit_once('@') {
        Some((_, server)) => server.to_owned(),
        None if source.is_empty() => mount.fstype.to_owned(),
        None => source.to_owned(),
    }
}

/// The root of process `who`, whose mounts are `all`, as holdup sees it; none on a made-up tree,
/// whose paths are not real. A mount's id is unique on the whole machine: a process with the same
/// root mount sees the same paths. Finding that out needs no privilege.
fn process_root(proc: &Proc, who: &str, all: &[Mount]) -> Option<PathBuf> {
    if !proc.is_live() {
        return None;
    }
    let mut buffer = Vec::new();
    let own = proc.read_lines("self/mountinfo", &mut buffer).map(visible).unwrap_or_default();
    let root = |all: &[Mount]| all.iter().find(|mount| mount.path == "/").map(|mount| mount.id);
    let is_ours = root(&own).is_some_and(|id| Some(id) == root(all));
    Some(if is_ours { PathBuf::from("/") } else { proc.path(Tree::Proc, &format!("{who}/root")) })
}

/// The room on a file system.
struct Sizes {
    size_bytes: u64,
    /// Bytes that an ordinary user could still fill.
    free_bytes: u64,
    inodes: u64,
    free_inodes: u64,
}

/// The room on the file system at `path` below `root`.
fn sizes(root: &Path, path: &str) -> Option<Sizes> {
    let path = root.join(path.trim_start_matches('/'));
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: an all-zero statvfs is valid; the call fills it in.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `path` is NUL-terminated, and `stat` is ours to write to.
    let result = unsafe { libc::statvfs(path.as_ptr(), &raw mut stat) };
    let bytes = |blocks: u64| blocks.checked_mul(stat.f_frsize);
    if result != 0 {
        return None;
    }
    let (size_bytes, free_bytes) = (bytes(stat.f_blocks)?, bytes(stat.f_bavail)?);
    Some(Sizes { size_bytes, free_bytes, inodes: stat.f_files, free_inodes: stat.f_favail })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounts(text: &str) -> Vec<(String, String)> {
        let dir = tempfile::tempdir().unwrap();
        let proc = dir.path().join("proc/71");
        std::fs::create_dir_all(&proc).unwrap();
        std::fs::write(proc.join("mountinfo"), text).unwrap();
        std::fs::write(dir.path().join("proc/diskstats"), " 7 3 loop3 1\n 254 0 vda 1\n").unwrap();
        read(&Proc::at(dir.path()), "71")
    }

    fn fact<'a>(found: &'a [(String, String)], name: &str) -> Option<&'a str> {
        found.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    const ROOT: &str = "27 1 254:0 / / rw,relatime - ext4 /dev/root rw,discard\n";

    #[test]
    fn kind_device_and_options() {
        let found = mounts(&format!(
            "{ROOT}28 27 7:3 /a /my\\040tmp rw,noatime - ext4 /dev/loop3 rw,dirsync\n\
            29 27 0:31 / /x rw,nosuid - tmpfs anything rw,size=4k\n30 27 0:32 / /proc rw - proc proc rw\n\
            31 27 0:33 / /nfs rw - nfs4 filer:/export rw,addr=10.0.0.1\n\
            32 27 0:34 / /smb rw - cifs //me:hush@filer/share rw,username=me,password=hush\n\
            33 27 0:35 / /b rw - btrfs /dev/mapper/data rw,subvol=/b\n34 27 0:36 / /o rw - overlay overlay rw,lowerdir={},upperdir=/u\n",
            "l".repeat(500)
        ));
        assert_eq!(fact(&found, "mount[/].device"), Some("vda"));
        assert_eq!(fact(&found, "mount[/].options"), Some("discard,relatime,rw"));
        assert_eq!(fact(&found, "mount[/my tmp].device"), Some("loop3"));
        assert_eq!(fact(&found, "mount[/my tmp].options"), Some("dirsync,noatime,rw"));
        assert_eq!(
            (fact(&found, "mount[/x].fstype"), fact(&found, "mount[/x].device")),
            (Some("tmpfs"), Some("tmpfs"))
        );
        assert_eq!(fact(&found, "mount[/proc].fstype"), None);
        assert_eq!(fact(&found, "mount[/nfs].device"), Some("filer:/export"));
        assert_eq!(fact(&found, "mount[/b].device"), Some("mapper/data"));
        assert_eq!(fact(&found, "mount[/smb].device"), Some("filer/share"));
        assert_eq!(fact(&found, "mount[/o].options"), Some("rw,upperdir=/u"));
        assert!(found.iter().all(|(_, value)| !value.contains("hush")), "{found:?}");
        assert_eq!(fact(&found, "mount[/].size_bytes"), None);
    }

    #[test]
    fn thousands_are_capped_with_devices_first() {
        let mut text = ROOT.to_owned();
        for at in 0..1_000 {
            text += &format!("{} 27 0:{at} / /o/{at} rw - overlay overlay rw\n", 100 + at);
        }
        text += "9999 27 7:3 / /last rw - ext4 /dev/loop3 rw\n";
        let found = mounts(&text);
        assert_eq!(found.iter().filter(|(name, _)| name.ends_with("].fstype")).count(), MOUNTS_MAX);
        assert!(fact(&found, "mount[/last].fstype").is_some());
    }

    #[test]
    fn nothing_beneath_another_machine_is_asked() {
        let text = format!(
            "{ROOT}28 27 0:30 / /nfs rw - nfs4 filer:/x rw\n29 28 7:3 / /nfs/disk rw - ext4 /dev/loop3 rw\n\
            30 27 0:31 / /auto rw - autofs map rw\n31 30 7:4 / /auto/disk rw - ext4 /dev/loop4 rw\n\
            32 27 0:32 / /sys rw - sysfs sysfs rw\n33 32 0:33 / /sys/mem rw - tmpfs x rw\n34 27 0:34 / /f rw - fuse.sshfs a:b rw\n"
        );
        let all = visible(&text);
        let safe: Vec<&str> = all.iter().filter(|mount| is_safe(mount, &all)).map(|mount| &*mount.path).collect();
        assert_eq!(safe, ["/", "/sys/mem"]);
    }

    /// This machine's own root: its size can be asked, and is one.
    #[test]
    fn of_this_process() {
        let found = read(&Proc::system(), "self");
        let size = found.iter().find(|(name, _)| name.ends_with(".size_bytes"));
        let number = |name: &str| fact(&found, name).and_then(|value| value.parse::<u64>().ok());
        if let Some((name, _)) = size {
            let free = name.replace(".size_bytes", ".free_bytes");
            assert!(number(name).is_some() && number(&free) <= number(name), "{name}");
        }
        assert!(found.iter().any(|(name, _)| name == "mount[/].fstype"), "{found:?}");
    }
}
