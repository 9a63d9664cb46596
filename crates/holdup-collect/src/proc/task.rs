//! Parses the `stat` and `schedstat` of one process or thread. Collectors deal with threads that
//! come and go.

use crate::ReadError;
use crate::proc::{clip, number};

/// The fields of `stat` in use (proc_pid_stat(5)); times in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stat<'a> {
    /// Name, at most 15 bytes; may contain any character, even `)` and line feeds.
    pub comm: &'a str,
    /// State letter, verbatim.
    pub state: char,
    /// Minor page faults: those that read from no disk.
    pub minor_faults: u64,
    /// Major page faults: those that read from a disk.
    pub major_faults: u64,
    /// Time in user mode.
    pub user_ticks: u64,
    /// Time in the kernel.
    pub system_ticks: u64,
    /// Threads of the process.
    pub threads: u64,
    /// Start, since boot: with the number it identifies a process.
    pub start_ticks: u64,
    /// Resident memory, in pages.
    pub resident_pages: u64,
    /// Time spent waiting for block I/O; stays 0 where delay accounting is off.
    pub block_io_ticks: u64,
}

impl<'a> Stat<'a> {
    /// Parses `/proc/PID/stat` or `/proc/PID/task/TID/stat`.
    ///
    /// # Errors
    /// If a field is missing or malformed.
    pub fn parse(text: &'a str) -> Result<Self, ReadError> {
        let (comm, state, mut rest) = head(text)?;
        // Field numbers as in the manual page, where the state is number 3.
        let mut at = 3;
        let mut field = |number_wanted: usize, what: &str| {
            let skip = number_wanted - at - 1;
            at = number_wanted;
            number::<u64>("stat", what, rest.nth(skip))
        };
        let stat = Self {
            comm,
            state,
            minor_faults: field(10, "minflt")?,
            major_faults: field(12, "majflt")?,
            user_ticks: field(14, "utime")?,
            system_ticks: field(15, "stime")?,
            threads: field(20, "num_threads")?,
            start_ticks: field(22, "starttime")?,
            resident_pages: field(24, "rss")?,
            block_io_ticks: field(42, "delayacct_blkio_ticks")?,
        };
        if !text.ends_with('\n') {
            return Err(ReadError("stat: cut off".to_owned()));
        }
        Ok(stat)
    }
}

/// What the ended children of a process used, and theirs before them, from the process' own `stat`: the kernel adds it when
/// the process collects a child.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Minor page faults.
    pub minor_faults: u64,
    /// Major page faults.
    pub major_faults: u64,
    /// Clock ticks in user mode.
    pub user_ticks: u64,
    /// Clock ticks in the kernel.
    pub system_ticks: u64,
}

impl Collected {
    /// Parses `/proc/PID/stat`.
    ///
    /// # Errors
    /// If a field is missing or malformed.
    pub fn parse(text: &str) -> Result<Self, ReadError> {
        // The first field after the state is number 4.
        let mut rest = head(text)?.2.skip(7);
        let minor_faults = number("stat", "cminflt", rest.next())?;
        let major_faults = number("stat", "cmajflt", rest.nth(1))?;
        let user_ticks = number("stat", "cutime", rest.nth(2))?;
        Ok(Self { minor_faults, major_faults, user_ticks, system_ticks: number("stat", "cstime", rest.next())? })
    }
}

/// Name and state letter of a `stat` line, and the fields after them: for a scan over thousands of
/// threads.
///
/// # Errors
/// If the line is malformed.
pub fn head(text: &str) -> Result<(&str, char, std::str::SplitAsciiWhitespace<'_>), ReadError> {
    let bad = || ReadError(format!("stat: `{}` is not `PID (NAME) STATE …`", clip(text)));
    // A name may contain brackets: the last closing one ends it, because later fields have none.
    let (before, after) = text.rsplit_once(')').ok_or_else(bad)?;
    let (_, comm) = before.split_once('(').ok_or_else(bad)?;
    let mut rest = after.split_ascii_whitespace();
    let mut state = rest.next().ok_or_else(bad)?.chars();
    match (state.next(), state.next()) {
        (Some(letter), None) if letter.is_ascii_alphabetic() => Ok((comm, letter, rest)),
        _ => Err(bad()),
    }
}

