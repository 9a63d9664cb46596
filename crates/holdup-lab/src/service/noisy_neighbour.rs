//! The noisy neighbour (`holdup hog`): connections that run heavy SQL, or hold locks, beside the
//! service. For labs only.
//!
//! All its connections begin a round at the same moment, as batch jobs on a common timer do. It
//! always ends by itself, so that a forgotten one does not run forever.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use holdup_protocol::database::Address;

use crate::service::address::{Database, DatabaseAddress, PASSWORD_VARIABLE};
use crate::service::mysql::{Client, ClientError};
use crate::service::process::{self, Stop};
use crate::service::script::{self, Step};
use crate::service::{ServiceError, duration};

/// Longest time that it may run.
const LIFE_MAX: Duration = Duration::from_secs(120);

/// Pause before a broken connection is reopened.
const RECONNECT_AFTER: Duration = Duration::from_millis(200);

/// Options of the noisy neighbour.
#[derive(clap::Args, Clone, Debug)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["sql", "script"])))]
pub struct NoisyNeighbourOptions {
    /// mysql://user@host:port/database (password also in HOLDUP_MYSQL_PASSWORD)
    #[arg(long, value_name = "DATABASE")]
    pub database: DatabaseAddress,

    /// Connections, each of which runs every round
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=500))]
    pub connections: u32,

    /// One statement per round
    #[arg(long, value_name = "SQL")]
    pub sql: Option<String>,

    /// Several steps per round: statements and waits, e.g. 'BEGIN; UPDATE …; SLEEP 2000ms; COMMIT'
    #[arg(long, value_name = "STEPS")]
    pub script: Option<String>,

    /// Start a round every DURATION, at the same moment on all connections [default: one after the
    /// other]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub every: Option<Duration>,

    /// End after this long, 120s at most
    #[arg(long = "for", value_name = "DURATION", default_value = "120s", value_parser = duration::parse)]
    pub life: Duration,

    /// Stop when stdin ends, because the process that started it is gone
    #[arg(long)]
    pub stop_on_stdin_eof: bool,
}

/// State that the threads of all connections share.
struct Work {
    address: Address,
    steps: Vec<Step>,
    every: Option<Duration>,
    begun: Instant,
    life: Duration,
    stop: Stop,
    rounds_total: AtomicU64,
    errors_total: AtomicU64,
}

/// Runs until its time is over or a signal comes. Prints `ready connections=N` on stdout once all
/// are open, and at the end the number of rounds.
///
/// # Errors
///
/// If options are wrong or the database cannot be reached at the start. Later failures are counted
/// and tried again.
pub fn run_noisy_neighbour(options: NoisyNeighbourOptions) -> Result<(), ServiceError> {
    let bad = |option, why: &str| ServiceError::BadOption { option, why: why.to_owned() };
    let Database::Mysql(address) = options.database.parse(std::env::var(PASSWORD_VARIABLE).ok())? else {
        return Err(bad("--database", "must be mysql://user@host:port/database"));
    };
    if options.life > LIFE_MAX {
        return Err(bad("--for", "120s at most"));
    }
    if options.every.is_some_and(|every| every.is_zero()) {
        return Err(bad("--every", "must be above 0; leave it out for rounds without pause"));
    }
    let steps = match (&options.sql, &options.script) {
        (Some(sql), _) => vec![Step::Statement(sql.clone())],
        (None, Some(text)) => script::parse(text).map_err(|why| ServiceError::BadOption { option: "--script", why })?,
        (None, None) => Vec::new(),
    };
    if !steps.iter().any(|step| matches!(step, Step::Statement(_))) {
        return Err(bad("--script", "contains no statement"));
    }
    let stop = process::stop_on_signals()?;
    if options.stop_on_stdin_eof {
        process::stop_on_stdin_eof(stop)?;
    }
    let open = |_| {
        Client::connect(&address)
            .map_err(|error| ServiceError::Database { database: options.database.to_string(), why: error.to_string() })
    };
    let connections = (0..options.connections).map(open).collect::<Result<Vec<_>, _>>()?;
    say(&format!("ready connections={}", connections.len()))?;
    let work = Arc::new(Work {
        address: address.clone(),
        steps,
        every: options.every,
        begun: Instant::now(),
        life: options.life,
        stop,
        rounds_total: AtomicU64::new(0),
        errors_total: AtomicU64::new(0),
    });
    work_all(connections, &work)?;
    let (rounds, errors) = (work.rounds_total.load(Ordering::Relaxed), work.errors_total.load(Ordering::Relaxed));
    say(&format!("ended rounds_total={rounds} errors_total={errors}"))
}

