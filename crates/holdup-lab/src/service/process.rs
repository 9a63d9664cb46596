//! The service's figures on its own process (CPU, memory, start), and its stop signals. Linux only.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::service::ServiceError;

/// Whether a stop was requested.
#[derive(Clone, Copy)]
pub struct Stop(&'static AtomicBool);

static ASKED: AtomicBool = AtomicBool::new(false);

impl Stop {
    /// Whether the stop was requested.
    pub fn is_set(self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

extern "C" fn on_signal(_: libc::c_int) {
    // In a signal handler only a store to an atomic is safe.
    ASKED.store(true, Ordering::Relaxed);
}

/// Turns SIGTERM and SIGINT into a stop.
pub fn stop_on_signals() -> Result<Stop, ServiceError> {
    for signal in [libc::SIGTERM, libc::SIGINT] {
        let handler: extern "C" fn(libc::c_int) = on_signal;
        // SAFETY: the handler only stores to a static atomic.
        if unsafe { libc::signal(signal, handler as libc::sighandler_t) } == libc::SIG_ERR {
            return Err(ServiceError::System { what: "handle signals", source: std::io::Error::last_os_error() });
        }
    }
    Ok(Stop(&ASKED))
}

/// Requests the stop when stdin ends, from a separate thread.
pub fn stop_on_stdin_eof(stop: Stop) -> Result<(), ServiceError> {
    std::thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || {
            let mut bytes = [0; 256];
            let mut stdin = std::io::stdin();
            while stdin.read(&mut bytes).is_ok_and(|n| n > 0) {}
            stop.0.store(true, Ordering::Relaxed);
        })
        .map(drop)
        .map_err(|source| ServiceError::System { what: "watch stdin", source })
}

/// Raises the limit on open files to the hard limit. A request needs two of them, its client's
/// connection and the database's, so the usual 1,024 are used up at 500 requests.
pub fn raise_file_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid rlimit for the calls to fill in and read.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            // If the kernel refuses, the old limit stays, and the service reports when it reaches
            // that.
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// Facts about this process. A fact that the kernel does not report is left out, never zero.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// User and system CPU time since it started, seconds.
    pub cpu_seconds_total: Option<f64>,
    /// Memory in RAM, bytes.
    pub resident_bytes: Option<f64>,
    /// Start, seconds since the Unix epoch.
    pub start_seconds: Option<f64>,
}

/// Reads the facts.
pub fn usage() -> Usage {
    Usage { cpu_seconds_total: cpu_seconds(), resident_bytes: resident_bytes(), start_seconds: start_seconds() }
}

fn cpu_seconds() -> Option<f64> {
    // SAFETY: rusage is plain numbers, for which all-zero bytes are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for the call to fill in.
    let result = unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    (result == 0).then(|| seconds(usage.ru_utime) + seconds(usage.ru_stime))
}

fn resident_bytes() -> Option<f64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: f64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: sysconf only reads.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    (page > 0).then_some(pages * page as f64)
}

fn start_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The process's name may hold spaces and brackets, so fields are counted after its last
    // bracket. starttime is field 22 of proc(5), in clock ticks since boot; the first field after
    // the name is field 3.
    let ticks: f64 = stat.rsplit_once(')')?.1.split_whitespace().nth(22 - 3)?.parse().ok()?;
    // SAFETY: sysconf only reads.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    let system = std::fs::read_to_string("/proc/stat").ok()?;
    let boot: f64 = system.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    (per_second > 0).then(|| boot + ticks / per_second as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_tells_about_this_process() {
        let usage = usage();
        assert!(usage.cpu_seconds_total.is_some_and(|s| s < 3600.0));
        assert!(usage.resident_bytes.is_some_and(|b| b > 500_000.0));
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_secs_f64();
        assert!(usage.start_seconds.is_some_and(|s| s < now + 2.0 && s > now - 3600.0));
    }
}
