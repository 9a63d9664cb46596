//! `--watch otlp`: receives what apps send in OpenTelemetry's protocol. holdup connects to nothing:
//! the app, or a collector on the way, is configured to send to this address. Rows wait in the
//! receiver until the next sample. Spans are not assigned to requests here.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use holdup_otlp::{Bounds, Receiver, RefusedBodies};
use holdup_recording::{Batch, Coverage, metrics};

use crate::coverage::complete;
use crate::options::Options;
use crate::reading::tell;
use crate::{Collector, ProbeError, ReadError};

/// The default ports of OTLP clients, for gRPC and HTTP. Here each accepts both.
const PORTS: [u16; 2] = [4317, 4318];

/// The option that permits an address other than loopback.
const ALLOW_REMOTE: &str = "allow_remote=yes";

/// How long to wait, after the run has ended, for the exporters' last batches.
const LAST_BATCHES: Duration = Duration::from_secs(2);

/// A receiver as a source.
pub struct Otlp {
    source: String,
    addresses: Vec<SocketAddr>,
    receiver: Option<Receiver>,
    settings_read: u32,
    taken: f64,
    lost: RefusedBodies,
}

/// Makes the collector for `otlp` or `otlp:ADDRESS`.
pub(crate) fn make(rest: &str, _options: &Options) -> Result<Box<dyn Collector>, String> {
    Ok(Box::new(Otlp::new(rest)?))
}

impl Otlp {
    fn new(rest: &str) -> Result<Self, String> {
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let addresses = match place {
            "" => PORTS.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port))).to_vec(),
            given => match given.to_socket_addrs().map(Vec::from_iter) {
                Ok(found) if given.parse::<SocketAddr>().is_ok() => found,
                // For a name with addresses of both IP versions one is enough: clients try all.
                Ok(mut found) if !found.is_empty() => {
                    found.sort_by_key(|address| (!address.ip().is_loopback(), address.is_ipv6()));
                    found.truncate(1);
                    found
                }
                _ => return Err("expected an address and a port, e.g. otlp:127.0.0.1:4318".to_owned()),
            },
        };
        if !matches!(query, "" | ALLOW_REMOTE) {
            return Err(format!("the only option is ?{ALLOW_REMOTE}"));
        }
        if query.is_empty() && addresses.iter().any(|address| !address.ip().is_loopback()) {
            return Err(format!(
                "any host that reaches this address could fill the recording; to allow it, write 'otlp:{place}?{ALLOW_REMOTE}'"
            ));
        }
        let source = if place.is_empty() { "otlp".to_owned() } else { format!("otlp:{place}") };
        Ok(Self { source, addresses, receiver: None, settings_read: 0, taken: 0.0, lost: RefusedBodies::default() })
    }

    /// Moves the received rows into `batch`, and counts them.
    fn drain(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let Some(receiver) = &self.receiver else { return Ok(()) };
        let lost = receiver.refused_bodies();
        let drained = receiver.drain();
        let own = [metrics::otlp::SPANS.name, metrics::otlp::DATA_POINTS.name];
        let counters = drained.samples.iter().filter(|sample| own.contains(&sample.metric.as_str()));
        self.taken = counters.map(|sample| sample.value).sum();
        batch.append(drained);
        let new = lost.bodies - std::mem::replace(&mut self.lost, lost).bodies;
        if new == 0 {
            return Ok(());
        }
        Err(ReadError(describe_refusals(RefusedBodies { bodies: new, ..lost })))
    }

    /// The environment that makes an app send here, and often enough for a short run.
    fn endpoint(&self) -> String {
        let address = self.addresses.last().map(ToString::to_string).unwrap_or_default();
        format!(
            "OTEL_EXPORTER_OTLP_ENDPOINT=http://{address} OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf \
             OTEL_BSP_SCHEDULE_DELAY=500 OTEL_METRIC_EXPORT_INTERVAL=1000"
        )
    }

    /// Reports that no data was accepted during the run, and likely reasons.
    fn nothing(&self) -> String {
        if self.lost.bodies > 0 {
            return format!("no data was accepted: {}", describe_refusals(self.lost));
        }
        format!(
            "no data arrived; start the app with {} (by default exporters send spans every 5 s, metrics every 60 s)",
            self.endpoint()
        )
    }
}

/// The refused bodies, in words.
fn describe_refusals(lost: RefusedBodies) -> String {
    let why = lost.why.map(|why| format!(" with {}: {why}", why.http_status())).unwrap_or_default();
    match lost.bodies {
        1 => format!("1 body was refused{why}"),
        bodies => format!("{bodies} bodies were refused, the last{why}"),
    }
}

impl Collector for Otlp {
    fn source(&self) -> String {
        self.source.clone()
    }

    fn probe(&mut self) -> Result<Vec<Coverage>, ProbeError> {
        // A second receiver would find the ports taken.
        self.receiver = None;
        let receiver =
            Receiver::start(&self.source, &self.addresses, Bounds::default()).map_err(|(address, error)| {
                let why = format!(
                    "cannot listen on {address}: {error}; if another collector listens there, use another port, \
                 e.g. --watch otlp:127.0.0.1:14318, and send there: OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:14318"
                );
                ProbeError::unreachable(&self.source, why)
            })?;
        self.addresses = receiver.addresses().to_vec();
        self.receiver = Some(receiver);
        Ok(vec![complete(&self.source)])
    }

