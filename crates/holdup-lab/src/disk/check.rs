//! Checks whether a disk can be made here, and says what to do if not. Changes nothing.

use std::fs::OpenOptions;

use crate::disk::DiskError;
use crate::disk::mounts::program;

/// CAP_SYS_ADMIN of linux/capability.h: mounting, and attaching loop devices.
const SYS_ADMIN: u64 = 1 << 21;

/// Programs that the disk runs, and the Debian packages that have them.
const PROGRAMS: [(&str, &str); 3] = [("mkfs.ext4", "e2fsprogs"), ("losetup", "mount"), ("mount", "mount")];

/// Looks for everything that a disk needs.
///
/// # Errors
///
/// [`DiskError::Needs`] lists everything that is missing, and how to get it.
pub fn all() -> Result<(), DiskError> {
    let mut missing = Vec::new();
    if !may_mount() {
        missing.push("it mounts file systems: run it as root (in a container: with CAP_SYS_ADMIN)".to_owned());
    }
    for (path, module) in [("/dev/fuse", "fuse"), ("/dev/loop-control", "loop")] {
        if let Err(e) = OpenOptions::new().read(true).write(true).open(path) {
            missing.push(format!(
                "{path}: {e}; load it with `modprobe {module}` (in a container: start that with --device {path})"
            ));
        }
    }
    for (name, package) in PROGRAMS {
        if program(name).is_none() {
            missing.push(format!("{name} is not installed: apt-get install {package}"));
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(DiskError::Needs(missing.join("\n"))) }
}

fn may_mount() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    effective_capabilities(&status).is_some_and(|set| set & SYS_ADMIN != 0)
}

fn effective_capabilities(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_the_kernels_mask() {
        let root = effective_capabilities("Name:\tx\nCapEff:\t000001ffffffffff\n").expect("a mask");
        assert_ne!(root & SYS_ADMIN, 0);
        let container = effective_capabilities("CapEff:\t00000000a80425fb\n").expect("Docker's default");
        assert_eq!(container & SYS_ADMIN, 0);
        assert_eq!(effective_capabilities("Name: x"), None);
    }
}
