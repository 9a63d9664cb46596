//! The disk's queue: requests in order of arrival, each answered when the bucket allows. One thread
//! serves them, so that the kernel sees them wait in the device, with a true queue depth and a true
//! await.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::disk::bucket::Bucket;
use crate::disk::limits::Limits;

/// Longest sleep before the thread looks whether the disk was opened meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A request: its bytes, and the function that answers it.
pub struct Job {
    /// Bytes it reads or writes.
    pub bytes: u64,
    /// When it arrived.
    pub arrived: Instant,
    /// Moves the bytes and answers. The serving thread calls it when it is time.
    pub answer: Box<dyn FnOnce() + Send>,
}

/// Settings that can change while the disk serves.
#[derive(Debug, Default)]
pub struct Control {
    limits: Mutex<Limits>,
    open: AtomicBool,
    requests_total: AtomicU64,
    bytes_total: AtomicU64,
}

impl Control {
    /// Sets the limits from the next request on. They do not apply while the disk is open.
    pub fn limit(&self, limits: Limits) {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// Lifts all limits, also for waiting requests (`true`), or applies them (`false`).
    pub fn open(&self, open: bool) {
        self.open.store(open, Ordering::SeqCst);
    }

    fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }

    fn limits(&self) -> Limits {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Requests and bytes answered since the start.
    pub fn totals(&self) -> (u64, u64) {
        (self.requests_total.load(Ordering::Relaxed), self.bytes_total.load(Ordering::Relaxed))
    }
}

/// Starts the serving thread. It ends when the last sender is dropped and every request is
/// answered.
///
/// # Errors
///
/// If the system refuses a thread.
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
            // The bytes are spent at the request's turn, not at its arrival: a new limit applies to
            // all waiting requests.
            let limits = control.limits();
            let by_rate_ns = bucket.take(&limits, job.bytes, now_ns());
            // Requests in flight take their time side by side: all take as long, so they end in their order.
            let arrived = job.arrived.saturating_duration_since(begun);
            let done = arrived + Duration::from_micros(limits.latency_us.unwrap_or(0));
            let due_ns = by_rate_ns.max(u64::try_from(done.as_nanos()).unwrap_or(u64::MAX));
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

/// Asks the kernel not to group this thread's timers with others. Otherwise it may wake 50 us late,
/// which on a fast disk is as much as a request takes. If the kernel refuses, requests are only a
/// little later.
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
        control.limit(Limits { bytes_per_second: Some(1), ..Limits::default() });
        let (sender, thread) = serve(Arc::clone(&control)).expect("a thread");
        let (answered, answers) = channel();
        for n in 0..200 {
            let answered = answered.clone();
            let answer = Box::new(move || {
                let _ = answered.send(n);
            });
            sender.send(Job { bytes: 1_000, arrived: Instant::now(), answer }).expect("it serves");
        }
        assert!(answers.recv_timeout(Duration::from_millis(50)).is_err(), "work of days was done at once");
        control.open(true);
        drop(sender);
        thread.join().expect("it ends");
        assert_eq!(answers.try_iter().collect::<Vec<_>>(), (0..200).collect::<Vec<_>>());
        assert_eq!(control.totals(), (200, 200_000));
    }

    #[test]
    fn requests_in_flight_take_their_latency_side_by_side() {
        let control = Arc::new(Control::default());
        control.limit(Limits { latency_us: Some(50_000), ..Limits::default() });
        let (sender, thread) = serve(Arc::clone(&control)).expect("a thread");
        let begun = Instant::now();
        for _ in 0..100 {
            sender.send(Job { bytes: 1, arrived: Instant::now(), answer: Box::new(|| ()) }).expect("it serves");
        }
        drop(sender);
        thread.join().expect("it ends");
        // One after the other they would take 5 s.
        assert!((0.05..2.5).contains(&begun.elapsed().as_secs_f64()), "{:?}", begun.elapsed());
    }
}
