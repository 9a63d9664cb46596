//! A recording laid out for judging: what the client saw, the symptom, and the views of the episode
//! and of the baseline window that rules look through.

mod against;
mod measured;
mod reported;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use holdup_recording::rows::Request;
use holdup_recording::{Recording, metrics};

pub(crate) use self::against::BaselineRecording;
pub use self::against::Incomparable;
use self::measured::{Basis, Measured};
use holdup_signals::app::accounts::{Accounts, Sources};
use holdup_signals::client::degradation::Severity;
use holdup_signals::client::latency::{self, Origin};
use holdup_signals::client::objectives::Objective;
use holdup_signals::client::operations::{self, Operation};
pub use holdup_signals::time::band::{Band, Change};
use holdup_signals::time::requests::{client_queue_ms, is_latency, mean_over, service_ms, unloaded_ms};
use holdup_signals::view::Index;
use holdup_signals::yardstick::SERVICE_SLOWED;
use holdup_signals::{ClientView, Degradation, Distribution, Missing, Validity, View, WarmUp, Window, app::timing};

/// Smallest excess that counts: less is a matter of where a process happened to run.
const LEAST_EXCESS_MS: f64 = 0.2;

/// Time between an episode and [`Case::well_before`], at most.
const MARGIN_NS: i64 = 3_000_000_000;

/// The margin is at most this part of the baseline window: a third.
const MARGIN_OF: i64 = 3;

/// If the generator was the limit for this share (0-1) of the episode or more, the measurements
/// show the generator rather than the service.
pub(crate) const SPOILED: f64 = 0.5;

/// From this factor, the app works so much longer on a request that queues in front of it follow.
const MUCH_LONGER: f64 = 2.0;

/// The time outside of an episode begins this long after it, nanoseconds.
const APART_NS: i64 = 1_000_000_000;

/// Columns of requests that every rule needs.
const COLUMNS: &[&str] = &["operation", "intended_at", "ready_at", "sent_at", "done_at", "outcome", "connect_ns"];

