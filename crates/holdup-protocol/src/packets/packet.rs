//! Bytes of one packet -> a TCP segment: link layers, VLAN tags, IPv4 and IPv6. It keeps nothing
//! between packets: IP fragments except first ones are not reassembled, tunnels are not opened.
//!
//! `etherparse` 0.20 takes 15 to 20 % longer, including reading the file, and refuses a segment
//! whose TCP options are cut off: 64 bytes of each packet (`tcpdump -s 64`) end in the middle of
//! them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The link layer of a packet, numbered in capture files as in
/// <https://www.tcpdump.org/linktypes.html>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// IPv4 or IPv6 directly (12, 14, 101, 228, 229, and sockets of kind `SOCK_DGRAM`).
    Ip,
    /// Ethernet, with VLAN tags or without (1).
    Ethernet,
    /// Loopback of BSD: the family in four bytes (0, 108).
    Loopback,
    /// Linux "cooked" capture (113).
    Cooked,
    /// Linux "cooked" capture, version 2 (276).
    Cooked2,
}

impl Link {
    /// The link layer of this number; none if it is not supported.
    pub fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 | 108 => Self::Loopback,
            1 => Self::Ethernet,
            12 | 14 | 101 | 228 | 229 => Self::Ip,
            113 => Self::Cooked,
            276 => Self::Cooked2,
            _ => return None,
        })
    }
}

/// One packet as it was captured.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// When, nanoseconds since the Unix epoch.
    pub at: i64,
    /// Its link layer.
    pub link: Link,
    /// Its bytes, as far as they were stored.
    pub bytes: &'a [u8],
    /// Its length on the wire.
    pub length: usize,
}

/// A TCP segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub seq: u32,
    pub ack: Option<u32>,
    pub syn: bool,
    pub fin: bool,
    pub rst: bool,
    pub payload: &'a [u8],
    /// Further bytes of payload that were not stored.
    pub cut: u32,
    /// IPv4's identification, to tell a copy from a retransmission; 0 without one.
    pub id: u16,
}

/// Why a packet is not a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotSegment {
    /// It belongs to another protocol, or is malformed.
    Foreign,
    /// A later fragment of an IP packet.
    Fragment,
    /// It was stored too short for its heads.
    Short,
}

/// Sender, receiver and first number of a segment that carries data or opens a connection; none for
/// others, whose number repeats.
pub fn numbered(packet: &Packet<'_>) -> Option<(SocketAddr, SocketAddr, u32)> {
    let segment = segment(packet).ok()?;
    let is_one = segment.syn || !segment.payload.is_empty() || segment.cut > 0;
    is_one.then_some((segment.from, segment.to, segment.seq))
}

const VLAN_DEPTH_MAX: usize = 4;
const TCP: u8 = 6;

/// The segment in `packet`.
pub(crate) fn segment<'a>(packet: &Packet<'a>) -> Result<Segment<'a>, NotSegment> {
    let bytes = packet.bytes;
    let head = match packet.link {
        Link::Ip => 0,
        Link::Ethernet => ethernet(bytes)?,
        Link::Loopback => 4,
        Link::Cooked => cooked(bytes, 14, 16)?,
        Link::Cooked2 => cooked(bytes, 0, 20)?,
    };
    let ip = bytes.get(head..).ok_or(NotSegment::Short)?;
    let length = packet.length.max(bytes.len()).saturating_sub(head);
    match ip.first().ok_or(NotSegment::Short)? >> 4 {
        4 => v4(ip, length),
        6 => v6(ip, length),
        _ => Err(NotSegment::Foreign),
    }
}

fn ethernet(bytes: &[u8]) -> Result<usize, NotSegment> {
    let mut at = 12;
    for _ in 0..=VLAN_DEPTH_MAX {
        match u16_at(bytes, at)? {
            0x8100 | 0x88a8 | 0x9100 => at += 4,
            0x0800 | 0x86dd => return Ok(at + 2),
            _ => return Err(NotSegment::Foreign),
        }
    }
    Err(NotSegment::Foreign)
}

/// `kind_at` is the place of the protocol's number, `length` the length of the head; a VLAN tag may
/// follow.
fn cooked(bytes: &[u8], kind_at: usize, length: usize) -> Result<usize, NotSegment> {
    match u16_at(bytes, kind_at)? {
        0x0800 | 0x86dd => Ok(length),
        0x8100 | 0x88a8 => Ok(length + 4),
        _ => Err(NotSegment::Foreign),
    }
}

