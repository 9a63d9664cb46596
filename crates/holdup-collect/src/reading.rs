//! The acquisition window of a read: every value carries the window's middle and its length. This
//! is only the bookkeeping; collectors do the reading.

use std::time::{Duration, Instant};

use holdup_recording::metrics::MetricName;
use holdup_recording::rows::{Event, Sample, Setting};
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

/// The name of a metric that the source names itself.
pub(crate) struct OwnName<'a>(pub &'a str);

impl MetricName for OwnName<'_> {
    fn name(&self) -> &str {
        self.0
    }
}

/// Something that happened at `source`, at `at` (nanoseconds since 1970).
pub(crate) fn event(source: &str, at: i64, kind: &str, text: impl Into<String>, labels: Labels) -> Event {
    Event { observed_at: at, source: source.to_owned(), kind: kind.to_owned(), text: text.into(), labels }
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

    /// The answer of `ask`. The following values were read in its window.
    pub fn read<T, E>(&mut self, ask: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        self.begin();
        let answer = ask()?;
        self.window();
        Ok(answer)
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

    /// Those of the values that are known.
    pub fn put_known<M: MetricName>(&mut self, labels: &Labels, values: impl IntoIterator<Item = (M, Option<f64>)>) {
        for (metric, value) in values {
            if let Some(value) = value {
                self.put(metric, labels.clone(), value);
            }
        }
    }

    /// Adds an event, at the middle of the read's window.
    pub fn say(&mut self, kind: &str, text: impl Into<String>, labels: Labels) {
        let event = event(self.source, self.at(), kind, text, labels);
        self.batch.events.push(event);
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
