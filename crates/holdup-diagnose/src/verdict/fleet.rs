//! Several hosts as one case, as data: what ran where, how far the clocks were apart, and the shards
//! of the load.

use serde::{Deserialize, Serialize};

/// The hosts of a case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FleetReport {
    /// Each host, in the order given.
    pub hosts: Vec<HostReport>,
    /// The shards of the load; none if one process made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shards: Option<ShardsReport>,
}

/// One host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostReport {
    /// Its name.
    pub host: String,
    /// Its recording.
    pub recording: String,
    /// What ran there: `generator`, `app`, `database`, `other`.
    pub roles: Vec<String>,
    /// When it was recorded, RFC 3339, by the clock that counts.
    pub from: String,
    /// When that ended; none if it did not.
    pub to: Option<String>,
    /// Which part of the judged time it lacks, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
    /// Its clock; none for the host whose clock counts, and if nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockReport>,
    /// Its sources, as the recordings joined call them.
    pub sources: Vec<String>,
    /// Sources that were left out, because another recording has the same server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
}

/// How far a host's clock was off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockReport {
    /// What was added to its times, milliseconds.
    pub offset_ms: f64,
    /// How far that may be off, milliseconds.
    pub error_ms: f64,
    /// What both hosts saw.
    pub by: String,
    /// The host that it was measured against.
    pub against: String,
    /// In words.
    pub text: String,
}

/// The shards of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardsReport {
    /// How many there should be.
    pub of: u32,
    /// Numbers of those that no recording is of.
    pub missing: Vec<u32>,
    /// What is wrong with them, in words.
    pub notes: Vec<String>,
}
