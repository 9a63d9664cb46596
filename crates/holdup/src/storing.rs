//! `--store`: sends a recording to ClickHouse while it is made, in a thread of its own, and the rest
//! at its end. The recording never waits for the store: while that is away, rows stay on disk and go
//! out later. What could not be sent is said, with the command that sends it.

mod feed;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use holdup_recording::folder::Folder;
use holdup_recording::manifest::Host;
use holdup_recording::priority::give_way;
use holdup_recording::words;
use holdup_recording::writer::Notifier;
use holdup_store::Address;
use holdup_store::catalog::Place;
use holdup_store::push::Pushed;

use self::feed::Feed;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::secret_values::value;

/// Time between two looks for new rows. Rows reach the disk every 1.5 s.
const EVERY: Duration = Duration::from_secs(3);

/// How long the end waits for a store that confirms nothing more, and for one that was away.
const PATIENCE: Duration = Duration::from_secs(60);
const PATIENCE_AWAY: Duration = Duration::from_secs(5);

/// How long the end is silent.
const SILENCE: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub struct StoreArgs {
    /// Also send it to ClickHouse: clickhouse://USER@HOST/DATABASE, or @FILE
    #[arg(long, value_name = "URL", value_parser = value)]
    store: Option<String>,
}

impl StoreArgs {
    /// The store, if one was named.
    ///
    /// # Errors
    /// If it is not an address.
    pub fn target(&self) -> Result<Option<Target>, Failure> {
        let parsed = self.store.as_deref().map(Address::parse);
        let target = parsed.map(|address| address.map(|address| Target { address, part: None }));
        target.transpose().map_err(|error| Failure::Unusable(format!("--store: {error}")))
    }
}

/// Where recordings go beside their directory.
#[derive(Clone)]
pub struct Target {
    address: Address,
    /// The case that the recording is part of.
    part: Option<CasePart>,
}

/// Where a recording with an id lies in a store: all of a case under one name, each with its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CasePart {
    /// The id that all recordings of the case share.
    pub id: String,
    /// The host; of a shard with its number, because one host may make several.
    pub host: String,
}

impl CasePart {
    /// The part that a recording with this `id` is, made on `host`; none without an id.
    pub fn new(id: Option<&str>, host: &Host, shard: Option<&str>) -> Option<Self> {
        let name = host.name.as_deref().unwrap_or("unknown");
        let host = shard.map_or_else(|| name.to_owned(), |shard| format!("{name}-{}", shard.replace('/', "of")));
        id.map(|id| Self { id: id.to_owned(), host })
    }
}

impl Target {
    /// The address.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The same for a recording that is part of a case.
    #[must_use]
    pub fn with_part(self, part: Option<CasePart>) -> Self {
        Self { part, ..self }
    }

    /// The name of the recording in `dir`: that of the address, the id of its case, or the
    /// directory's.
    ///
    /// # Errors
    /// If it has none.
    pub fn place(&self, dir: &Path) -> Result<Place, Failure> {
        // Of a directory that is not made yet, the path has to do.
        let real = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        let own = || real.file_name().map(|name| name.to_string_lossy().into_owned());
        let id = self.part.as_ref().map(|part| part.id.clone());
        let name = self.address.recording.clone().or(id).or_else(own).unwrap_or_default();
        let host = self.part.as_ref().map_or("", |part| part.host.as_str());
        Place::new(&name, host).map_err(Failure::unusable)
    }

    /// The command that sends the recording in `dir`.
    pub fn command(&self, dir: &Path) -> String {
        let name = self.address.recording.as_ref().map_or_else(String::new, |name| format!(" --as {}", word(name)));
        format!("holdup store push {} {}{name}", word(&dir.display().to_string()), word(&self.address.for_command()))
    }
}

/// `text` as one word of a shell.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/:@.,_-=%+[]".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// What the thread and the recording tell each other.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Counts what the store confirmed: a store that answers moves.
    moved: AtomicU64,
    /// Rows that it confirmed while the recording was running.
    rows: AtomicU64,
    is_away: AtomicBool,
    is_given_up: AtomicBool,
}

