//! The flags that set how much load is sent, when, and which share this process plays. The library
//! defines their meaning. Here they are parsed and turned into the text of a scenario's `load`
//! section.

use std::path::PathBuf;
use std::time::Duration;

use holdup_access::time;
use holdup_load::access_log::{Format, Options};
use holdup_load::model::{Closed, Load};
use holdup_load::scenario::profile::{self, DEFAULT_SEED, MAX_GROUP, REPLAYED_METHODS};
use holdup_load::scenario::search::{self, Config};
use holdup_load::scenario::{DEFAULT_CONNECTIONS, MAX_RATE, Operation, Scenario, WarmUp};
use holdup_load::schedule::{Schedule, Share};
use holdup_recording::clock;

use super::duration;
use crate::failure::Failure;

/// Default length of the quick form's load.
const DEFAULT_DURATION: Duration = Duration::from_secs(10);

/// Most shards of one load.
const MAX_SHARDS: u32 = 10_000;

#[derive(clap::Args)]
#[command(next_help_heading = "How much")]
pub struct LoadArgs {
    /// Constant rate, requests per second, e.g. 500 or 0.5
    #[arg(long, value_name = "N", requires = "url", group = "how_much", value_parser = rate)]
    rate: Option<f64>,

    /// Rates in steps, requests per second, each for --duration, e.g. 50:300:50
    #[arg(long, value_name = "FROM:TO:STEP", requires = "url", group = "how_much", value_parser = steps)]
    steps: Option<[f64; 3]>,

    /// Ramp from one rate to another over --duration, requests per second, e.g. 0:500
    #[arg(long, value_name = "FROM:TO", requires = "url", group = "how_much", value_parser = ramp)]
    ramp: Option<[f64; 2]>,

    /// Base rate and a spike: base, peak (requests per second), start, length, e.g. 50:500:10s:5s
    #[arg(long, value_name = "BASE:PEAK:AT:FOR", requires = "url", group = "how_much", value_parser = spike)]
    spike: Option<Spike>,

    /// Sine-shaped rate: mean, amplitude (requests per second), period, e.g. 100:80:1m
    #[arg(long, value_name = "MEAN:AMPLITUDE:PERIOD", requires = "url", group = "how_much", value_parser = sine)]
    sine: Option<Sine>,

    /// Replay an access log (common, combined or JSON lines) with its timing; sends GET and HEAD
    #[arg(long, value_name = "FILE", requires = "url", group = "how_much", conflicts_with = "poisson")]
    replay: Option<PathBuf>,

    /// Closed model: each of --connections users waits for its response before the next request
    #[arg(long, requires = "url", group = "how_much", conflicts_with = "poisson")]
    closed: bool,

    /// Search for the knee and the breaking point between two rates, requests per second [default: 10:20000]
    #[arg(long, value_name = "FROM:MOST", requires = "url", group = "how_much", num_args = 0..=1, default_missing_value = "10:20000", value_parser = ramp)]
    search: Option<[f64; 2]>,

    /// Limit the search to this time [default: 3m]
    #[arg(long, value_name = "DURATION", requires = "search", value_parser = positive)]
    within: Option<Duration>,

    /// Objective that the searched rate must meet, e.g. 'p99 < 500ms'
    #[arg(long, value_name = "OBJECTIVE", requires = "search", value_parser = search_objective)]
    search_objective: Option<holdup_load::scenario::search::Objective>,

    /// Duration, e.g. 30s or 1h; of each step with --steps [default: 10s; with --replay: the whole log]
    #[arg(long, value_name = "DURATION", requires = "url", value_parser = positive)]
    duration: Option<Duration>,

    /// Poisson arrivals, as from many independent users, instead of even spacing
    #[arg(long, requires = "url")]
    poisson: bool,

    /// Arrivals in groups: so many requests at the same instant, e.g. 20
    #[arg(long, value_name = "N", requires = "url", conflicts_with_all = ["replay", "closed", "search"], value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_GROUP)))]
    groups_of: Option<u32>,

    /// Seed of the random arrivals, a whole number
    #[arg(long, value_name = "N", requires = "poisson", conflicts_with_all = ["replay", "closed"])]
    seed: Option<u64>,

    /// Replay speed, e.g. 2 or 0.5 [default: 1]
    #[arg(long, value_name = "X", requires = "url", value_parser = speed)]
    speed: Option<f64>,

