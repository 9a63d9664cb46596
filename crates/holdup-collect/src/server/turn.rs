//! Whose turn it is on a connection: was data last sent or last received? Received last on a
//! server's side means a request in progress; sent last on a client's side means an unanswered
//! request.
//!
//! The kernel keeps the times of the last data in ticks of 1 to 10 ms, and peers that alternate
//! without a pause do both within one tick: a client that sends the next request at once, or one
//! query after another. On a busy server this holds for nearly all connections, so the other facts
//! of TCP must decide: acknowledgements, and segment counts in each direction compared with those
//! at a moment when the turn was certain. `docs/journal/2026-11-22-app-servers.md` has the tests
//! and the error rates.

use crate::proc::sock_diag::{Info, Segments};

/// The role of this side: the client sends first and is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// This side is the client.
    Asks,
    /// This side is the server.
    Answers,
}

/// The direction of the last data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastData {
    /// No data yet in either direction.
    Nothing,
    Sent,
    Received,
    /// Both within one tick of the kernel, and no other fact decides.
    Undecided,
}

/// A pure acknowledgement is delayed by 200 ms (`TCP_DELACK_MAX`) and a round trip at most; one
/// that comes later than this answers a keepalive probe.
const ACK_DELAY_MAX_MS: u32 = 1_000;

/// Below this many rounds equal segment counts may be chance, if the connection was never observed
/// at a certain moment.
const ROUNDS_FEW: u32 = 3;

/// From this many rounds on it is hardly chance if all answers seem to have the same number of
/// segments.
const ROUNDS_MANY: u32 = 50;

/// By how many segments the client is ahead of the server when no request is open: 0 if each
/// message is one segment, -1 after a greeting. It is learned for each connection when the turn is
/// certain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Lead {
    #[default]
    Unknown,
    Seen(i64),
    /// It varies: some messages have several segments.
    Varying,
}

impl Lead {
    fn learn(&mut self, ahead: i64) {
        *self = match *self {
            Self::Unknown => Self::Seen(ahead),
            Self::Seen(before) if before == ahead => Self::Seen(before),
            _ => Self::Varying,
        };
    }
}

pub(super) fn last(info: &Info, side: Side, lead: &mut Lead) -> LastData {
    let found = for_certain(info);
    let Some(segments) = info.segments else { return found };
    match found {
        LastData::Sent | LastData::Received => {
            let (asked, answered) = by_role(segments, side);
            let is_open = (found == LastData::Sent) == (side == Side::Asks);
            lead.learn(i64::from(asked) - i64::from(answered) - i64::from(is_open));
            found
        }
        // Long silence and a keepalive: acknowledgements no longer help.
        LastData::Undecided if info.ack_age_ms < info.received_age_ms => found,
        LastData::Undecided => by_count(segments, side, *lead),
        LastData::Nothing => found,
    }
}

fn for_certain(info: &Info) -> LastData {
    if let Some(segments) = info.segments {
        match (segments.data_sent, segments.data_received) {
            (0, 0) => return LastData::Nothing,
            // The handshake counts as sending and as receiving.
            (_, 0) => return LastData::Sent,
            (0, _) => return LastData::Received,
            _ => {}
        }
    }
    if info.sent_age_ms != info.received_age_ms {
        return if info.sent_age_ms < info.received_age_ms { LastData::Sent } else { LastData::Received };
    }
    // Received data acknowledges what was sent before it.
    if info.unacked > 0 {
        return LastData::Sent;
    }
    match info.received_age_ms.checked_sub(info.ack_age_ms) {
        // A pure acknowledgement came after all data.
        Some(1..=ACK_DELAY_MAX_MS) => LastData::Sent,
        _ => LastData::Undecided,
    }
}

/// Data segments of the client and of the server.
fn by_role(segments: Segments, side: Side) -> (u32, u32) {
    match side {
        Side::Asks => (segments.data_sent, segments.data_received),
        Side::Answers => (segments.data_received, segments.data_sent),
    }
}

