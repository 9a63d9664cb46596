//! Names of block devices by their numbers (`254:0` -> `vda`), from sysfs or `/proc/diskstats`,
//! with a cache.

use std::collections::HashMap;

use crate::proc::keyed::is_device_number;
use crate::proc::{Proc, Tree};

/// The names found so far.
#[derive(Debug, Default)]
pub struct Devices {
    names: HashMap<String, String>,
}

impl Devices {
    /// The name of block device `MAJOR:MINOR`; none if no device has that number.
    pub fn name(&mut self, proc: &Proc, number: &str) -> Option<&str> {
        if !self.names.contains_key(number) {
            let name = find(proc, number)?;
            self.names.insert(number.to_owned(), name);
        }
        self.names.get(number).map(String::as_str)
    }
}

fn find(proc: &Proc, number: &str) -> Option<String> {
    if !is_device_number(number) {
        return None;
    }
    let link = std::fs::read_link(proc.path(Tree::Sys, &format!("dev/block/{number}"))).ok();
    if let Some(name) = link.as_deref().and_then(|target| target.file_name()) {
        return Some(name.to_string_lossy().replace('!', "/"));
    }
    let mut buffer = Vec::new();
    let text = proc.read_lines("diskstats", &mut buffer).ok()?;
    text.lines().find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let found = format!("{}:{}", fields.next()?, fields.next()?);
        (found == number).then(|| fields.next().map(str::to_owned))?
    })
}
