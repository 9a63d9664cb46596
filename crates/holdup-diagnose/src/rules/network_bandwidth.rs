//! An interface carries as many bytes per second as it may, and outgoing data waits in front of it.

mod advice;
mod narrow;
mod path;

use holdup_recording::{Labels, metrics};

use super::{Doc, Judge, MATTERS, Occurs, Outcome, Role, Rule, RuleFinding, bytes, bytes_per_second, ms, percent};
use crate::case::Case;
use crate::resources::share;
use crate::strength::{FAIR, NONE, STRONG};
use holdup_signals::client::mean_over;
use holdup_signals::evidence::Evidence;
use holdup_signals::plateau::inner;
use holdup_signals::{Missing, Plateau, View};

pub const RULE: Rule = Rule {
    cause: "network_bandwidth",
    occurs: Occurs::Anywhere,
    doc: Doc {
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
    },
    judge: Judge::Alone(judge),
};

const HOST: &str = "--watch host";

/// Fewer bytes per request than one small packet are not the requests' traffic.
const LEAST_BYTES: f64 = 64.0;

/// Share (0-1) of the speed at which a link is full: headers and gaps take the rest.
const FULL: f64 = 0.9;

/// Share (0-1) of the samples that must have data queued.
const QUEUED_THROUGH: f64 = 0.6;

/// One direction of an interface.
struct InterfaceDirection {
    device: String,
    direction: &'static str,
    level: Plateau,
    /// Its limit in bytes per second, if known.
    limit: Option<(f64, &'static str)>,
    /// Mean bytes in its queue, and the share (0-1) of the samples with any.
    backlog: Option<(f64, f64)>,
}

impl InterfaceDirection {
    /// Milliseconds that a byte stands in the queue: Little's law.
    fn queue_ms(&self) -> f64 {
        self.backlog.map_or(0.0, |(bytes, _)| bytes / self.level.level.max(1.0) * 1e3)
    }

    /// Whether it carries all it may, as far as can be told.
    fn is_full(&self) -> bool {
        match self.limit {
            Some((limit, _)) => self.level.level >= FULL * limit,
            None => self.level.is_flat(),
        }
    }

    fn evidence(&self, view: &View<'_>) -> Result<Evidence, Missing> {
        let labels = [("device", self.device.as_str()), ("direction", self.direction)];
        let counter = view.counter(metrics::host::NETWORK_IO_BYTES.name, &labels, HOST)?;
        let limit = match self.limit {
            Some((limit, what)) => format!("; {what} is {}", bytes_per_second(limit)),
            None => "; its limit is unknown".to_owned(),
        };
        let text = format!(
            "{} {}s {}, within 8 % in {} of {} intervals{limit}",
            self.device,
            self.direction,
            bytes_per_second(self.level.level),
            percent(self.level.at_level_ratio),
            self.level.intervals
        );
        Ok(counter.evidence(bytes_per_second(self.level.level), "as much as has to be sent", text))
    }