/// Decides by the segment counts; else by the peer's habit.
fn by_count(segments: Segments, side: Side, lead: Lead) -> LastData {
    let (asked, answered) = by_role(segments, side);
    let (of_asker, of_answerer) = match side {
        Side::Asks => (LastData::Sent, LastData::Received),
        Side::Answers => (LastData::Received, LastData::Sent),
    };
    let lead = match lead {
        Lead::Seen(ahead) => Some(ahead),
        Lead::Unknown => Some(0).filter(|_| asked >= ROUNDS_FEW),
        Lead::Varying => None,
    };
    match lead.map(|lead| i64::from(asked) - i64::from(answered) - lead) {
        Some(0) => return of_answerer,
        Some(1) => return of_asker,
        _ => {}
    }
    if asked >= ROUNDS_MANY {
        match (answered % asked == 0, answered % (asked - 1) == 0) {
            (true, false) => return of_answerer,
            (false, true) => return of_asker,
            _ => {}
        }
    }
    // A peer that usually sends pure acknowledgements would have sent one by now, after this tick,
    // if this side had sent last.
    let alone = segments.received.saturating_sub(segments.data_received);
    if alone.saturating_mul(2) < asked.min(answered) { LastData::Received } else { LastData::Undecided }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(ages: [u32; 3], counts: [u32; 3]) -> Info {
        let [sent_age_ms, received_age_ms, ack_age_ms] = ages;
        let [data_sent, data_received, alone] = counts;
        let segments = Some(Segments { received: data_received + alone, data_received, data_sent });
        Info { sent_age_ms, received_age_ms, ack_age_ms, segments, ..Info::default() }
    }

    fn fresh(info: &Info, side: Side) -> LastData {
        last(info, side, &mut Lead::Unknown)
    }

    #[test]
    fn a_new_connection_and_plain_ages() {
        let of = |ages, counts| fresh(&info(ages, counts), Side::Answers);
        assert_eq!(of([8, 8, 8], [0, 0, 1]), LastData::Nothing);
        assert_eq!(of([8, 8, 8], [0, 1, 1]), LastData::Received, "it was made and asked within one tick");
        assert_eq!(of([4, 8, 8], [2, 0, 1]), LastData::Sent);
        assert_eq!(of([4, 8, 4], [1, 1, 1]), LastData::Sent);
        assert_eq!(of([8, 4, 4], [1, 2, 1]), LastData::Received);
    }

    #[test]
    fn within_one_tick_an_acknowledgement_tells() {
        let tie = info([40, 40, 40], [9, 30, 30]);
        assert_eq!(fresh(&Info { unacked: 1, ..tie }, Side::Answers), LastData::Sent);
        assert_eq!(fresh(&Info { ack_age_ms: 0, ..tie }, Side::Answers), LastData::Sent);
        // An idle one, of which somebody asked whether it is still there.
        let probed = Info { sent_age_ms: 9_000, received_age_ms: 9_000, ack_age_ms: 100, ..tie };
        assert_eq!(fresh(&probed, Side::Answers), LastData::Undecided);
    }

    #[test]
    fn within_one_tick_the_segments_tell() {
        let of = |side, counts| fresh(&info([40, 40, 40], counts), side);
        // Sent, received, acknowledgements alone.
        assert_eq!(of(Side::Answers, [7, 8, 8]), LastData::Received);
        assert_eq!(of(Side::Answers, [8, 8, 8]), LastData::Sent);
        assert_eq!(of(Side::Asks, [8, 7, 8]), LastData::Sent);
        assert_eq!(of(Side::Asks, [8, 8, 8]), LastData::Received);
        assert_eq!(of(Side::Answers, [2, 2, 2]), LastData::Undecided, "or one answer of two segments, and a question");
        // Three segments an answer.
        assert_eq!(of(Side::Answers, [240, 81, 80]), LastData::Received);
        assert_eq!(of(Side::Answers, [240, 80, 80]), LastData::Sent);
        assert_eq!(of(Side::Answers, [241, 80, 80]), LastData::Undecided);
        assert_eq!(
            of(Side::Answers, [241, 80, 8]),
            LastData::Received,
            "the other side's acknowledgements ride on its data"
        );
        assert_eq!(fresh(&Info { segments: None, ..info([4, 4, 4], [1, 1, 1]) }, Side::Asks), LastData::Undecided);
    }

    /// A server that greets is a segment ahead for ever; what was certain once says so.
    #[test]
    fn an_earlier_certain_turn_decides_ties() {
        let mut lead = Lead::Unknown;
        assert_eq!(last(&info([90, 40, 40], [5, 6, 0]), Side::Asks, &mut lead), LastData::Received);
        assert_eq!(lead, Lead::Seen(-1));
        assert_eq!(last(&info([40, 40, 40], [7, 7, 7]), Side::Asks, &mut lead), LastData::Sent);
        assert_eq!(last(&info([40, 40, 40], [7, 8, 7]), Side::Asks, &mut lead), LastData::Received);
        // An answer of three: numbers say nothing any more.
        assert_eq!(last(&info([90, 40, 40], [8, 11, 8]), Side::Asks, &mut lead), LastData::Received);
        assert_eq!(
            (lead, last(&info([40, 40, 40], [9, 11, 9]), Side::Asks, &mut lead)),
            (Lead::Varying, LastData::Undecided)
        );
    }
}
