//! holdup from the outside: the program as users start it, real servers, files read by other people's readers.
//! What a function returns is tested beside the function; here it is what a person or a pipeline sees.
//!
//! A test that lacks what it needs (MariaDB, the Python of `cargo xtask setup`) says so and passes, unless `CI` is set.

mod access_log;
mod advise;
mod answers;
mod aws;
mod bounded;
mod canary;
mod capacity;
mod captured;
mod compare;
mod cut;
mod demo;
mod digest;
mod doctor;
mod drivers;
mod examples;
mod faults;
mod files;
mod first_hour;
mod fleet;
mod freeze;
mod full_disk;
mod generate;
mod generator;
mod hostile;
mod import;
mod incident_c;
mod incident_d;
mod instants;
mod kubernetes;
mod lab;
mod mariadb;
mod mixes;
mod mongodb;
mod objectives;
mod otel_python;
mod outputs;
mod own_cost;
mod parallel_calls;
mod postgresql;
mod program;
mod promptly;
mod proxies;
mod python;
mod refusals;
mod repeats;
mod replay;
mod report;
mod rivals;
mod runtimes;
mod schemas;
mod search;
mod secrets;
mod service;
mod sql;
mod store;
mod survive;
#[path = "../../../holdup-protocol/tests/real/template.rs"]
mod template;
mod trace_files;
mod upgrade;
