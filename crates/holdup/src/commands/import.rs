//! `holdup import`: turns other tools' files into recordings and scenarios.

mod access;
mod aws;
mod capture_summary;
mod folder;
mod ftdc;
mod guard;
mod input;
mod kubernetes;
mod mixed;
mod packets;
#[cfg(test)]
mod pastes_tests;
mod sorted;
mod statement_log;
mod text;
mod together;
mod traces;
mod writer;

use std::fs;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};

use holdup_import::clocks::Segments;
use holdup_import::traces::Columns;
use holdup_import::{Imported, Kind, LARGEST_BYTES, Options, Source, import};
use holdup_protocol::packets::Protocol;
use holdup_protocol::packets::file::is_capture;
use holdup_recording::{Coverage, files};

use self::input::InputFile;
use self::sorted::FileKind;
use self::together::Target;
use super::print_json;
use crate::failure::Failure;
use crate::session::default_dir;
use crate::storing::StoreArgs;

/// Import logs, traces, packets, cloud figures, and other tools' scenarios
///
/// An access log becomes a recording of response times: nginx and Apache with any format
/// (--log-format), HAProxy, Envoy, Amazon's load balancers, CloudFront, IIS, Heroku's router, JSON
/// lines. So do traces in files: OTLP, Jaeger's and Zipkin's JSON, CSV (--columns). Several files of
/// one format make one recording.
///
/// A capture of packets (pcap, pcapng) becomes a recording of the databases' requests and answers
/// on each connection. JSON that aws prints of RDS also becomes a recording: CloudWatch, enhanced
/// monitoring, Performance Insights, and descriptions of instances and volumes; several files make
/// one recording. So does the output of kubectl get pods -o json and kubectl get events -o json.
/// A database's own log becomes a recording of what each statement took, and why: the slow log of
/// MySQL, MariaDB or Percona Server, PostgreSQL's log (text, CSV, JSON), mongod's log. Plain or
/// compressed, of any size.
/// MongoDB's diagnostic.data becomes a recording of the server and its machine, once a second. Give
/// the folder or single files.
/// Pasted text of standard tools (uptime, top, vmstat, iostat, ps, dmesg, SHOW PROCESSLIST, pg_stat
/// views, MongoDB's JSON, Redis' INFO and others) becomes a recording, too: several outputs in any
/// order, files, a folder, or standard input.
/// Files of several kinds, and recordings, become one recording of the same time, also with --into.
/// holdup aligns their clocks by what they share, and says how far they were apart.
/// Files of other load tools become a scenario: holdup import scenario.
#[derive(clap::Args)]
#[command(arg_required_else_help = true, args_conflicts_with_subcommands = true)]
#[command(after_help = "\
Examples:
  tcpdump -i eth0 -s 0 -B 65536 -w db.pcap tcp port 3306      on the database's machine, or on a client's
  holdup import db.pcap -o recordings/db
  holdup import db.pcap --port 6033=mysql
  zcat db.pcap.gz | holdup import - -o recordings/db
  aws cloudwatch get-metric-data --metric-data-queries file://queries.json --start-time 2026-11-22T00:00:00Z \
    --end-time 2026-11-23T00:00:00Z > data.json; aws rds describe-db-instances --db-instance-identifier orders-db > db.json
  holdup import data.json queries.json db.json -o recordings/orders-db
  kubectl get pods -n shop -o json > pods.json; kubectl get events -n shop -o json > events.json
  holdup import pods.json events.json -o recordings/shop
  holdup import /var/log/mysql/slow.log -o recordings/db; holdup diagnose recordings/db
  holdup import postgresql-*.csv -o recordings/db
  holdup import /var/lib/mongodb/diagnostic.data mongod.log -o recordings/mongod
  (date; uptime; top -b -n 1 -H; ps -eTo ppid,pid,user,stat,pcpu,comm,wchan:32; iostat -xt 5 3) > paste.txt
  holdup import paste.txt -o recordings/incident; holdup diagnose recordings/incident
  holdup import - --at 2026-11-26T10:11:12Z --cpus 8        paste, then Ctrl-D
  holdup import collected/                                  a folder, e.g. of pt-stalk or a sosreport
  holdup import access.log -o recordings/web; holdup diagnose recordings/web
  zcat -f access.log* | holdup import - -o recordings/web
  holdup import access.log --log-format '$remote_addr [$time_local] \"$request\" $status $request_time'
  holdup import access.log --log-format '%h %l %u %t \"%r\" %>s %b %D'
  holdup import traces.json -o recordings/shop
  holdup import spans.csv --columns 'trace=trace_id,span=id,parent=parent,start=began_at,duration=took_ms'
  holdup import access.log pods.json paste.txt traces.json -o recordings/incident
  holdup import paste.txt --into recordings/watched          the evidence beside a watch
  holdup import scenario plan.jmx -o scenario.yaml")]
