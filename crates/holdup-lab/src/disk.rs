//! A throttled disk for labs: a limit on bytes and one on requests per second, reads and writes
//! together, with the queue in the device, where the kernel counts it.
//!
//! FUSE serves a file in memory through one token bucket. A loop device with direct I/O makes a
//! disk of that file, with an ext4. The kernel's own throttles do not work for this. A cgroup's
//! (v1) have separate buckets for reads and writes, let buffered writes through, and hold requests
//! back above the device, which then looks idle. The disk does not model mechanics: a request costs
//! the same at any place.

mod bucket;
mod check;
mod device;
mod filesystem;
mod keeper;
mod limits;
mod mounts;
mod queue;
mod stack;
mod store;

use std::io;
use std::path::PathBuf;
use std::process::Command;

use limits::{Limits, size};

/// Options of a disk on its command line.
#[derive(clap::Args, Clone, Debug)]
pub struct DiskOptions {
    /// Private folder: the disk is mounted at DIR/mnt
    #[arg(long, value_name = "DIR", required_unless_present = "check")]
    pub dir: Option<PathBuf>,

    /// Size of the disk; data is kept in memory (K, M and G: 1,024-fold)
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size)]
    pub size: u64,

    /// Bytes a second, reads and writes together [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub bytes_per_second: Option<u64>,

    /// Requests a second, reads and writes together [default: no limit]
    #[arg(long, value_name = "N", value_parser = size)]
    pub iops: Option<u64>,

    /// File that overrides the limits while it exists
    ///
    /// Its lines are `bytes_per_second: SIZE`, `iops: N` and `latency_us: N` (or `none`). The disk
    /// looks at it ten times a second.
    #[arg(long = "limits", value_name = "FILE")]
    pub limits_file: Option<PathBuf>,

    /// Options of the mount, e.g. dirsync,noatime
    #[arg(long, value_name = "LIST")]
    pub mount_options: Option<String>,

    /// Readahead of the device
    #[arg(long, value_name = "SIZE", default_value = "128K", value_parser = size)]
    pub readahead: u64,

    /// Only say whether a disk can be made here
    ///
    /// Exit code 3 says what is missing.
    #[arg(long)]
    pub check: bool,

    /// Be the serving process
    #[arg(long, hide = true)]
    pub server: bool,
}

impl DiskOptions {
    fn limits(&self) -> Limits {
        Limits { bytes_per_second: self.bytes_per_second, iops: self.iops, latency_us: None }
    }
}

/// Why a disk cannot be made or served.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// Something is missing that the user must supply: root, a device, a program.
    #[error("no throttled disk can be made here: {0}")]
    Needs(String),
    /// The system refused an operation.
    #[error("failed to {what}: {source}")]
    System {
        /// The operation.
        what: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A program failed.
    #[error("{name} failed: {said}")]
    Program {
        /// Its name.
        name: &'static str,
        /// Its output.
        said: String,
    },
    /// The serving process failed and has printed why.
    #[error("the disk's server has ended")]
    Said {
        /// Whether it lacks something that the user must supply.
        needs: bool,
    },
    /// The serving process was killed; the keeper took down what it had made.
    #[error("the disk's server was killed; its mounts were taken down")]
    Killed,
}

impl DiskError {
    /// Whether the user has to supply something: exit code 3, by the labs' rule.
    pub fn is_need(&self) -> bool {
        matches!(self, Self::Needs(_) | Self::Said { needs: true })
    }

    /// Whether another process has already printed the error.
    pub fn is_said(&self) -> bool {
        matches!(self, Self::Said { .. })
    }
}

/// Makes a disk and serves it until SIGTERM, SIGINT, or the death of the process that holds the
/// other end of its stdin. Prints `ready MOUNTPOINT DEVICE` on stdout when it is mounted. `program`
/// is a command that comes back here with the same arguments.
///
/// # Errors
///
/// If the disk cannot be made, stops serving, or cannot be taken down. [`DiskError::is_need`] says
/// whether the user can fix it.
pub fn run(options: &DiskOptions, mut program: Command) -> Result<(), DiskError> {
    check::all()?;
    match &options.dir {
        Some(dir) if !options.check => {
            if options.server {
                keeper::serve(options, dir)
            } else {
                keeper::keep(&mut program, dir)
            }
        }
        _ => Ok(()),
    }
}