fn work_all(connections: Vec<Client>, work: &Arc<Work>) -> Result<(), ServiceError> {
    let (done, all_done) = mpsc::channel::<()>();
    for client in connections {
        let (work, done) = (Arc::clone(work), done.clone());
        thread::Builder::new()
            .name("hog".to_owned())
            .spawn(move || {
                work.rounds(client);
                drop(done);
            })
            .map_err(|source| ServiceError::System { what: "start a thread", source })?;
    }
    drop(done);
    // It does not wait for a statement that hangs in the server: the statement ends with this
    // process.
    while work.goes_on() {
        if let Err(mpsc::RecvTimeoutError::Disconnected) = all_done.recv_timeout(Duration::from_millis(20)) {
            return Ok(());
        }
    }
    let _ = all_done.recv_timeout(Duration::from_secs(1));
    Ok(())
}

impl Work {
    fn goes_on(&self) -> bool {
        !self.stop.is_set() && self.begun.elapsed() < self.life
    }

    fn rounds(&self, client: Client) {
        let mut client = Some(client);
        let mut round = 0;
        while self.goes_on() {
            if let Some(every) = self.every {
                // Missed rounds are skipped, so that all connections keep the same beat.
                round = next_round(self.begun.elapsed(), every, round);
                self.wait(every.saturating_mul(round).saturating_sub(self.begun.elapsed()));
                if !self.goes_on() {
                    return;
                }
            }
            match self.round(&mut client) {
                Ok(()) => drop(self.rounds_total.fetch_add(1, Ordering::Relaxed)),
                Err(error) => {
                    if self.errors_total.fetch_add(1, Ordering::Relaxed) == 0 {
                        eprintln!("hog: {error}; further errors are only counted");
                    }
                    // After the server's own refusals (a lock wait that timed out) the connection
                    // is good, but a transaction may be open. A new connection is clean in every
                    // case.
                    client = None;
                    self.wait(RECONNECT_AFTER);
                }
            }
        }
    }

    fn round(&self, place: &mut Option<Client>) -> Result<(), ClientError> {
        let client = match place {
            Some(client) => client,
            None => place.insert(Client::connect(&self.address)?),
        };
        for step in &self.steps {
            match step {
                Step::Statement(sql) => client.run(sql, &mut |_, _| ())?,
                Step::Sleep(time) => self.wait(*time),
            }
        }
        Ok(())
    }

    /// Sleeps in pieces that are short enough to stop soon.
    fn wait(&self, time: Duration) {
        let until = Instant::now() + time;
        while self.goes_on() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(Duration::from_millis(20)));
        }
    }
}

/// The first round after `last` whose time has not passed yet. The very first round is number 1,
/// one period after the start.
fn next_round(elapsed: Duration, every: Duration, last: u32) -> u32 {
    let passed = (elapsed.as_nanos() / every.as_nanos().max(1)).min(u128::from(u32::MAX - 1)) as u32;
    (passed + 1).max(last + 1)
}

fn say(line: &str) -> Result<(), ServiceError> {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{line}")
        .and_then(|()| stdout.flush())
        .map_err(|source| ServiceError::System { what: "write to stdout", source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: NoisyNeighbourOptions,
    }

    fn options(arguments: &[&str]) -> Result<NoisyNeighbourOptions, clap::Error> {
        Line::try_parse_from([&["hog", "--database", "mysql://app@127.0.0.1:1/x"], arguments].concat())
            .map(|l| l.options)
    }

    #[test]
    fn rounds_keep_to_the_beat_and_missed_ones_are_left_out() {
        let every = Duration::from_millis(100);
        assert_eq!(next_round(Duration::ZERO, every, 0), 1);
        assert_eq!(next_round(Duration::from_millis(130), every, 1), 2);
        assert_eq!(next_round(Duration::from_millis(570), every, 2), 6);
        // Woken a moment early, it must not do the same round twice.
        assert_eq!(next_round(Duration::from_millis(599), every, 6), 7);
    }

    #[test]
    fn it_wants_one_kind_of_work_and_an_end() {
        assert!(options(&[]).is_err());
        assert!(options(&["--sql", "SELECT 1", "--script", "SELECT 1"]).is_err());
        for wrong in
            [&["--sql", "SELECT 1", "--for", "121s"][..], &["--script", "SLEEP 5ms"], &["--sql", "x", "--every", "0ms"]]
        {
            let refused = run_noisy_neighbour(options(wrong).expect("clap takes it"));
            assert!(matches!(refused, Err(ServiceError::BadOption { .. })), "{wrong:?}: {refused:?}");
        }
        let unreachable = run_noisy_neighbour(options(&["--sql", "SELECT 1"]).expect("clap takes it"));
        assert!(matches!(unreachable, Err(ServiceError::Database { .. })));
    }
}
