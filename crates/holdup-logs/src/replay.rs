//! Databases' logs as a mix: the actions of each session, in order of time, and which of them are
//! sent to another server or left out, with the reason.
//!
//! The flow: a [`source`] reads the logs, [`order`] finds when each statement began, [`judge`]
//! decides which may be sent, the [`mix`] assembles sessions. A [`survey`] goes through all of it
//! once, so that the length, the sessions and the different statements are known before the replay.
//! It is a stream: a log may be larger than memory. It sends nothing and has no clock.

pub mod judge;
pub mod mix;
pub mod order;
pub mod parameters;
pub mod shapes;
pub mod source;
pub mod survey;
