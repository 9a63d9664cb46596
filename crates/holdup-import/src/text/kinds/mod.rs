//! The kinds of output, one file each: how to recognise it by its header, and how to read it. To
//! add a tool, write a file with a `KIND` and add a line to [`KINDS`].

mod app_log;
mod blockdev;
mod cloud_names;
mod connections;
mod cpu_list;
mod cpu_table;
mod df;
mod digests;
mod dstat;
mod du;
mod explain;
mod exposition;
mod figure;
mod gc;
mod haproxy;
mod haproxy_log;
mod innodb;
mod interfaces;
mod iostat;
mod kernel_event;
mod kernel_events;
mod kernel_files;
mod kernel_kill;
mod kernel_log;
mod key_figures;
mod kubectl;
mod locks;
mod ls;
mod lsblk;
mod lscpu;
mod memory;
mod messages;
mod mongodb;
mod mount;
mod mpstat;
mod netstat;
mod nginx;
mod no_space;
mod pg_slots;
mod pg_statements;
mod pg_titles;
mod pg_units;
mod pg_views;
mod php_fpm;
mod pidstat;
mod ping;
mod poolers;
mod postgresql;
mod pressure;
mod processlist;
mod ps;
mod puma;
mod quotas;
mod redis;
mod redis_slow;
mod replica;
mod sadf;
mod sar;
mod sessions;
mod sockets;
mod ss;
mod stacks;
mod sysctl;
mod sysstat;
mod thread_pool;
mod top;
mod uptime;
mod variables;
mod vmstat;

use std::cell::LazyCell;

// What the kinds share: they take it from here.
use super::clock::{self, DAY_NS, is_half, time_of_day};
use super::command;
use super::context::Context;
use super::json::{self, Document, Value};
use super::number::{number, size};
use super::out::{HOST, Report};
use super::paste::Line;
use super::table::{self, Columns, Row, Select, Table, footer_line, spaced};

/// Whether a line that begins as a prompt does is output: a heading of `pidstat -h` or of a section
/// of Redis' `INFO`, or a node of a plan.
pub(super) fn is_heading(text: &str) -> bool {
    let is_comment = || {
        exposition::is_comment(text) || pidstat::is_header(text) || redis::is_section(text) || haproxy::is_header(text)
    };
    explain::is_node(text) || text.starts_with('#') && is_comment()
}

/// A kind of output.
pub(super) struct Kind {
    /// Its name, as the user knows the tool.
    pub(super) name: &'static str,
    form: Form,
}