    /// Methods to replay, without bodies, which no log has [default: GET,HEAD]
    #[arg(long, value_name = "METHOD", requires = "url", value_delimiter = ',', value_parser = profile::method)]
    replay_methods: Vec<&'static str>,

    /// Format of the log: auto, common, combined or json [default: auto]
    #[arg(long, value_name = "FORMAT", requires = "url", value_parser = Format::parse)]
    replay_format: Option<Format>,

    /// Think time of a closed-model user after a response, e.g. 200ms [default: 0s]
    #[arg(long, value_name = "DURATION", requires = "url", value_parser = duration)]
    think: Option<Duration>,

    /// Warm-up to leave out of the figures: auto, none, or e.g. 30s [default: the scenario's, or auto]
    #[arg(long, value_name = "auto|none|DURATION", value_parser = profile::warm_up)]
    warm_up: Option<WarmUp>,

    /// Play only this share of the load, e.g. 2/5 for the second of five processes
    #[arg(long, value_name = "K/N", value_parser = shard)]
    shard: Option<Share>,

    /// Start at this time (RFC 3339 or Unix seconds), the same for all shards
    #[arg(long, value_name = "TIME", value_parser = moment)]
    start_at: Option<i64>,
}

/// `BASE:PEAK:AT:FOR`.
#[derive(Clone, Copy, Debug)]
struct Spike {
    base: f64,
    peak: f64,
    at: Duration,
    lasting: Duration,
}

/// `MEAN:AMPLITUDE:PERIOD`.
#[derive(Clone, Copy, Debug)]
struct Sine {
    mean: f64,
    amplitude: f64,
    period: Duration,
}

/// The load that the quick form's flags describe.
pub struct Demand {
    pub load: Load,
    /// Operations of a replayed log; if empty, the URL's path is requested.
    pub operations: Vec<Operation>,
    /// The same as the text of a scenario's `load` section.
    pub text: String,
    /// The search, if the load is one.
    pub search: Option<Config>,
}

impl LoadArgs {
    /// The load of the quick form.
    pub fn demand(&self, connections: Option<u32>) -> Result<Demand, Failure> {
        self.belongs()?;
        let length = self.duration.unwrap_or(DEFAULT_DURATION);
        let wrong = |flag: &'static str| move |why: String| Failure::Unusable(format!("{flag}: {why}"));
        let mut operations = Vec::new();
        let mut search = None;
        let (schedule, text) = if let Some([from, most]) = self.search {
            let config = Config {
                from: from.max(0.1),
                most,
                budget: self.within.unwrap_or(Config::default().budget),
                objective: self.search_objective,
                ..Config::default()
            };
            search::check(&config).map_err(wrong("--search"))?;
            let text = format!("search: {{from: {}, most: {most}, within: {}}}", config.from, as_yaml(config.budget));
            let schedule = Schedule::live(config.budget, most);
            search = Some(config);
            (schedule, text)
        } else if let Some(rate) = self.rate {
            (Schedule::constant(rate, length), format!("rate: {rate}"))
        } else if let Some([from, to, step]) = self.steps {
            let text = format!("steps: {{from: {from}, to: {to}, step: {step}, every: {}}}", as_yaml(length));
            (profile::steps(from, to, step, length).map_err(wrong("--steps"))?, text)
        } else if let Some([from, to]) = self.ramp {
            let text = format!("ramp: {{from: {from}, to: {to}}}");
            (profile::ramp(from, to, length).map_err(wrong("--ramp"))?, text)
        } else if let Some(Spike { base, peak, at, lasting }) = self.spike {
            let (start, long) = (as_yaml(at), as_yaml(lasting));
            let text = format!("spike: {{base: {base}, peak: {peak}, at: {start}, for: {long}}}");
            (profile::spike(base, peak, at, lasting, length).map_err(wrong("--spike"))?, text)
        } else if let Some(Sine { mean, amplitude, period }) = self.sine {
            let text = format!("sine: {{mean: {mean}, amplitude: {amplitude}, period: {}}}", as_yaml(period));
            (profile::sine(mean, amplitude, period, length).map_err(wrong("--sine"))?, text)
        } else if let Some(file) = &self.replay {
            let (schedule, groups) = profile::replay(file, &self.options()).map_err(wrong("--replay"))?;
            operations = groups;
            let speed = self.speed.map_or(String::new(), |speed| format!(", speed: {speed}"));
            (schedule, format!("replay: {{file: {:?}{speed}}}", file.display().to_string()))
        } else if self.closed {
            let closed = Closed {
                users: connections.unwrap_or(DEFAULT_CONNECTIONS),
                think: self.think.unwrap_or_default(),
                length,
                ..Closed::default()
            };
            let text = format!("  users: {}\n  think: {}\n", closed.users, as_yaml(closed.think));
            return Ok(Demand {
                load: Load::Closed(closed),
                operations,
                text: self.section(&text, Some(length)),
                search,
            });
        } else {
            return Err(Failure::Unusable(
                "set the load: --rate 500, --steps 50:300:50, --ramp 0:500, --spike 50:500:10s:5s, --sine 100:80:1m, --replay access.log, or --closed --connections 64".to_owned(),
            ));
        };
        let mut text = format!("  {text}\n");
        let (schedule, arrivals) = self.arrivals(schedule);
        text.push_str(&arrivals);
        let says_itself = self.steps.is_some() || self.replay.is_some() || search.is_some();
        let length = if says_itself { None } else { Some(length) };
        Ok(Demand { load: Load::Open(schedule), operations, text: self.section(&text, length), search })
    }