#[derive(Default)]
struct State {
    /// Whether the recording is complete.
    is_complete: bool,
    /// Why the last attempt to send the rest failed.
    why: Option<String>,
    end: Option<Result<Pushed, String>>,
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Waits until `is_so`, at most this long. Returns whether it is so.
    fn wait(&self, limit: Duration, is_so: impl Fn(&State) -> bool) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(state, limit, |state| !is_so(state));
        is_so(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    fn moves(&self) {
        self.moved.fetch_add(1, Ordering::Relaxed);
    }

    fn is_wanted(&self) -> bool {
        !self.is_given_up.load(Ordering::Relaxed)
    }
}

/// A recording that is being sent.
pub struct Storing {
    shared: Arc<Shared>,
    target: Target,
    place: Place,
    folder: Arc<Folder>,
}

impl Storing {
    /// Begins to send the recording in `folder`. `notifier` says what goes wrong.
    ///
    /// # Errors
    /// If the recording has no name for the store, or no thread can be started.
    pub fn begin(target: &Target, folder: &Arc<Folder>, notifier: Notifier) -> Result<Self, Failure> {
        let place = target.place(&folder.current())?;
        let storing =
            Self { shared: Arc::default(), target: target.clone(), place: place.clone(), folder: Arc::clone(folder) };
        let shared = Arc::clone(&storing.shared);
        let mut feed = Feed::new(target.address().clone(), place, Arc::clone(folder), Arc::clone(&shared), notifier);
        let work = move || {
            give_way();
            while !shared.wait(feed.pause(EVERY), |state| state.is_complete) {
                feed.send();
            }
            let end = feed.finish();
            shared.change(|state| state.end = Some(end));
        };
        std::thread::Builder::new().name("store".to_owned()).spawn(work).map_err(Failure::unusable)?;
        Ok(storing)
    }

    /// Sends the rest of the recording, which is complete now, and says how that ended. It waits as
    /// long as the store confirms something.
    pub fn finish(self, total_rows: u64, progress: &mut Progress) {
        self.shared.change(|state| state.is_complete = true);
        let dir = self.folder.current();
        let server = self.target.address().shown();
        let command = self.target.command(&dir);
        let (begun, mut moved, mut moved_at) = (Instant::now(), None, Instant::now());
        let mut is_said = false;
        while !self.shared.wait(Duration::from_millis(100), |state| state.end.is_some()) {
            let now = self.shared.moved.load(Ordering::Relaxed);
            if moved.replace(now) != Some(now) {
                moved_at = Instant::now();
            }
            let is_away = self.shared.is_away.load(Ordering::Relaxed);
            if moved_at.elapsed() >= if is_away { PATIENCE_AWAY } else { PATIENCE } {
                break;
            }
            if !is_said && begun.elapsed() >= SILENCE {
                progress.say(&format!("sending the rest to {server}; Ctrl-C leaves it to: {command}"));
                is_said = true;
            }
        }
        self.shared.is_given_up.store(true, Ordering::Relaxed);
        let ended = std::mem::take(&mut *self.shared.state.lock().unwrap_or_else(PoisonError::into_inner));
        let why = match ended.end {
            Some(Ok(pushed)) => {
                let rows: u64 = pushed.tables.values().map(|table| table.rows).sum();
                progress.say(&format!("{}: all {} rows are in {server}", self.place, words::count(rows)));
                return;
            }
            Some(Err(why)) => why,
            None if moved == Some(0) => ended.why.unwrap_or_else(|| format!("{server}: it does not answer")),
            None => ended.why.unwrap_or_else(|| format!("{server}: it confirms nothing any more")),
        };
        let left = total_rows.saturating_sub(self.shared.rows.load(Ordering::Relaxed));
        let (left, all) = (words::count(left), words::count(total_rows));
        progress.warn(&format!(
            "{}: {left} of {all} rows were not sent: {why}\nthe recording is complete in {}; send the rest: {command}",
            self.place,
            dir.display()
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_sends_the_rest_can_be_pasted() {
        let target = |url: &str| Target { address: Address::parse(url).unwrap(), part: None };
        assert_eq!(
            target("clickhouse://u:p@127.0.0.1/kept?timeout=5").command(Path::new("recordings/a b")),
            "holdup store push 'recordings/a b' clickhouse://u@127.0.0.1:8123/kept"
        );
        assert_eq!(
            target("clickhouse://h/kept/it's?tls=verify").command(Path::new("r")),
            "holdup store push r 'clickhouse://h:8443/kept?tls=verify' --as 'it'\\''s'"
        );
    }

    #[test]
    fn recordings_of_a_case_have_one_name_and_a_host_each() {
        let host = Host { name: Some("gen1".to_owned()), ..Host::default() };
        let place = |url: &str, id, shard| {
            let target = Target { address: Address::parse(url).unwrap(), part: CasePart::new(id, &host, shard) };
            let place = target.place(Path::new("recordings/first")).unwrap();
            (place.recording, place.host)
        };
        let is = |recording: &str, host: &str| (recording.to_owned(), host.to_owned());
        assert_eq!(place("clickhouse://h/kept", None, Some("1/2")), is("first", ""));
        assert_eq!(place("clickhouse://h/kept", Some("i-7"), None), is("i-7", "gen1"));
        assert_eq!(place("clickhouse://h/kept/named", Some("i-7"), Some("1/2")), is("named", "gen1-1of2"));
    }
}
