//! What database servers, and the poolers in front of them, counted, held and wrote.

pub mod autovacuum;
pub mod blockers;
pub mod copies;
pub mod debt;
pub mod memory_setting;
pub mod mix;
pub mod plans;
pub mod pooler;
pub mod ports;
pub mod server;
pub mod server_waits;
pub mod sessions;
pub mod tables;
pub mod vacuum;
pub mod written;
