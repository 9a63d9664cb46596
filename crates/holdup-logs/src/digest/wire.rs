//! Captured packets (pcap, pcapng) of MySQL, MariaDB, PostgreSQL and MongoDB: the requests on the
//! wire, including prepared statements; of MongoDB's, their shapes. Encrypted and compressed requests are counted without their text.

use holdup_protocol::packets::file::{FileError, Reader};
use holdup_protocol::packets::{Capture, Detail, Options, Protocol};
use holdup_sql::Dialect;

use crate::digest::attribute::{ERRORS, QUERY_TIME, ROWS_SENT};
use crate::digest::block::Block;
use crate::digest::event::{Event, Kind, Position};
use crate::digest::problem::Problem;
use crate::digest::tally::Tally;

/// Most bytes of a statement that the capture keeps.
const KEPT: usize = 64 << 10;

/// A reader of capture files.
pub struct Wire {
    file: Reader,
    capture: Capture,
    number: u32,
    packets: u64,
    is_broken: bool,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.write_str("Wire")
    }
}

impl Wire {
    /// A reader that also reads these ports. A connection whose beginning was captured is
    /// recognised on any port.
    pub fn new(ports: &[(u16, Protocol)]) -> Self {
        let options = Options { ports: Protocol::usual_ports(ports), guess: true, in_full: true, ..Options::default() };
        Self { file: Reader::new(), capture: Capture::new(options), number: 0, packets: 0, is_broken: false }
    }

    /// Counts the next bytes of the file.
    pub fn read(&mut self, block: &Block, tally: &mut Tally) {
        if block.offset == 0 && block.file != self.number {
            // The next file of a ring: connections continue.
            self.end_file(tally);
            (self.file, self.number, self.packets, self.is_broken) = (Reader::new(), block.file, 0, false);
        }
        let Self { file, capture, number, packets, .. } = self;
        let fed = file.feed(&block.data, &mut |packet| {
            *packets += 1;
            capture.packet(packet, &mut |_| ());
            for detail in capture.details() {
                count(&detail, Position { file: *number, offset: *packets }, tally);
            }
        });
        if let Err(error) = fed
            && !std::mem::replace(&mut self.is_broken, true)
        {
            let problem = if matches!(error, FileError::Link(_)) { Problem::LinkLayer } else { Problem::CutOff };
            tally.problems.add(problem, block.position(0));
        }
    }

    fn end_file(&mut self, tally: &mut Tally) {
        if !self.is_broken && self.file.finish().is_err() {
            tally.problems.add(Problem::CutOff, Position { file: self.number, offset: self.packets });
        }
        if self.file.dropped() > 0 {
            tally.server.count_more("packets_dropped_by_the_capture", self.file.dropped());
        }
    }

    /// Ends the capture: unanswered requests stay so.
    pub fn finish(&mut self, tally: &mut Tally) {
        self.end_file(tally);
        let now = self.capture.last_at().unwrap_or(0);
        self.capture.finish(now, &mut |_| ());
        let place = Position { file: self.number, offset: self.packets };
        for detail in self.capture.details() {
            count(&detail, place, tally);
        }
        let totals = self.capture.totals();
        for (name, value) in [
            ("packets", totals.packets),
            ("packets_of_others", totals.foreign),
            ("connections_captured", totals.connections),
            ("packets_missing", totals.gaps),
            ("connections_given_up", totals.given_up),
            ("exchanges_of_holdup", totals.own_exchanges),
        ] {
            if value > 0 {
                tally.server.count_more(name, value);
            }
        }
    }
}