    fn queue_evidence(&self, view: &View<'_>) -> Option<Evidence> {
        let (mean, ratio) = self.backlog?;
        let labels = [("device", self.device.as_str())];
        let backlog = view.gauge(metrics::host::NETWORK_QDISC_BACKLOG_BYTES.name, &labels, HOST).ok()?;
        let text = format!(
            "{} were in the queue of {} on average, in {} of the samples: {} for each byte sent",
            bytes(mean),
            self.device,
            percent(ratio),
            ms(self.queue_ms())
        );
        Some(backlog.evidence(bytes(mean), "0", text))
    }
}

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    if let Some(found) = path::judge(case).or_else(|| narrow::judge(case)) {
        return Ok(found);
    }
    let view = case.slow();
    let all = view.counter(metrics::host::NETWORK_IO_BYTES.name, &[], HOST)?;
    let completed = case.completed_in(view.window)?.max(1.0);
    let ways = ways(&view, completed)?;
    let transfer = transfer(case)?;
    let unsent = unacked(&view);
    // The queue in front of it ranks first, then its throughput.
    let rank = |way: &InterfaceDirection| way.queue_ms() + way.level.level / 1e12;
    let Some(fullest) = ways.iter().filter(|w| w.is_full()).max_by(|a, b| rank(a).total_cmp(&rank(b))) else {
        let text = match ways.iter().max_by(|a, b| a.level.level.total_cmp(&b.level.level)) {
            Some(way) => {
                return Ok(Outcome::Cleared(
                    [way.evidence(&view)?].into_iter().chain(way.queue_evidence(&view)).collect(),
                ));
            }
            None => format!(
                "interfaces carried {} per request: the requests' traffic does not use them, or stays within this host",
                bytes(all.delta / completed)
            ),
        };
        return Ok(Outcome::Cleared(vec![all.evidence(
            bytes(all.delta / completed),
            "much, if it were the cause",
            text,
        )]));
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
    if share(case, explains_ms) < MATTERS {
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
    Ok(Outcome::Found(RuleFinding {
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

/// Every direction of every interface that carries the requests.
fn ways(view: &View<'_>, completed: f64) -> Result<Vec<InterfaceDirection>, Missing> {
    const METRIC: &str = metrics::host::NETWORK_IO_BYTES.name;
    let mut ways = Vec::new();
    for device in view.label_values(METRIC, "device") {
        let of_device = [("device", device.as_str())];
        let number =
            |fact: &str| view.setting(&format!("net.{device}.{fact}"), HOST).ok().and_then(|v| v.parse::<f64>().ok());
        let shaper = number("shaper_bytes_per_second").filter(|v| *v > 0.0).map(|v| (v, "its shaper's rate"));
        let speed = number("speed_bits_per_second").filter(|v| *v > 0.0).map(|v| (v / 8.0, "its speed"));
        // Within a host there is no limit except a shaper.
        if device == "lo" && shaper.is_none() {
            continue;
        }
        for direction in ["receive", "transmit"] {
            let labels = [("device", device.as_str()), ("direction", direction)];
            let carried = view.counter(METRIC, &labels, HOST)?;
            if carried.delta < LEAST_BYTES * completed {
                continue;
            }
            let growths = view.growths(|_| true, METRIC, &labels);
            let rates: Vec<f64> = inner(&growths).iter().map(|g| g.rate()).collect();
            let Some(level) = Plateau::from_rates(&rates) else {
                return Err(Missing::new(
                    "at least ten samples of the interfaces while requests were slow",
                    "a longer run, or a shorter --interval",
                ));
            };
            // A queue stands in front of outgoing data.
            let is_sent = direction == "transmit";
            let backlog =
                view.gauge(metrics::host::NETWORK_QDISC_BACKLOG_BYTES.name, &of_device, HOST).ok().filter(|_| is_sent);
            let shaper = shaper.filter(|_| is_sent);
            ways.push(InterfaceDirection {
                device: device.clone(),
                direction,
                level,
                limit: shaper.or(speed),
                backlog: backlog.map(|b| (b.mean, b.positive_ratio)),
            });
        }
    }
    Ok(ways)
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
    let calm = case.degradation.as_ref().and_then(|c| c.calm).and_then(|w| case.requests_in(w).ok());
    let usual = calm
        .and_then(|rows| mean_over(rows, took))
        .or_else(|| holdup_signals::client::distribution(rows.iter().copied(), took).quantile(0.05))
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
        assert!((made.explains(&RULE).unwrap() - 270.0).abs() < 30.0);
        let diagnosis = made.diagnose();
        assert_eq!(diagnosis.culprit.as_deref(), Some("network_bandwidth"));
        // Without a known limit the level and the queue say so; 2.5 MB at 12.5 MB/s are 200 ms.
        assert!((host(0, 2.5e6).explains(&RULE).unwrap() - 200.0).abs() < 10.0);
        let shaped = host(300, 2.5e6).setting("host", "net.eth0.shaper_bytes_per_second", "12500000").setting(
            "host",
            "net.eth0.qdisc",
            "tbf",
        );
        let Ok(Outcome::Found(found)) = shaped.judge(&RULE) else { panic!("not found") };
        assert!(
            found.fixes[1].command.as_deref().is_some_and(|c| c.contains("rate 200000000bit")),
            "{:?}",
            found.fixes
        );
    }

    #[test]
    fn room_an_empty_queue_and_a_first_byte_that_is_late_clear_it() {
        let fast = host(300, 0.0).setting("host", "net.eth0.speed_bits_per_second", "1000000000");
        assert_eq!(fast.explains(&RULE), Some(0.0), "a tenth of its speed");
        assert_eq!(host(300, 0.0).explains(&RULE), Some(0.0), "level, with nothing queued: a steady load");
        assert_eq!(host(1, 1e5).explains(&RULE), Some(0.0), "8 ms of queue");
    }

    #[test]
    fn what_stays_within_the_host_has_no_limit_but_a_shaper() {
        let lo = [("device", "lo"), ("direction", "transmit")];
        let back = [("device", "lo"), ("direction", "receive")];
        let made = SyntheticRecording::new(14)
            .requests(50, 400)
            .counter("host", "system_network_io_bytes_total", &lo, 12.5e6)
            .counter("host", "system_network_io_bytes_total", &back, 12.5e6)
            .gauge("host", "system_network_qdisc_backlog_bytes", &[("device", "lo")], 2.5e6);
        assert_eq!(made.explains(&RULE), Some(0.0));
        let shaped = made.setting("host", "net.lo.shaper_bytes_per_second", "12500000");
        assert!(shaped.explains(&RULE).unwrap() > 150.0);
    }

    #[test]
    fn without_a_fact_it_is_not_judged() {
        let made = host(300, 2.5e6);
        for metric in ["system_network_io_bytes_total", "system_network_qdisc_backlog_bytes"] {
            assert_eq!(made.clone().without(metric).explains(&RULE), None, "{metric}");
        }
        assert_eq!(made.without_column("requests", "first_byte_at").explains(&RULE), None);
    }
}
