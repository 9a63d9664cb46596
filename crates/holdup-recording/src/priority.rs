//! Lowers the priority of threads that only write, so that they do not delay those that measure.

/// Nice value of such a thread: a tenth of a normal thread's share of a contended CPU (sched(7): a
/// step of nice is a factor of 1.25).
const GIVING_WAY: libc::c_int = 10;

/// Lowers the priority of the calling thread and of those it starts from now on.
pub fn give_way() {
    // SAFETY: on Linux, who = 0 is the calling thread; no memory is touched. If it is refused,
    // nothing changes.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, GIVING_WAY) };
}
