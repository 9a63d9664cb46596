//! The way to stdout and stderr. A terminal that is stopped (Ctrl-S) or a pipe that is not read
//! blocks its writer for as long as it likes. So once a command measures, threads of their own
//! write, and the command itself waits for none of them: it goes on, and ends when it is stopped.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::ending;

/// Text that may wait for one destination. Only a reader that has stopped reading reaches it.
const QUEUE_BYTES: usize = 1 << 20;

/// Bytes written at once: less than a pipe holds, so that progress can be seen.
const PIECE_BYTES: usize = 4 << 10;

/// After a stop, how long a destination may take no byte before its text is given up.
const STILL: Duration = Duration::from_millis(300);

/// Where text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Out,
    Err,
}

/// The queue of one destination.
struct Outlet {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    waiting: VecDeque<(Stream, String)>,
    /// Bytes that wait or are being written.
    bytes: usize,
    /// When a byte was last taken, or the first of these bytes came.
    still_since: Instant,
    lost_lines: usize,
}

static OUTLETS: OnceLock<[Arc<Outlet>; 2]> = OnceLock::new();

/// Lets threads write from now on.
pub fn begin() {
    OUTLETS.get_or_init(|| {
        let out = Outlet::start();
        // If both are one terminal, one thread keeps the order of their lines.
        let is_one = id(io::stdout()).is_some_and(|id_out| id(io::stderr()) == Some(id_out));
        let err = if is_one { Arc::clone(&out) } else { Outlet::start() };
        [out, err]
    });
}

/// Sends text as it is. An error of the destination is ignored: the results are on disk.
pub fn send(stream: Stream, text: String) {
    match OUTLETS.get() {
        Some(outlets) => outlets[stream as usize].push(stream, text),
        None => write(stream, text.as_bytes()),
    }
}

/// Whether everything was written, so that the next text is seen at once.
pub fn is_idle(stream: Stream) -> bool {
    OUTLETS.get().is_none_or(|outlets| outlets[stream as usize].lock().bytes == 0)
}

/// Waits until everything is written. After a stop it gives up what is not read.
pub fn flush() {
    for outlet in OUTLETS.get().into_iter().flatten() {
        let state = outlet.lock();
        drop(outlet.drained(state));
    }
}

fn write(stream: Stream, bytes: &[u8]) {
    let _ = match stream {
        Stream::Out => io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()),
        Stream::Err => io::stderr().write_all(bytes),
    };
}

/// What tells one open file from another.
fn id(stream: impl AsFd) -> Option<(u64, u64)> {
    let file = File::from(stream.as_fd().try_clone_to_owned().ok()?);
    file.metadata().ok().map(|data| (data.dev(), data.ino()))
}

impl Outlet {
    fn start() -> Arc<Self> {
        let state = State { waiting: VecDeque::new(), bytes: 0, still_since: Instant::now(), lost_lines: 0 };
        let outlet = Arc::new(Self { state: Mutex::new(state), changed: Condvar::new() });
        let of_thread = Arc::clone(&outlet);
        // Without the thread texts wait until the queue is full, and are lost.
        let _ = std::thread::Builder::new().name("screen".to_owned()).spawn(move || of_thread.run());
        outlet
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        loop {
            let mut state = self.lock();
            let (stream, text) = loop {
                match state.waiting.pop_front() {
                    Some(next) => break next,
                    None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(state);
            for piece in text.as_bytes().chunks(PIECE_BYTES) {
                write(stream, piece);
                let mut state = self.lock();
                state.bytes -= piece.len();
                state.still_since = Instant::now();
                self.changed.notify_all();
            }
        }
    }

    fn push(&self, stream: Stream, mut text: String) {
        let mut state = self.lock();
        if state.bytes > 0 && state.bytes + text.len() > QUEUE_BYTES {
            // A recording goes on without these lines. Afterwards the text is the verdict, which
            // waits for its reader.
            if !ending::is_recording() {
                state = self.drained(state);
            }
            if state.bytes > 0 {
                state.lost_lines += text.lines().count();
                return;
            }
        }
        if stream == Stream::Err && state.lost_lines > 0 {
            let lost = std::mem::take(&mut state.lost_lines);
            text = format!("({lost} lines are missing here: they were not read in time)\n{text}");
        }
        if state.bytes == 0 {
            state.still_since = Instant::now();
        }
        state.bytes += text.len();
        state.waiting.push_back((stream, text));
        self.changed.notify_all();
    }

    /// Waits until the queue is empty, or holdup was stopped and the destination takes nothing.
    fn drained<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        while state.bytes > 0 && !(ending::since_stop().is_some() && state.still_since.elapsed() >= STILL) {
            let waited = self.changed.wait_timeout(state, STILL / 6);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state
    }
}