    /// `schedule` with the arrivals of the flags, and the same as text.
    fn arrivals(&self, schedule: Schedule) -> (Schedule, String) {
        let schedule = self.groups_of.into_iter().fold(schedule, Schedule::in_groups);
        let seed = self.seed.unwrap_or(DEFAULT_SEED);
        let text = match (self.groups_of, self.poisson) {
            (None, false) => String::new(),
            (None, true) => format!("  arrivals: poisson\n  seed: {seed}\n"),
            (Some(group), false) => format!("  arrivals: {{groups_of: {group}}}\n"),
            (Some(group), true) => {
                format!("  arrivals: {{groups_of: {group}, spacing: poisson}}\n  seed: {seed}\n")
            }
        };
        (if self.poisson { schedule.poisson(seed) } else { schedule }, text)
    }

    /// clap drops a flag's requirement on a second flag if a third excludes it, so this is checked
    /// here.
    fn belongs(&self) -> Result<(), Failure> {
        let log = self.replay.is_some();
        for (is_lost, flag, of) in [
            (self.duration.is_some() && self.search.is_some(), "--duration", "other loads; a search has --within"),
            (self.within.is_some() && self.search.is_none(), "--within", "--search"),
            (self.search_objective.is_some() && self.search.is_none(), "--search-objective", "--search"),
            (self.think.is_some() && !self.closed, "--think", "--closed"),
            (self.speed.is_some() && !log, "--speed", "--replay"),
            (!self.replay_methods.is_empty() && !log, "--replay-methods", "--replay"),
            (self.replay_format.is_some() && !log, "--replay-format", "--replay"),
        ] {
            if is_lost {
                return Err(Failure::Unusable(format!("{flag} belongs to {of}; add that or remove the flag")));
            }
        }
        Ok(())
    }

    fn options(&self) -> Options {
        let methods =
            if self.replay_methods.is_empty() { REPLAYED_METHODS.to_vec() } else { self.replay_methods.clone() };
        Options {
            format: self.replay_format.unwrap_or_default(),
            speed: self.speed.unwrap_or(1.0),
            methods: Some(methods),
            length: self.duration,
        }
    }

    fn section(&self, text: &str, length: Option<Duration>) -> String {
        let length = length.or(self.duration.filter(|_| self.replay.is_some()));
        let length = length.map_or(String::new(), |length| format!("  duration: {}\n", as_yaml(length)));
        format!("load:\n{text}{length}")
    }

    /// This process's share of the load.
    pub fn share(&self) -> Share {
        self.shard.unwrap_or(Share::WHOLE)
    }

    /// Whether the requests come from a log.
    pub fn is_replay(&self) -> bool {
        self.replay.is_some()
    }

