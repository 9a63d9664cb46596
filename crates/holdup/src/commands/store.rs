//! `holdup store`: recordings in ClickHouse.

pub mod fetched;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Subcommand;
use holdup_recording::{Recording, clock, tables, words};
use holdup_store::catalog::{self, Entry, Place};
use holdup_store::pull::Selection;
use holdup_store::push::{Progress, Pushed};
use holdup_store::{Address, Client, Dialect, Schema, Sharing, Statement, StoreError};

use super::print_json;
use crate::failure::Failure;
use crate::progress::Line;
use crate::secret_values::value;
use crate::storing::{CasePart, Target};

/// Largest answer of `query`, bytes.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// Keep recordings in ClickHouse: the same tables as their Parquet files
///
/// URL is clickhouse://USER@HOST:PORT/DATABASE, or @FILE with it. The port is that of HTTP, 8123 by
/// default; ?tls=verify encrypts. The password comes from HOLDUP_CLICKHOUSE_PASSWORD, or with
/// ?password_env=VAR or ?password_file=PATH from there.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  holdup store init clickhouse://admin@db7/holdup --ttl 90
  holdup store push recordings/first clickhouse://writer@db7/holdup
  holdup store ls clickhouse://reader@db7/holdup
  holdup store query clickhouse://reader@db7/holdup 'SELECT operation, count() FROM requests GROUP BY operation'
  holdup diagnose clickhouse://reader@db7/holdup/first
  holdup store pull clickhouse://reader@db7/holdup/first recordings/copy
  holdup store rm clickhouse://admin@db7/holdup/first

Exit codes: 0 done, 2 unusable recording or server, 130 interrupted (the same command goes on).")]
pub struct Args {
    #[command(subcommand)]
    what: StoreCommand,
}

#[derive(Subcommand)]
enum StoreCommand {
    Init(InitArgs),
    Push(PushArgs),
    Ls(LsArgs),
    Pull(PullArgs),
    Rm(RmArgs),
    Query(QueryArgs),
}

/// The database that a command works with.
#[derive(clap::Args)]
struct DatabaseArg {
    /// Database: clickhouse://USER@HOST/DATABASE, or @FILE
    #[arg(value_name = "URL", value_parser = value)]
    url: String,
}

/// The recording that a command works with.
#[derive(clap::Args)]
struct RecordingArg {
    /// Recording: clickhouse://USER@HOST/DATABASE/RECORDING, or @FILE
    #[arg(value_name = "URL", value_parser = value)]
    url: String,

    /// Host, if several wrote the recording
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
}

impl RecordingArg {
    /// Connects, and finds the recording.
    fn find(&self) -> Result<(Client, Entry), Failure> {
        let (address, client) = connected(&self.url)?;
        let entry = meant(&client, &address, self.host.as_deref())?;
        Ok((client, entry))
    }
}

/// Make the database, its tables and views; what is there stays
#[derive(clap::Args)]
struct InitArgs {
    /// Database: clickhouse://USER@HOST/DATABASE, or @FILE
    #[arg(value_name = "URL", value_parser = value, required_unless_present = "print")]
    url: Option<String>,

    /// Print the statements for a current server and run nothing
    #[arg(long)]
    print: bool,

    /// Make replicated tables, by the server's macros {shard} and {replica}
    #[arg(long)]
    replicated: bool,

    /// Spread recordings over the shards of this cluster
    #[arg(long, value_name = "CLUSTER")]
    distributed: Option<String>,

    /// Remove rows this many days after their time
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    ttl: Option<u32>,
}

/// Send a recording; what is there already is not sent again
#[derive(clap::Args)]
struct PushArgs {
    /// Directory of the recording
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,

    #[command(flatten)]
    database: DatabaseArg,

    /// Name in the store [default: its --recording-id, or the directory's]
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,

    /// Host, if several write one recording [default: with --recording-id its own]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,

    /// Show no progress on stderr
    #[arg(short, long)]
    quiet: bool,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// List the recordings
#[derive(clap::Args)]
struct LsArgs {
    #[command(flatten)]
    database: DatabaseArg,

    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

/// Fetch a recording into a new directory
#[derive(clap::Args)]
struct PullArgs {
    #[command(flatten)]
    recording: RecordingArg,

    /// Directory to make
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// Show no progress on stderr
    #[arg(short, long)]
    quiet: bool,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Remove a recording from every table
#[derive(clap::Args)]
struct RmArgs {
    #[command(flatten)]
    recording: RecordingArg,