/// Everything that rules may use.
pub struct Case<'a> {
    /// The recording.
    pub recording: &'a Recording,
    /// The client's seconds, or their substitute, without the warm-up.
    pub client: ClientView,
    /// The source that measured response time.
    pub origin: Origin,
    /// Results by operation.
    pub operations: Vec<Operation>,
    /// Outcomes of the load's objectives.
    pub objectives: Vec<Objective>,
    /// The part of the load's start that is left out.
    pub warm_up: WarmUp,
    /// Whether the generator was fit to measure.
    pub validity: Validity,
    /// The symptom to explain, if any.
    pub degradation: Option<Degradation>,
    /// Share (0-1) of the episode, or without one of the load, that the generator spoiled.
    pub limited_ratio: f64,
    /// Parts of the symptom's window that do not count.
    pub left_out: Vec<Window>,
    /// The baseline recording, if one was named.
    pub(crate) against: Option<BaselineRecording<'a>>,
    index: Index,
    whole: Window,
    sources: OnceLock<Sources<'a>>,
    accounts: OnceLock<Accounts<'a>>,
    baseline_accounts: OnceLock<Option<Accounts<'a>>>,
    slow_requests: OnceLock<Result<Vec<&'a Request>, Missing>>,
    slow_ended: OnceLock<Option<i64>>,
    inside_ms: OnceLock<f64>,
    measured: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl<'a> Case<'a> {
    /// Lays out `recording`, or the part of it in `window`.
    pub fn new(recording: &'a Recording, window: Option<Window>) -> Self {
        Self::laid_out(recording, window, None, None)
    }

    /// The same, with `healthy` as the baseline.
    ///
    /// # Errors
    /// Why the two can't be compared.
    pub fn against(
        recording: &'a Recording,
        window: Option<Window>,
        healthy: &'a Recording,
    ) -> Result<Self, Incomparable> {
        let case = Self::laid_out(recording, window, Some(BaselineRecording::new(recording, healthy)?), None);
        case.against.as_ref().map_or(Ok(()), |against| against.fits(&case))?;
        Ok(case)
    }

    fn laid_out(
        recording: &'a Recording,
        window: Option<Window>,
        against: Option<BaselineRecording<'a>>,
        of_whole: Option<&[Objective]>,
    ) -> Self {
        let manifest = &recording.manifest;
        let whole = window.unwrap_or(Window { from: manifest.started_at, to: manifest.ended_at.unwrap_or(i64::MAX) });
        let rows = recording.tables.requests.with_columns(COLUMNS).unwrap_or_default();
        let requests: Vec<&Request> =
            rows.iter().filter(|r| window.is_none_or(|w| w.contains(r.intended_at))).collect();
        let index = Index::new(&recording.tables);
        // A request for a part of the run means exactly that part.
        let warm_up = WarmUp::find(manifest, &requests, window.is_none());
        let operations = operations::summarize(recording, &requests, window, warm_up.measured_from());
        let validity = Validity::judge(manifest, &index, &requests, whole);
        let healthy = against.as_ref().map(|a| (&a.baseline, a.healthy.origin));
        let reported = reported::stretch(manifest, whole).map(|slow| (slow, reported::rest(slow, whole)));
        let basis =
            Basis { recording, requests: &requests, operations: &operations, window, reported, healthy, of_whole };
        let sources = OnceLock::new();
        let others = latency::measured(&requests, &index, whole);
        let measured = measured::with_traces(recording, &index, others, whole, &sources);
        let (of, found) = basis.choose(measured, warm_up.measured_from());
        let (found, limited_ratio, left_out) = basis.leave_out_spoiled(&of, found, &validity, whole);
        let Measured { client, origin, objectives } = of;
        Self {
            recording,
            client,
            origin,
            operations,
            objectives,
            warm_up,
            validity,
            degradation: found,
            limited_ratio,
            left_out,
            against,
            index,
            whole,
            sources,
            accounts: OnceLock::new(),
            baseline_accounts: OnceLock::new(),
            slow_requests: OnceLock::new(),
            slow_ended: OnceLock::new(),
            inside_ms: OnceLock::new(),
            measured: Mutex::default(),
        }
    }

    /// What `measure` finds in this case; each type is measured once.
    ///
    /// # Errors
    /// Those of `measure`.
    pub(crate) fn measured<T: Send + Sync + 'static>(
        &self,
        measure: impl FnOnce(&Self) -> Result<T, Missing>,
    ) -> Result<Arc<T>, Missing> {
        type Once<T> = Result<Arc<T>, Missing>;
        let lock = || self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(&TypeId::of::<T>()).and_then(|any| any.downcast_ref::<Once<T>>()).cloned();
        known.unwrap_or_else(|| {
            let result = measure(self).map(Arc::new);
            lock().insert(TypeId::of::<T>(), Arc::new(result.clone()));
            result
        })
    }

    /// Whether the client's requests are statements of a database, without an app in front.
    pub(crate) fn asks_statements(&self) -> bool {
        self.view(self.whole).asks_statements()
    }

    /// Everything that reports single requests, by trace id.
    pub(crate) fn sources(&self) -> &Sources<'a> {
        self.sources.get_or_init(|| Sources::new(self.recording))
    }

    /// The accounts of the requests of the episode, or of all if nothing is degraded.
    pub fn accounts(&self) -> &Accounts<'a> {
        let make = || Accounts::join(self.sources(), self.slow_requests().unwrap_or_default(), &self.slow());
        self.accounts.get_or_init(make)
    }

    /// The accounts of the requests of the baseline window, if there is one.
    pub fn baseline_accounts(&self) -> Option<&Accounts<'a>> {
        let make = || {
            let baseline = self.baseline()?;
            let requests = self.requests_in(baseline.window).ok()?;
            Some(Accounts::join(self.at(baseline.window).sources(), &requests, &baseline))
        };
        self.baseline_accounts.get_or_init(make).as_ref()
    }

    /// The episode, or all of the recording if nothing is degraded.
    pub fn episode(&self) -> Window {
        self.degradation.as_ref().map_or(self.whole, |c| c.slow)
    }

    /// The episode until the last of its requests had ended, or all of the recording if nothing is
    /// degraded. A wait is booked when it ends, so the metrics of slow requests come after their
    /// start.
    pub fn slow(&self) -> View<'_> {
        let Some(degradation) = &self.degradation else { return self.view(self.whole) };
        let ended = || self.slow_requests().ok().and_then(|rows| rows.iter().map(|r| r.done_at).max());
        let ended = *self.slow_ended.get_or_init(ended);
        self.view(Window { to: ended.unwrap_or(degradation.slow.to).max(degradation.slow.to), ..degradation.slow })
    }

    /// The baseline window, if there is one.
    pub fn baseline(&self) -> Option<View<'_>> {
        self.degradation.as_ref().and_then(|c| c.baseline).map(|w| self.view(w))
    }

    /// The baseline window without what lies next to the episode: what makes requests slow may begin
    /// before they are, and last beyond.
    pub fn well_before(&self) -> Option<View<'_>> {
        let (baseline, slow) = (self.baseline()?, self.degradation.as_ref()?.slow);
        let Window { from, to } = baseline.window;
        let margin = MARGIN_NS.min((to - from) / MARGIN_OF);
        let window = match () {
            () if self.is_of_other(baseline.window) => baseline.window,
            () if to <= slow.from => Window { from, to: to - margin },
            () => Window { from: from + margin, to },
        };
        Some(self.view(window))
    }

    /// All episodes, in time order; empty if nothing is degraded.
    pub fn episodes(&self) -> &[Window] {
        self.degradation.as_ref().map_or(&[], |c| &c.episodes)
    }

    /// The time outside of all episodes, in order: without the warm-up, and starting a second after
    /// each episode, whose queue drains after it.
    pub fn outside(&self) -> Vec<Window> {
        let (Some(first), Some(last)) = (self.client.seconds.first(), self.client.seconds.last()) else {
            return Vec::new();
        };
        let ended = self.slow().window;
        let mut from = first.window.from;
        let mut windows = Vec::new();
        for episode in self.episodes() {
            windows.push(Window { from, to: episode.from });
            let drained = if ended.from == episode.from { ended.to } else { episode.to };
            from = drained.max(episode.to) + APART_NS;
        }
        windows.push(Window { from, to: last.window.to });
        windows.retain(|w| w.seconds() >= 1.0);
        windows
    }

    /// The recording through any window.
    pub fn view(&self, window: Window) -> View<'_> {
        let of = self.at(window);
        View { recording: of.recording, index: &of.index, window }
    }

    /// The case that `window` belongs to: this one, or the baseline recording.
    pub(crate) fn at(&self, window: Window) -> &Self {
        self.against.as_ref().filter(|a| a.has(window)).map_or(self, |a| a.healthy.as_ref())
    }

    /// Whether `window` belongs to the baseline recording.
    pub(crate) fn is_of_other(&self, window: Window) -> bool {
        self.against.as_ref().is_some_and(|a| a.has(window))
    }

    /// The same with all of response time to explain, as if even the mean were too slow: this shows
    /// which limit binds next. None if no source measured response time.
    pub fn laid_open(mut self) -> Option<Self> {
        let seconds = &self.client.seconds;
        let slow = Window { from: seconds.first()?.window.from, to: seconds.last()?.window.to };
        let times = Distribution::merged(seconds.iter().map(|s| &s.response_ms));
        self.degradation = Some(Degradation {
            text: String::new(),
            is_slow: true,
            slow,
            episodes: vec![slow],
            baseline: None,
            slow_mean_ms: times.mean()?,
            baseline_mean_ms: 0.0,
            slow_p99_ms: times.quantile(0.99)?,
            severity: Severity::Minor,
        });
        (self.accounts, self.baseline_accounts) = (OnceLock::new(), OnceLock::new());
        (self.slow_requests, self.slow_ended) = (OnceLock::new(), OnceLock::new());
        (self.inside_ms, self.measured) = (OnceLock::new(), Mutex::default());
        Some(self)
    }

    /// The whole judged time.
    pub fn whole(&self) -> Window {
        self.whole
    }

    /// Requests that were due in the episode, without those of left-out seconds.
    ///
    /// # Errors
    /// If requests, or a column that every rule needs, were not recorded.
    pub fn slow_requests(&self) -> Result<&[&'a Request], Missing> {
        let find = || {
            let mut rows = self.requests_in(self.episode())?;
            let measured_from = self.warm_up.measured_from();
            rows.retain(|r| r.intended_at >= measured_from && !self.left_out.iter().any(|w| w.contains(r.intended_at)));
            Ok(rows)
        };
        self.slow_requests.get_or_init(find).as_deref().map_err(Clone::clone)
    }

    /// Requests that were due in `window`.
    ///
    /// # Errors
    /// Like [`Self::slow_requests`].
    pub fn requests_in(&self, window: Window) -> Result<Vec<&'a Request>, Missing> {
        let enable = "generate the load with holdup run";
        let at = self.at(window);
        let rows = at.recording.tables.requests.with_columns(COLUMNS).map_err(|what| Missing::new(what, enable))?;
        if rows.is_empty() {
            return Err(Missing::new("requests", enable));
        }
        Ok(at.index.requests_in(rows, window))
    }

    /// Requests per second that were due in `window`, sent or not.
    ///
    /// # Errors
    /// Like [`Self::slow_requests`].
    pub fn due_per_second(&self, window: Window) -> Result<f64, Missing> {
        let due = self.requests_in(window)?.iter().map(|r| r.count()).sum::<u64>();
        Ok(due as f64 / window.seconds().max(1e-9))
    }

    /// Requests that ended within `window` after they had reached the service: successful ones, and
    /// given-up ones, which were served for as long. The time that threads and sessions spent is
    /// shared among them. Without request rows it is the count of the app's metrics, of its server's
    /// or the proxy's requests, of the database's statements, or of its volume's operations.
    ///
    /// # Errors
    /// If nothing was recorded that counts any of these.
    pub fn completed_in(&self, window: Window) -> Result<f64, Missing> {
        if self.is_of_other(window) {
            return self.at(window).completed_in(window);
        }
        if self.origin != Origin::Client {
            let view = self.view(window);
            if self.origin.counts_by_interval() {
                let within = self.client.seconds.iter().filter(|s| window.contains(s.window.from));
                return Ok(within.map(|s| s.offered).sum::<u64>() as f64);
            }
            let counted = view
                .counter(&format!("{}_count", timing::HTTP_SERVER), &[], timing::APP_METRICS)
                .or_else(|_| view.counter(metrics::mysql::GLOBAL_STATUS_QUESTIONS.name, &[], timing::APP_METRICS))
                .or_else(|_| view.counter(latency::TRANSACTIONS, &[], timing::APP_METRICS))
                .map_err(|_| Missing::new("how many requests were served", timing::APP_METRICS))?;
            return Ok(counted.delta);
        }
        let rows = self.requests_in(Window { from: i64::MIN, to: i64::MAX })?;
        let ended = rows.iter().filter(|r| is_latency(r) && r.sent_at.is_some() && window.contains(r.done_at));
        Ok(ended.map(|r| r.count()).sum::<u64>() as f64)
    }

    /// Most requests due in any second of the episode, per second.
    pub fn peak_offered_per_second(&self) -> f64 {
        let window = self.episode();
        let seconds = self.client.seconds.iter().filter(|s| window.contains(s.window.from));
        seconds.map(|s| s.offered as f64 / s.window.seconds().max(1e-9)).fold(0.0, f64::max)
    }

    /// Milliseconds of a mean slow request to explain; 0 without a symptom.
    pub fn excess_ms(&self) -> f64 {
        self.degradation.as_ref().map_or(0.0, Degradation::excess_ms)
    }

    /// Whether users feel a delay: false without a symptom, or if requests fail but are not slower.
    /// No wait explains failures.
    pub fn is_felt(&self) -> bool {
        self.excess_ms() >= LEAST_EXCESS_MS
    }

    /// `ms` as a share (0-1) of the excess; 0 unless a delay [is felt](Self::is_felt).
    pub fn share(&self, ms: f64) -> f64 {
        self.share_of(ms, self.excess_ms())
    }

    /// The same share of the excess within the service. If the service is slow, waits in front of it
    /// (for a connection of the generator, a worker, a pooled connection) follow from what requests
    /// wait for inside, and grow in proportion.
    pub fn share_inside(&self, ms: f64) -> f64 {
        self.share_of(ms, *self.inside_ms.get_or_init(|| self.inside_ms()))
    }

    fn share_of(&self, ms: f64, excess_ms: f64) -> f64 {
        if self.is_felt() { (ms / excess_ms.max(LEAST_EXCESS_MS)).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Excess of a mean slow request within the service, milliseconds: without its wait for a
    /// connection of the generator, if the service is slow, and without its waits for a worker and
    /// for a pooled connection, if these are held longer.
    fn inside_ms(&self) -> f64 {
        let in_service_ms = self.excess_in_service_ms();
        let held_ms = self.held_longer_ms().filter(|held_ms| *held_ms < in_service_ms);
        held_ms.unwrap_or(in_service_ms)
    }

    /// The excess without its wait for a connection of the generator, if the service is slow.
    pub fn excess_in_service_ms(&self) -> f64 {
        let excess = self.excess_ms();
        let (Ok(slow), Ok(all)) = (self.slow_requests(), self.requests_in(self.whole)) else { return excess };
        let over = |of: fn(&Request) -> Option<f64>| mean_over(slow.iter().copied(), of).unwrap_or(0.0);
        let queued = over(|r| Some(client_queue_ms(r)));
        // If all of this recording is slow, the baseline recording has the fast requests.
        let other = self.baseline().filter(|baseline| self.is_of_other(baseline.window));
        let baseline = other.and_then(|baseline| self.requests_in(baseline.window).ok()).unwrap_or_default();
        let is_slowed = over(service_ms) >= SERVICE_SLOWED * unloaded_ms(all.into_iter().chain(baseline));
        if is_slowed && queued < excess { excess - queued } else { excess }
    }

    /// How much longer the app works on a request than in the baseline window, by its own timing and
    /// without waits for a pooled connection, milliseconds. None if it does not time requests, or
    /// not much longer: then queues in front of it do not follow from that.
    fn held_longer_ms(&self) -> Option<f64> {
        let held = |view: &View<'_>| {
            let completed = self.completed_in(view.window).ok()?.max(1.0);
            let app = view.mean(timing::HTTP_SERVER, &[], timing::APP_METRICS).ok()?;
            let pool = view.mean(timing::POOL_WAIT, &[], timing::APP_METRICS);
            let waited_ms = pool.map_or(0.0, |waited| waited.ms * waited.count / completed);
            Some((app.ms - waited_ms).max(0.0))
        };
        let (now, before) = (held(&self.slow())?, held(&self.baseline()?)?);
        (now >= MUCH_LONGER * before).then_some(now - before).filter(|grown| *grown > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Judged as _, SyntheticRecording};

    /// 100 requests a second of 900 ms, `queued` of them in front of the service; a fifth is served in 10 ms.
    fn share(queued: i64) -> f64 {
        let made = SyntheticRecording::new(20).requests(100, 900).each_request(move |n, r| {
            let wait = queued * 1_000_000;
            (r.ready_at, r.sent_at) = (Some(r.intended_at + wait), Some(r.intended_at + wait));
            if n % 5 == 0 {
                r.done_at = r.intended_at + wait + 10_000_000;
            }
        });
        made.with(|case| case.share_inside(50.0) / case.share(50.0))
    }

    #[test]
    fn well_before_an_episode_is_apart_from_it() {
        let seconds = |baseline: i64| {
            let made = SyntheticRecording::new(40).requests(100, 900).each_request(move |n, r| {
                if n / 100 < baseline {
                    r.done_at = r.intended_at + 10_000_000;
                }
            });
            made.with(|case| (case.baseline().unwrap().window.seconds(), case.well_before().unwrap().window.seconds()))
        };
        assert_eq!((seconds(20), seconds(6)), ((20.0, 17.0), (6.0, 4.0)));
    }

    #[test]
    fn a_wait_in_front_belongs_to_the_slow_part_inside() {
        assert!((share(0) - 1.0).abs() < 1e-9);
        // 600 of 842 ms on average are in front: what is inside counts in proportion.
        let of = share(600);
        assert!((of - 842.0 / 242.0).abs() < 0.1, "{of}");
        // Where the service is as quick as ever, that is the generator's affair.
        assert!((share(895) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn holders_of_workers_share_the_wait_for_a_worker() {
        // From the twelfth second on 900 ms instead of 20, of which the app works for `held_ms` instead of 10.
        let share = |held_ms: f64| {
            let sum = move |s: i64| 0.1 * (10.0 * s.min(12) as f64 + held_ms * (s - 12).max(0) as f64);
            let made = SyntheticRecording::new(24)
                .requests(100, 900)
                .each_request(|n, r| {
                    if n < 1_200 {
                        r.done_at = r.intended_at + 20_000_000;
                    }
                })
                .counter("prometheus:app", "http_server_request_duration_seconds_count", &[], 100.0)
                .counted("prometheus:app", "http_server_request_duration_seconds_sum", &[], sum);
            made.with(|case| case.share_inside(50.0))
        };
        assert!((share(110.0) - 0.5).abs() < 0.05, "{}", share(110.0));
        // Held as long as before: the queue is for something else.
        assert!(share(10.0) < 0.06, "{}", share(10.0));
    }
}