pub struct Args {
    #[command(subcommand)]
    what: Option<ImportCommand>,

    /// Pasted text, access log, traces, capture, JSON, or a recording; - is standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Directory of the recording [default: recordings/NAME-TIME]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Add the files to this recording, on its clock
    #[arg(long, value_name = "RECORDING", conflicts_with_all = ["output", "store"])]
    into: Option<PathBuf>,

    /// Protocol on a port other than 3306, 3307, 5432 and 5433: mysql or postgresql
    #[arg(long = "port", value_name = "PORT=PROTOCOL", value_parser = port)]
    ports: Vec<(u16, Protocol)>,

    /// Instance of the figures, if the files of aws do not name it
    #[arg(long, value_name = "NAME")]
    db_instance: Option<String>,

    /// Format of an access log: nginx' log_format, Apache's LogFormat or Envoy's format
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,

    /// Columns of a CSV file of spans, e.g. trace=trace_id,span=id,start=began_at
    #[arg(long, value_name = "MAP", value_parser = Columns::parse)]
    columns: Option<Columns>,
    /// Time of pasted text without a time stamp, RFC 3339 [default: the file's]
    #[arg(long, value_name = "TIME", value_parser = instant)]
    at: Option<i64>,

    /// CPUs of the host, if pasted text does not show them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    cpus: Option<u32>,

    /// Print the summary as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    store: StoreArgs,
}

#[derive(clap::Subcommand)]
enum ImportCommand {
    Scenario(ScenarioArgs),
}

/// A scenario from a JMeter plan, a HAR file or an OpenAPI description
///
/// Elements that could not be carried over are listed on stderr and at the top of the scenario,
/// each with its place, the reason and a remedy. Passwords, tokens and keys of the file do not
/// become part of the scenario, which names them as secrets.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  holdup import scenario plan.jmx -o scenario.yaml
  holdup import scenario plan.jmx --thread-group buyers --base-url http://127.0.0.1:8080
  holdup import scenario recording.har --host shop.example --static
  holdup import scenario openapi.yaml --base-url http://127.0.0.1:8080 -o scenario.yaml
  curl -s http://127.0.0.1:8080/openapi.json | holdup import scenario - --from openapi
  holdup import scenario plan.jmx --strict --json           in a pipeline: exit code 1 if anything was left out

Then: holdup run scenario.yaml --check")]
struct ScenarioArgs {
    /// File; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Where to write the scenario; - is standard output, as without it
    #[arg(short, long, value_name = "SCENARIO")]
    output: Option<PathBuf>,

    /// Replace an existing scenario
    #[arg(long, requires = "output")]
    force: bool,

    /// Kind of file, if its content does not show it: jmx, har or openapi
    #[arg(long, value_name = "KIND", value_parser = kind)]
    from: Option<Source>,

    /// Target, in place of the file's
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,

    /// HAR file: take the requests of this host [default: the one with the most]
    #[arg(long, value_name = "HOST")]
    host: Option<String>,

    /// HAR file: include images, styles, scripts and fonts
    #[arg(long = "static")]
    static_files: bool,

    /// JMeter plan: take only this thread group
    #[arg(long, value_name = "NAME")]
    thread_group: Option<String>,

    /// Exit with 1 if anything was left out
    #[arg(long)]
    strict: bool,

