//! Where requests spent their time inside apps and their servers, by spans, by workers and by runtimes.

pub mod accounts;
pub mod app_server;
pub mod critical_path;
pub mod pipeline;
pub mod runtime;
pub mod services;
pub mod spans;
pub mod timing;
pub mod traced;
pub mod waterfall;
