//! One sentence: what this source says, and what it deliberately doesn't ask.

use holdup_recording::{Batch, Coverage};

use crate::watch::Options;
use crate::{Collector, ProbeError, ReadError};

/// Makes it of `NAME:ADDRESS`.
///
/// # Errors
/// If the address is not understood.
pub fn make(address: &str, _options: &Options) -> Result<Box<dyn Collector>, ProbeError> {
    Ok(Box::new(Source { address: address.to_owned() }))
}

struct Source {
    address: String,
}

impl Collector for Source {
    fn source(&self) -> String {
        self.address.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        Err(ProbeError::BadAddress(format!("{}: this source is not written yet", self.address)))
    }

    fn settings(&mut self, _batch: &mut Batch) -> Result<(), ReadError> {
        Ok(())
    }

    fn sample(&mut self, _batch: &mut Batch) -> Result<(), ReadError> {
        Ok(())
    }
}