    /// Applies the flags that also hold for the load of a scenario's file.
    ///
    /// # Errors
    /// If they do not fit the load.
    pub fn apply(&self, scenario: &mut Scenario) -> Result<(), Failure> {
        scenario.warm_up = self.warm_up.unwrap_or(scenario.warm_up);
        profile::check_warm_up(scenario.warm_up, scenario.load.length())
            .map_err(|why| Failure::Unusable(format!("--warm-up: {why}")))?;
        if let Some(share) = self.shard {
            if scenario.search.is_some() {
                return Err(Failure::Unusable(
                    "--shard: a search cannot be split, because no process sees the whole load; remove --shard"
                        .to_owned(),
                ));
            }
            let (count, what) = match &scenario.load {
                Load::Closed(closed) => (u64::from(closed.users), "users"),
                // Poisson arrivals are not counted just to see that there are enough.
                Load::Open(schedule) if schedule.seed().is_some() => (u64::MAX, "requests"),
                Load::Open(schedule) => (schedule.total(), "requests"),
            };
            if share.count(count) == 0 {
                let (index, of) = (share.index + 1, share.of);
                return Err(Failure::Unusable(format!(
                    "--shard {index}/{of}: {count} {what} leave nothing for this shard"
                )));
            }
            scenario.shard = share;
        }
        if let Some(start) = self.start_at {
            let late = clock::now_ns() - start;
            if late > 0 {
                let seconds = late as f64 / 1e9;
                return Err(Failure::Unusable(format!(
                    "--start-at: {} was {seconds:.1} s ago; give a time that every shard can still reach",
                    clock::rfc3339(start)
                )));
            }
            scenario.start_at = Some(start);
        }
        Ok(())
    }
}

/// Parses `p99 < 500ms`.
fn search_objective(text: &str) -> Result<search::Objective, String> {
    search::objective(text)
}

/// The duration in a scenario's notation.
pub fn as_yaml(length: Duration) -> String {
    let ns = length.as_nanos();
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let (size, unit) = units.into_iter().find(|(size, _)| ns.is_multiple_of(*size)).unwrap_or((1, "ns"));
    format!("{}{unit}", ns / size)
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.001..=MAX_RATE).contains(&value) => Ok(value),
        _ => Err(format!("expected requests per second, from 0.001 to {MAX_RATE}, e.g. 500")),
    }
}

fn rate_or_none(text: &str) -> Result<f64, String> {
    if text.parse() == Ok(0.0) { Ok(0.0) } else { rate(text) }
}

fn speed(text: &str) -> Result<f64, String> {
    let range = profile::SPEED;
    let wrong = || format!("expected how many times as fast, from {} to {}, e.g. 2", range.start(), range.end());
    text.parse().ok().filter(|speed| range.contains(speed)).ok_or_else(wrong)
}

fn positive(text: &str) -> Result<Duration, String> {
    let length = duration(text)?;
    if length.is_zero() { Err("expected a duration longer than 0s".to_owned()) } else { Ok(length) }
}

/// Splits `text` at its colons into `N` parts.
fn parts<'a, const N: usize>(text: &'a str, form: &str) -> Result<[&'a str; N], String> {
    let parts: Vec<&str> = text.split(':').collect();
    <[&str; N]>::try_from(parts).map_err(|_| format!("expected {form}"))
}

fn steps(text: &str) -> Result<[f64; 3], String> {
    let [from, to, step] = parts(text, "FROM:TO:STEP, e.g. 50:300:50")?;
    Ok([rate(from)?, rate(to)?, rate(step)?])
}

fn ramp(text: &str) -> Result<[f64; 2], String> {
    let [from, to] = parts(text, "FROM:TO, e.g. 0:500")?;
    Ok([rate_or_none(from)?, rate_or_none(to)?])
}

fn spike(text: &str) -> Result<Spike, String> {
    let [base, peak, at, lasting] = parts(text, "BASE:PEAK:AT:FOR, e.g. 50:500:10s:5s")?;
    Ok(Spike { base: rate_or_none(base)?, peak: rate(peak)?, at: duration(at)?, lasting: positive(lasting)? })
}

fn sine(text: &str) -> Result<Sine, String> {
    let [mean, amplitude, period] = parts(text, "MEAN:AMPLITUDE:PERIOD, e.g. 100:80:1m")?;
    Ok(Sine { mean: rate(mean)?, amplitude: rate(amplitude)?, period: positive(period)? })
}

fn shard(text: &str) -> Result<Share, String> {
    let wrong = || format!("expected K/N, e.g. 2/5: a part from 1 to N, of at most {MAX_SHARDS}");
    let (index, of) = text.split_once('/').ok_or_else(wrong)?;
    match (index.trim().parse::<u32>(), of.trim().parse::<u32>()) {
        (Ok(index), Ok(of)) if (1..=of).contains(&index) && of <= MAX_SHARDS => Ok(Share { index: index - 1, of }),
        _ => Err(wrong()),
    }
}

