//! Storage that will be full at its pace: how sure that is depends on how soon.

use super::super::parts::present;
use super::fixes;
use crate::causes::Outcome;
use crate::resources::full_disk::{Filling, FullDisk, Room, ShownBy};
use crate::strength::{CERTAIN, FAIR, STRONG, Strength};
use holdup_signals::{Missing, View};

/// Within this time space is not freed by accident, seconds.
const SOON_S: f64 = 3_600.0;

/// Within this time it is full before the next day's work, seconds.
const TODAY_S: f64 = 6.0 * SOON_S;

pub(super) fn worth(filling: &Filling) -> Strength {
    match filling.left_s {
        ..SOON_S => CERTAIN,
        SOON_S..TODAY_S => STRONG,
        _ => FAIR,
    }
}

/// The outcome where nothing is full yet. A level clears only with room for a day at its pace.
pub(super) fn outcome(view: &View<'_>, room: Room) -> Result<Outcome, Missing> {
    if room.filling.is_empty() && room.is_open {
        return Err(Missing::new(
            "how fast the little space that is left is used up",
            "df -P again after some minutes",
        ));
    }
    if room.filling.is_empty() {
        return Ok(Outcome::Cleared(room.least.into_iter().collect()));
    }
    let as_full = |of: &Filling| FullDisk {
        name: of.name.clone(),
        shown_by: if of.is_cloud { ShownBy::Cloud } else { ShownBy::Bytes },
        since: None,
        evidence: of.evidence.clone(),
    };
    let steps = fixes(view, &room.filling.iter().map(as_full).collect::<Vec<_>>());
    let shown = room.filling.into_iter().map(|of| (worth(&of), of.evidence)).collect();
    let unknown = Missing::new("what it will cost when it is full", "requests while it is full");
    Ok(present::outcome(shown, steps, "Free space stays level or rises under the same load.", unknown))
}
