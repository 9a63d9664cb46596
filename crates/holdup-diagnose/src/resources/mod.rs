//! What requests wait for, one file for each resource, and what the wait costs a request. A resource that was not recorded is
//! `Missing`, with the option that records it. No file here imports a rule.

pub mod volume;
