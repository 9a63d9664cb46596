//! A slow disk that tells the truth, for labs: so many bytes and requests a second, reads and writes together, with the
//! queue in the device, where the kernel counts it.
//!
//! A file in memory is served by FUSE through one token bucket; a loop device with direct I/O makes a disk of it, with an
//! ext4. The kernel's own throttles won't do: a cgroup's (v1) have a bucket for reads and another for writes, let buffered
//! writes through, and hold requests back above the device, which then looks idle. It is no model of a disk's
//! mechanics: a request costs the same wherever it is.

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

/// What a disk can be told on its command line.
#[derive(clap::Args, Clone, Debug)]
pub struct DiskOptions {
    /// Folder of its own: the disk is mounted at DIR/mnt
    #[arg(long, value_name = "DIR", required_unless_present = "check")]
    pub dir: Option<PathBuf>,

    /// Size; what is written is kept in memory. K, M and G are 1,024-fold
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size)]
    pub size: u64,

    /// Bytes a second, reads and writes together [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub bytes_per_second: Option<u64>,

    /// Requests a second, reads and writes together [default: no limit]
    #[arg(long, value_name = "N", value_parser = size)]
    pub iops: Option<u64>,

    /// File of lines `bytes_per_second: SIZE` and `iops: N` (or `none`) that hold over the options while it is there; looked at ten times a second
    #[arg(long = "limits", value_name = "FILE")]
    pub limits_file: Option<PathBuf>,

    /// Options of the mount, e.g. dirsync,noatime
    #[arg(long, value_name = "LIST")]
    pub mount_options: Option<String>,

    /// Readahead of the device
    #[arg(long, value_name = "SIZE", default_value = "128K", value_parser = size)]
    pub readahead: u64,

    /// Only say whether a disk can be made here: exit code 3 says what is missing
    #[arg(long)]
    pub check: bool,

    /// Be the process that serves
    #[arg(long, hide = true)]
    pub server: bool,
}

impl DiskOptions {
    fn limits(&self) -> Limits {
        Limits { bytes_per_second: self.bytes_per_second, iops: self.iops }
    }
}

/// Why there is no disk.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// Something is missing that a person must bring: root, a device, a program.
    #[error("no throttled disk can be made here: {0}")]
    Needs(String),
    /// The system refuses something.
    #[error("failed to {what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// The system's reason.
        source: io::Error,
    },
    /// A program that was run failed.
    #[error("{name} failed: {said}")]
    Program {
        /// Its name.
        name: &'static str,
        /// What it said.
        said: String,
    },
    /// The serving process failed and has said why.
    #[error("the disk's server has ended")]
    Said {
        /// Whether it lacks something that a person must bring.
        needs: bool,
    },
    /// The serving process was killed; what it had made was taken down.
    #[error("the disk's server was killed; its mounts were taken down")]
    Killed,
}

impl DiskError {
    /// Whether a person has to bring something: exit code 3, by the labs' rule.
    pub fn is_need(&self) -> bool {
        matches!(self, Self::Needs(_) | Self::Said { needs: true })
    }

    /// Whether somebody else has told the user already.
    pub fn is_said(&self) -> bool {
        matches!(self, Self::Said { .. })
    }
}

/// Makes a disk and serves it until SIGTERM, SIGINT, or the death of whoever holds its stdin. Says `ready MOUNTPOINT DEVICE`
/// on stdout when it is mounted. `program` is a command that comes here again with the same arguments.
///
/// # Errors
/// If it can't be made, serves no more, or can't be taken down; [`DiskError::is_need`] says what a person can do.
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
