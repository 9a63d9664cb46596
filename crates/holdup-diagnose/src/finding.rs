//! A cause that was found, as data.

use crate::cause::Cause;
use serde::{Deserialize, Serialize};

use crate::causes::Role;
use crate::change::Fix;
use holdup_signals::evidence::Evidence;

/// A share of the harm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HarmShare {
    /// 0-1.
    pub ratio: f64,
    /// Its whole in words, e.g. `of 48 active sessions`.
    pub of: String,
}

/// A cause that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Slug.
    pub cause: Cause,
    /// In words.
    pub title: String,
    /// Its part.
    pub role: Role,
    /// The finding that it is a consequence of; none for a root. Followed upwards, this is the
    /// chain of causes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows_from: Option<Cause>,
    /// For a contributor, the finding whose resource it loads further; none for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adds_to: Option<Cause>,
    /// The hosts that it is on, of several that were recorded; empty for a recording of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// 0-1.
    pub confidence: f64,
    /// Milliseconds of a mean slow request that it explains.
    pub explains_ms: f64,
    /// The same as a share (0-1) of the excess.
    pub explains_ratio: f64,
    /// How much of the harm it accounts for by what waits or by a server's own timing, where no source
    /// measured response time; none if the evidence does not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<HarmShare>,
    /// Its evidence.
    pub evidence: Vec<Evidence>,
    /// What to do, safest first.
    pub fixes: Vec<Fix>,
    /// How to verify that it helped.
    pub prove: String,
}
