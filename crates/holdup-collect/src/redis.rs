//! `--watch redis://USER@HOST:PORT`, or `rediss:` over TLS: a Redis or Valkey server. Each sample has its
//! `INFO`, the calls and the time of every command as statements, commands of the slow log as
//! executions, and the stops that its own monitor timed as events: a server runs one command at a time,
//! so whatever stops it holds up all others.
//!
//! It sends `INFO`, `SLOWLOG GET`, `LATENCY LATEST` and `LATENCY HISTORY`, which only read. `CLIENT
//! LIST` is left out: at 10,000 clients it keeps the one thread for longer than all of these, and `INFO`
//! has the largest buffers. Keys and values never leave [`slow`]: a command is kept by its name and the
//! number of its arguments.

mod address;
mod latency;
mod resp;
mod server;
mod slow;

use holdup_recording::layouts::redis::{SETTINGS, field, figures, part};
use holdup_recording::rows::Statement;
use holdup_recording::words::ms;
use holdup_recording::{Batch, Coverage, Labels, events};
use holdup_sql::digest_of_text;

use self::address::Address;
use self::latency::{Latency, Stop};
use self::resp::Reply;
use self::server::{Failure, Kind, Server, failure};
use self::slow::{Slow, SlowLog};
use crate::coverage::{Line as _, part as part_of};
use crate::database::{Link, cannot_connect};
use crate::options::Options;
use crate::reading::{Out, OwnName, event, tell};
use crate::{Collector, ProbeError, ReadError};

/// The least that an account needs.
const GRANT: &str =
    "ACL SETUSER holdup on >PASSWORD resetkeys -@all +info +slowlog|get +latency|latest +latency|history";

/// Most slow commands that are read at once, the newest.
const SLOW_MAX: &str = "128";

/// Makes the collector for `redis:…`.
pub(crate) fn make(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    Ok(Box::new(Redis::new(Address::parse(rest, false)?)))
}

/// Makes the collector for `rediss:…`.
pub(crate) fn make_encrypted(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    Ok(Box::new(Redis::new(Address::parse(rest, true)?)))
}

struct Redis {
    source: String,
    address: Address,
    link: Link<Server>,
    parts: Parts,
    slow: SlowLog,
    latency: Latency,
    /// The server's name for its own run, by the last answer.
    run: Option<String>,
    /// Those of the last answer.
    settings: Vec<(String, String)>,
}

/// What the account may read beside `INFO`, and the server has.
#[derive(Clone, Copy, Default)]
struct Parts {
    slow: bool,
    latency: bool,
}

/// What a server says. A part that it does not give has its error.
struct Answer {
    info: String,
    slow: Result<Vec<Slow>, String>,
    latest: Result<Vec<Stop>, String>,
}

/// The answer to all that is asked in a sample. A part that is not asked for is empty.
fn ask(server: &mut Server, parts: Parts) -> Result<Answer, Failure> {
    let mut commands: Vec<&[&str]> = vec![&["INFO", "all"]];
    commands.extend(parts.slow.then_some(&["SLOWLOG", "GET", SLOW_MAX][..]));
    commands.extend(parts.latency.then_some(&["LATENCY", "LATEST"][..]));
    let mut replies = server.ask(&commands)?.into_iter();
    let info = match replies.next() {
        Some(Reply::Text(info)) => info,
        Some(Reply::Error(words)) => return Err(failure(&words)),
        _ => return Err(Failure::Server(Kind::Other, "it does not answer INFO".to_owned())),
    };
    let mut next = |is_asked: bool| if is_asked { replies.next() } else { None };
    let (slow, latest) = (next(parts.slow), next(parts.latency));
    Ok(Answer { info, slow: read(slow, slow::entries), latest: read(latest, latency::latest) })
}

/// What `of` makes of a reply, or why it makes nothing of it.
fn read<T: Default>(reply: Option<Reply>, of: impl Fn(&Reply) -> Option<T>) -> Result<T, String> {
    match reply {
        None => Ok(T::default()),
        Some(Reply::Error(why)) => Err(why),
        Some(reply) => of(&reply).ok_or_else(|| "its answer has another kind".to_owned()),
    }
}

