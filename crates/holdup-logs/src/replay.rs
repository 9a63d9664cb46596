//! Databases' logs -> what each session did, in the order of time: what is sent to another server, and what is left out and why.
//!
//! The flow: a [`source`] reads the logs, [`order`] finds out when each statement began, [`judge`] says which may be sent, the
//! [`mix`] puts sessions together; a [`survey`] goes through all of it once, so that the length, the sessions and the different
//! statements are known before anything is sent. It is a stream: a log may be larger than memory. It sends nothing and knows no
//! clock.

pub mod judge;
pub mod mix;
pub mod order;
pub mod parameters;
pub mod shapes;
pub mod source;
pub mod survey;
