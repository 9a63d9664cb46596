//! An interface carries as many bytes per second as it may, and outgoing data waits in front of it.

mod advice;
mod narrow;
mod path;
mod signs;

use holdup_recording::{Labels, metrics};

use super::parts::cloud;
use super::{
    Cause, CauseFinding, Definition, Doc, Edge, Judge, MATTERS, Outcome, Role, Source::Of, Source::With, Trait, bytes,
    ms, percent,
};
use crate::case::Case;
use crate::next_command::NextCommand;
use crate::resources::interfaces::{HOST, InterfaceDirection};
use crate::resources::{is_too_small, share};
use crate::strength::{FAIR, NONE, STRONG};
use holdup_signals::evidence::Evidence;
use holdup_signals::time::requests::mean_over;
use holdup_signals::{Counter, Missing, View};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::OnTheWay],
    follows_from: &[Edge::same_time(&[&[Of(Cause::NetworkLimit)], &[With(Trait::Load)]])],
    signs: Some(signs::find),
    ..Definition::new(Cause::NetworkBandwidth, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "The network's bandwidth is exhausted",
    what: "An interface, a shaper in front of it, or the path behind it carries a limited number of bytes per second in each direction. The excess waits in a queue: the interface's (qdisc), or the sender's sockets.",
    hurts: "Responses trickle: their first byte comes soon and their last one late, large ones most of all. Server and client are idle meanwhile.",
    needs: "The host's interfaces, in bytes per second, with speed and queue if the kernel reports them (--watch host); the client's times of first and last byte, or its sockets' unacknowledged data. Between app and database also the packets on both ends (--watch wire:PORT); or the app's connections that await an answer (--watch server:PORT) and the sockets of the database's machine.",
    predicts: "Bytes per second of one direction stay at one level, at the speed or the shaper's rate if known, while bytes are queued or unacknowledged all the time; the time from first to last byte makes up the excess.",
    clears: "Bytes per second follow the load, or stay well below the known speed, with nothing queued; or the queue, and the time from first to last byte, is a small share of the delay.",
    looks_like: "A steady load is level too, without a queue. A server that produces its response slowly (the first byte is late, or it comes in pieces, with nothing queued). Lost packets (timers expire; network_loss).",
    fix: "Fewer bytes: compress, send less, cache closer to the client; then more bandwidth, or a higher limit of the shaper.",
    prove: "The same load again: bytes per second follow the load, and nothing is queued at the interface.",
    references: "B. Gregg, Systems Performance, 2nd ed., ch. 10; tc(8), tc-tbf(8); Linux: Documentation/networking/statistics.rst, include/uapi/linux/gen_stats.h (gnet_stats_queue).",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::on_machine("sar -n DEV 1 10", 10, "whether an interface stays at its speed");

/// Share (0-1) of the samples that must have data queued.
const QUEUED_THROUGH: f64 = 0.6;

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    if let Some(cleared) = cloud::network(case) {
        return Ok(cleared);
    }
    if let Some(found) = path::judge(case) {
        return Ok(found);
    }
    let narrow = narrow::judge(case);
    match (narrow, by_interfaces(case)) {
        (Ok(Some(found)), _) => Ok(found),
        // Room on the interfaces clears no path behind them.
        (Err(missing), Ok(Outcome::Cleared(_))) => Err(missing),
        (_, outcome) => outcome,
    }
}

