//! Options that every source of a run gets when it is made.

use crate::slow::SlowRequests;

/// Options for every source of a run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Continue with a source that is only partly readable because a grant is missing.
    pub partial: bool,
    /// The list of slow requests, for sources that can look closer at them; none to disable that.
    pub slow: Option<SlowRequests>,
}
