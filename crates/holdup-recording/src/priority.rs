//! What only writes down should not hold up what measures: the threads that do so give way.

/// Nice value of a thread that gives way: a tenth of a normal thread's share of a CPU that both want (sched(7): a step of
/// nice is a factor of 1.25).
const GIVING_WAY: libc::c_int = 10;

/// Lets the calling thread, and those it starts from now on, give way to the others of this process.
pub fn give_way() {
    // SAFETY: on Linux, who = 0 is the calling thread; no memory is touched. Where it is refused all stays as it is.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, GIVING_WAY) };
}
