//! What the machine, its disks and its kernel did, and what limits them.

pub mod cpu;
pub mod disk_waits;
pub mod disks;
pub mod disturbance;
pub mod flows;
pub mod limit_shares;
pub mod limits;
pub mod memory;
pub mod mounts;
pub mod processes;
pub mod threads;
pub mod throttle;
pub mod useful_reads;
