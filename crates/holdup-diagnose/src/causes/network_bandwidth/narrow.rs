//! A path that is narrower than the interfaces at its ends: a shaper, a VPN, an instance's limit. An
//! interface's own speed then says nothing. The bytes stand at a level, and answers queue in front of
//! it: they stay unacknowledged, and requests await them for as long.
//!
//! A longer way holds answers back, too, but bytes then follow the load. Here they are fewer than
//! the same requests needed before, or steadier than the load makes them. It finds or stays silent.

use holdup_recording::metrics::{host, tcp};
use holdup_recording::{Labels, words};

use super::advice;
use crate::case::Case;
use crate::causes::{CauseFinding, Outcome, Role, bytes_per_second, ms};
use crate::resources::database_path::DatabasePath;
use crate::resources::interfaces::{HOST, InterfaceDirection, LEAST_BYTES};
use crate::resources::is_too_small;
use crate::strength::FAIR;
use holdup_signals::evidence::Evidence;
use holdup_signals::time::plateau::inner;
use holdup_signals::{Growth, Missing, Plateau, View};

/// At most this share (0-1) of the bytes that were carried before is less than is asked.
const LESS: f64 = 0.9;

/// Requests may need up to this many times the bytes that they needed before:
/// their sizes vary.
const AS_MUCH: f64 = 1.05;

/// Rates that spread by less than this share (0-1) of what they did before do not follow the load.
const STEADIER: f64 = 0.5;

/// Least number of rates to compare how they spread.
const LEAST_RATES: usize = 6;

/// The server's sockets must show this share (0-1) of the wait.
const CONFIRMS: f64 = 0.5;

/// Two samples are read up to some hundredths of a second off their time. Over this many intervals
/// together that is little.
const TOGETHER: usize = 2;

/// The outcome; none if it is silent.
///
/// # Errors
/// If answers are under way for long, and what would show why is missing.
pub(super) fn judge(case: &Case<'_>) -> Result<Option<Outcome>, Missing> {
    let Ok(path) = DatabasePath::for_case(case) else { return Ok(None) };
    let explains_ms = path.ms();
    if !path.is_significant() || is_too_small(case, explains_ms)? {
        return Ok(None);
    }
    let Some((least, most)) = path.unacked_more_ms() else {
        return Err(Missing::new("unacknowledged data in the database's sockets", HOST));
    };
    let unacked_ms = f64::midpoint(least, most);
    Ok(if unacked_ms < CONFIRMS * explains_ms { None } else { found(case, &path, explains_ms, unacked_ms) })
}

fn found(case: &Case<'_>, path: &DatabasePath, explains_ms: f64, unacked_ms: f64) -> Option<Outcome> {
    let (slow, baseline) = (case.slow(), case.baseline()?);
    // What drains after the episode is at no level.
    let episode = case.view(case.degradation.as_ref().map_or(slow.window, |found| found.slow));
    let (level, before, way) = narrowest(case, &episode, &baseline)?;
    let labels = [("device", way.device.as_str()), ("direction", way.direction)];
    let counter = slow.counter(host::NETWORK_IO_BYTES.name, &labels, HOST).ok()?;
    let text = format!(
        "{} {}s {}, within 8 % in {} of {} intervals; requests needed {} before",
        way.device,
        way.direction,
        bytes_per_second(level.level),
        words::percent(level.at_level_ratio),
        level.intervals,
        bytes_per_second(before)
    );
    let (now, was) = path.awaited_ms();
    let unacked = format!(
        "a request awaited the database for {}, {} before, and answers stayed unacknowledged for {} longer",
        ms(now),
        ms(was),
        ms(unacked_ms)
    );
    let sockets = Labels::new([("metric", tcp::UNACKED_SEGMENTS.name), ("side", "server")]);
    let completed = case.completed_in(slow.window).ok()?.max(1.0);
    Some(Outcome::Found(CauseFinding {
        explains_ms,
        evidence: vec![
            counter.evidence(bytes_per_second(level.level), bytes_per_second(before), text),
            Evidence::new("samples", "value", sockets, slow.window, ms(now), ms(was), unacked),
        ],
        weights: vec![FAIR, FAIR],
        fixes: advice::fixes(&slow, &way, counter.delta / completed),
        prove: format!(
            "Run the same scenario again: bytes per second of {} follow the load, and answers are acknowledged at once.",
            way.device
        ),
        role: Role::Root,
    }))
}

