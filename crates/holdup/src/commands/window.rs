//! `--from`, `--to`, `--last`: the part of a recording that a command looks at.

use std::ops::Range;
use std::time::Duration;

use holdup_recording::{Manifest, clock};
use holdup_signals::Window;

use super::duration;
use super::moment::{Moment, moment};
use crate::failure::Failure;

#[derive(clap::Args, Clone, Default)]
pub struct WindowArgs {
    /// Judge only from this time on: 90s after the start, 14:05:30 (UTC), or RFC 3339
    #[arg(long, value_name = "TIME", value_parser = moment)]
    from: Option<Moment>,

    /// Judge only until this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    to: Option<Moment>,

    /// Judge only the last part, e.g. 15m
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with_all = ["from", "to"])]
    last: Option<Duration>,
}

impl WindowArgs {
    /// The part between two times, as the command line has them.
    ///
    /// # Errors
    /// If one has another form.
    pub fn between(from: Option<&str>, to: Option<&str>) -> Result<Self, String> {
        let [from, to] = [from, to].map(|text| text.map(moment).transpose());
        Ok(Self { from: from?, to: to?, last: None })
    }

    /// Whether a part was named.
    pub fn is_given(&self) -> bool {
        self.from.is_some() || self.to.is_some() || self.last.is_some()
    }

    /// The part of the recording with this manifest, if not all.
    ///
    /// # Errors
    /// If it is empty, or outside of the recording.
    pub fn of(&self, manifest: &Manifest) -> Result<Option<Window>, Failure> {
        self.within(manifest.started_at, manifest.ended_at)
    }

    /// The part of a recording that ran from `start` to `end`, if not all.
    ///
    /// # Errors
    /// Those of [`Self::of`].
    pub fn within(&self, start: i64, end: Option<i64>) -> Result<Option<Window>, Failure> {
        let end = end.unwrap_or(i64::MAX);
        let last = self.last.map(|d| end.saturating_sub(i64::try_from(d.as_nanos()).unwrap_or(i64::MAX)).max(start));
        let window = self.is_given().then(|| Window {
            from: last.or(self.from.map(|from| from.within(start))).unwrap_or(start),
            to: self.to.map_or(i64::MAX, |to| to.within(start)),
        });
        if window.is_some_and(|w| w.to <= w.from) {
            return Err(Failure::Unusable("--to must be later than --from".to_owned()));
        }
        if let Some(window) = window.filter(|w| w.to <= start || w.from >= end) {
            let (from, to) = (clock::rfc3339(start), clock::rfc3339(end));
            let asked = clock::rfc3339(if window.from >= end { window.from } else { window.to });
            return Err(Failure::Unusable(format!("{asked} is outside the recording, which runs from {from} to {to}")));
        }
        Ok(window)
    }
}

/// The times of a window.
pub fn range(window: Window) -> Range<i64> {
    window.from..window.to
}
