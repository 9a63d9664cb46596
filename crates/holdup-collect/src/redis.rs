//! `--watch redis://USER@HOST:PORT`: a Redis or Valkey server. Each sample has its `INFO`, the calls and
//! the time of every command as statements, and commands of the slow log as executions: a server runs
//! one command at a time, so a slow one holds up all others.
//!
//! It sends `INFO` and `SLOWLOG GET`, which only read. Keys and values never leave this file: a command
//! is kept by its name and the number of its arguments.

mod resp;

use std::time::Duration;

use holdup_protocol::database::Secret;
use holdup_recording::layouts::redis::{SETTINGS, field, figures, part};
use holdup_recording::rows::Statement;
use holdup_recording::{Batch, Coverage};
use holdup_sql::digest_of_text;

use self::resp::{Reply, command, replies};
use crate::account::Parts;
use crate::coverage::{Line as _, part as part_of};
use crate::endpoint::{self, Endpoint};
use crate::options::Options;
use crate::reading::{Out, OwnName, tell};
use crate::{Collector, ProbeError, ReadError};

/// Redis' port.
const PORT: u16 = 6379;

/// The environment variable that holds the password of an account.
const PASSWORD_VARIABLE: &str = "HOLDUP_REDIS_PASSWORD";

const EXAMPLE: &str = "redis://[USER[:PASSWORD]@]HOST[:PORT][?password_env=VAR, password_file=PATH], or \
    redis:unix:/run/redis/redis.sock; holdup does not speak TLS to Redis: watch it on its own machine, or through a \
    tunnel";

/// The least that an account needs.
const GRANT: &str = "ACL SETUSER holdup on >PASSWORD resetkeys -@all +info +slowlog|get +quit";

/// Largest answer accepted: `INFO` takes some 10 kB, and each slow command at most 4 kB.
const BODY_BYTES_MAX: u64 = 4 << 20;

/// Most slow commands that are read at once, the newest.
const SLOW_MAX: &str = "128";

/// Most arguments in the shape of a command.
const ARGUMENTS: usize = 4;

/// Makes the collector for `redis:…`.
pub(crate) fn make(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    let wrong = |why: String| format!("{why}; expected {EXAMPLE}");
    let (endpoint, user, password) = if rest.starts_with("unix:") {
        (Endpoint::parse(rest), String::new(), None)
    } else {
        let address = rest.strip_prefix("//").ok_or_else(|| wrong("it does not begin with redis://".to_owned()))?;
        let parts = Parts::split(address, PORT).map_err(wrong)?;
        if let Some((name, _)) = parts.options.first() {
            return Err(wrong(format!("the option {name} is unknown")));
        }
        (Endpoint::parse(&format!("{}:{}", parts.host, parts.port)), parts.user, parts.password)
    };
    let endpoint = endpoint.ok_or_else(|| wrong("the host is missing".to_owned()))?;
    let slashes = if rest.starts_with("//") { "//" } else { "" };
    let source = format!("redis:{slashes}{endpoint}");
    let password = Parts::password_or(password, PASSWORD_VARIABLE);
    Ok(Box::new(Redis { source, endpoint, user, password, newest: None, settings: Vec::new() }))
}

struct Redis {
    source: String,
    endpoint: Endpoint,
    user: String,
    password: Secret,
    /// Number of the newest slow command that was read.
    newest: Option<i64>,
    /// Those of the last answer.
    settings: Vec<(String, String)>,
}

/// Why a server has no answer.
enum Trouble {
    /// The server refuses the account or its password.
    Denied(String),
    /// The account may not ask this.
    Forbidden(String),
    Other(String),
}

/// What a server says.
struct Answer {
    info: String,
    /// Its error if the account may not read them.
    slow: Result<Vec<Slow>, String>,
}

/// A command of the slow log.
struct Slow {
    number: i64,
    /// When it began, seconds since 1970 by the server's clock.
    at_s: i64,
    took: Duration,
    text: String,
}

