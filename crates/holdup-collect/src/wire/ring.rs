//! A kernel socket that copies packets into shared memory: `AF_PACKET` with a ring of blocks,
//! version 3 (packet(7); Documentation/networking/packet_mmap.rst). It is bounded: packets that
//! arrive while all blocks are full are dropped, and counted. Timestamps are the kernel's, from
//! when the packet passed.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::ptr;
use std::sync::atomic::{Ordering, fence};

use holdup_protocol::packets::packet::{Link, Packet};

use super::filter::program;

/// Size and number of blocks: 12 MiB in total, half a second of 200 Mbit/s.
const BLOCK_BYTES: usize = 1 << 20;
const BLOCKS: usize = 12;
/// A partly filled block is handed over after this many milliseconds.
pub(super) const RETIRE_MS: u32 = 50;
/// Bytes stored of a packet: most statements whole; of a large result only the length matters.
pub(super) const SNAP_BYTES: u32 = 16 << 10;

/// The ring.
pub(super) struct Ring {
    socket: OwnedFd,
    memory: *mut u8,
    next: usize,
}

// SAFETY: only this value owns the memory, which is unmapped when it is dropped.
unsafe impl Send for Ring {}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.memory.cast(), BLOCK_BYTES * BLOCKS) };
    }
}

impl Ring {
    /// Starts capturing packets to and from `ports`.
    ///
    /// # Errors
    /// If the kernel refuses (`EPERM` without `CAP_NET_RAW`).
    pub fn open(ports: &[u16]) -> io::Result<Self> {
        // SAFETY: plain numbers; with protocol 0 nothing is received before it is bound.
        let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was just opened, and no other code owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        set(
            &socket,
            libc::SOL_PACKET,
            libc::PACKET_VERSION as libc::c_int,
            &(libc::tpacket_versions::TPACKET_V3 as libc::c_int),
        )?;
        let mut steps = program(ports, SNAP_BYTES);
        let filter = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
        set(&socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter)?;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: 2048,
            tp_frame_nr: (BLOCK_BYTES / 2048 * BLOCKS) as u32,
            tp_retire_blk_tov: RETIRE_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING as libc::c_int, &request)?;
        // SAFETY: a new mapping of the socket's ring, with the configured length.
        let memory = unsafe {
            libc::mmap(
                ptr::null_mut(),
                BLOCK_BYTES * BLOCKS,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let ring = Self { socket, memory: memory.cast(), next: 0 };
        // SAFETY: an all-zero address is valid and has no family.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: `address` is a complete address of this family and outlives the call.
        let bound = unsafe {
            libc::bind(ring.socket.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as u32)
        };
        if bound != 0 { Err(io::Error::last_os_error()) } else { Ok(ring) }
    }

    /// Waits at most `ms` milliseconds for packets.
    pub fn wait(&self, ms: libc::c_int) {
        let mut wanted = libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which outlives the call. The ring is read whatever the result.
        unsafe { libc::poll(&raw mut wanted, 1, ms) };
    }

    /// Hands all available packets to `take`, oldest first.
    pub fn drain(&mut self, take: &mut dyn FnMut(&Packet<'_>)) {
        for _ in 0..BLOCKS {
            // SAFETY: `next` is below BLOCKS, so the block lies in the page-aligned mapping.
            let block = unsafe { self.memory.add(self.next * BLOCK_BYTES) };
            let head = block.cast::<libc::tpacket_block_desc>();
            // SAFETY: a block starts with its descriptor; the kernel may write to it meanwhile,
            // hence volatile.
            let status = unsafe { &raw mut (*head).hdr.bh1.block_status };
            // SAFETY: as above.
            if unsafe { status.read_volatile() } & libc::TP_STATUS_USER == 0 {
                return;
            }
            fence(Ordering::Acquire);
            // SAFETY: the kernel has handed the block over, and leaves it alone until it is
            // returned.
            let bytes = unsafe { std::slice::from_raw_parts(block, BLOCK_BYTES) };
            // SAFETY: as above.
            let (count, first) = unsafe { ((*head).hdr.bh1.num_pkts, (*head).hdr.bh1.offset_to_first_pkt) };
            packets(bytes, first as usize, count, take);
            fence(Ordering::Release);
            // SAFETY: as above; nothing refers to the block any more.
            unsafe { status.write_volatile(libc::TP_STATUS_KERNEL) };
            self.next = (self.next + 1) % BLOCKS;
        }
    }

    /// Packets dropped since the last call.
    pub fn dropped(&self) -> u64 {
        let mut seen = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        let mut length = size_of::<libc::tpacket_stats_v3>() as u32;
        // SAFETY: `seen` has the given length, and both outlive the call.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS as libc::c_int,
                (&raw mut seen).cast(),
                &raw mut length,
            )
        };
        if result == 0 { u64::from(seen.tp_drops) } else { 0 }
    }
}

/// Hands over the packets of one block, stopping at an offset outside of it.
fn packets(block: &[u8], mut at: usize, count: u32, take: &mut dyn FnMut(&Packet<'_>)) {
    for _ in 0..count {
        let Some(head) = block.get(at..at.saturating_add(size_of::<libc::tpacket3_hdr>())) else { return };
        // SAFETY: the slice has the header's length, and the header is plain numbers; it need not
        // be aligned.
        let head: libc::tpacket3_hdr = unsafe { ptr::read_unaligned(head.as_ptr().cast()) };
        let begins = at + usize::from(head.tp_net);
        let Some(bytes) = block.get(begins..begins.saturating_add(head.tp_snaplen as usize)) else { return };
        let packet = Packet {
            at: i64::from(head.tp_sec) * 1_000_000_000 + i64::from(head.tp_nsec),
            link: Link::Ip,
            bytes,
            length: head.tp_len as usize,
        };
        take(&packet);
        if head.tp_next_offset == 0 {
            return;
        }
        at += head.tp_next_offset as usize;
    }
}

fn set<T>(socket: &OwnedFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: `value` has this option's type and length, and outlives the call.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, ptr::from_ref(value).cast(), size_of::<T>() as u32)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
