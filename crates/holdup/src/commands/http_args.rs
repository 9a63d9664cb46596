//! The flags that set how requests are sent and how the generator works. The library defines their
//! meaning.

use std::path::PathBuf;

use holdup_load::model::Load;
use holdup_load::scenario::http::{MAX_STREAMS, parse_bytes};
use holdup_load::scenario::{self, HttpVersion, Operation, Pace, Scenario};

use crate::failure::Failure;
use crate::secret_values::{Values, value, values};

#[derive(clap::Args)]
#[command(next_help_heading = "How requests are sent")]
pub struct HttpArgs {
    /// Header of the quick form's request; repeatable, e.g. 'Accept: text/html'; @FILE has one a line
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE", requires = "url", value_parser = values)]
    headers: Vec<Values>,

    /// Method of the quick form's request [default: GET, or POST with --body]
    #[arg(long, value_name = "METHOD", requires = "url", conflicts_with = "replay", value_parser = method)]
    method: Option<String>,

    /// Body of the quick form's request; @FILE reads it from a file
    #[arg(long, value_name = "TEXT", requires = "url", conflicts_with = "replay", value_parser = value)]
    body: Option<String>,

    /// Version of HTTP: 1.1 or 2 (over TLS by ALPN, else with prior knowledge) [default: the scenario's, or 1.1]
    #[arg(long, value_name = "VERSION", value_parser = HttpVersion::parse)]
    http: Option<HttpVersion>,

    /// Requests in flight on each HTTP/2 connection [default: the scenario's, or 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_STREAMS)))]
    streams: Option<u32>,

    /// Follow at most this many redirects within the target; 0 counts them as responses [default: the scenario's, or 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100))]
    redirects: Option<u32>,

    /// Keep cookies: each connection is a separate user
    #[arg(long)]
    cookies: bool,

    /// Open a new connection for each request or statement
    #[arg(long)]
    no_keep_alive: bool,

    /// Ask for compressed responses; they are counted, not unpacked
    #[arg(long)]
    compression: bool,

    /// Abandon responses larger than this, e.g. 10MB [default: the scenario's, or 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    max_response: Option<u64>,

    /// Trust the certificates of this PEM file instead of the machine's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    tls_ca: Option<PathBuf>,

    /// Accept any certificate
    #[arg(long)]
    insecure: bool,

    /// Send no trace ids: no `traceparent` header, no comment in statements
    #[arg(long)]
    no_trace: bool,

    #[command(flatten)]
    generator: GeneratorArgs,
}

#[derive(clap::Args)]
#[command(next_help_heading = "How the load is made")]
struct GeneratorArgs {
    /// Wake precisely (every 50 us) or, for less CPU, in economy (250 us) [default: the scenario's,
    /// or precise]
    #[arg(long, value_name = "PACE", value_parser = Pace::parse)]
    pace: Option<Pace>,

    /// Open all connections before the first request, and use them in turn
    #[arg(long)]
    open_all: bool,

    /// Threads that generate load [default: as many as the rate needs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_024))]
    loops: Option<u32>,

    /// Pin these threads to CPUs, one each, e.g. 2,3
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "loops")]
    cpus: Vec<usize>,

    /// Record at most this many requests, then a sample; totals stay exact [default: 100000, or
    /// 3000 with --no-collect]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rows: Option<u64>,

    /// Start even if the target cannot be reached; failures are counted
    #[arg(long)]
    keep_going: bool,
}

/// Rows to keep when nothing else is recorded that they could be compared with.
const ROWS_ALONE: u64 = 3_000;

impl HttpArgs {
    /// The quick form's request for `path`.
    ///
    /// # Errors
    /// If a header is malformed.
    pub fn operation(&self, path: String) -> Result<Operation, Failure> {
        let given = self.method.clone();
        Ok(Operation {
            name: scenario::without_query(&path).to_owned(),
            method: given.unwrap_or_else(|| if self.body.is_some() { "POST" } else { "GET" }.to_owned()),
            path,
            headers: Values::all(&self.headers).map(|text| header(text)).collect::<Result<_, _>>()?,
            body: self.body.clone(),
            weight: 1,
        })
    }