/// Counts one exchange.
fn count(detail: &Detail, position: Position, tally: &mut Tally) {
    if detail.kind == "opaque" {
        // A request without a known text.
        return tally.server.count("exchanges_not_readable");
    }
    tally.speak(match detail.protocol {
        // The packets do not show MySQL's `sql_mode`: the caller gives it.
        Some(Protocol::Mysql) if tally.dialect == Dialect::PostgreSql => Dialect::MySql,
        Some(Protocol::Mysql | Protocol::Mongodb) => tally.dialect,
        _ => Dialect::PostgreSql,
    });
    let command = match (detail.kind, detail.command) {
        ("query" | "prepare" | "execute", _) => "",
        // PostgreSQL's login.
        ("login", "") => "Connect",
        (_, "") => return,
        (_, command) => command,
    };
    let sql = match (&detail.sql, command) {
        (_, command) if !command.is_empty() => command.as_bytes(),
        (Some(sql), _) => sql,
        // Prepared before the capture began, so its text is unknown.
        (None, _) => return tally.server.count("executions_of_unknown_statements"),
    };
    if detail.outcome == "lost" {
        tally.problems.add(Problem::PacketsMissing, position);
    }
    if detail.outcome == "unfinished" || detail.outcome == "closed" {
        tally.problems.add(Problem::Unanswered, position);
    }
    let (measures, flags) = figures(detail, tally);
    let host = detail.client.ip().to_string();
    tally.add(&Event {
        kind: match detail.kind {
            _ if !command.is_empty() => Kind::Command,
            "prepare" => Kind::Parse,
            _ if detail.protocol == Some(Protocol::Mongodb) => Kind::Shaped,
            _ => Kind::Statement,
        },
        sql,
        position,
        at_us: Some(detail.request_at / 1_000),
        ended_us: Some(detail.done_at / 1_000),
        session: session(detail),
        parameters: &detail.parameters,
        dialect: Some(tally.dialect),
        user: detail.user(),
        host: host.as_bytes(),
        database: detail.database(),
        measures: &measures,
        flags: &flags,
        cut: command.is_empty() && sql.len() + 16 >= KEPT,
        ..Event::default()
    });
}

/// Measures and flags by the numbers of their attributes.
type Figures = (Vec<(u16, u64)>, Vec<(u16, bool)>);

/// What an exchange took and gave, and what held for it, by the numbers of attributes.
fn figures(detail: &Detail, tally: &mut Tally) -> Figures {
    let took_us = u64::try_from((detail.done_at - detail.request_end_at) / 1_000).unwrap_or(0);
    let affected = tally.attributes.number(b"Rows_affected");
    let warnings = tally.attributes.number(b"Warning_count");
    let is_timed = detail.outcome == "ok" || detail.outcome == "error";
    let mut measures = Vec::with_capacity(5);
    if is_timed {
        measures.push((QUERY_TIME, took_us));
        measures.push((ROWS_SENT, detail.rows()));
        measures.extend(affected.map(|number| (number, detail.affected())));
        measures.extend(warnings.map(|number| (number, detail.warnings())));
    }
    measures.push((ERRORS, u64::from(detail.error.is_some())));
    let mut flags = Vec::new();
    if detail.protocol == Some(Protocol::Mysql) && is_timed {
        let names: [&[u8]; 2] = [b"No_index_used", b"No_good_index_used"];
        for (name, is_so) in names.into_iter().zip(detail.without_index()) {
            flags.extend(tally.attributes.number(name).map(|number| (number, is_so)));
        }
    }
    (measures, flags)
}

/// The server's number of the connection, else a made-up one. No two connections that are open at
/// once share a number.
fn session(detail: &Detail) -> u64 {
    let known = detail.session_id.and_then(|id| u64::try_from(id).ok()).filter(|id| *id > 0);
    known.unwrap_or_else(|| {
        let mut bytes = match detail.client.ip() {
            std::net::IpAddr::V4(address) => address.octets().to_vec(),
            std::net::IpAddr::V6(address) => address.octets().to_vec(),
        };
        bytes.extend(detail.client.port().to_be_bytes());
        bytes.extend(detail.server.port().to_be_bytes());
        let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        // Above all numbers that servers assign.
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, hash) | 1 << 63
    })
}
