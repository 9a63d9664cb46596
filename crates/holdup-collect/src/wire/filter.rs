//! The kernel filter for packets of some TCP ports, so that no others are copied: a classic BPF
//! program (linux/filter.h), for packets that start with their IP header. IPv6 packets with
//! extension headers are dropped.

use libc::sock_filter;

const LOAD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
/// Loads a half word at an offset from the length of the IPv4 header.
const LOAD_HALF_BEHIND: u16 = 0x48;
const LENGTH_OF_HEAD: u16 = 0xb1;
const AND: u16 = 0x54;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_SET: u16 = 0x45;
const RETURN: u16 = 0x06;

/// The kernel's metadata of a packet, at a negative offset.
const PACKET_TYPE: u32 = -0x1000_i32 as u32 + 4;
const HARDWARE_TYPE: u32 = -0x1000_i32 as u32 + 28;
const LOOPBACK: u32 = 772;
const OUTGOING: u32 = 4;

/// Largest number of ports: a jump spans at most 255 steps.
pub(super) const PORTS_MAX: usize = 16;

/// The target of a jump.
#[derive(Clone, Copy)]
enum JumpTarget {
    Next,
    Skip(u8),
    Accept,
    Drop,
}

/// The program that accepts up to `snap_bytes` of packets to or from `ports`. On loopback each
/// packet passes twice, and the outgoing copy is dropped.
pub(super) fn program(ports: &[u16], snap_bytes: u32) -> Vec<sock_filter> {
    let ports = ports.get(..PORTS_MAX).unwrap_or(ports);
    let mut steps: Vec<(u16, u32, JumpTarget, JumpTarget)> = Vec::new();
    let mut put = |code, value, yes, no| steps.push((code, value, yes, no));
    use JumpTarget::{Accept, Drop, Next, Skip};
    put(LOAD, HARDWARE_TYPE, Next, Next);
    put(JUMP_EQUAL, LOOPBACK, Next, Skip(2));
    put(LOAD, PACKET_TYPE, Next, Next);
    put(JUMP_EQUAL, OUTGOING, Drop, Next);
    put(LOAD_BYTE, 0, Next, Next);
    put(AND, 0xf0, Next, Next);
    // From here to the instructions for version 6.
    put(JUMP_EQUAL, 0x40, Next, Skip(2 * ports.len() as u8 + 8));
    put(LOAD_BYTE, 9, Next, Next);
    put(JUMP_EQUAL, 6, Next, Drop);
    put(LOAD_HALF, 6, Next, Next);
    put(JUMP_SET, 0x1fff, Drop, Next);
    put(LENGTH_OF_HEAD, 0, Next, Next);
    for offset in [0, 2] {
        put(LOAD_HALF_BEHIND, offset, Next, Next);
        ports.iter().for_each(|port| put(JUMP_EQUAL, u32::from(*port), Accept, Next));
    }
    put(RETURN, 0, Next, Next);
    put(JUMP_EQUAL, 0x60, Next, Drop);
    put(LOAD_BYTE, 6, Next, Next);
    put(JUMP_EQUAL, 6, Next, Drop);
    for offset in [40, 42] {
        put(LOAD_HALF, offset, Next, Next);
        ports.iter().for_each(|port| put(JUMP_EQUAL, u32::from(*port), Accept, Next));
    }
    put(RETURN, 0, Next, Next);
    put(RETURN, snap_bytes, Next, Next);
    let accept = steps.len() - 1;
    let drop = accept - 1;
    let jump = |at: usize, to: JumpTarget| match to {
        Next => 0,
        Skip(count) => count,
        Accept => u8::try_from(accept - at - 1).unwrap_or(u8::MAX),
        Drop => u8::try_from(drop - at - 1).unwrap_or(u8::MAX),
    };
    let step = |(at, (code, k, yes, no)): (usize, (u16, u32, JumpTarget, JumpTarget))| sock_filter {
        code,
        jt: jump(at, yes),
        jf: jump(at, no),
        k,
    };
    steps.into_iter().enumerate().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the program as the kernel does.
    fn run(program: &[sock_filter], packet: &[u8], hardware: u32, kind: u32) -> u32 {
        let (mut a, mut x, mut at) = (0_u32, 0_u32, 0_usize);
        let number = |from: u32, count: usize| {
            let bytes = packet.get(from as usize..from as usize + count)?;
            Some(bytes.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
        };
        loop {
            let step = &program[at];
            at += 1;
            let loaded = match step.code {
                LOAD if step.k == HARDWARE_TYPE => Some(hardware),
                LOAD if step.k == PACKET_TYPE => Some(kind),
                LOAD_BYTE => number(step.k, 1),
                LOAD_HALF => number(step.k, 2),
                LOAD_HALF_BEHIND => number(x + step.k, 2),
                LENGTH_OF_HEAD => {
                    x = (number(step.k, 1).unwrap() & 0xf) * 4;
                    continue;
                }
                AND => Some(a & step.k),
                RETURN => return step.k,
                JUMP_EQUAL | JUMP_SET => {
                    let holds = if step.code == JUMP_SET { a & step.k != 0 } else { a == step.k };
                    at += usize::from(if holds { step.jt } else { step.jf });
                    continue;
                }
                code => panic!("{code:#x}"),
            };
            // The kernel ends with 0 where a packet is too short.
            let Some(loaded) = loaded else { return 0 };
            a = loaded;
        }
    }

    fn packet(v6: bool, protocol: u8, from: u16, to: u16) -> Vec<u8> {
        let mut bytes = vec![0_u8; if v6 { 40 } else { 24 }];
        // A head of version 4 with an option.
        bytes[0] = if v6 { 0x60 } else { 0x46 };
        bytes[if v6 { 6 } else { 9 }] = protocol;
        bytes.extend(from.to_be_bytes());
        bytes.extend(to.to_be_bytes());
        bytes
    }

    #[test]
    fn these_ports_and_no_others() {
        for ports in [&[3306][..], &[3306, 5432], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 5432, 3306]] {
            let program = program(ports, 1000);
            for v6 in [false, true] {
                let taken = |bytes: &[u8]| run(&program, bytes, 1, 0) == 1000;
                assert!(taken(&packet(v6, 6, 40_000, 3306)) && taken(&packet(v6, 6, 3306, 40_000)));
                assert_eq!(taken(&packet(v6, 6, 40_000, 5432)), ports.len() > 1);
                assert!(!taken(&packet(v6, 6, 40_000, 80)), "another port");
                assert!(!taken(&packet(v6, 17, 40_000, 3306)), "another protocol");
                assert!(!taken(&packet(v6, 6, 40_000, 3306)[..25]), "cut off");
            }
            let mut fragment = packet(false, 6, 1, 3306);
            fragment[7] = 9;
            assert_eq!(run(&program, &fragment, 1, 0), 0);
            assert_eq!(run(&program, &[0x50; 60], 1, 0), 0);
        }
    }

    #[test]
    fn one_direction_of_loopback() {
        let (program, bytes) = (program(&[3306], 7), packet(false, 6, 1, 3306));
        let taken = |hardware, kind| run(&program, &bytes, hardware, kind);
        assert_eq!((taken(LOOPBACK, OUTGOING), taken(LOOPBACK, 0), taken(1, OUTGOING)), (0, 7, 7));
    }
}
