//! The app may open fewer files than it has connections to serve, and new connections wait or fail.

use std::fs;

use anyhow::Context as _;

use super::{Family, Fault, Parameter};
use crate::env::{Running, process};
use crate::topology::App;

pub const FAULT: Fault = Fault {
    name: "descriptor_limit",
    family: Family::Host,
    mechanism: "The app may open fewer files than it has connections to serve, and new connections wait or fail.",
    causes: &["file_descriptor_limit"],
    parameters: &[Parameter::new("left", 6.0, 1.0)],
    fits: |topology| topology.app != App::None,
    prepare: |setup, _| {
        setup.load.at_least(60.0);
        setup.load_factor = Some(3.0);
    },
    stage: |_, _| Ok(()),
    start: |env, values| {
        let pid = env.app()?.pid;
        let folder = format!("/proc/{pid}/fd");
        let open = fs::read_dir(&folder).with_context(|| format!("failed to read {folder}"))?.count();
        let limit = move |files: usize| process::run("prlimit", &["--pid", &pid.to_string(), &format!("--nofile={files}:")]);
        limit(open + values.get("left").round() as usize)?;
        Ok(Running::until(move || limit(1_024).map(drop)))
    },
};