    fn settings(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        let addresses: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        tell(batch, &self.source, [("listen", addresses.join(" "))]);
        self.settings_read += 1;
        if self.settings_read < 2 {
            return Ok(());
        }
        std::thread::sleep(LAST_BATCHES);
        let drained = self.drain(batch);
        if self.taken == 0.0 {
            return Err(ReadError(self.nothing()));
        }
        drained
    }

    fn sample(&mut self, batch: &mut Batch) -> Result<(), ReadError> {
        self.drain(batch)
    }

    fn has_panicked(&mut self) -> bool {
        self.receiver.as_ref().is_some_and(Receiver::has_panicked)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use holdup_recording::CoverageState;

    use super::*;

    fn probed(address: &str) -> Otlp {
        let mut otlp = Otlp::new(address).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(otlp.probe().expect("a free port")[0].state, CoverageState::Complete);
        otlp
    }

    fn post(otlp: &Otlp, body: &str) -> String {
        let mut stream = TcpStream::connect(otlp.addresses[0]).expect("it listens");
        let head = "POST /v1/traces HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json";
        write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    #[test]
    fn sent_spans_are_in_the_next_sample() {
        let mut otlp = probed("127.0.0.1:0");
        let body = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5bd66ef5095369c7b0d1f8f4bd33716a","spanId":"c532cb4098ac3dd2",
            "kind":2,"startTimeUnixNano":"5","endTimeUnixNano":"9"}]}]}]}"#;
        assert!(post(&otlp, body).starts_with("HTTP/1.1 200"));
        let mut batch = Batch::default();
        otlp.sample(&mut batch).expect("no gap");
        assert_eq!((batch.spans.len(), batch.spans[0].resource.as_str()), (1, "request"));
        assert!(batch.spans[0].source == "otlp:127.0.0.1:0" && batch.samples.iter().all(|s| s.source == otlp.source()));
        assert!(batch.samples.iter().any(|sample| sample.metric == "otlp_refused_spans_total"));
    }

    #[test]
    fn that_nothing_was_sent_is_said_at_the_end() {
        let mut otlp = probed("127.0.0.1:0");
        let mut batch = Batch::default();
        assert!(otlp.settings(&mut batch).is_ok());
        let error = otlp.settings(&mut batch).expect_err("a gap").to_string();
        assert!(error.contains("no data arrived"), "{error}");
        assert!(error.contains("OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:"), "{error}");
        assert!(error.contains("OTEL_BSP_SCHEDULE_DELAY="), "{error}");
        assert_eq!(batch.settings.len(), 2);
    }

    #[test]
    fn bodies_that_are_refused_are_a_gap_and_are_said_at_the_end() {
        let mut otlp = probed("127.0.0.1:0");
        let mut batch = Batch::default();
        assert!(post(&otlp, "{").starts_with("HTTP/1.1 400"));
        let gap = otlp.sample(&mut batch).expect_err("a gap").to_string();
        assert!(gap.starts_with("1 body was refused with 400: malformed"), "{gap}");
        assert!(otlp.sample(&mut batch).is_ok(), "it is said once");
        assert!(post(&otlp, "[").starts_with("HTTP/1.1 400"));
        assert!(otlp.settings(&mut batch).is_ok());
        let error = otlp.settings(&mut batch).expect_err("a gap").to_string();
        assert!(error.contains("no data was accepted: 2 bodies were refused, the last with 400"), "{error}");
    }

    #[test]
    fn two_of_them_are_two_sources() {
        let (one, other) = (Otlp::new("").ok(), Otlp::new("localhost:0?allow_remote=yes").ok());
        let sources = [one, other].map(|otlp| otlp.map(|otlp| otlp.source()));
        assert_eq!(sources, [Some("otlp".to_owned()), Some("otlp:localhost:0".to_owned())]);
    }

    #[test]
    fn a_port_that_is_taken_is_an_error_with_a_way_out() {
        let first = probed("127.0.0.1:0");
        let mut second = Otlp::new(&first.addresses[0].to_string()).unwrap_or_else(|error| panic!("{error}"));
        let error = second.probe().expect_err("it is taken").to_string();
        assert!(error.contains("cannot listen on 127.0.0.1:") && error.contains("--watch otlp:"), "{error}");
    }

    #[test]
    fn addresses() {
        let ports = |address: &str| {
            Otlp::new(address).map(|otlp| otlp.addresses.iter().map(SocketAddr::port).collect::<Vec<_>>())
        };
        assert_eq!(ports("").ok(), Some(vec![4317, 4318]));
        assert_eq!(ports("[::1]:9").ok(), Some(vec![9]));
        assert!(ports("0.0.0.0:4318?allow_remote=yes").is_ok());
        assert_eq!(ports("localhost:4318").ok(), Some(vec![4318]));
        assert!(Otlp::new("localhost:4318").is_ok_and(|otlp| otlp.addresses[0].ip().is_loopback()));
        for bad in ["4318", "localhost", ":4318", "0.0.0.0:4318", "0.0.0.0:4318?allow_remote=no", "?x"] {
            assert!(Otlp::new(bad).is_err(), "{bad}");
        }
    }
}
