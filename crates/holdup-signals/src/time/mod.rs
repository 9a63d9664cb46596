//! Values over time and by size: requests second by second, distributions, plateaus, episodes, and
//! counters that stand out.

pub mod band;
pub mod changes;
pub mod counters;
pub mod distribution;
pub mod episodes;
pub mod plateau;
pub mod requests;
