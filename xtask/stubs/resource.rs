//! One sentence: what requests wait for here.

use std::sync::Arc;

use holdup_signals::Missing;

use crate::case::Case;

/// What is known of it over the degraded stretch.
#[derive(Debug)]
pub struct Measured {
    /// Milliseconds of a mean request that waits for it.
    pub waited_ms: f64,
}

impl Measured {
    /// Measured once for a case.
    ///
    /// # Errors
    /// What is missing, with the option that records it.
    pub fn of(case: &Case<'_>) -> Result<Arc<Self>, Missing> {
        case.measured(Self::measure)
    }

    fn measure(_case: &Case<'_>) -> Result<Self, Missing> {
        Err(Missing::new("this resource is not measured yet", "a later holdup"))
    }
}