fn v4(ip: &[u8], length: usize) -> Result<Segment<'_>, NotSegment> {
    let head: &[u8; 20] = ip.first_chunk().ok_or(NotSegment::Short)?;
    let [first, _, a, b, id_a, id_b, flags, offset, _, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] = *head;
    if protocol != TCP {
        return Err(NotSegment::Foreign);
    }
    if u16::from_be_bytes([flags & 0x1f, offset]) != 0 {
        return Err(NotSegment::Fragment);
    }
    let head_length = usize::from(first & 0x0f) * 4;
    if head_length < 20 {
        return Err(NotSegment::Foreign);
    }
    // The kernel may leave the length empty in a packet that the network card will split.
    let total = match usize::from(u16::from_be_bytes([a, b])) {
        0 => length,
        total => total,
    };
    let from = IpAddr::V4(Ipv4Addr::new(s0, s1, s2, s3));
    let to = IpAddr::V4(Ipv4Addr::new(d0, d1, d2, d3));
    tcp(ip, head_length, total, from, to, u16::from_be_bytes([id_a, id_b]))
}

fn v6(ip: &[u8], length: usize) -> Result<Segment<'_>, NotSegment> {
    let head: &[u8; 40] = ip.first_chunk().ok_or(NotSegment::Short)?;
    let address = |at: usize| {
        let bytes: Option<[u8; 16]> = head.get(at..at + 16).and_then(|bytes| bytes.try_into().ok());
        bytes.map(|bytes| IpAddr::V6(Ipv6Addr::from(bytes))).ok_or(NotSegment::Short)
    };
    let (from, to) = (address(8)?, address(24)?);
    let total = match usize::from(u16::from_be_bytes([head[4], head[5]])) {
        // A jumbo packet, or one that will be split.
        0 => length,
        payload => payload + 40,
    };
    let (mut next, mut at) = (head[6], 40);
    for _ in 0..8 {
        let byte = |offset: usize| ip.get(at + offset).copied().ok_or(NotSegment::Short);
        match next {
            TCP => return tcp(ip, at, total, from, to, 0),
            // Hop-by-hop options, routing, destination options; RFC 8200, section 4.
            0 | 43 | 60 => (next, at) = (byte(0)?, at + 8 + usize::from(byte(1)?) * 8),
            44 if u16::from_be_bytes([byte(2)?, byte(3)?]) & 0xfff8 != 0 => return Err(NotSegment::Fragment),
            44 => (next, at) = (byte(0)?, at + 8),
            // Authentication, RFC 4302.
            51 => (next, at) = (byte(0)?, at + 8 + usize::from(byte(1)?) * 4),
            _ => return Err(NotSegment::Foreign),
        }
    }
    Err(NotSegment::Foreign)
}

