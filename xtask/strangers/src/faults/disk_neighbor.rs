//! Another program reads and writes on the database's disk as fast as it can.

use super::{Family, Fault, Parameter};
use crate::env::{Running, process};
use crate::topology::{Data, Storage};

pub const FAULT: Fault = Fault {
    name: "disk_neighbor",
    family: Family::Host,
    mechanism: "Another program reads and writes on the database's disk as fast as it can.",
    // The program is `dd`, which copies: to name it as what uses up the disk is as right.
    causes: &["disk_saturated", "throughput_ceiling", "iops_ceiling", "backup_or_bulk_load"],
    parameters: &[Parameter::new("writers", 1.0, 8.0)],
    fits: |topology| topology.storage == Storage::Throttled && topology.data == Data::OutOfCache,
    start: |env, values| {
        let folder = env.disk.folder.display();
        let copy = format!(
            "while :; do dd if=/dev/zero of={folder}/neighbor.$$ bs=64k count=200 oflag=direct; rm -f {folder}/neighbor.$$; done"
        );
        let remove = format!("rm -f {folder}/neighbor.*");
        let clean = Running::until(move || process::run("sh", &["-c", &remove]).map(drop));
        Ok(clean.and(env.processes(values.get("writers"), &["sh", "-c", &copy])?))
    },
    ..Fault::BASE
};
