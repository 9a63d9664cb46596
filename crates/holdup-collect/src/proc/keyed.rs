//! Parses files with a name and a number per line (`/proc/vmstat`, `cpu.stat`, `memory.stat`,
//! `memory.events`, `/proc/PID/io`), with a device and `key=value` pairs (`io.stat`, `io.max`),
//! with a device, a word and a number (version 1's `blkio.*`), and pressure files. Callers pick the
//! numbers they need.

use std::collections::HashMap;

use crate::ReadError;
use crate::proc::{clip, number};

/// Largest number of lines read; the longest of these files (except `memory.numa_stat`) have some
/// 200.
const LINES_MAX: usize = 100_000;

/// Keys and numbers of one line.
pub type Pairs<'a> = Vec<(&'a str, u64)>;

/// Numbers by name. A name may end in `:`; white space separates it from its number.
///
/// # Errors
/// If a line is malformed, or the last one is cut off.
pub fn flat<'a>(file: &str, text: &'a str) -> Result<HashMap<&'a str, u64>, ReadError> {
    let mut found = HashMap::new();
    for line in whole_lines(file, text)? {
        let mut fields = line.split_ascii_whitespace();
        let Some(name) = fields.next() else { continue };
        // Signed counters (`nr_*` of vmstat) may be negative for a moment: such a value is
        // meaningless.
        let value: i128 = number(file, name, fields.next())?;
        if let Ok(value) = u64::try_from(value) {
            found.insert(name.trim_end_matches(':'), value);
        }
    }
    Ok(found)
}

/// Devices, as `MAJOR:MINOR`, with their pairs: `8:0 rbps=1048576 wbps=max`. `max` means unlimited
/// and is left out.
///
/// # Errors
/// If a line is malformed, or the last one is cut off.
pub fn nested<'a>(file: &str, text: &'a str) -> Result<Vec<(&'a str, Pairs<'a>)>, ReadError> {
    let mut found = Vec::new();
    for line in whole_lines(file, text)? {
        let mut fields = line.split_ascii_whitespace();
        let Some(device) = fields.next() else { continue };
        if !is_device_number(device) {
            return Err(ReadError(format!("{file}: `{}` is not MAJOR:MINOR", clip(device))));
        }
        let mut pairs = Vec::new();
        // Linux 6.x also writes a device without pairs, and sometimes two devices on one line:
        // anything other than a pair is skipped.
        for (key, value) in fields.filter_map(|field| field.split_once('=')).filter(|(_, value)| *value != "max") {
            pairs.push((key, number(file, key, Some(value))?));
        }
        found.push((device, pairs));
    }
    Ok(found)
}

/// Device, word and number of each line of version 1's `blkio` files: `8:0 Read 4096`. For limits,
/// which have no word, it is empty. The sum at the end (`Total 4096`) is left out.
///
/// # Errors
/// If a line is malformed, or the last one is cut off.
pub fn blkio<'a>(file: &str, text: &'a str) -> Result<Vec<(&'a str, &'a str, u64)>, ReadError> {
    let mut found = Vec::new();
    for line in whole_lines(file, text)? {
        let mut fields = line.split_ascii_whitespace();
        let Some(device) = fields.next().filter(|device| *device != "Total") else { continue };
        if !is_device_number(device) {
            return Err(ReadError(format!("{file}: `{}` is not MAJOR:MINOR", clip(device))));
        }
        let (first, second) = (fields.next(), fields.next());
        let (word, value) = if second.is_some() { (first.unwrap_or_default(), second) } else { ("", first) };
        found.push((device, word, number(file, word, value)?));
    }
    Ok(found)
}

/// Kind (`some` or `full`) and total stalled microseconds of each line of a pressure file.
///
/// # Errors
/// If a line is malformed, or the last one is cut off.
pub fn pressure<'a>(file: &str, text: &'a str) -> Result<Vec<(&'a str, u64)>, ReadError> {
    let mut found = Vec::new();
    for line in whole_lines(file, text)? {
        let kind = line.split_ascii_whitespace().next().unwrap_or_default();
        if kind != "some" && kind != "full" {
            return Err(ReadError(format!("{file}: a line that is neither `some` nor `full`")));
        }
        let total = line.split_ascii_whitespace().find_map(|field| field.strip_prefix("total="));
        found.push((kind, number(file, "total", total)?));
    }
    Ok(found)
}

/// Whether `text` is a device number, `254:0`.
pub fn is_device_number(text: &str) -> bool {
    let number = |part: &str| !part.is_empty() && part.len() <= 10 && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once(':').is_some_and(|(major, minor)| number(major) && number(minor))
}

fn whole_lines<'a>(file: &str, text: &'a str) -> Result<impl Iterator<Item = &'a str>, ReadError> {
    if !text.is_empty() && !text.ends_with('\n') {
        return Err(ReadError(format!("{file}: cut off in its last line")));
    }
    Ok(text.lines().take(LINES_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        let found = flat("f", "pgfault 7\nread_bytes: 4096\nnr_dirty -3\n").unwrap();
        assert_eq!(
            (found.get("pgfault"), found.get("read_bytes"), found.get("nr_dirty")),
            (Some(&7), Some(&4096), None)
        );
        for bad in ["a\n", "a b\n", "a 1e3\n", "a inf\n", "a 1\nb 2", "a 99999999999999999999999999999999999999999\n"] {
            assert!(flat("f", bad).is_err(), "{bad}");
        }
        assert!(flat("f", "").unwrap().is_empty());
    }

    #[test]
    fn pairs_of_devices() {
        let found = nested("io.max", "254:0 rbps=max wbps=1048576 riops=max wiops=200\n8:16\n").unwrap();
        assert_eq!(found, [("254:0", vec![("wbps", 1_048_576), ("wiops", 200)]), ("8:16", vec![])]);
        for bad in ["254 rbps=1\n", "../x rbps=1\n", "254:0 rbps=x\n", "254:0 rbps=1"] {
            assert!(nested("io.max", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn counters_and_limits_of_version_1() {
        let found = blkio("f", "254:0 Read 4096\n254:0 Write 8192\nTotal 12288\n").unwrap();
        assert_eq!(found, [("254:0", "Read", 4096), ("254:0", "Write", 8192)]);
        assert_eq!(blkio("f", "7:3 20971520\n").unwrap(), [("7:3", "", 20_971_520)]);
        assert!(blkio("f", "7:3\n").is_err());
        assert!(blkio("f", "7:3 Read\n").is_err());
    }

    #[test]
    fn stalled_time() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
        assert_eq!(pressure("f", text).unwrap(), [("some", 12), ("full", 5)]);
        assert!(pressure("f", "some avg10=0.00\n").is_err());
    }
}
