//! The thread's side of `--store`: one connection, one attempt at a time, and what to say when a
//! store goes away and comes back.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use holdup_recording::folder::Folder;
use holdup_recording::writer::Notifier;
use holdup_store::catalog::Place;
use holdup_store::live::Live;
use holdup_store::push::{Pushed, Sent, push_after};
use holdup_store::{Address, Client, StoreError};

use super::Shared;

/// How long a store may take to say its version: one that never answers is said at once.
const HELLO: Duration = Duration::from_secs(5);

/// How long any request may take while the recording is running.
const REQUEST: Duration = Duration::from_secs(30);

/// Attempts of an insert while the recording is running: the next look is another.
const ATTEMPTS: u32 = 2;

/// The wait between two attempts to send the rest.
const AGAIN: Duration = Duration::from_millis(500);

/// Sends one recording.
pub(super) struct Feed {
    address: Address,
    place: Place,
    folder: Arc<Folder>,
    dir: PathBuf,
    shared: Arc<Shared>,
    notifier: Notifier,
    client: Option<Client>,
    live: Option<Live>,
    /// Since when the store is away.
    away: Option<Instant>,
    has_looked: bool,
}

impl Feed {
    pub(super) fn new(
        address: Address,
        place: Place,
        folder: Arc<Folder>,
        shared: Arc<Shared>,
        notifier: Notifier,
    ) -> Self {
        let dir = folder.place();
        Self { address, place, folder, dir, shared, notifier, client: None, live: None, away: None, has_looked: false }
    }

    /// How long to wait before the next look. The first is at once.
    pub(super) fn pause(&mut self, every: Duration) -> Duration {
        if std::mem::replace(&mut self.has_looked, true) { every } else { Duration::ZERO }
    }

    /// Sends what is new. A failure is said once, and so is its end.
    pub(super) fn send(&mut self) {
        let server = self.address.shown();
        match (self.attempt(), self.away) {
            (Ok(()), Some(since)) => {
                self.away = None;
                self.notifier.say(format!("store: {server} takes rows again after {} s", since.elapsed().as_secs()));
            }
            (Err(error), None) => {
                self.away = Some(Instant::now());
                let dir = self.folder.current();
                self.notifier.say(format!(
                    "store: {error}; the recording goes on in {}, and its rows go out once the store takes them",
                    dir.display()
                ));
            }
            (Ok(()), None) | (Err(_), Some(_)) => {}
        }
        self.shared.is_away.store(self.away.is_some(), Ordering::Relaxed);
    }

    fn attempt(&mut self) -> Result<(), StoreError> {
        if self.client.is_none() {
            Client::connect(&self.address.within(HELLO))?;
            self.client = Some(Client::connect(&self.address.within(REQUEST))?.with_attempts(ATTEMPTS));
        }
        let Some(client) = &self.client else { return Ok(()) };
        if self.live.is_none() {
            self.live = Some(Live::begin(client, &self.dir, &self.place)?);
            self.shared.moves();
        }
        let Some(live) = &mut self.live else { return Ok(()) };
        let shared = &self.shared;
        let sent = live.send(client, &mut |progress| {
            // Without rows it is a wait before another attempt.
            if progress.rows > 0 {
                shared.moves();
            }
            shared.is_wanted()
        });
        shared.rows.store(live.sent().rows_total(), Ordering::Relaxed);
        sent
    }

    /// Sends the rest of the complete recording and checks all of it. It tries until the recording
    /// waits no longer.
    pub(super) fn finish(mut self) -> Result<Pushed, String> {
        loop {
            match self.rest() {
                Err(error) if error.is_passing() && self.shared.is_wanted() => {
                    self.shared.is_away.store(true, Ordering::Relaxed);
                    self.shared.change(|state| state.why = Some(error.to_string()));
                    std::thread::sleep(AGAIN);
                }
                pushed => return pushed.map_err(|error| error.to_string()),
            }
        }
    }

    fn rest(&mut self) -> Result<Pushed, StoreError> {
        let sent: Option<Sent> = self.live.as_ref().map(Live::sent);
        let shared = &self.shared;
        Client::connect(&self.address.within(HELLO))?;
        shared.moves();
        let client = Client::connect(&self.address)?;
        push_after(&client, &self.dir, &self.place, sent.as_ref(), &mut |_| {
            shared.moves();
            shared.is_wanted()
        })
    }
}

#[cfg(test)]
mod tests {
    use holdup_recording::manifest::Host;
    use holdup_recording::{Manifest, Recorder};

    use super::*;

    /// The end waits for a store that is away for a short time only, and the recording hears of it once.
    #[test]
    fn a_store_that_is_away_is_known_to_be() {
        let dir = tempfile::tempdir().unwrap();
        let recorder =
            Recorder::create(&dir.path().join("recording"), &Manifest::starting("watch", 0, Host::default())).unwrap();
        // A port that is closed again.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = Address::parse(&format!("clickhouse://127.0.0.1:{port}/kept")).unwrap();
        let (shared, place) = (Arc::<Shared>::default(), Place::new("watch", "").unwrap());
        let mut feed = Feed::new(address, place, recorder.folder(), Arc::clone(&shared), recorder.notifier());
        assert!(!shared.is_away.load(Ordering::Relaxed));
        feed.send();
        feed.send();
        assert!(shared.is_away.load(Ordering::Relaxed));
        let said = recorder.notices();
        assert!(said.len() == 1 && said[0].contains("the recording goes on in"), "{said:?}");
        // Nothing of the recording waits in memory for it.
        assert!(feed.live.is_none() && feed.client.is_none());
    }
}