impl Redis {
    fn new(address: Address) -> Self {
        Self {
            source: address.source(),
            address,
            link: Link::default(),
            parts: Parts::default(),
            slow: SlowLog::default(),
            latency: Latency::default(),
            run: None,
            settings: Vec::new(),
        }
    }

    /// A new connection, and all that the server says to it.
    fn found(&mut self) -> Result<(Server, Answer), Failure> {
        let connect = |connections: &_| Server::open(&self.address, connections);
        let (server, answer) = self.link.find(connect, |server| ask(server, Parts { slow: true, latency: true }))?;
        self.parts = Parts { slow: answer.slow.is_ok(), latency: answer.latest.is_ok() };
        Ok((server, answer))
    }

    /// Takes out the connection, reconnecting if it was lost.
    fn connected(&mut self) -> Result<Server, ReadError> {
        match self.link.server.take() {
            Some(server) => Ok(server),
            None => self.found().map(|(server, _)| server).map_err(cannot_connect),
        }
    }

    fn unusable(&self, failure: Failure) -> ProbeError {
        match failure {
            Failure::Login(why) => ProbeError::denied(&self.source, why),
            Failure::Server(Kind::NotPermitted, why) => {
                ProbeError::MissingGrant { source_name: self.source.clone(), why, grant: GRANT.to_owned() }
            }
            Failure::Server(..) | Failure::Large(_) => ProbeError::unreachable(&self.source, failure.to_string()),
            Failure::Silent(why) => {
                let why = format!("{why}: a slow command holds it up, or it has no CPU");
                ProbeError::unreachable(&self.source, why)
            }
            Failure::Lost(_) | Failure::Refused(_) => {
                ProbeError::unreachable(&self.source, format!("{failure}; {}", self.address.advice()))
            }
        }
    }

    /// Remembers which run of the server answers: whether it is another than at the last look.
    fn has_restarted(&mut self, info: &str) -> bool {
        let run = fields(info).find(|(name, _)| *name == "run_id").map(|(_, run)| run.to_owned());
        let before = std::mem::replace(&mut self.run, run);
        before.is_some() && before != self.run
    }

    /// Adds what `answer` says. Gives the events of the monitor that are new, and by how much this machine's
    /// clock is ahead of the server's, nanoseconds.
    fn tell(&mut self, answer: Answer, out: &mut Out) -> (Vec<String>, i64) {
        for (name, value) in fields(&answer.info) {
            for (metric, labels, value) in figures(name, value) {
                out.put(OwnName(&metric), labels, value);
            }
        }
        totals(&answer.info, out);
        self.settings = settings(&answer.info);
        let has_restarted = self.has_restarted(&answer.info);
        let (ahead_ns, now) = (ahead(&answer.info, out.at()), out.at());
        let slow = answer.slow.map(|entries| self.slow.new_ones(entries, has_restarted));
        for one in slow.unwrap_or_default() {
            let took = i64::try_from(one.took.as_nanos()).unwrap_or(i64::MAX);
            let ended = at(one.at_s, ahead_ns, now.saturating_sub(took)).saturating_add(took);
            let row = statement(out, "execution", ended, one.text, 1, took);
            out.batch.statements.push(row);
        }
        let moved = answer.latest.map(|latest| self.latency.moved(&latest, has_restarted));
        (moved.unwrap_or_default(), ahead_ns)
    }

    /// Adds the stops of the monitor's `events` that were not told before.
    fn tell_stops(
        &mut self,
        server: &mut Server,
        names: &[String],
        ahead_ns: i64,
        out: &mut Out,
    ) -> Result<(), Failure> {
        let words: Vec<[&str; 3]> = names.iter().map(|name| ["LATENCY", "HISTORY", name]).collect();
        let commands: Vec<&[&str]> = words.iter().map(<[&str; 3]>::as_slice).collect();
        for (name, reply) in names.iter().zip(server.ask(&commands)?) {
            if let Reply::Error(words) = &reply {
                return Err(failure(words));
            }
            for stop in self.latency.new_ones(name, &reply) {
                let labels = Labels::new([("what", stop.event.as_str())]);
                let labels = labels.with("seconds", format!("{}", stop.ms as f64 / 1e3));
                let text = format!("{} stopped the server for {}", stop.event, ms(stop.ms as f64));
                let at = at(stop.at_s, ahead_ns, out.at());
                out.batch.events.push(event(out.source(), at, events::SERVER_STALL, text, labels));
            }
        }
        Ok(())
    }
}