/// What a kind looks like, how to recognise it by its header, and how to read it.
enum Form {
    /// Lines of any form; the reader returns the number of lines read.
    Lines { recognises: fn(&[Line]) -> bool, read: fn(&[Line], &mut Context) -> usize },
    /// A result set of a database client.
    Table { recognises: fn(&Columns<'_>) -> bool, read: fn(&Table, &mut Context) },
    /// A JSON document.
    Document { recognises: fn(&Value) -> bool, read: fn(&Document, &mut Context) },
}

impl Kind {
    const fn lines(
        name: &'static str,
        recognises: fn(&[Line]) -> bool,
        read: fn(&[Line], &mut Context) -> usize,
    ) -> Self {
        Self { name, form: Form::Lines { recognises, read } }
    }

    const fn table(name: &'static str, recognises: fn(&Columns<'_>) -> bool, read: fn(&Table, &mut Context)) -> Self {
        Self { name, form: Form::Table { recognises, read } }
    }

    const fn document(name: &'static str, recognises: fn(&Value) -> bool, read: fn(&Document, &mut Context)) -> Self {
        Self { name, form: Form::Document { recognises, read } }
    }

    /// The kind of the output that begins with these lines below a statement, and whether its header
    /// was cut.
    pub(super) fn of(lines: &[Line], above: Option<&Select>) -> Option<(&'static Self, bool)> {
        let columns = LazyCell::new(|| table::header(lines, above));
        let head = LazyCell::new(|| json::head(lines));
        let printed = KINDS.iter().find(|kind| match kind.form {
            Form::Lines { recognises, .. } => recognises(lines),
            Form::Table { recognises, .. } => columns.as_ref().is_some_and(recognises),
            Form::Document { recognises, .. } => head.as_ref().is_some_and(recognises),
        });
        printed.map(|kind| (kind, false)).or_else(|| {
            let columns = table::header_of_rows(lines, above)?;
            let fits = |kind: &&Self| matches!(kind.form, Form::Table { recognises, .. } if recognises(&columns));
            KINDS.iter().find(fits).map(|kind| (kind, true))
        })
    }

    /// Whether its lines may stand within an output of another kind, which reads them itself.
    pub(super) fn stands_within(&self) -> bool {
        const ALL: [&str; 7] = [
            messages::KIND.name,
            key_figures::KIND.name,
            kubectl::said::KIND.name,
            kubectl::state::KIND.name,
            innodb::LATCHES.name,
            haproxy_log::KIND.name,
            app_log::KIND.name,
        ];
        ALL.contains(&self.name)
    }

    /// Reads it from the first line on, as it was recognised; returns the number of lines read.
    pub(super) fn read(
        &self,
        lines: &[Line],
        (above, is_headless): (Option<&Select>, bool),
        context: &mut Context,
    ) -> usize {
        match self.form {
            Form::Lines { read, .. } => read(lines, context),
            Form::Table { read, .. } => table::read(lines, above, is_headless).map_or(1, |table| {
                if table.is_cut {
                    context
                        .out
                        .note(format!("{}: rows were left out of the paste; only those shown are counted", self.name));
                }
                match table.is_header_only(lines) {
                    true => context.unread.extend(0..table.used),
                    false => read(&table, context),
                }
                table.used
            }),
            Form::Document { read, .. } => match json::read(lines) {
                Some(document) => {
                    read(&document, context);
                    document.used
                }
                None => {
                    context.unread.push(0);
                    1
                }
            },
        }
    }

    /// Whether an output is a JSON document, which ends at its last bracket.
    pub(super) fn is_document(&self) -> bool {
        matches!(self.form, Form::Document { .. })
    }
}

/// All kinds. The first that recognises a line reads it.
pub(super) const KINDS: &[Kind] = &[
    top::KIND,
    uptime::KIND,
    uptime::LOADAVG,
    vmstat::KIND,
    gc::KIND,
    gc::JSTAT,
    stacks::KIND,
    iostat::BANNER,
    iostat::KIND,
    mpstat::KIND,
    sar::KIND,
    pidstat::KIND,
    ps::KIND,
    ls::KIND,
    cpu_list::KIND,
    pressure::KIND,
    kernel_files::DISKSTATS,
    kernel_files::VMSTAT_DISKS,
    php_fpm::CPU_STAT,
    kernel_files::COUNTERS,
    kernel_files::PAIRED,
    kernel_files::STACK,
    ping::KIND,
    ping::MTR,
    interfaces::KIND,
    interfaces::IP_LINK,
    interfaces::ROUTES,
    dstat::KIND,
    exposition::KIND,
    haproxy::STATS,
    haproxy::INFO,
    haproxy_log::KIND,
    nginx::KIND,
    php_fpm::KIND,
    sockets::KIND,
    sockets::SUMMARY,
    sockets::QUEUES,
    memory::FREE,
    memory::MEMINFO,
    df::KIND,
    du::KIND,
    mount::KIND,
    mount::FSTAB,
    blockdev::KIND,
    lsblk::KIND,
    lscpu::KIND,
    innodb::KIND,
    innodb::LATCHES,
    explain::KIND,
    explain::TABLE,
    explain::DOCUMENT,
    locks::BLOCKED,
    locks::TRANSACTIONS,
    locks::METADATA,
    locks::ROWS,
    locks::POSTGRESQL,
    poolers::POOLS,
    poolers::CLIENTS,
    poolers::STATS,
    poolers::DATABASES,
    poolers::SETTINGS,
    poolers::SERVERS,
    digests::KIND,
    quotas::KIND,
    processlist::KIND,
    thread_pool::KIND,
    thread_pool::QUEUES,
    postgresql::COUNTS,
    processlist::GROUPED,
    variables::KIND,
    replica::KIND,
    replica::LAGS,
    replica::POSTGRESQL,
    pg_slots::KIND,
    du::LOG_TABLE,
    pg_views::REPLICATION,
    postgresql::ACTIVITY,
    postgresql::SETTINGS,
    pg_statements::KIND,
    pg_views::KIND,
    ss::KIND,
    netstat::KIND,
    sysctl::KIND,
    redis::KIND,
    redis_slow::KIND,
    puma::KIND,
    sadf::KIND,
    mongodb::STATUS_KIND,
    mongodb::OPERATIONS_KIND,
    mongodb::DATABASE_KIND,
    mongodb::RECORD_KIND,
    mongodb::TICKETS_KIND,
    kubectl::events::KIND,
    kubectl::pods::KIND,
    kubectl::top::KIND,
    kubectl::docker::KIND,
    kubectl::describe::KIND,
    kubectl::state::KIND,
    kubectl::said::KIND,
    app_log::KIND,
    no_space::KIND,
    no_space::LIMITS,
    kernel_log::KIND,
    cloud_names::KIND,
    key_figures::KIND,
    messages::KIND,
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
