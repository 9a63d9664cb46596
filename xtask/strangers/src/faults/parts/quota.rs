//! Limits the CPU of a group.

use std::sync::Arc;

use anyhow::{Context as _, Result};

use crate::env::Running;
use crate::env::groups::Group;

/// Leaves `group` so many CPUs until the fault ends.
pub fn until(group: Option<&Arc<Group>>, cpus: f64) -> Result<Running> {
    let group = Arc::clone(group.context("no cgroup with a CPU controller can be made here; run as root")?);
    group.set_cpus(Some(cpus))?;
    Ok(Running::until(move || group.set_cpus(None)))
}