/// `total` is the length of the IP packet according to its head.
fn tcp(ip: &[u8], at: usize, total: usize, from: IpAddr, to: IpAddr, id: u16) -> Result<Segment<'_>, NotSegment> {
    // Bytes after the IP packet are padding of the link.
    let ip = ip.get(..total.min(ip.len())).unwrap_or(ip);
    let head: &[u8; 20] = ip.get(at..).and_then(<[u8]>::first_chunk).ok_or(NotSegment::Short)?;
    let [f0, f1, t0, t1, q0, q1, q2, q3, a0, a1, a2, a3, offset, flags, ..] = *head;
    let head_length = usize::from(offset >> 4) * 4;
    if head_length < 20 {
        return Err(NotSegment::Foreign);
    }
    let begins = at + head_length;
    let length = total.saturating_sub(begins);
    let payload = ip.get(begins..).unwrap_or_default();
    let cut = length.saturating_sub(payload.len());
    Ok(Segment {
        from: SocketAddr::new(from, u16::from_be_bytes([f0, f1])),
        to: SocketAddr::new(to, u16::from_be_bytes([t0, t1])),
        seq: u32::from_be_bytes([q0, q1, q2, q3]),
        ack: (flags & 0x10 != 0).then(|| u32::from_be_bytes([a0, a1, a2, a3])),
        syn: flags & 0x02 != 0,
        fin: flags & 0x01 != 0,
        rst: flags & 0x04 != 0,
        payload,
        cut: u32::try_from(cut).map_err(|_| NotSegment::Foreign)?,
        id,
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, NotSegment> {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map(|two| u16::from_be_bytes(*two)).ok_or(NotSegment::Short)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An IP packet with a TCP segment; addresses end in these bytes.
    pub(crate) fn ip_packet(
        v6: bool,
        from: (u8, u16),
        to: (u8, u16),
        seq: u32,
        ack: u32,
        flags: u8,
        payload: &[u8],
    ) -> Vec<u8> {
        let mut tcp = [from.1.to_be_bytes(), to.1.to_be_bytes()].concat();
        tcp.extend(seq.to_be_bytes());
        tcp.extend(ack.to_be_bytes());
        tcp.extend([0x50, flags, 1, 0, 0, 0, 0, 0]);
        tcp.extend(payload);
        let mut ip = Vec::new();
        if v6 {
            ip.extend([0x60, 0, 0, 0]);
            ip.extend((tcp.len() as u16).to_be_bytes());
            ip.extend([6, 64]);
            ip.extend([&[0; 15][..], &[from.0], &[0; 15], &[to.0]].concat());
        } else {
            ip.extend([0x45, 0]);
            ip.extend((tcp.len() as u16 + 20).to_be_bytes());
            ip.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from.0, 10, 0, 0, to.0]);
        }
        ip.extend(tcp);
        ip
    }

    fn of(link: Link, bytes: &[u8]) -> Result<Segment<'_>, NotSegment> {
        segment(&Packet { at: 0, link, bytes, length: bytes.len() })
    }

    #[test]
    fn every_link() {
        for v6 in [false, true] {
            let ip = ip_packet(v6, (1, 40000), (2, 3306), 7, 9, 0x18, b"hello");
            let kind: &[u8] = if v6 { &[0x86, 0xdd] } else { &[0x08, 0x00] };
            let padding = [0_u8; 6];
            let framed = [
                (Link::Ip, ip.clone()),
                (Link::Ethernet, [&[0; 12][..], kind, &ip, &padding].concat()),
                (Link::Ethernet, [&[0; 12][..], &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2], kind, &ip].concat()),
                (Link::Loopback, [&[2, 0, 0, 0][..], &ip].concat()),
                (Link::Cooked, [&[0; 14][..], kind, &ip].concat()),
                (Link::Cooked2, [kind, &[0; 18][..], &ip].concat()),
            ];
            for (link, bytes) in framed {
                let segment = of(link, &bytes).unwrap();
                assert_eq!(
                    (segment.seq, segment.ack, segment.from.port(), segment.to.port()),
                    (7, Some(9), 40000, 3306)
                );
                assert_eq!((segment.payload, segment.cut), (&b"hello"[..], 0), "{link:?} without its padding");
                assert_eq!(segment.from.is_ipv6(), v6);
                for end in 0..bytes.len() {
                    let _ = of(link, &bytes[..end]);
                }
            }
        }
    }

    #[test]
    fn bytes_not_stored_are_counted() {
        let bytes = ip_packet(false, (1, 1), (2, 2), 0, 0, 0x10, &[7; 100]);
        let segment = segment(&Packet { at: 0, link: Link::Ip, bytes: &bytes[..50], length: bytes.len() }).unwrap();
        assert_eq!((segment.payload.len(), segment.cut), (10, 90));
        // With its options the head is longer than the stored part of the packet.
        let mut bytes = ip_packet(false, (1, 1), (2, 2), 7, 0, 0x10, &[7; 100]);
        bytes[32] = 0x80;
        let segment =
            super::segment(&Packet { at: 0, link: Link::Ip, bytes: &bytes[..50], length: bytes.len() }).unwrap();
        assert_eq!((segment.seq, segment.payload.len(), segment.cut), (7, 0, 88));
    }

    #[test]
    fn fragments_and_strangers() {
        let mut bytes = ip_packet(false, (1, 1), (2, 2), 0, 0, 0x10, b"x");
        bytes[7] = 1;
        assert_eq!(of(Link::Ip, &bytes).unwrap_err(), NotSegment::Fragment);
        (bytes[7], bytes[9]) = (0, 17);
        assert_eq!(of(Link::Ip, &bytes).unwrap_err(), NotSegment::Foreign);
    }
}
