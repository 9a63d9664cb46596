//! The kinds of output, one file each: how to recognise it by its header, and how to read it. To
//! add a tool, write a file with a `KIND` and add a line to [`KINDS`].

mod blockdev;
mod cpu_table;
mod df;
mod innodb;
mod iostat;
mod lsblk;
mod memory;
mod mount;
mod mpstat;
mod netstat;
mod postgresql;
mod processlist;
mod ps;
mod sar;
mod ss;
mod sysctl;
mod thread_pool;
mod top;
mod uptime;
mod variables;
mod vmstat;

use super::context::Context;
use super::paste::Line;

/// A kind of output.
pub(super) struct Kind {
    /// Its name, as the user knows the tool.
    pub(super) name: &'static str,
    /// Whether the lines begin with its header.
    pub(super) recognises: fn(&[Line]) -> bool,
    /// Reads it from the first line on; returns the number of lines read.
    pub(super) read: fn(&[Line], &mut Context) -> usize,
}

/// All kinds. The first that recognises a line reads it.
pub(super) const KINDS: &[Kind] = &[
    top::KIND,
    uptime::KIND,
    uptime::LOADAVG,
    vmstat::KIND,
    iostat::BANNER,
    iostat::KIND,
    mpstat::KIND,
    sar::KIND,
    ps::KIND,
    memory::FREE,
    memory::MEMINFO,
    df::KIND,
    mount::KIND,
    mount::FSTAB,
    blockdev::KIND,
    lsblk::KIND,
    innodb::KIND,
    processlist::KIND,
    thread_pool::KIND,
    thread_pool::QUEUES,
    processlist::GROUPED,
    variables::KIND,
    postgresql::ACTIVITY,
    postgresql::SETTINGS,
    ss::KIND,
    netstat::KIND,
    sysctl::KIND,
];

/// The text of a line, or nothing behind the last one.
fn text(lines: &[Line], at: usize) -> &str {
    lines.get(at).map_or("", |line| line.text.as_str())
}

/// The rows below the first line of `lines`, up to an empty line or the header of another table.
fn rows(lines: &[Line], is_header: fn(&[Line]) -> bool) -> &[Line] {
    let below = lines.get(1..).unwrap_or_default();
    let is_end = |at: &usize| below.get(*at).is_some_and(Line::is_blank) || below.get(*at..).is_some_and(is_header);
    let end = (0..below.len()).find(is_end).unwrap_or(below.len());
    below.get(..end).unwrap_or_default()
}

/// Number of lines up to the next empty one.
fn until_blank(lines: &[Line]) -> usize {
    lines.iter().position(Line::is_blank).unwrap_or(lines.len())
}