    /// The cluster that the tables were made for
    #[arg(long, value_name = "CLUSTER")]
    distributed: Option<String>,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Run a statement that only reads, and print its answer
#[derive(clap::Args)]
struct QueryArgs {
    #[command(flatten)]
    database: DatabaseArg,

    /// Statement in ClickHouse's SQL
    #[arg(value_name = "SQL")]
    sql: String,

    /// Print ClickHouse's JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> Result<(), Failure> {
    match args.what {
        StoreCommand::Init(args) => init(args),
        StoreCommand::Push(args) => push(&args),
        StoreCommand::Ls(args) => ls(&args),
        StoreCommand::Pull(args) => pull(&args),
        StoreCommand::Rm(args) => rm(&args),
        StoreCommand::Query(args) => query(&args),
    }
}

/// The failure that a store's error is.
fn failed(error: StoreError) -> Failure {
    if matches!(error, StoreError::Stopped) {
        errln!("{error}");
        return Failure::Interrupted;
    }
    Failure::unusable(error)
}

/// The address that `url` is, and a connection to it.
fn connected(url: &str) -> Result<(Address, Client), Failure> {
    let address = Address::parse(url).map_err(failed)?;
    let client = Client::connect(&address).map_err(failed)?;
    Ok((address, client))
}

fn init(args: InitArgs) -> Result<(), Failure> {
    let sharing = Sharing { replicated: args.replicated, cluster: args.distributed };
    let mut schema = Schema { dialect: Dialect::Current, sharing, ttl_days: args.ttl };
    let statements = schema.statements().map_err(Failure::Unusable)?;
    let views = schema.views();
    let Some(url) = args.url.filter(|_| !args.print) else {
        for statement in statements.iter().chain(&views) {
            outln!("{statement};\n");
        }
        return Ok(());
    };
    let (_, client) = connected(&url)?;
    if client.dialect() == Dialect::Old && args.ttl.is_some() {
        let version = client.version();
        return Err(Failure::Unusable(format!("--ttl needs ClickHouse 22.8 or later; this is {version}")));
    }
    schema.dialect = client.dialect();
    let statements = schema.statements().map_err(Failure::Unusable)?;
    client.create_database(schema.sharing.cluster.as_deref()).map_err(failed)?;
    for statement in &statements {
        client.execute(&Statement::new(statement)).map_err(failed)?;
    }
    for (table, _) in tables::schema() {
        let existing = catalog::columns(&client, &schema.kept_in(table)).map_err(failed)?;
        for statement in schema.additions(table, &existing) {
            client.execute(&Statement::new(statement)).map_err(failed)?;
        }
    }
    let views = schema.views();
    for statement in &views {
        client.execute(&Statement::new(statement)).map_err(failed)?;
    }
    let (server, version) = (client.server(), client.version());
    outln!("{server}: {} tables and {} views are there, of ClickHouse {version}", statements.len(), views.len());
    Ok(())
}

fn push(args: &PushArgs) -> Result<(), Failure> {
    let address = Address::parse(&args.database.url).map_err(failed)?;
    let manifest = Recording::manifest(&args.recording).map_err(Failure::unusable)?;
    let shard = manifest.load.as_ref().and_then(|load| load.shard.as_deref());
    let part = CasePart::new(manifest.recording_id.as_deref(), &manifest.host, shard);
    let (id, of_part) = part.map(|part| (part.id, part.host)).unzip();
    let given = args.name.clone().or_else(|| address.recording.clone());
    let name = given.or(id).or_else(|| folder_name(&args.recording));
    let host = args.host.clone().or(of_part).unwrap_or_default();
    let place = Place::new(&name.unwrap_or_default(), &host).map_err(failed)?;
    let (mut line, stop) = (Line::new(args.quiet), crate::stop::stop_flag()?);
    let client = Client::connect(&address).map_err(failed)?;
    let pushed = holdup_store::push::push(&client, &args.recording, &place, &mut watched("sent", &mut line, &stop));
    line.clear();
    let pushed = pushed.map_err(failed)?;
    if args.json {
        return print_json(&pushed);
    }
    outln!("{}", said_of_push(&pushed, client.server()));
    Ok(())
}

fn folder_name(dir: &Path) -> Option<String> {
    let name = dir.canonicalize().ok()?.file_name()?.to_string_lossy().into_owned();
    Some(name)
}

fn said_of_push(pushed: &Pushed, server: &str) -> String {
    let total: u64 = pushed.tables.values().map(|table| table.rows).sum();
    let (place, rows, sent) = (&pushed.place, words::count(total), words::count(pushed.rows_sent));
    let bytes = words::bytes(pushed.bytes_sent as f64);
    match pushed.rows_sent {
        0 if pushed.files_sent.is_empty() => format!("{place}: all {rows} rows were already in {server}"),
        sent if sent == total => format!("{place}: {rows} rows sent to {server} ({bytes})"),
        _ => format!("{place}: {sent} of {rows} rows sent to {server} ({bytes}); the others were there"),
    }
}

/// Shows how many rows were `done`: sent, fetched; false once the user has stopped it.
fn watched<'a>(done: &'a str, line: &'a mut Line, stop: &'a Arc<AtomicBool>) -> impl FnMut(Progress) -> bool {
    move |Progress { table, rows, rows_total }| {
        line.show(|| format!("{table}: {rows} of {rows_total} rows {done}"));
        !stop.load(Ordering::Relaxed)
    }
}

fn ls(args: &LsArgs) -> Result<(), Failure> {
    let (_, client) = connected(&args.database.url)?;
    let entries = catalog::entries(&client, None).map_err(failed)?;
    if args.json {
        return print_json(&entries);
    }
    if entries.is_empty() {
        outln!("{} has no recordings", client.server());
    }
    for entry in entries {
        let state = if entry.complete { entry.state.as_str() } else { "push not ended" };
        let started = clock::rfc3339(entry.started_at);
        outln!("{:<28}  {started}  {:>12} rows  {state}", entry.place.to_string(), words::count(entry.rows()));
    }
    Ok(())
}

/// The entry that an address means.
fn meant(client: &Client, address: &Address, host: Option<&str>) -> Result<Entry, Failure> {
    let Some(recording) = &address.recording else {
        let way = "the address names no recording; add /RECORDING (holdup store ls URL lists them)";
        return Err(Failure::Unusable(way.to_owned()));
    };
    catalog::entry(client, recording, host).map_err(failed)
}

fn pull(args: &PullArgs) -> Result<(), Failure> {
    let (mut line, stop) = (Line::new(args.quiet), crate::stop::stop_flag()?);
    let (client, entry) = args.recording.find()?;
    let all = Selection::default();
    let pulled = holdup_store::pull::pull(&client, &entry, &args.dir, &all, &mut watched("fetched", &mut line, &stop));
    line.clear();
    let pulled = pulled.map_err(failed)?;
    if args.json {
        return print_json(&pulled);
    }
    let bytes = words::bytes(pulled.bytes_received as f64);
    let rows = words::count(pulled.rows);
    outln!("{}: {rows} rows fetched into {} ({bytes})", pulled.place, args.dir.display());
    Ok(())
}

fn rm(args: &RmArgs) -> Result<(), Failure> {
    let (client, entry) = args.recording.find()?;
    catalog::remove(&client, &entry.place, args.distributed.as_deref()).map_err(failed)?;
    if args.json {
        return print_json(&entry.place);
    }
    let when = if client.dialect() == Dialect::Old { "; this server does so in the background" } else { "" };
    outln!("{}: removed from {}{when}", entry.place, client.server());
    Ok(())
}

fn query(args: &QueryArgs) -> Result<(), Failure> {
    let (_, client) = connected(&args.database.url)?;
    let format = if args.json { "JSON" } else { "TabSeparatedWithNames" };
    let statement = Statement::new(&args.sql).setting("default_format", format);
    let answer = client.read(&statement, ANSWER_BYTES_MAX).map_err(failed)?;
    outln!("{}", String::from_utf8_lossy(&answer).trim_end_matches('\n'));
    Ok(())
}

/// Sends the finished recording in `dir` to `target`; what to say of it.
///
/// # Errors
/// If the store does not take it. The message has the command that sends it.
pub fn send(target: &Target, dir: &Path, quiet: bool) -> Result<String, Failure> {
    let place = target.place(dir)?;
    let (mut line, stop) = (Line::new(quiet), crate::stop::stop_flag()?);
    let client = Client::connect(target.address());
    let pushed = client.and_then(|client| {
        let pushed = holdup_store::push::push(&client, dir, &place, &mut watched("sent", &mut line, &stop));
        pushed.map(|pushed| said_of_push(&pushed, client.server()))
    });
    line.clear();
    pushed.map_err(|error| match error {
        StoreError::Stopped => failed(error),
        error => {
            Failure::Unusable(format!("{error}\nthe recording is complete; send it with: {}", target.command(dir)))
        }
    })
}
