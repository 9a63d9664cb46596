//! `--threshold` of the commands that put no load on, `watch` and `diagnose`: what it may say, and how the command ends.

use holdup_diagnose::Diagnosis;
use holdup_diagnose::verdict::{ObjectiveReport, State};
use holdup_recording::Manifest;
use holdup_recording::manifest::Threshold;
use holdup_recording::objective::parse;

use crate::failure::Failure;

/// Schemes of sources that can measure an app's response times.
const MEASURING: [&str; 2] = ["prometheus:", "otlp"];

#[derive(clap::Args)]
pub struct ThresholdArgs {
    /// Objective, e.g. 'p99 < 500ms'; missed, the exit code is 1; repeatable
    #[arg(long = "threshold", value_name = "OBJECTIVE")]
    thresholds: Vec<String>,
}

impl ThresholdArgs {
    /// The objectives for what is watched at `sources`.
    ///
    /// # Errors
    /// If one cannot be read, or if no source can measure response times.
    pub fn for_sources(&self, sources: &[String]) -> Result<Vec<Threshold>, Failure> {
        let thresholds = self.read(&[])?;
        let measures = |source: &String| MEASURING.iter().any(|scheme| source.starts_with(scheme));
        if !thresholds.is_empty() && !sources.iter().any(measures) {
            return Err(Failure::Unusable(
                "--threshold: no watched source measures response times; add the app's metrics: \
                 --watch prometheus:http://APP/metrics"
                    .to_owned(),
            ));
        }
        Ok(thresholds)
    }

    /// Adds the objectives to those of `manifest`.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn add_to(&self, manifest: &mut Manifest) -> Result<(), Failure> {
        let operations = manifest.load.as_ref().map_or_else(Vec::new, |load| load.operations.clone());
        let known = match &mut manifest.load {
            Some(load) => &mut load.thresholds,
            None => &mut manifest.thresholds,
        };
        // One that the recording has already is not missed twice.
        for threshold in self.read(&operations)? {
            if known.iter().all(|own| own.text != threshold.text) {
                known.push(threshold);
            }
        }
        Ok(())
    }

    fn read(&self, operations: &[String]) -> Result<Vec<Threshold>, Failure> {
        let each = self.thresholds.iter().map(|text| parse(text, operations));
        each.collect::<Result<_, _>>().map_err(|why| Failure::Unusable(format!("--threshold: {why}")))
    }

    /// # Errors
    /// If none of the objectives could be judged.
    pub fn check_judged(&self, diagnosis: &Diagnosis) -> Result<(), Failure> {
        let all = self.reports(diagnosis);
        match all.first() {
            Some(first) if all.iter().all(|o| o.state == State::NotJudged) => {
                let why = first.why.as_deref().unwrap_or("it was not judged");
                Err(Failure::Unusable(format!("--threshold {}: {why}", first.text)))
            }
            _ => Ok(()),
        }
    }

    /// # Errors
    /// If an objective was missed.
    pub fn check_met(&self, diagnosis: &Diagnosis) -> Result<(), Failure> {
        let all = self.reports(diagnosis).into_iter();
        let missed: Vec<&str> =
            all.filter(|o| o.state == State::Missed).map(|o| o.why.as_deref().unwrap_or(o.text.as_str())).collect();
        if missed.is_empty() { Ok(()) } else { Err(Failure::No(format!("objective missed: {}", missed.join("; ")))) }
    }

    fn reports<'d>(&self, diagnosis: &'d Diagnosis) -> Vec<&'d ObjectiveReport> {
        let given = |o: &&ObjectiveReport| self.thresholds.iter().any(|text| text.trim() == o.text);
        diagnosis.objectives.iter().filter(given).collect()
    }
}