    /// Print omissions, changes and hidden values as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(mut args: Args) -> Result<(), Failure> {
    if let Some(ImportCommand::Scenario(args)) = args.what.take() {
        return scenario(args);
    }
    let target = args.store.target()?;
    if args.files.iter().filter(|path| is_stream(path)).count() > 1 {
        return Err(Failure::Unusable("give - only once: standard input can be read once".to_owned()));
    }
    let (recordings, paths): (Vec<PathBuf>, Vec<PathBuf>) =
        args.files.iter().cloned().partition(|path| sorted::is_recording(path));
    let found = folder::with_folders(&paths)?;
    let mut files = Vec::new();
    for file in found {
        files.extend(mixed::parted(InputFile::new(file)?, args.at)?);
    }
    let hints = sorted::Hints { columns: args.columns.as_ref(), log_format: args.log_format.as_deref() };
    let mut groups = sorted::by_kind(files, hints)?;
    if groups.is_empty() && recordings.is_empty() {
        return Err(Failure::Unusable("which file? e.g. holdup import db.pcap, or holdup import data.json".to_owned()));
    }
    let is_evidence =
        recordings.is_empty() && args.into.is_none() && groups.iter().all(|(kind, _)| !kind.times_requests());
    let report = match groups.pop() {
        Some((kind, files)) if groups.is_empty() && recordings.is_empty() && args.into.is_none() => {
            read_group(kind, files, args.output.as_deref(), &args)?.made()?
        }
        last => {
            groups.extend(last);
            together(groups, &recordings, &args)?
        }
    };
    if args.json {
        print_json(&report.json)?;
    } else {
        crate::terminal::print(&report.text);
    }
    if let Some(dir) = report.json["recording"].as_str() {
        let may_ask = !args.json && !args.files.iter().any(|path| is_stream(path));
        super::reported::keep(Path::new(dir), is_evidence, may_ask)?;
    }
    // After the question: the last line is the command to go on with.
    for line in report.next.iter().filter(|_| !args.json) {
        errln!("{line}");
    }
    if let Some((target, dir)) = target.zip(report.json["recording"].as_str()) {
        errln!("{}", super::store::send(&target, Path::new(dir), args.json)?);
    }
    report.failed.map_or(Ok(()), |why| Err(Failure::Unusable(why)))
}

/// Turns one file of pasted outputs into a recording in `dir`, without a word.
///
/// # Errors
/// If nothing in it is an output of a known tool, or the recording cannot be written.
pub(super) fn pasted(file: &Path, dir: &Path) -> Result<(), Failure> {
    let file = InputFile::new(folder::FoundFile { path: file.to_owned(), name: None })?;
    text::import(vec![file], Some(dir), None, None)?.made()?;
    super::reported::keep(dir, true, false)
}

/// What an import made of its files.
#[derive(Default)]
struct Report {
    /// The summary for a person.
    text: String,
    /// The same for a program.
    json: serde_json::Value,
    /// What to do next, a line each.
    next: Vec<String>,
    /// What could not be read to its end, although the rest was recorded.
    failed: Option<String>,
    /// The segments of a capture, which align its clock with that of another.
    segments: Option<Segments>,
    /// Why nothing was recorded: the files have no known output.
    nothing: Option<String>,
    /// The coverage of such files.
    left_out: Vec<Coverage>,
}

impl Report {
    /// The report of a recording.
    ///
    /// # Errors
    /// If nothing was known in the files.
    fn made(self) -> Result<Self, Failure> {
        match self.nothing {
            Some(why) => Err(Failure::Unusable(why)),
            None => Ok(self),
        }
    }
}

/// Reads files of one kind into a recording.
fn read_group(kind: FileKind, mut files: Vec<InputFile>, dir: Option<&Path>, args: &Args) -> Result<Report, Failure> {
    let first = files.first().map_or("", |file| file.name.as_str());
    let name = if kind == FileKind::Ftdc { "diagnostic-data" } else { first.split('.').next().unwrap_or(first) };
    let place = dir.map_or_else(|| default_dir(name), Path::to_owned);
    match kind {
        FileKind::Capture => match files.pop() {
            Some(file) => packets::import(file, &place, &args.ports),
            None => Err(Failure::Unusable("which file?".to_owned())),
        },
        FileKind::Traces => traces::import(files, &place, args.columns.as_ref()),
        FileKind::AccessLog => access::import(files, &place, args.log_format.as_deref()),
        FileKind::StatementLog => statement_log::import(files, &place),
        FileKind::Ftdc => ftdc::import(files, &place),
        FileKind::Kubernetes => kubernetes::import(files, &place),
        FileKind::Cloud => aws::import(files, &place, args.db_instance.as_deref()),
        // Which of the files has an output, and so gives the recording its name, shows when they are read.
        FileKind::Text => text::import(files, dir, args.at, args.cpus),
    }
}

