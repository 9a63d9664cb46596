//! What the sender of the load saw: response times and their source, objectives, and whether the
//! load generator was fit to measure.

pub mod degradation;
pub mod demand;
pub mod latency;
pub mod objectives;
pub mod operations;
pub mod validity;
pub mod warm_up;
