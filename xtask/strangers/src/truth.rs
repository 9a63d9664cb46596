//! What is known of a played draw without asking the judge: faults, times, and what clients felt. It is `truth.json`
//! beside the recording.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use holdup_recording::watchers::Sources;
use serde::{Deserialize, Serialize};

use crate::draw::{Dose, Draw};
use crate::faults;
use crate::symptom::Symptom;

/// Name of its file.
pub const FILE: &str = "truth.json";

/// A fault with its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Played {
    /// Name.
    pub fault: String,
    /// Layer.
    pub family: String,
    /// 0-1.
    pub intensity: f64,
    /// Its figures.
    pub values: Vec<(String, f64)>,
    /// Slugs that name it.
    pub causes: Vec<String>,
}

impl Played {
    /// Gives a fault that had no name when it was played the names that it has had since. Names that it had stay.
    fn name(&mut self) {
        let fault = faults::by_name(&self.fault).filter(|_| self.causes.is_empty());
        self.causes.extend(fault.into_iter().flat_map(|fault| fault.causes).map(|&slug| slug.to_owned()));
    }
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// The draw.
    pub draw: Draw,
    /// Its faults as they were played.
    pub played: Vec<Played>,
    /// When the fault was brought about, nanoseconds since the Unix epoch.
    pub onset_at: i64,
    /// When it was taken back.
    pub end_at: i64,
    /// What clients felt.
    pub symptom: Symptom,
    /// Who would have watched what.
    pub sources: Sources,
    /// Wall time of the draw, seconds.
    pub wall_s: f64,
    /// Size of its recording, bytes.
    pub bytes: u64,
}

impl Truth {
    /// The faults of `draw`, with figures.
    pub fn played(draw: &Draw) -> Vec<Played> {
        let one = |dose: &Dose| {
            let fault = dose.fault()?;
            Some(Played {
                fault: fault.name.to_owned(),
                family: fault.family.name(),
                intensity: dose.intensity,
                values: dose.values().iter().map(|(name, value)| (name.to_owned(), value)).collect(),
                causes: fault.causes.iter().map(|&slug| slug.to_owned()).collect(),
            })
        };
        draw.doses.iter().filter_map(one).collect()
    }

    /// Reads that of the draw in `folder`.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        let text = fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))?;
        let mut truth: Self =
            serde_json::from_str(&text).with_context(|| format!("{} is not a truth of this bench", path.display()))?;
        truth.played.iter_mut().for_each(Played::name);
        Ok(truth)
    }

    /// Writes it into `folder`.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(FILE);
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(&path, text).with_context(|| format!("failed to write {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_without_a_name_gets_the_one_that_came_later() {
        let names = |fault: &str, causes: &[&str]| {
            let causes = causes.iter().map(|&cause| cause.to_owned()).collect();
            let (fault, family) = (fault.to_owned(), String::new());
            let mut played = Played { fault, family, intensity: 0.5, values: Vec::new(), causes };
            played.name();
            played.causes
        };
        assert_eq!(names("app_pauses", &[]), ["process_stopped"]);
        assert_eq!(names("small_pool", &["as_it_was_then"]), ["as_it_was_then"]);
        assert!(names("healthy", &[]).is_empty() && names("no_such_fault", &[]).is_empty());
    }
}
