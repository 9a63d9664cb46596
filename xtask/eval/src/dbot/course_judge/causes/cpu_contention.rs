//! Threads queue for CPUs, more than the database's own sessions can be: something else takes them.
//!
//! A session is one thread, and three with the workers it gets by default (`max_parallel_workers_per_gather` is 2). What goes
//! beyond is somebody else's.

use crate::dbot::course_judge::{Alarm, Cause, Evidence};
use holdup_diagnose::counters::view::any;
use holdup_diagnose::counters::votes::Votes;
use holdup_signals::time::counters::signal::Signal;

pub const CAUSE: Cause = Cause { slug: "cpu_contention", account };

/// Threads of one session with the workers it gets by default.
const SESSION_THREADS: f64 = 3.0;

fn account(seen: &Evidence) -> Votes {
    let beyond = |running: Option<f64>, sessions: f64| running.map(|running| running - 1.0 - sessions);
    let crowd =
        seen.course.and_then(|course| beyond(seen.crowd(Signal::RunQueue), course.crowd_sessions? * SESSION_THREADS));
    Votes::new()
        .defines(
            3.0,
            "more threads want a CPU than sessions explain",
            any([
                seen.level(
                    "alone_run_queue_beyond_sessions",
                    beyond(seen.alone(Signal::RunQueue), SESSION_THREADS),
                    0.0,
                    6.0,
                ),
                seen.level("crowd_run_queue_beyond_sessions", crowd, 0.0, 6.0),
            ]),
        )
        .supports(1.0, "the CPUs are busy", seen.alarm("cpu_high", Alarm::CpuHigh))
}
