//! What verdicts print.

mod property;