fn by_interfaces(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let all = view.counter(metrics::host::NETWORK_IO_BYTES.name, &[], HOST)?;
    let completed = case.completed_in(view.window)?.max(1.0);
    let ways = InterfaceDirection::all(&view, completed)?;
    let transfer = transfer(case)?;
    let unsent = unacked(&view);
    let Some(fullest) = InterfaceDirection::fullest(&ways) else {
        return Ok(Outcome::Cleared(none_full(&view, &ways, &all, completed)?));
    };
    // A request and its response pass once each: a queue delays one of them.
    let explains_ms = fullest.queue_ms().max(transfer.as_ref().map_or(0.0, |t| t.0));
    let mut evidence = vec![fullest.evidence(&view)?];
    evidence.extend(fullest.queue_evidence(&view));
    let (transfer_ms, told) = transfer.map_or((None, None), |(ms, told)| (Some(ms), Some(told)));
    evidence.extend(told);
    let is_queued = fullest.backlog.is_some_and(|(_, ratio)| ratio >= QUEUED_THROUGH)
        || unsent.as_ref().is_some_and(|(ratio, _)| *ratio >= QUEUED_THROUGH);
    let knows_queue = fullest.backlog.is_some() || unsent.is_some();
    evidence.extend(unsent.map(|u| u.1));
    if is_too_small(case, explains_ms)? {
        if transfer_ms.is_none() && !knows_queue {
            return Err(Missing::new(
                "the queue in front of the interfaces (system_network_qdisc_backlog_bytes), or the client's times of first and last byte",
                "--watch host of a newer holdup, on the machine that sends; or generate the load with holdup run",
            ));
        }
        return Ok(Outcome::Cleared(evidence));
    }
    if knows_queue && !is_queued {
        return Ok(Outcome::Cleared(evidence));
    }
    if !knows_queue && fullest.limit.is_none() {
        // A steady load is just as level.
        return Err(Missing::new(
            "the queue in front of the interfaces (system_network_qdisc_backlog_bytes), or unacknowledged data in sockets",
            "--watch host of a newer holdup, on the machine that sends",
        ));
    }
    let at_limit = fullest.limit.is_some();
    let weights = vec![
        if at_limit { STRONG } else { FAIR },
        if is_queued { STRONG } else { NONE },
        if transfer_ms.is_some_and(|ms| share(case, ms) >= MATTERS) { FAIR } else { NONE },
    ];
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes: advice::fixes(&view, fullest, all.delta / completed),
        prove: format!(
            "Run the same scenario again: bytes per second of {} follow the load, and its queue is empty.",
            fullest.device
        ),
        role: Role::Root,
    }))
}

/// Evidence that no interface carries all it may: the one that carries most, or that the requests'
/// traffic uses none.
fn none_full(
    view: &View<'_>,
    ways: &[InterfaceDirection],
    all: &Counter,
    completed: f64,
) -> Result<Vec<Evidence>, Missing> {
    if let Some(way) = ways.iter().max_by(|a, b| a.level.level.total_cmp(&b.level.level)) {
        return Ok([way.evidence(view)?].into_iter().chain(way.queue_evidence(view)).collect());
    }
    let each = bytes(all.delta / completed);
    let text = format!(
        "interfaces carried {each} per request: the requests' traffic does not use them, or stays within this host"
    );
    Ok(vec![all.evidence(each, "much, if it were the cause", text)])
}

/// Excess of the time from first to last byte over the baseline, ms; none if not recorded.
///
/// # Errors
/// If the client's rows lack the column.
fn transfer(case: &Case<'_>) -> Result<Option<(f64, Evidence)>, Missing> {
    let requests = &case.recording.tables.requests;
    if requests.rows.is_empty() {
        return Ok(None);
    }
    requests.with_columns(&["first_byte_at"]).map_err(|what| Missing::new(what, "use holdup run"))?;
    let rows = case.slow_requests()?;
    let took = |r: &holdup_recording::rows::Request| Some((r.done_at - r.first_byte_at?).max(0) as f64 / 1e6);
    let Some(mean) = mean_over(rows.iter().copied(), took) else { return Ok(None) };
    let baseline = case.degradation.as_ref().and_then(|c| c.baseline).and_then(|w| case.requests_in(w).ok());
    let usual = baseline
        .and_then(|rows| mean_over(rows, took))
        .or_else(|| holdup_signals::time::requests::distribution(rows.iter().copied(), took).quantile(0.05))
        .unwrap_or(0.0);
    let each = mean_over(rows.iter().copied(), |r| Some(r.response_bytes as f64)).unwrap_or(0.0);
    let window = case.episode();
    let text = format!(
        "a response of {} took {} from its first to its last byte, and {} on an idle network",
        bytes(each),
        ms(mean),
        ms(usual)
    );
    let evidence = Evidence::new("requests", "first_byte_at", Labels::none(), window, ms(mean), ms(usual), text);
    Ok(Some(((mean - usual).max(0.0), evidence)))
}