impl Redis {
    fn ask(&self) -> Result<Answer, Trouble> {
        let mut request = Vec::new();
        let password = self.password.reveal();
        if !password.is_empty() {
            let with_user = ["AUTH", &self.user, password];
            let words: &[&str] = if self.user.is_empty() { &["AUTH", password] } else { &with_user };
            request.extend(command(words));
        }
        for words in [&["INFO", "all"][..], &["SLOWLOG", "GET", SLOW_MAX], &["QUIT"]] {
            request.extend(command(words));
        }
        let bytes = self.endpoint.ask(&request, BODY_BYTES_MAX).map_err(|error| {
            let denied = "join the group of the socket's file, or run holdup as root";
            let late = || "no answer within the time limit: a slow command holds it up, or it has no CPU".to_owned();
            Trouble::Other(endpoint::why(&error, denied, "is the server running?", late))
        })?;
        let mut answers = replies(&bytes).map_err(|why| Trouble::Other(why.to_owned()))?.into_iter();
        if !password.is_empty()
            && let Some(Reply::Error(why)) = answers.next()
        {
            return Err(Trouble::Denied(why));
        }
        let info = match answers.next() {
            Some(Reply::Text(info)) => info,
            Some(Reply::Error(why)) if why.starts_with("NOPERM") => return Err(Trouble::Forbidden(why)),
            Some(Reply::Error(why)) if why.starts_with("NOAUTH") => {
                return Err(Trouble::Denied(format!(
                    "{why} Put it into the environment variable {PASSWORD_VARIABLE}."
                )));
            }
            Some(Reply::Error(why)) => return Err(Trouble::Other(why)),
            _ => return Err(Trouble::Other("it does not answer INFO".to_owned())),
        };
        let slow = match answers.next() {
            Some(Reply::List(list)) => Ok(list.iter().filter_map(slow).collect()),
            Some(Reply::Error(why)) => Err(why),
            _ => Err("it has no slow log".to_owned()),
        };
        Ok(Answer { info, slow })
    }

    /// The slow commands that ended since the last sample.
    fn new_ones(&mut self, slow: Vec<Slow>) -> Vec<Slow> {
        let newest = slow.iter().map(|one| one.number).max();
        let since = self.newest;
        self.newest = newest.or(since.map(|_| -1)).or(Some(-1));
        // The first look tells what was before. Numbers begin anew with the server.
        let Some(since) = since else { return Vec::new() };
        let has_restarted = newest.is_some_and(|newest| newest < since);
        slow.into_iter().filter(|one| has_restarted || one.number > since).collect()
    }
}

/// An entry of the slow log: number, time, microseconds, words, and more in newer versions.
fn slow(entry: &Reply) -> Option<Slow> {
    let Reply::List(entry) = entry else { return None };
    let [Reply::Number(number), Reply::Number(at_s), Reply::Number(took), Reply::List(words), ..] = &entry[..] else {
        return None;
    };
    let took = Duration::from_micros(u64::try_from(*took).ok()?);
    Some(Slow { number: *number, at_s: *at_s, took, text: shape(words)? })
}

/// A command without its keys and values: `HGETALL ?`. The name alone has a fixed set of letters, so that
/// an unknown command tells nothing.
fn shape(words: &[Reply]) -> Option<String> {
    let Some((Reply::Text(name), arguments)) = words.split_first() else { return None };
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)) && name.len() <= 40;
    let mut text = if is_name { name.to_ascii_uppercase() } else { "?".to_owned() };
    text += &" ?".repeat(arguments.len().min(ARGUMENTS));
    if arguments.len() > ARGUMENTS {
        text += " …";
    }
    Some(text)
}

