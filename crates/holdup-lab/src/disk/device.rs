//! The loop device over the disk's file: attaching, detaching, readahead, and finding leftover
//! devices. Never touches a device whose file is outside the given folder.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::disk::DiskError;
use crate::disk::mounts::run;

/// LOOP_CLR_FD of linux/loop.h: releases the file, at once or when the last user of the device
/// closes it.
const LOOP_CLR_FD: libc::Ioctl = 0x4C01;

/// A loop device of this disk.
#[derive(Debug)]
pub struct Device {
    /// Its file, e.g. `/dev/loop0`.
    pub path: PathBuf,
    /// Files of its queue with their old contents, to be restored in this order: the device
    /// outlives the disk that is attached to it.
    before: Vec<(&'static str, String)>,
}

impl Device {
    /// Attaches `file` to a free loop device, past the page cache. If the data were cached twice,
    /// its requests would not be the device's.
    ///
    /// # Errors
    ///
    /// If no device is free, or the kernel refuses direct I/O on the file.
    pub fn attach(file: &Path) -> Result<Self, DiskError> {
        let words = ["--find".as_ref(), "--show".as_ref(), "--direct-io=on".as_ref(), file.as_os_str()];
        let path = PathBuf::from(run("losetup", &words)?);
        let device = Self { path, before: Vec::new() };
        let direct = std::fs::read_to_string(device.sys().join("loop/dio")).unwrap_or_default();
        if direct.trim() != "1" {
            detach(&device.path);
            return Err(DiskError::Needs("this kernel's loop devices do no direct I/O on FUSE files".to_owned()));
        }
        Ok(device)
    }

    /// Sets its readahead, in bytes.
    ///
    /// # Errors
    ///
    /// If sysfs cannot be written.
    pub fn set_readahead(&mut self, bytes: u64) -> Result<(), DiskError> {
        self.set("read_ahead_kb", bytes / 1024)
    }

    /// Sets its largest request size, in bytes.
    ///
    /// # Errors
    ///
    /// If sysfs cannot be written.
    pub fn set_largest_request(&mut self, bytes: u64) -> Result<(), DiskError> {
        self.set("max_sectors_kb", bytes / 1024)
    }

    fn set(&mut self, name: &'static str, value: u64) -> Result<(), DiskError> {
        let file = self.queue(name);
        let failed = |source| DiskError::System { what: format!("set {}", file.display()), source };
        let before = std::fs::read_to_string(&file).map_err(failed)?;
        std::fs::write(&file, value.to_string()).map_err(failed)?;
        if self.before.iter().all(|(known, _)| *known != name) {
            self.before.push((name, before));
        }
        Ok(())
    }

    /// Detaches it, and says whether it is free after `patience`. A device that is still used
    /// becomes free with its last user.
    pub fn detach(self, patience: Duration) -> bool {
        for (name, before) in &self.before {
            // A setting that stays would surprise the device's next user but do no harm.
            let _ = std::fs::write(self.queue(name), before.trim());
        }
        detach(&self.path);
        let deadline = Instant::now() + patience;
        while self.sys().join("loop").exists() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        true
    }

    fn queue(&self, name: &str) -> PathBuf {
        self.sys().join("queue").join(name)
    }

    fn sys(&self) -> PathBuf {
        Path::new("/sys/block").join(self.path.file_name().unwrap_or_default())
    }
}

fn detach(device: &Path) {
    if let Ok(device) = File::open(device) {
        // SAFETY: this request takes no argument, and the descriptor is open. An error means that
        // nothing is attached.
        unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD) };
    }
}

/// Detaches every loop device whose file is below `dir`: the leftovers of a disk that was killed.
pub fn detach_below(dir: &Path) {
    let Ok(devices) = std::fs::read_dir("/sys/block") else { return };
    for entry in devices.flatten() {
        let Ok(file) = std::fs::read_to_string(entry.path().join("loop/backing_file")) else { continue };
        if Path::new(file.trim_end()).starts_with(dir) {
            detach(&Path::new("/dev").join(entry.file_name()));
        }
    }
}
