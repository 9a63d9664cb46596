//! The disk's queue: requests in the order they came, each answered when the bucket lets it. One thread serves them, so
//! that the kernel sees them wait in the device, with a true queue depth and a true await.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::disk::bucket::Bucket;
use crate::disk::limits::Limits;

/// Longest sleep before it is looked whether the disk has been opened meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A request: how many bytes it moves, and what answers it.
pub struct Job {
    /// Bytes it reads or writes.
    pub bytes: u64,
    /// Moves the bytes and answers; called by the serving thread when it is time.
    pub answer: Box<dyn FnOnce() + Send>,
}

/// What can be set while the disk serves.
#[derive(Debug, Default)]
pub struct Control {
    limits: Mutex<Limits>,
    open: AtomicBool,
    requests_total: AtomicU64,
    bytes_total: AtomicU64,
}

impl Control {
    /// The limits from the next request on. None hold while the disk is open.
    pub fn limit(&self, limits: Limits) {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// Lifts all limits, for what waits as well (`true`), or lets them hold.
    pub fn open(&self, open: bool) {
        self.open.store(open, Ordering::SeqCst);
    }

    fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }

    fn limits(&self) -> Limits {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests and bytes, answered since it began.
    pub fn totals(&self) -> (u64, u64) {
        (self.requests_total.load(Ordering::Relaxed), self.bytes_total.load(Ordering::Relaxed))
    }
}

/// Starts the serving thread. It ends when the last sender is dropped and all is answered.
///
/// # Errors
/// If the system has no thread to give.
pub fn serve(control: Arc<Control>) -> std::io::Result<(Sender<Job>, JoinHandle<()>)> {
    let (sender, jobs) = channel();
    let thread = thread::Builder::new().name("disk".to_owned()).spawn(move || answer_all(&control, &jobs))?;
    Ok((sender, thread))
}

fn answer_all(control: &Control, jobs: &Receiver<Job>) {
    wake_exactly();
    let begun = Instant::now();
    let now_ns = || u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let mut bucket = Bucket::default();
    for job in jobs {
        if !control.is_open() {
            // Its bytes are spent when its turn comes, not when it came: a new limit holds for all that wait.
            let due_ns = bucket.take(&control.limits(), job.bytes, now_ns());
            while !control.is_open() {
                let left = Duration::from_nanos(due_ns.saturating_sub(now_ns()));
                if left.is_zero() {
                    break;
                }
                thread::sleep(left.min(LOOK_EVERY));
            }
        }
        (job.answer)();
        control.requests_total.fetch_add(1, Ordering::Relaxed);
        control.bytes_total.fetch_add(job.bytes, Ordering::Relaxed);
    }
}

/// Asks the kernel not to gather this thread's timers with others': it may wake 50 us late otherwise, on a fast disk as
/// much as a request takes. Where it is refused, requests are only a little later.
fn wake_exactly() {
    // SAFETY: prctl with these arguments takes and returns numbers only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000 as libc::c_ulong) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_answers_in_order_and_at_once_when_it_is_opened() {
        let control = Arc::new(Control::default());
        // A thousand seconds for each: even the second is not answered before it is opened.
        control.limit(Limits { bytes_per_second: Some(1), iops: None });
        let (sender, thread) = serve(Arc::clone(&control)).expect("a thread");
        let (answered, answers) = channel();
        for n in 0..200 {
            let answered = answered.clone();
            let answer = Box::new(move || {
                let _ = answered.send(n);
            });
            sender.send(Job { bytes: 1_000, answer }).expect("it serves");
        }
        assert!(answers.recv_timeout(Duration::from_millis(50)).is_err(), "work of days was done at once");
        control.open(true);
        drop(sender);
        thread.join().expect("it ends");
        assert_eq!(answers.try_iter().collect::<Vec<_>>(), (0..200).collect::<Vec<_>>());
        assert_eq!(control.totals(), (200, 200_000));
    }
}