/// The bytes of a `stat` file as text. A thread's name may be any bytes, and the cut at 15 bytes
/// often splits a character: then all bytes beyond ASCII become `?`.
pub fn text(bytes: &mut [u8]) -> &str {
    if std::str::from_utf8(bytes).is_err() {
        for byte in bytes.iter_mut().filter(|byte| !byte.is_ascii()) {
            *byte = b'?';
        }
    }
    std::str::from_utf8(bytes).unwrap_or_default()
}

/// The fields of `schedstat`, since the thread's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Nanoseconds on a CPU.
    pub cpu_ns: i64,
    /// Nanoseconds runnable, but waiting for a CPU.
    pub queue_ns: i64,
    /// How often it was put on a CPU; also 0 if the kernel does not count.
    pub slices: u64,
}

/// Parses `schedstat`.
///
/// # Errors
/// If it does not consist of three numbers and a line end.
pub fn schedstat(text: &str) -> Result<Times, ReadError> {
    let mut fields = text.split_ascii_whitespace();
    let mut time = |what: &str| {
        let time_ns: u64 = number("schedstat", what, fields.next())?;
        i64::try_from(time_ns)
            .map_err(|_| ReadError(format!("schedstat: {what} is {time_ns} ns, which is out of range")))
    };
    let times = Times {
        cpu_ns: time("time on a CPU")?,
        queue_ns: time("time in the run queue")?,
        slices: number("schedstat", "time slices", fields.next())?,
    };
    if text.ends_with('\n') { Ok(times) } else { Err(ReadError("schedstat: cut off".to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "71 (a) b (c) S 1 71 71 0 -1 4194304 104 5 17 6 250 30 7 8 20 0 9 0 113271 3133440 429 \
        18446744073709551615 1 1 1 0 0 0 0 0 0 0 0 0 17 0 0 0 42 0 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn the_name_may_hold_brackets() {
        let stat = Stat::parse(LINE).unwrap();
        assert_eq!((stat.comm, stat.state, stat.threads), ("a) b (c", 'S', 9));
        assert_eq!((stat.minor_faults, stat.major_faults, stat.user_ticks, stat.system_ticks), (104, 17, 250, 30));
        assert_eq!((stat.start_ticks, stat.resident_pages, stat.block_io_ticks), (113_271, 429, 42));
    }

    #[test]
    fn resources_of_ended_children_are_read() {
        let used = Collected { minor_faults: 5, major_faults: 6, user_ticks: 7, system_ticks: 8 };
        assert_eq!(Collected::parse(LINE).unwrap(), used);
        assert!(Collected::parse("71 (a) S 1 71 71 0 -1 4194304 104 5 17 6 250 30 7").is_err());
    }

    #[test]
    fn a_name_that_is_no_utf8_is_still_a_thread() {
        let mut bytes = b"7 (caf\xc3) R 1".to_vec();
        assert_eq!(head(text(&mut bytes)).unwrap().0, "caf?");
    }

    #[test]
    fn every_cut_is_an_error() {
        for end in 0..LINE.len() {
            assert!(Stat::parse(&LINE[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn schedstat_needs_all_three() {
        let times = Times { cpu_ns: 970_551, queue_ns: 5_300_355, slices: 12 };
        assert_eq!(schedstat("970551 5300355 12\n").unwrap(), times);
        for bad in ["970551 5300355 1", "970551 5300355\n", "970551 -\n", "", "-1e9 0 0\n", "9223372036854775808 0 0\n"]
        {
            assert!(schedstat(bad).is_err(), "{bad}");
        }
    }
}
