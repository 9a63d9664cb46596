//! Why a session's request counts as failed although the service may have answered: each kind is an outcome of its own.

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failed {
    /// A check did not hold.
    #[error("a check of the response did not hold")]
    Check,
    /// A capture found nothing.
    #[error("what was to be captured is not in the response")]
    CaptureMissed,
    /// The body was to be JSON.
    #[error("the body is not JSON")]
    BadJson,
    /// No row was left.
    #[error("a feeder has no row left")]
    FeederDry,
    /// A variable had no value, or a text expanded itself too deep: nothing was sent.
    #[error("a template could not be filled in")]
    Template,
}
