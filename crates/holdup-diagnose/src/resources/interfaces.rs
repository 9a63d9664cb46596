//! Network interfaces: what each direction carries, how near that is to its limit, and what waits
//! in front of it.

use holdup_recording::metrics;
use holdup_recording::words::{bytes, bytes_per_second, ms, percent};
use holdup_signals::evidence::Evidence;
use holdup_signals::time::plateau::inner;
use holdup_signals::{Missing, Plateau, View};

/// What to record for the interfaces of a machine.
pub const HOST: &str = "--watch host";

/// Fewer bytes per request than one small packet are not the requests' traffic.
pub const LEAST_BYTES: f64 = 64.0;

/// Share (0-1) of the speed at which a link is full: headers and gaps take the rest.
const FULL: f64 = 0.9;

const METRIC: &str = metrics::host::NETWORK_IO_BYTES.name;

const BACKLOG: &str = metrics::host::NETWORK_QDISC_BACKLOG_BYTES.name;

/// One direction of an interface.
pub struct InterfaceDirection {
    /// The interface.
    pub device: String,
    /// `receive` or `transmit`.
    pub direction: &'static str,
    /// Its bytes per second.
    pub level: Plateau,
    /// Its limit in bytes per second, if known.
    pub limit: Option<(f64, &'static str)>,
    /// Mean bytes in its queue, and the share (0-1) of the samples with any.
    pub backlog: Option<(f64, f64)>,
}

/// What bounds an interface, in bytes per second and in words.
struct Limits {
    shaper: Option<(f64, &'static str)>,
    speed: Option<(f64, &'static str)>,
}

impl Limits {
    fn read(view: &View<'_>, device: &str) -> Self {
        let number =
            |fact: &str| view.setting(&format!("net.{device}.{fact}"), HOST).ok().and_then(|v| v.parse::<f64>().ok());
        let shaper = number("shaper_bytes_per_second").filter(|v| *v > 0.0).map(|v| (v, "its shaper's rate"));
        let speed = number("speed_bits_per_second").filter(|v| *v > 0.0).map(|v| (v / 8.0, "its speed"));
        Self { shaper, speed }
    }
}

impl InterfaceDirection {
    /// Every direction of every interface that carries the requests.
    ///
    /// # Errors
    /// If bytes were not recorded, or too seldom.
    pub fn all(view: &View<'_>, completed: f64) -> Result<Vec<Self>, Missing> {
        let mut ways = Vec::new();
        for device in view.label_values(METRIC, "device") {
            let limits = Limits::read(view, &device);
            // Within a host only a shaper is a limit.
            if device == "lo" && limits.shaper.is_none() {
                continue;
            }
            for direction in ["receive", "transmit"] {
                ways.extend(Self::measure(view, &device, direction, &limits, completed)?);
            }
        }
        Ok(ways)
    }

    /// One direction; none if hardly any byte of the requests goes there.
    fn measure(
        view: &View<'_>,
        device: &str,
        direction: &'static str,
        limits: &Limits,
        completed: f64,
    ) -> Result<Option<Self>, Missing> {
        let labels = [("device", device), ("direction", direction)];
        if view.counter(METRIC, &labels, HOST)?.delta < LEAST_BYTES * completed {
            return Ok(None);
        }
        let growths = view.growths(|_| true, METRIC, &labels);
        let rates: Vec<f64> = inner(&growths).iter().map(|g| g.rate()).collect();
        let Some(level) = Plateau::from_rates(&rates) else {
            return Err(Missing::new(
                "at least ten samples of the interfaces while requests were slow",
                "a longer run, or a shorter --interval",
            ));
        };
        // A queue and a shaper stand in front of outgoing data.
        let is_sent = direction == "transmit";
        let backlog = view.gauge(BACKLOG, &labels[..1], HOST).ok().filter(|_| is_sent);
        Ok(Some(Self {
            device: device.to_owned(),
            direction,
            level,
            limit: limits.shaper.filter(|_| is_sent).or(limits.speed),
            backlog: backlog.map(|b| (b.mean, b.positive_ratio)),
        }))
    }

    /// Of `ways` the one that carries all it may with the longest queue, then the most bytes.
    pub fn fullest(ways: &[Self]) -> Option<&Self> {
        let rank = |way: &Self| way.queue_ms() + way.level.level / 1e12;
        ways.iter().filter(|way| way.is_full()).max_by(|a, b| rank(a).total_cmp(&rank(b)))
    }

    /// Milliseconds that a byte stands in the queue: Little's law.
    pub fn queue_ms(&self) -> f64 {
        self.backlog.map_or(0.0, |(bytes, _)| bytes / self.level.level.max(1.0) * 1e3)
    }

    /// Whether it carries all it may, as far as can be told.
    fn is_full(&self) -> bool {
        match self.limit {
            Some((limit, _)) => self.level.level >= FULL * limit,
            None => self.level.is_flat(),
        }
    }

    /// What it carries, and its limit.
    ///
    /// # Errors
    /// If its bytes were not recorded.
    pub fn evidence(&self, view: &View<'_>) -> Result<Evidence, Missing> {
        let labels = [("device", self.device.as_str()), ("direction", self.direction)];
        let counter = view.counter(METRIC, &labels, HOST)?;
        let limit = match self.limit {
            Some((limit, what)) => format!("; {what} is {}", bytes_per_second(limit)),
            None => "; its limit is unknown".to_owned(),
        };
        let text = format!(
            "{} {}s {}, within 8 % in {} of {} intervals{limit}",
            self.device,
            self.direction,
            bytes_per_second(self.level.level),
            percent(self.level.at_level_ratio),
            self.level.intervals
        );
        Ok(counter.evidence(bytes_per_second(self.level.level), "as much as has to be sent", text))
    }

    /// What stood in its queue; none if that was not recorded.
    pub fn queue_evidence(&self, view: &View<'_>) -> Option<Evidence> {
        let (mean, ratio) = self.backlog?;
        let labels = [("device", self.device.as_str())];
        let backlog = view.gauge(BACKLOG, &labels, HOST).ok()?;
        let text = format!(
            "{} were in the queue of {} on average, in {} of the samples: {} for each byte sent",
            bytes(mean),
            self.device,
            percent(ratio),
            ms(self.queue_ms())
        );
        Some(backlog.evidence(bytes(mean), "0", text))
    }
}
