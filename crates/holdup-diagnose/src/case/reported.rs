//! The user's word: when it was slow, and the time to compare that with.

use holdup_recording::Manifest;
use holdup_signals::Window;

use super::Case;

/// The time that the user named, as far as it lies in `whole`; none if no time was named, or if all of
/// it lies elsewhere.
pub(super) fn stretch(manifest: &Manifest, whole: Window) -> Option<Window> {
    let reported = manifest.reported.as_ref()?;
    reported.from.or(reported.to)?;
    let from = reported.from.unwrap_or(whole.from).max(whole.from);
    let to = reported.to.unwrap_or(whole.to).min(whole.to);
    (from < to).then_some(Window { from, to })
}

/// The time outside of `slow`: that before it, unless there is three times as much after it.
pub(super) fn rest(slow: Window, whole: Window) -> Option<Window> {
    /// What comes after may be recovery.
    const LONGER: f64 = 3.0;
    /// Less shows nothing usual.
    const LEAST_S: f64 = 1.0;
    let before = Window { from: whole.from, to: slow.from };
    let after = Window { from: slow.to, to: whole.to };
    let length = |window: Window| if window.from < window.to { window.seconds() } else { 0.0 };
    let chosen = if length(after) > LONGER * length(before) { after } else { before };
    (length(chosen) >= LEAST_S).then_some(chosen)
}

impl Case<'_> {
    /// When the user said that it was slow, as far as the recording covers it; none without a time.
    pub(crate) fn reported(&self) -> Option<Window> {
        stretch(&self.recording.manifest, self.whole)
    }

    /// Whether someone said that something is wrong, with or without a time.
    pub(crate) fn is_reported(&self) -> bool {
        self.recording.manifest.reported.is_some()
    }

    /// The time to compare `slow` with: the baseline recording's, or that outside of it.
    pub(crate) fn usual(&self, slow: Window) -> Option<Window> {
        let other = self.against.as_ref().map(|against| against.healthy.whole());
        other.or_else(|| rest(slow, self.whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdup_recording::manifest::{Host, Reported};

    fn window(from: i64, to: i64) -> Window {
        Window { from: from * 1_000_000_000, to: to * 1_000_000_000 }
    }

    #[test]
    fn the_named_time_is_cut_to_what_was_recorded() {
        let named = |from: Option<i64>, to: Option<i64>| {
            let at = |s: Option<i64>| s.map(|s| s * 1_000_000_000);
            let reported = Some(Reported { from: at(from), to: at(to), words: None });
            stretch(&Manifest { reported, ..Manifest::starting("", 0, Host::default()) }, window(10, 100))
        };
        assert_eq!(named(Some(40), Some(60)), Some(window(40, 60)));
        assert_eq!(named(Some(5), None), Some(window(10, 100)));
        assert_eq!(named(Some(50), Some(300)), Some(window(50, 100)));
        assert_eq!((named(Some(100), None), named(None, Some(10)), named(None, None)), (None, None, None));
    }

    #[test]
    fn the_time_before_is_usual_unless_there_is_far_more_after() {
        assert_eq!(rest(window(40, 60), window(10, 100)), Some(window(10, 40)));
        assert_eq!(rest(window(15, 20), window(10, 100)), Some(window(20, 100)));
        assert_eq!(rest(window(10, 100), window(10, 100)), None);
    }
}
