//! The judge on recordings: those of real labs (`fixtures/`), changed, cut and grown ones, and simulated series whose answers are known.
//! The runner starts a process for each test, so that what is diagnosed once is shared within a test, not between tests.

mod against;
mod bounds;
mod budget;
mod by_rule;
mod chance;
mod documents;
mod episodes;
mod fixtures;
mod healthy;
mod instants;
mod known_wrong;
mod level;
mod long;
mod matrix;
mod plateaus;
mod removal;
mod sources;
mod truth;
mod validity;
mod watched;
mod watchers;