fn together(groups: Vec<(FileKind, Vec<InputFile>)>, recordings: &[PathBuf], args: &Args) -> Result<Report, Failure> {
    let first = groups.iter().flat_map(|(_, files)| files).map(|file| file.name.as_str()).next();
    let name = first.and_then(|name| name.rsplit('/').next()?.split('.').next()).unwrap_or("together");
    let target = match (&args.into, &args.output) {
        (Some(into), _) => Target::Into(into.clone()),
        (None, Some(dir)) => Target::New(dir.clone()),
        (None, None) => Target::New(default_dir(name)),
    };
    let read = |kind, files, place: &Path| read_group(kind, files, Some(place), args);
    together::import(together::Request { groups, recordings, target, read: &read })
}

/// A time without its fraction.
fn short(at: i64) -> String {
    holdup_recording::clock::rfc3339(at - at.rem_euclid(1_000_000_000))
}

pub(super) fn port(text: &str) -> Result<(u16, Protocol), String> {
    let known = text.split_once('=').and_then(|(port, name)| Some((port.parse().ok()?, Protocol::by_name(name)?)));
    known.ok_or_else(|| "expected PORT=PROTOCOL, e.g. 6033=mysql, 6432=postgresql or 27020=mongodb".to_owned())
}

fn instant(text: &str) -> Result<i64, String> {
    holdup_recording::clock::parse_rfc3339(text)
        .ok_or_else(|| "expected a time such as 2026-11-26T10:11:12Z".to_owned())
}

fn kind(name: &str) -> Result<Source, String> {
    Source::by_name(name).ok_or_else(|| "expected jmx, har or openapi".to_owned())
}

fn scenario(args: ScenarioArgs) -> Result<(), Failure> {
    let output = args.output.as_deref().filter(|path| !is_stream(path));
    let name = if is_stream(&args.file) { "standard input".to_owned() } else { args.file.display().to_string() };
    let bytes = read(&args.file).map_err(|e| Failure::Unusable(format!("{name}: {e}")))?;
    let options = Options {
        base_url: args.base_url,
        host: args.host,
        static_files: args.static_files,
        thread_group: args.thread_group,
    };
    let imported = import(&bytes, &name, args.from, &options).map_err(Failure::unusable)?;
    if let Some(path) = output {
        write_new(path, &imported.yaml, args.force)?;
    }
    if args.json {
        print_json(&answer(&imported, output))?;
    } else {
        if output.is_none() {
            crate::terminal::print_document(&imported.yaml);
        }
        print_summary(&imported, output);
    }
    let left = imported.notes.iter().filter(|note| note.kind == Kind::LeftOut).count();
    if args.strict && left > 0 {
        return Err(Failure::No(format!("{left} elements were left out")));
    }
    Ok(())
}

fn is_stream(path: &Path) -> bool {
    path == Path::new("-")
}

/// Reads the file, but no further than shows that it is too large.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let limit = LARGEST_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    if is_stream(path) {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    } else {
        files::open(path)?.take(limit).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Writes a new file; replaces an existing one only with `force`.
pub fn write_new(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let name = path.display();
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true);
    let opened = if force { options.truncate(true).open(path) } else { options.create_new(true).open(path) };
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|e| match e.kind() {
        std::io::ErrorKind::AlreadyExists => Failure::Unusable(format!("{name} exists; use another name, or --force")),
        _ => Failure::Unusable(format!("{name}: {e}")),
    })
}

fn answer(imported: &Imported, output: Option<&Path>) -> serde_json::Value {
    let mut answer = serde_json::json!({
        "source": imported.source,
        "requests": imported.requests,
        "disabled": imported.disabled,
        "notes": imported.notes,
    });
    match output {
        Some(path) => answer["output"] = path.display().to_string().into(),
        None => answer["scenario"] = imported.yaml.as_str().into(),
    }
    answer
}

/// Prints the summary to stderr, so that the scenario itself can go down a pipe.
fn print_summary(imported: &Imported, output: Option<&Path>) {
    for note in &imported.notes {
        errln!("{note}");
    }
    let count = |kind| imported.notes.iter().filter(|note| note.kind == kind).count();
    let to = output.map_or_else(String::new, |path| format!(" -> {}", path.display()));
    errln!(
        "{}: {} requests{to}; {} left out, {} changed, {} secrets to supply, {} switched off",
        imported.source.words(),
        imported.requests,
        count(Kind::LeftOut),
        count(Kind::Changed),
        count(Kind::Secret),
        imported.disabled,
    );
    if let Some(path) = output {
        errln!("next: holdup run {} --check", path.display());
    }
}

#[cfg(test)]
mod tests;
