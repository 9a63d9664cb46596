//! The root queueing discipline of each network interface: queued bytes, dropped and delayed
//! packets, and the rate of a token bucket. Read by rtnetlink, like `tc -s qdisc`; this needs no
//! privilege. Classes below the root are not read.

use std::io::Result;

use crate::proc::netlink::{Netlink, array, attributes};

/// `RTM_NEWQDISC` and `RTM_GETQDISC` (linux/rtnetlink.h).
const NEW_QDISC: u16 = 36;
const GET_QDISC: u16 = 38;

/// `TC_H_ROOT` (linux/pkt_sched.h).
const ROOT: u32 = u32::MAX;

/// Attributes (linux/rtnetlink.h, gen_stats.h, pkt_sched.h): kind, options, statistics; within
/// statistics the bytes and the queue; within a token bucket's options its parameters, and its rate
/// if that is large.
const KIND: u16 = 1;
const OPTIONS: u16 = 2;
const STATISTICS: u16 = 7;
const STATISTICS_BYTES: u16 = 1;
const STATISTICS_QUEUE: u16 = 3;
const BUCKET: u16 = 1;
const BUCKET_RATE: u16 = 4;

/// Bytes of `struct tcmsg`.
const MESSAGE_BYTES: usize = 20;

/// The queueing discipline of one interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Qdisc {
    /// The interface's number.
    pub interface: u32,
    /// Its kind, e.g. `fq_codel`, `tbf`.
    pub kind: String,
    /// Bytes sent through it.
    pub sent_bytes: u64,
    /// Bytes queued.
    pub backlog_bytes: u32,
    /// Packets dropped.
    pub dropped: u32,
    /// Packets delayed to keep a rate.
    pub overlimits: u32,
    /// Rate of a token bucket, bytes a second.
    pub rate_bytes_per_second: Option<u64>,
}

/// The root queueing discipline of every interface of this network namespace.
///
/// # Errors
/// If the kernel does not answer, or the answer is cut off.
pub(crate) fn roots(buffer: &mut Vec<u8>) -> Result<Vec<Qdisc>> {
    let mut found = Vec::new();
    Netlink::open(libc::NETLINK_ROUTE)?.dump(GET_QDISC, &[0; MESSAGE_BYTES], buffer, &mut |kind, message| {
        if kind == NEW_QDISC {
            found.extend(qdisc(message)?);
        }
        Some(())
    })?;
    Ok(found)
}

/// Name of an interface by its number.
pub(crate) fn name(interface: u32) -> Option<String> {
    let mut name = [0_u8; libc::IF_NAMESIZE];
    // SAFETY: the buffer has the size that the call requires.
    let found = unsafe { libc::if_indextoname(interface, name.as_mut_ptr().cast()) };
    let text = name.split(|byte| *byte == 0).next()?;
    (!found.is_null()).then(|| String::from_utf8_lossy(text).into_owned())
}

