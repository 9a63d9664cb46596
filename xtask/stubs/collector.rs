//! One sentence: what this source says, and what it deliberately doesn't ask.

use holdup_recording::{Batch, Coverage};

use crate::watch::Options;
use crate::{Collector, ProbeError, ReadError};

/// Makes it of what follows `NAME:` in an address; an error says what is wrong with that.
pub(crate) fn make(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    Ok(Box::new(Source { place: rest.to_owned() }))
}

struct Source {
    place: String,
}

impl Collector for Source {
    fn source(&self) -> String {
        format!("NAME:{}", self.place)
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        Err(ProbeError::BadAddress(format!("{}: this source is not written yet", self.source())))
    }

    fn sample(&mut self, _batch: &mut Batch) -> Result<(), ReadError> {
        Ok(())
    }
}