/// Calls and time of each command so far, as statements.
fn totals(info: &str, out: &mut Out) {
    for (name, value) in info.lines().filter_map(field) {
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
    let server = info.lines().filter_map(field).find(|(name, _)| *name == "server_time_usec");
    server.and_then(|(_, us)| us.parse::<i64>().ok()?.checked_mul(1_000)).map_or(0, |server| now - server)
}

impl Collector for Redis {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        let answer = self.ask().map_err(|trouble| match trouble {
            Trouble::Denied(why) => ProbeError::denied(&self.source, why),
            Trouble::Forbidden(why) => {
                ProbeError::MissingGrant { source_name: self.source.clone(), why, grant: GRANT.to_owned() }
            }
            Trouble::Other(why) => ProbeError::unreachable(&self.source, why),
        })?;
        if !answer.info.lines().filter_map(field).any(|(name, _)| name == "redis_version" || name == "valkey_version") {
            return Err(ProbeError::unreachable(
                &self.source,
                format!("it is another server than Redis; expected {EXAMPLE}"),
            ));
        }
        let lacking = answer.slow.as_ref().err().map(|why| part_of(&self.source, "slow log").absent(why).enable(GRANT));
        self.new_ones(answer.slow.unwrap_or_default());
        self.settings = settings(&answer.info);
        Ok(Coverage::with_parts(&self.source, lacking.into_iter().collect()))
    }

    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        tell(batch, &self.source, self.settings.iter().cloned());
        Ok(())
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let source = self.source.clone();
        let mut out = Out::new(batch, &source);
        let answer = out.read(|| self.ask());
        let answer = answer.map_err(|trouble| match trouble {
            Trouble::Denied(why) | Trouble::Forbidden(why) | Trouble::Other(why) => ReadError(why),
        })?;
        for (name, value) in answer.info.lines().filter_map(field) {
            for (metric, labels, value) in figures(name, value) {
                out.put(OwnName(&metric), labels, value);
            }
        }
        totals(&answer.info, &mut out);
        let ahead_ns = ahead(&answer.info, out.at());
        for slow in self.new_ones(answer.slow.unwrap_or_default()) {
            let took = i64::try_from(slow.took.as_nanos()).unwrap_or(i64::MAX);
            // The log has whole seconds. It ended by now, however the clocks differ.
            let ended = slow.at_s.saturating_mul(1_000_000_000).saturating_add(took).saturating_add(ahead_ns);
            let ended = ended.min(out.at());
            let row = statement(&out, "execution", ended, slow.text, 1, took);
            out.batch.statements.push(row);
        }
        self.settings = settings(&answer.info);
        Ok(())
    }
}

fn settings(info: &str) -> Vec<(String, String)> {
    let known = info.lines().filter_map(field).filter(|(name, _)| SETTINGS.contains(name));
    known.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch;

    #[test]
    fn the_shape_of_a_command_has_neither_keys_nor_values() {
        let words = |text: &str| text.split(' ').map(|word| Reply::Text(word.to_owned())).collect::<Vec<_>>();
        assert_eq!(shape(&words("hset user:7 token s3cret")).unwrap(), "HSET ? ? ?");
        assert_eq!(shape(&words("mget a b c d e f")).unwrap(), "MGET ? ? ? ? …");
        assert_eq!(shape(&words("'s3cret' x")).unwrap(), "? ?");
        assert!(shape(&[]).is_none());
    }

    #[test]
    fn a_slow_command_counts_once_and_anew_after_a_restart() {
        let mut redis = Redis {
            source: "redis://h:1".to_owned(),
            endpoint: Endpoint::parse("h:1").unwrap(),
            user: String::new(),
            password: Secret::default(),
            newest: None,
            settings: Vec::new(),
        };
        let of = |numbers: &[i64]| -> Vec<Slow> {
            let slow = |number| Slow { number, at_s: 0, took: Duration::ZERO, text: String::new() };
            numbers.iter().map(|number| slow(*number)).collect()
        };
        let mut told = |numbers: &[i64]| redis.new_ones(of(numbers)).iter().map(|s| s.number).collect::<Vec<_>>();
        assert!(told(&[4, 3]).is_empty(), "from before");
        assert_eq!(told(&[6, 5, 4]), [6, 5]);
        assert!(told(&[6, 5]).is_empty());
        assert_eq!(told(&[1, 0]), [1, 0]);
        assert!(told(&[]).is_empty());
        assert_eq!(told(&[0]), [0], "the log was emptied");
    }

    #[test]
    fn addresses() {
        let make = |address: &str| watch::collector(address, &Options::default());
        for (good, source) in [
            ("redis://127.0.0.1:6380", "redis://127.0.0.1:6380"),
            ("redis://holdup:canary@cache", "redis://cache:6379"),
            ("redis:unix:/run/redis.sock", "redis:unix:/run/redis.sock"),
        ] {
            assert_eq!(make(good).unwrap().source(), source);
        }
        for bad in ["redis:", "redis://u:canary@", "redis://u:canary@h?tls=1", "redis:unix:run"] {
            let error = make(bad).err().unwrap().to_string();
            assert!(error.contains("expected redis://") && !error.contains("canary"), "{error}");
        }
    }
}