    /// The first given flag that only HTTP supports.
    pub fn http_only_flag(&self) -> Option<&'static str> {
        let given = [
            (!self.headers.is_empty(), "--header"),
            (self.method.is_some(), "--method"),
            (self.body.is_some(), "--body"),
            (self.http.is_some(), "--http"),
            (self.streams.is_some(), "--streams"),
            (self.redirects.is_some(), "--redirects"),
            (self.cookies, "--cookies"),
            (self.compression, "--compression"),
        ];
        given.iter().find_map(|(is_given, flag)| is_given.then_some(*flag))
    }

    /// Overrides settings of `scenario` with the given flags; `is_alone` if nothing is watched.
    pub fn apply(&self, scenario: &mut Scenario, is_alone: bool) -> Result<(), Failure> {
        if let Some(flag) = self.http_only_flag().filter(|_| scenario.target.sql.is_some()) {
            return Err(Failure::Unusable(format!("{flag}: a database does not speak HTTP; remove the flag")));
        }
        let http = &mut scenario.http;
        http.version = self.http.unwrap_or(http.version);
        http.streams = self.streams.unwrap_or(http.streams);
        http.redirects = self.redirects.unwrap_or(http.redirects);
        http.cookies |= self.cookies;
        http.keep_alive &= !self.no_keep_alive;
        http.compression |= self.compression;
        http.max_response_bytes = self.max_response.unwrap_or(http.max_response_bytes);
        if self.insecure || self.tls_ca.is_some() {
            (http.trust.insecure, http.trust.ca) = (self.insecure, self.tls_ca.clone());
        }
        if http.streams > 1 && http.version == HttpVersion::Http1 {
            return Err(Failure::Unusable(
                "--streams: an HTTP/1.1 connection carries one request at a time; add --http 2".to_owned(),
            ));
        }
        scenario.trace &= !self.no_trace;
        let given = &self.generator;
        let generator = &mut scenario.generator;
        generator.pace = given.pace.unwrap_or(generator.pace);
        generator.open_all |= given.open_all;
        generator.loops = given.loops.or(generator.loops);
        generator.cpus.extend(&given.cpus);
        generator.rows = given.rows.or(is_alone.then_some(ROWS_ALONE));
        generator.keep_going |= given.keep_going;
        let setting = if self.no_keep_alive { "--no-keep-alive" } else { "http.keep_alive" };
        scenario.check_keep_alive().map_err(|why| Failure::Unusable(format!("{setting}: {why}")))?;
        let most = scenario::MAX_CONNECTIONS * MAX_STREAMS.min(100);
        if scenario.slots() > most && matches!(scenario.load, Load::Open(_)) {
            return Err(Failure::Unusable(format!(
                "--connections times --streams is more than {most} requests in flight"
            )));
        }
        Ok(())
    }
}

fn header(text: &str) -> Result<(String, String), Failure> {
    // The text may be a secret whose name was forgotten, so errors do not repeat it.
    let wrong = |why: &str| Failure::Unusable(format!("--header: {why}; give NAME: VALUE, e.g. 'Accept: text/html'"));
    let (name, value) = text.split_once(':').ok_or_else(|| wrong("a header has no colon"))?;
    let (name, value) = (name.trim(), value.trim());
    scenario::check_header("X", value).map_err(|why| wrong(&why))?;
    scenario::check_header(name, "").map_err(|why| {
        let is_word = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        wrong(if is_word { &why } else { "a header has an invalid name" })
    })?;
    Ok((name.to_owned(), value.to_owned()))
}

fn method(text: &str) -> Result<String, String> {
    let upper = text.to_uppercase();
    if scenario::METHODS.contains(&upper.to_lowercase().as_str()) {
        Ok(upper)
    } else {
        Err(format!("\"{text}\" is not one of {}", scenario::METHODS.join(", ").to_uppercase()))
    }
}