/// Share (0-1) of the samples in which sockets had unacknowledged data.
fn unacked(view: &View<'_>) -> Option<(f64, Evidence)> {
    let gauge = view.gauge(metrics::tcp::UNACKED_SEGMENTS.name, &[], HOST).ok()?;
    let text = format!(
        "{:.1} segments on average were queued or in flight, and some in {} of the samples",
        gauge.mean,
        percent(gauge.positive_ratio)
    );
    Some((gauge.positive_ratio, gauge.evidence(format!("{:.1} segments", gauge.mean), "few, now and then", text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    /// 50 requests of 400 ms a second whose bytes trickle for `transfer_ms`; eth0 sends 12.5 MB a second and queues `backlog` bytes.
    fn host(transfer_ms: i64, backlog: f64) -> SyntheticRecording {
        let labels = |direction| [("device", "eth0"), ("direction", direction)];
        SyntheticRecording::new(14)
            .requests(50, 400)
            .each_request(move |n, r| {
                r.response_bytes = 250_000;
                r.first_byte_at = Some(r.done_at - if n % 10 == 0 { 1 } else { transfer_ms } * 1_000_000);
            })
            .counter("host", "system_network_io_bytes_total", &labels("transmit"), 12.5e6)
            .counter("host", "system_network_io_bytes_total", &labels("receive"), 1e5)
            .gauge("host", "system_network_qdisc_backlog_bytes", &[("device", "eth0")], backlog)
    }

    #[test]
    fn a_full_link_with_a_queue_is_named_by_its_speed_or_shaper() {
        let made = host(300, 2.5e6).setting("host", "net.eth0.speed_bits_per_second", "100000000");
        assert!((made.explains(&DEFINITION).unwrap() - 270.0).abs() < 30.0);
        let diagnosis = made.diagnose();
        assert_eq!(diagnosis.culprit, Some(Cause::NetworkBandwidth));
        // Without a known limit the level and the queue say so; 2.5 MB at 12.5 MB/s are 200 ms.
        assert!((host(0, 2.5e6).explains(&DEFINITION).unwrap() - 200.0).abs() < 10.0);
        let shaped = host(300, 2.5e6).setting("host", "net.eth0.shaper_bytes_per_second", "12500000").setting(
            "host",
            "net.eth0.qdisc",
            "tbf",
        );
        let Ok(Outcome::Found(found)) = shaped.judge(&DEFINITION) else { panic!("not found") };
        assert!(
            found.fixes[1].command.as_deref().is_some_and(|c| c.contains("rate 200000000bit")),
            "{:?}",
            found.fixes
        );
    }

    #[test]
    fn room_an_empty_queue_and_a_first_byte_that_is_late_clear_it() {
        let fast = host(300, 0.0).setting("host", "net.eth0.speed_bits_per_second", "1000000000");
        assert_eq!(fast.explains(&DEFINITION), Some(0.0), "a tenth of its speed");
        assert_eq!(host(300, 0.0).explains(&DEFINITION), Some(0.0), "level, with nothing queued: a steady load");
        assert_eq!(host(1, 1e5).explains(&DEFINITION), Some(0.0), "8 ms of queue");
    }

    #[test]
    fn loopback_is_limited_only_by_a_shaper() {
        let lo = [("device", "lo"), ("direction", "transmit")];
        let back = [("device", "lo"), ("direction", "receive")];
        let made = SyntheticRecording::new(14)
            .requests(50, 400)
            .counter("host", "system_network_io_bytes_total", &lo, 12.5e6)
            .counter("host", "system_network_io_bytes_total", &back, 12.5e6)
            .gauge("host", "system_network_qdisc_backlog_bytes", &[("device", "lo")], 2.5e6);
        assert_eq!(made.explains(&DEFINITION), Some(0.0));
        let shaped = made.setting("host", "net.lo.shaper_bytes_per_second", "12500000");
        assert!(shaped.explains(&DEFINITION).unwrap() > 150.0);
    }

    #[test]
    fn without_a_fact_it_is_not_judged() {
        let made = host(300, 2.5e6);
        for metric in ["system_network_io_bytes_total", "system_network_qdisc_backlog_bytes"] {
            assert_eq!(made.clone().without(metric).explains(&DEFINITION), None, "{metric}");
        }
        assert_eq!(made.without_column("requests", "first_byte_at").explains(&DEFINITION), None);
    }
}