/// One message: `struct tcmsg` (family, interface, handle, parent, information), then attributes. A
/// truncated message yields an outer none, a discipline other than the root an inner none.
fn qdisc(message: &[u8]) -> Option<Option<Qdisc>> {
    let interface = u32::from_ne_bytes(array(message, 4)?);
    if u32::from_ne_bytes(array(message, 12)?) != ROOT {
        return Some(None);
    }
    let mut qdisc = Qdisc { interface, ..Qdisc::default() };
    for (name, value) in attributes(message.get(MESSAGE_BYTES..)?) {
        match name {
            KIND => qdisc.kind = String::from_utf8_lossy(value.split(|b| *b == 0).next()?).into_owned(),
            OPTIONS => qdisc.rate_bytes_per_second = rate(value),
            STATISTICS => {
                for (name, value) in attributes(value) {
                    let number = |at| array(value, at).map(u32::from_ne_bytes);
                    match name {
                        STATISTICS_BYTES => qdisc.sent_bytes = u64::from_ne_bytes(array(value, 0)?),
                        // Packets queued, bytes queued, dropped, requeued, over the limit.
                        STATISTICS_QUEUE => {
                            (qdisc.backlog_bytes, qdisc.dropped, qdisc.overlimits) =
                                (number(4)?, number(8)?, number(16)?);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    // Other kinds use the same attribute numbers for other options.
    if qdisc.kind != "tbf" {
        qdisc.rate_bytes_per_second = None;
    }
    Some(Some(qdisc))
}

/// The rate in a token bucket's options.
fn rate(options: &[u8]) -> Option<u64> {
    let of = |wanted| attributes(options).find(|(name, _)| *name == wanted).map(|(_, value)| value);
    let large = of(BUCKET_RATE).and_then(|value| array(value, 0)).map(u64::from_ne_bytes);
    // `struct tc_ratespec` has its rate last, after eight other bytes.
    large.or_else(|| of(BUCKET).and_then(|value| array(value, 8)).map(|rate| u64::from(u32::from_ne_bytes(rate))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::netlink::{HEADER_BYTES, part};

    fn attribute(name: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = (4 + value.len() as u16).to_ne_bytes().to_vec();
        bytes.extend(name.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message(kind: &[u8], parent: u32) -> Vec<u8> {
        let words = |words: &[u32]| words.iter().flat_map(|w| w.to_ne_bytes()).collect::<Vec<u8>>();
        let mut rate = vec![0; 8];
        rate.extend(words(&[12_500_000]));
        let statistics = [
            attribute(STATISTICS_BYTES, &[7_u64.to_ne_bytes().as_slice(), &words(&[1, 0])].concat()),
            attribute(STATISTICS_QUEUE, &words(&[2, 3_000, 4, 5, 6])),
        ];
        let attributes = [
            attribute(KIND, kind),
            attribute(OPTIONS, &attribute(BUCKET, &rate)),
            attribute(STATISTICS, &statistics.concat()),
        ];
        let body = [words(&[0, 9, 1, parent, 2]), attributes.concat()].concat();
        let mut bytes = words(&[(HEADER_BYTES + body.len()) as u32]);
        bytes.extend(NEW_QDISC.to_ne_bytes());
        bytes.resize(HEADER_BYTES, 0);
        bytes.extend(body);
        bytes
    }

    #[test]
    fn a_token_bucket_at_the_root_is_read() {
        let mut found = Vec::new();
        let all = [message(b"tbf\0", ROOT), message(b"fq_codel\0", ROOT), message(b"tbf\0", 1)].concat();
        let mut take = |_, message: &[u8]| qdisc(message).map(|qdisc| found.extend(qdisc));
        assert!(!part(&all, &mut take).unwrap());
        let bucket = Qdisc {
            interface: 9,
            kind: "tbf".into(),
            sent_bytes: 7,
            backlog_bytes: 3_000,
            dropped: 4,
            overlimits: 6,
            rate_bytes_per_second: Some(12_500_000),
        };
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], bucket);
        assert_eq!((found[1].kind.as_str(), found[1].rate_bytes_per_second), ("fq_codel", None));
    }

    #[test]
    fn a_message_cut_off_anywhere_never_panics() {
        let whole = message(b"tbf\0", ROOT);
        for end in 1..whole.len() {
            assert!(part(&whole[..end], &mut |_, message| qdisc(message).map(|_| ())).is_err(), "cut at {end}");
        }
        let short = [4_u16.to_ne_bytes(), [0; 2]].concat();
        assert_eq!(attributes(&short).count(), 1);
        assert_eq!(attributes(&[0; 3]).count(), 0);
        assert_eq!(attributes(&[0; 8]).count(), 0, "an attribute without a length ends them");
    }

    #[test]
    fn this_machine_answers() {
        // A sandbox may say no; what there is has a name.
        for qdisc in roots(&mut Vec::new()).unwrap_or_default() {
            assert!(!qdisc.kind.is_empty() && name(qdisc.interface).is_some(), "{qdisc:?}");
        }
        assert_eq!(name(0), None);
    }
}