fn moment(text: &str) -> Result<i64, String> {
    time::parse(text).ok_or_else(|| "expected a time such as 2030-01-31T12:00:00Z or 1896091200".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[arg(long)]
        url: Option<String>,
        #[command(flatten)]
        load: LoadArgs,
    }

    fn read(flags: &str) -> Result<Demand, String> {
        let words = ["holdup", "--url", "http://h"].into_iter().chain(flags.split_whitespace());
        let cli = Cli::try_parse_from(words).map_err(|e| e.to_string())?;
        cli.load.demand(Some(8)).map_err(|e| format!("{e:?}"))
    }

    /// The section that is kept in a recording is the load that was put on.
    #[test]
    fn flags_and_their_text_say_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("a.log");
        std::fs::write(&log, "h - - [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.1\" 200 5\n".repeat(30)).unwrap();
        let replay = format!("--replay {} --speed 3", log.display());
        for flags in [
            "--rate 500",
            "--rate 0.5 --duration 1m",
            "--steps 50:300:50 --duration 2s",
            "--ramp 0:500 --duration 1500ms",
            "--spike 50:500:2s:1s",
            "--sine 100:80:3s --poisson --seed 9",
            "--rate 20 --poisson",
            "--rate 20 --groups-of 7",
            "--steps 50:300:50 --duration 2s --groups-of 20 --poisson --seed 3",
            "--closed --think 200ms",
            replay.as_str(),
        ] {
            let demand = read(flags).unwrap();
            let operations = if demand.operations.is_empty() { "operations: [get: /]\n" } else { "" };
            let text = format!("target: http://h\n{}{operations}", demand.text);
            let scenario = Scenario::parse(&text, "s.yaml").unwrap_or_else(|e| panic!("{flags}: {e}\n{text}"));
            assert_eq!(scenario.load, demand.load, "{flags}\n{text}");
        }
    }

    #[test]
    fn wrong_flags_say_the_way_out() {
        for (flags, words) in [
            ("", "--rate 500, --steps 50:300:50"),
            ("--rate 0", "requests per second, from 0.001"),
            ("--rate 5 --ramp 1:5", "cannot be used with"),
            ("--rate 5 --closed", "cannot be used with"),
            ("--steps 1:2", "FROM:TO:STEP, e.g. 50:300:50"),
            ("--steps 1:100000:1", "--steps: more than 10000 steps"),
            ("--ramp 0:0", "--ramp: a ramp from 0 to 0 sends nothing"),
            ("--spike 1:5:9s", "BASE:PEAK:AT:FOR, e.g. 50:500:10s:5s"),
            ("--spike 1:5:9s:5s", "--spike: the spike ends at 14s and the load at 10s"),
            ("--sine 5:6:1s", "--sine: an amplitude of 6 takes the rate below 0"),
            ("--sine 5:6:x", "a duration such as 250ms"),
            ("--rate 5 --seed 1", "--poisson"),
            ("--closed --poisson", "cannot be used with"),
            ("--closed --groups-of 5", "cannot be used with"),
            ("--rate 5 --groups-of 0", "0 is not in 1..=1000000"),
            ("--rate 5 --think 1s", "--think belongs to --closed"),
            ("--rate 5 --speed 2", "--speed belongs to --replay"),
            ("--closed --replay-methods get", "--replay-methods belongs to --replay"),
            ("--rate 5 --replay-format json", "--replay-format belongs to --replay"),
            ("--replay /nowhere/a.log", "--replay: /nowhere/a.log: No such file"),
            ("--replay a.log --replay-methods get,brew", "\"brew\" is not a method that can be replayed"),
            ("--replay a.log --speed 0", "how many times as fast"),
            ("--rate 5 --duration 0s", "longer than 0s"),
            ("--rate 5 --shard 6/5", "e.g. 2/5"),
            ("--rate 5 --shard 0/5", "e.g. 2/5"),
            ("--rate 5 --start-at noon", "2030-01-31T12:00:00Z"),
            ("--rate 5 --warm-up some", "or auto, or none"),
        ] {
            let error = read(flags).err().unwrap_or_else(|| panic!("{flags} is accepted"));
            assert!(error.contains(words), "{flags}: {error}");
        }
    }
}
