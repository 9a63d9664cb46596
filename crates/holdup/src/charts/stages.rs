//! Charts of a pipeline: one line for each stage.

use holdup_recording::metrics::kafka::LAG;
use holdup_signals::app::pipeline::{Course, courses};
use holdup_signals::view::Index;
use holdup_signals::{View, Window};

use super::{Chart, Plot, Series, chart};

/// Most stages that are drawn: those that were furthest behind.
const DRAWN: usize = 8;

impl Plot<'_> {
    /// How far the stages are behind, and what waits before each.
    pub(super) fn stage_charts(&self) -> Vec<Chart> {
        let is_named = !self.recording.manifest.pipeline.is_empty();
        if !is_named && !self.condensed.series.by_metric.contains_key(LAG.name) {
            return Vec::new();
        }
        let index = Index::new(&self.recording.tables);
        let window = Window { from: self.start, to: i64::MAX };
        let view = View { recording: self.recording, index: &index, window };
        let mut stages = courses(&view);
        let furthest = |of: &Course<'_>| of.lag.iter().map(|point| point.1).fold(0.0, f64::max);
        if !is_named {
            stages.sort_by(|a, b| furthest(b).total_cmp(&furthest(a)));
        }
        stages.truncate(DRAWN);
        let series = |of: &Course<'_>, points: &[(i64, f64)]| -> Series {
            self.series(&of.name, points.iter().map(|(at, value)| (*at, Some(*value))).collect())
        };
        let (of_bytes, of_items): (Vec<_>, Vec<_>) = stages.iter().partition(|of| of.unit == "bytes");
        let waiting =
            |stages: Vec<&Course<'_>>| -> Vec<Series> { stages.iter().map(|of| series(of, &of.backlog)).collect() };
        let lags = stages.iter().map(|of| series(of, &of.lag)).collect();
        vec![
            chart("stage_lag", "How far each stage of the pipeline is behind", "s", lags),
            chart("stage_backlog", "Waiting before each stage of the pipeline", "items", waiting(of_items)),
            chart("stage_bytes", "Log waiting before each stage of the pipeline", "bytes", waiting(of_bytes)),
        ]
    }
}