/// The direction of an interface that carries most of those that stand at a level below what is
/// asked: the level, and what the same requests needed before.
fn narrowest(case: &Case<'_>, slow: &View<'_>, baseline: &View<'_>) -> Option<(Plateau, f64, InterfaceDirection)> {
    const METRIC: &str = host::NETWORK_IO_BYTES.name;
    let completed = case.completed_in(slow.window).ok()? / slow.window.seconds().max(1e-9);
    let mut all = Vec::new();
    // Within a host nothing is narrow but a shaper, whose rate is known.
    for device in slow.label_values(METRIC, "device").into_iter().filter(|device| device != "lo") {
        for direction in ["receive", "transmit"] {
            let labels = [("device", device.as_str()), ("direction", direction)];
            let growths = |view: &View<'_>| inner(&view.growths(|_| true, METRIC, &labels)).to_vec();
            let (growths, baseline_growths) = (growths(slow), growths(baseline));
            let rates: Vec<f64> = growths.chunks_exact(TOGETHER).map(rate_together).collect();
            let Some(level) = Plateau::from_rates(&rates).filter(Plateau::is_flat) else { continue };
            let Ok(before) = baseline.counter(METRIC, &labels, HOST).map(|carried| carried.rate()) else { continue };
            let is_steadier = match (spread(&growths), spread(&baseline_growths)) {
                (Some(now), Some(earlier)) => now < STEADIER * earlier && level.level <= AS_MUCH * before,
                _ => false,
            };
            if (level.level <= LESS * before || is_steadier) && level.level >= LEAST_BYTES * completed {
                let way = InterfaceDirection { device: device.clone(), direction, level, limit: None, backlog: None };
                all.push((level, before, way));
            }
        }
    }
    all.into_iter().max_by(|a, b| a.0.level.total_cmp(&b.0.level))
}

/// How much rates differ from one to the next, as a share of their mean, so that a load that rises
/// does not count as spread; none of too few.
fn spread(growths: &[Growth]) -> Option<f64> {
    let rates: Vec<f64> = growths.iter().map(Growth::rate).collect();
    let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    let steps = rates.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum::<f64>();
    (rates.len() >= LEAST_RATES && mean > 0.0).then(|| (steps / 2.0 / (rates.len() - 1) as f64).sqrt() / mean)
}

fn rate_together(growths: &[Growth]) -> f64 {
    let seconds: f64 = growths.iter().map(|g| g.window.seconds()).sum();
    growths.iter().map(|g| g.delta).sum::<f64>() / seconds.max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::super::DEFINITION;
    use crate::testing::{Judged as _, SyntheticRecording};

    const ONSET: i64 = 20;

    /// 100 requests a second; from second 20 on the app awaits `pending` answers of an idle database, and an interface with room
    /// for all carries `carried` bytes a second instead of 40,000.
    fn made(pending: f64, carried: f64) -> SyntheticRecording {
        let step = |before: f64, after: f64| move |second: i64| if second < ONSET { before } else { after };
        let grown = |after: f64| {
            move |second: i64| 40_000.0 * second.min(ONSET) as f64 + after * (second - ONSET).max(0) as f64
        };
        let way = |direction| [("device", "tun0"), ("direction", direction)];
        let peer = [("peer", "10.0.0.5"), ("peer_port", "5432")];
        let side = [("port", "5432"), ("side", "server")];
        SyntheticRecording::new(50)
            .requests(100, 200)
            .each_request(|_, r| {
                r.first_byte_at = Some(r.done_at);
                if r.intended_at < ONSET * 1_000_000_000 {
                    r.done_at = r.intended_at + 10_000_000;
                }
            })
            .counted("postgresql://db:5432", "postgresql_sessions", &[("true_state", "idle")], |_| 0.0)
            .digest("SELECT 1", |second| (100 * second, second, 0, 0, 0))
            .counted("server:8080", "server_accepted_connections", &[], |_| 1.0)
            .counted("server:8080", "server_outgoing_pending_connections", &peer, step(0.5, pending))
            .counted("host", "tcp_unacked_segments", &side, step(0.5, pending))
            .counted("host", "system_network_io_bytes_total", &way("transmit"), grown(carried))
            .counted("host", "system_network_io_bytes_total", &way("receive"), grown(40_000.0))
            .setting("host", "net.tun0.speed_bits_per_second", "10000000000")
    }

    #[test]
    fn bytes_below_what_is_asked_with_answers_queued_are_a_narrow_path() {
        let narrow = made(16.0, 26_000.0);
        assert!((narrow.explains(&DEFINITION).unwrap() - 155.0).abs() < 10.0, "{:?}", narrow.explains(&DEFINITION));
        assert_eq!(narrow.diagnose().culprit, Some(DEFINITION.cause));
    }

    #[test]
    fn bytes_that_follow_the_load_and_answers_that_nothing_holds_are_not() {
        assert_eq!(made(16.0, 40_000.0).explains(&DEFINITION), Some(0.0), "as many bytes as before: a long way");
        assert_eq!(made(0.5, 26_000.0).explains(&DEFINITION), Some(0.0), "fewer bytes, and nothing waits for them");
    }
}
