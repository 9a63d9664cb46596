//! The engine against real sockets: servers that are slow, wrong or hostile, and a real nginx. Whatever they do, every
//! request that was due is accounted for, at its age, under its own kind of outcome, and the run ends in time.
//!
//! One binary, so that it links once. [`play`] runs a scenario, [`servers`] are what it runs against.

mod closed;
mod freeze;
mod groups;
mod hostile;
mod hostile_http2;
mod hostile_tls;
mod keep_alive;
mod large;
mod memory;
mod mixes;
mod mongodb;
mod new_connections;
mod nginx;
mod outcomes;
mod play;
mod redirects;
mod rows;
mod search;
mod servers;
mod sessions;
mod shards;
mod sql;
mod trace;