/// The fields of `INFO`.
fn fields(info: &str) -> impl Iterator<Item = (&str, &str)> {
    info.lines().filter_map(field)
}

/// A whole second of the server's clock by this machine's, nanoseconds since 1970: it was by `now`,
/// however the clocks differ.
fn at(second: i64, ahead_ns: i64, now: i64) -> i64 {
    second.saturating_mul(1_000_000_000).saturating_add(ahead_ns).min(now)
}

/// Calls and time of each command so far, as statements.
fn totals(info: &str, out: &mut Out) {
    for (name, value) in fields(info) {
        let Some(name) = name.strip_prefix("cmdstat_") else { continue };
        let whole = |called: &str| part(value, called).map(|number| number as i64);
        let (Some(calls), Some(took_us)) = (whole("calls"), whole("usec")) else { continue };
        let text = name.replace('|', " ").to_ascii_uppercase();
        let errors = whole("rejected_calls").unwrap_or(0) + whole("failed_calls").unwrap_or(0);
        let at = out.at();
        let row = statement(out, "digest_total", at, text, calls, took_us.saturating_mul(1_000));
        out.batch.statements.push(Statement { errors, ..row });
    }
}

fn statement(out: &Out, kind: &str, observed_at: i64, text: String, calls: i64, duration_ns: i64) -> Statement {
    Statement {
        observed_at,
        source: out.source().to_owned(),
        kind: kind.to_owned(),
        digest: digest_of_text(&text),
        digest_text: text,
        calls,
        duration_ns,
        ..Statement::default()
    }
}

/// By how much this machine's clock is ahead of the server's, nanoseconds; 0 if it does not tell.
fn ahead(info: &str, now: i64) -> i64 {
    let server = fields(info).find(|(name, _)| *name == "server_time_usec");
    server.and_then(|(_, us)| us.parse::<i64>().ok()?.checked_mul(1_000)).map_or(0, |server| now - server)
}

fn settings(info: &str) -> Vec<(String, String)> {
    let known = fields(info).filter(|(name, _)| SETTINGS.contains(name));
    known.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

impl Collector for Redis {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        self.link.connections.forget_failures();
        let (server, answer) = self.found().map_err(|failure| self.unusable(failure))?;
        if !fields(&answer.info).any(|(name, _)| name == "redis_version" || name == "valkey_version") {
            let why = format!("it is another server than Redis; {}", self.address.advice());
            return Err(ProbeError::unreachable(&self.source, why));
        }
        self.link.server = Some(server);
        let lacking =
            |name: &str, why: Option<&String>| why.map(|why| part_of(&self.source, name).absent(why).enable(GRANT));
        let parts =
            [lacking("slow log", answer.slow.as_ref().err()), lacking("latency monitor", answer.latest.as_ref().err())];
        let coverage = Coverage::with_parts(&self.source, parts.into_iter().flatten().collect());
        // What was before is not told.
        let mut before = Batch::default();
        let source = self.source.clone();
        self.tell(answer, &mut Out::new(&mut before, &source));
        Ok(coverage)
    }

    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        tell(batch, &self.source, self.settings.iter().cloned());
        Ok(())
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let mut server = self.connected()?;
        let source = self.source.clone();
        let mut reads = self.link.reads();
        let mut out = Out::new(batch, &source);
        let mut answer = out.read(|| ask(&mut server, self.parts));
        if matches!(answer, Err(Failure::Lost(_))) {
            // A server may end connections that were idle, or have begun anew: it is asked once more.
            let again = out.read(|| self.found()).map_err(cannot_connect)?;
            server = again.0;
            answer = Ok(again.1);
        }
        if let Some(answer) = reads.note("INFO", answer) {
            for (part, why) in
                [("slow log", answer.slow.as_ref().err()), ("latency monitor", answer.latest.as_ref().err())]
            {
                reads.failures.extend(why.map(|why| format!("{part}: {why}")));
            }
            let (moved, ahead_ns) = self.tell(answer, &mut out);
            if !moved.is_empty() {
                let told = self.tell_stops(&mut server, &moved, ahead_ns, &mut out);
                reads.note("latency monitor", told);
            }
        }
        self.link.finish(server, reads)
    }
}
