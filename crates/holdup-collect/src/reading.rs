//! The acquisition window of a read: every value carries the window's middle and its length. This
//! is only the bookkeeping; collectors do the reading.

use std::time::{Duration, Instant};

use holdup_recording::metrics::MetricName;
use holdup_recording::rows::{Sample, Setting};
use holdup_recording::{Batch, Labels, clock};

/// Adds the settings of `source` to `batch`, as read now.
pub(crate) fn tell<N: Into<String>>(batch: &mut Batch, source: &str, found: impl IntoIterator<Item = (N, String)>) {
    let observed_at = clock::now_ns();
    batch.settings.extend(found.into_iter().map(|(name, value)| Setting {
        observed_at,
        source: source.to_owned(),
        name: name.into(),
        value,
    }));
}

/// Collects the values of one source, each with the window of its read.
pub(crate) struct Out<'a> {
    /// The rows so far.
    pub batch: &'a mut Batch,
    source: &'a str,
    begun_at: i64,
    begun: Instant,
    window_ns: Option<i64>,
}

impl<'a> Out<'a> {
    /// Puts values of `source` into `batch`; a read begins now.
    pub fn new(batch: &'a mut Batch, source: &'a str) -> Self {
        Self { batch, source, begun_at: clock::now_ns(), begun: Instant::now(), window_ns: None }
    }

    /// Another read begins now.
    pub fn begin(&mut self) {
        self.begun_at = clock::now_ns();
        self.begun = Instant::now();
        self.window_ns = None;
    }

    /// The following values were read in this window: it began at `begun_at` (ns since 1970) and
    /// took `window_ns`.
    pub fn set_window(&mut self, begun_at: i64, window_ns: i64) {
        self.begun_at = begun_at;
        self.window_ns = Some(window_ns);
    }

    /// Adds one value. The first one after `begin` ends the window: by then the file has been read.
    pub fn put(&mut self, metric: impl MetricName, labels: Labels, value: f64) {
        let window_ns = self.window();
        self.batch.samples.push(Sample {
            observed_at: self.begun_at + window_ns / 2,
            window_ns,
            source: self.source.to_owned(),
            metric: metric.name().to_owned(),
            labels,
            value,
        });
    }

    /// A value without labels.
    pub fn put_plain(&mut self, metric: impl MetricName, value: f64) {
        self.put(metric, Labels::none(), value);
    }

    /// Middle of the read's window, for rows of other tables; ends the window as `put` does.
    pub fn at(&mut self) -> i64 {
        self.begun_at + self.window() / 2
    }

    /// Name of the source.
    pub fn source(&self) -> &'a str {
        self.source
    }

    fn window(&mut self) -> i64 {
        *self.window_ns.get_or_insert_with(|| self.begun.elapsed().as_nanos() as i64)
    }
}

/// CPU time of the calling thread, if the kernel reports it.
pub(crate) fn thread_cpu_time() -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the call to fill in.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    (result == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}
