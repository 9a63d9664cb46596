//! What verdicts print.

mod bounded;
mod property;
