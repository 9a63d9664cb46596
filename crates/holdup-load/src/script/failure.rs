//! Why a session's request counts as failed although the service may have answered: each kind is a
//! separate outcome.

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepFailure {
    /// A check did not hold.
    #[error("a check of the response did not hold")]
    Check,
    /// A capture found nothing.
    #[error("the value to capture is not in the response")]
    CaptureMissed,
    /// The body should be JSON and is not.
    #[error("the body is not JSON")]
    BadJson,
    /// No row was left.
    #[error("a feeder has no row left")]
    FeederDry,
    /// A variable had no value, or templates were nested too deep: nothing was sent.
    #[error("a template could not be filled in")]
    Template,
}
