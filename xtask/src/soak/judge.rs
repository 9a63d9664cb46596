//! Whether a slice is as it should be: what holdup takes stays as it was, and its recording is as large as the documents say.

use super::promise::Promise;
use super::record::Slice;

/// By how much a recording may be larger than the documents say.
const SIZE_RATIO: f64 = 1.25;

impl Slice {
    /// Says what is not as it should be.
    pub fn judge(&mut self, promise: &Promise, processes: usize) {
        self.size.promised_bytes_per_second = promise.bytes_per_second(processes);
        let mut troubles: Vec<String> = self.processes.iter().flat_map(|(name, uses)| uses.troubles(name)).collect();
        let size = &self.size;
        if size.bytes_per_second > SIZE_RATIO * size.promised_bytes_per_second {
            troubles.push(format!(
                "the recording takes {:.0} bytes a second, the documents say {:.0}",
                size.bytes_per_second, size.promised_bytes_per_second
            ));
        }
        if size.most_files > size.promised_files {
            troubles.push(format!("{} files, where at most {} are expected", size.most_files, size.promised_files));
        }
        self.troubles = troubles;
    }
}

#[cfg(test)]
mod unit {
    use super::super::sample::{Process, Sample};
    use super::*;

    /// Ten minutes, in which what `change` does to a process happens.
    fn slice(change: impl Fn(f64, &mut Process), bytes_per_second: f64) -> Slice {
        let sample = |i: u32| {
            let seconds = f64::from(i) * 5.0;
            let mut process = Process { rss_bytes: 50_000_000, descriptors: 400, threads: 206, cpu_seconds: 0.0 };
            change(seconds, &mut process);
            let recording_bytes = (bytes_per_second * seconds) as u64;
            let processes = vec![("watch".to_owned(), process)];
            Sample { seconds, processes, recording_bytes, recording_files: 300 }
        };
        let samples: Vec<Sample> = (0..=120).map(sample).collect();
        let mut slice = Slice::new("a", 10, 0, &samples);
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        slice.judge(&Promise::read(&root).unwrap(), 200);
        slice
    }

    #[test]
    fn growth_is_trouble_and_a_warm_up_is_not() {
        let warms_up = |at: f64, process: &mut Process| {
            process.rss_bytes -= if at < 120.0 { 20_000_000 } else { 0 };
            process.cpu_seconds = at * 0.02;
        };
        let good = slice(warms_up, 10_000.0);
        assert!(good.troubles.is_empty(), "{:?}", good.troubles);
        assert!((good.processes["watch"].cpus.mean - 0.02).abs() < 1e-9);
        let leaks = slice(|at, process| process.rss_bytes += (at * 2_000.0) as u64, 10_000.0);
        assert_eq!(leaks.troubles.len(), 1, "{:?}", leaks.troubles);
        let opens = slice(|at, process| process.descriptors += (at / 20.0) as u64, 10_000.0);
        assert!(opens.troubles[0].contains("open files"), "{:?}", opens.troubles);
        let starts = slice(|at, process| process.threads += (at / 30.0) as u64, 10_000.0);
        assert!(starts.troubles[0].contains("threads"), "{:?}", starts.troubles);
    }

    #[test]
    fn a_recording_larger_than_documented_is_trouble() {
        let large = slice(|_, _| {}, 10_000_000.0);
        assert!(large.troubles[0].contains("documents say"), "{:?}", large.troubles);
    }
}
