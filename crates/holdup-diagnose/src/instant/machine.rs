//! Whose machine the database is on, by what was pasted: a provider's servers name themselves in
//! their variables, in the accounts of their own sessions and in the figures that the provider
//! prints.

use holdup_recording::{Coverage, metrics};
use holdup_signals::View;

use crate::change::database::{Home, Server};
use crate::change::parameters::Engine;
use crate::next_command::Machine;

/// The source of what a shell on the machine printed.
const HOST: &str = "host";

/// Figures that only a shell on the machine prints.
const OF_HOST: [&str; 6] = [
    metrics::host::LOAD_AVERAGE_1M.name,
    metrics::host::CPU_TIME.name,
    metrics::host::DISK_OPERATIONS.name,
    metrics::host::MEMORY_TOTAL_BYTES.name,
    metrics::host::THREADS.name,
    metrics::tcp::ACCEPT_QUEUE_LENGTH.name,
];

/// Accounts of sessions that only a provider's own tools have.
const ACCOUNTS: [(&str, Machine); 5] = [
    ("rdsadmin", Machine::Amazon),
    ("azuresu", Machine::Azure),
    ("azure_superuser", Machine::Azure),
    ("cloudsqladmin", Machine::Google),
    ("cloudsqlagent", Machine::Google),
];

/// Beginnings of the sources of a provider's figures.
const FIGURES: [(&str, Machine); 6] = [
    ("cloudwatch:", Machine::Amazon),
    ("enhanced_monitoring:", Machine::Amazon),
    ("performance_insights:", Machine::Amazon),
    ("rds_events:", Machine::Amazon),
    ("azure_monitor:", Machine::Azure),
    ("cloud_sql:", Machine::Google),
];

/// The machine of the database. Figures of a volume may be those of a machine that has a shell, so a
/// shell's own outputs go before them.
pub(crate) fn of_database(view: &View<'_>) -> Machine {
    by_settings(view)
        .or_else(|| by_accounts(view))
        .or_else(|| has_host(view).then_some(Machine::Reached))
        .or_else(|| by_figures(view))
        .unwrap_or(Machine::Unknown)
}

fn by_settings(view: &View<'_>) -> Option<Machine> {
    let homes = [Engine::MySql, Engine::PostgreSql].map(|engine| Server::find(view, engine).home());
    homes.into_iter().find_map(|home| match home {
        Home::Own => None,
        Home::Rds | Home::Aurora => Some(Machine::Amazon),
        Home::CloudSql => Some(Machine::Google),
        Home::Azure => Some(Machine::Azure),
    })
}

fn by_accounts(view: &View<'_>) -> Option<Machine> {
    let sessions = view.sessions(&["user"]).unwrap_or_default();
    let mut users = sessions.iter().filter_map(|session| session.user.as_deref());
    users.find_map(|user| ACCOUNTS.iter().find(|(name, _)| *name == user).map(|(_, machine)| *machine))
}

fn by_figures(view: &View<'_>) -> Option<Machine> {
    by_sources(&view.recording.manifest.coverage)
}

/// The provider whose figures are among the sources.
pub(crate) fn by_sources(coverage: &[Coverage]) -> Option<Machine> {
    let mut sources = coverage.iter().map(|coverage| coverage.source.as_str());
    sources.find_map(|source| FIGURES.iter().find(|(of, _)| source.starts_with(of)).map(|(_, machine)| *machine))
}

fn has_host(view: &View<'_>) -> bool {
    let settings = view.recording.tables.settings.with_columns(&["source"]).unwrap_or_default();
    settings.iter().any(|row| row.source == HOST)
        || OF_HOST.iter().any(|metric| view.sources_of(metric).contains(&HOST))
}
