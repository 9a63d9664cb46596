//! Dumps by `netlink(7)`: one request, and an answer of many messages in several parts. The queries
//! of this crate need no privilege.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// Bytes of the header of a request and of a message.
pub(super) const HEADER_BYTES: usize = 16;

/// Room for one part of the answer; the kernel makes parts of at most 32 KiB.
const PART_BYTES: usize = 64 << 10;

/// How long a part of the answer may take, in seconds.
const PATIENCE_S: u8 = 2;

/// Takes the number and the content of each message; none if the message is cut off.
pub(super) type Take<'a> = &'a mut dyn FnMut(u16, &[u8]) -> Option<()>;

/// A socket for queries. It answers for the network namespace in which it was opened, wherever the
/// querying thread is by then.
pub(super) struct Netlink(OwnedFd);

impl Netlink {
    /// Opens one of a protocol in the calling thread's network namespace.
    pub(super) fn open(protocol: i32) -> Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: socket has no preconditions.
        let number = unsafe { libc::socket(libc::AF_NETLINK, kind, protocol) };
        check(number as isize)?;
        // SAFETY: the descriptor is new, and no other code owns it.
        let line = unsafe { OwnedFd::from_raw_fd(number) };
        let patience = libc::timeval { tv_sec: PATIENCE_S.into(), tv_usec: 0 };
        let (value, length) = ((&raw const patience).cast(), size_of::<libc::timeval>() as libc::socklen_t);
        // SAFETY: `value` points to a timeval of that length.
        check(unsafe { libc::setsockopt(number, libc::SOL_SOCKET, libc::SO_RCVTIMEO, value, length) } as isize)?;
        Ok(Self(line))
    }

    /// Asks for everything of `kind` that `request` wants, and hands over each message of the answer.
    pub(super) fn dump(&self, kind: u16, request: &[u8], buffer: &mut Vec<u8>, take: Take<'_>) -> Result<()> {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
        buffer.clear();
        buffer.extend(((HEADER_BYTES + request.len()) as u32).to_ne_bytes());
        buffer.extend([kind, flags].into_iter().flat_map(u16::to_ne_bytes));
        buffer.resize(HEADER_BYTES, 0);
        buffer.extend(request);
        // SAFETY: the bytes are valid for the call to read.
        check(unsafe { libc::send(self.0.as_raw_fd(), buffer.as_ptr().cast(), buffer.len(), 0) })?;
        buffer.resize(PART_BYTES, 0);
        loop {
            // SAFETY: the buffer is valid for the call to fill.
            let length = check(unsafe { libc::recv(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) })?;
            if length == 0 || part(&buffer[..length], take)? {
                return Ok(());
            }
        }
    }
}

fn check(result: isize) -> Result<usize> {
    usize::try_from(result).map_err(|_| Error::last_os_error())
}

/// Parses one part of the answer; returns whether it was the last.
pub(super) fn part(mut bytes: &[u8], take: Take<'_>) -> Result<bool> {
    let cut = || Error::other("netlink: cut off");
    while !bytes.is_empty() {
        let length = u32::from_ne_bytes(array(bytes, 0).ok_or_else(cut)?) as usize;
        let kind = u16::from_ne_bytes(array(bytes, 4).ok_or_else(cut)?);
        let message = bytes.get(HEADER_BYTES..length).ok_or_else(cut)?;
        if i32::from(kind) == libc::NLMSG_DONE {
            return Ok(true);
        }
        if i32::from(kind) == libc::NLMSG_ERROR {
            let number = array(message, 0).map_or(0, i32::from_ne_bytes);
            return Err(Error::from_raw_os_error(number.saturating_neg()));
        }
        take(kind, message).ok_or_else(cut)?;
        // The next message starts at a multiple of four.
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// Numbers and values of the attributes that are complete.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(array(bytes, 0)?));
        // The two highest bits mark nesting and byte order.
        let name = u16::from_ne_bytes(array(bytes, 2)?) & 0x3fff;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((name, value))
    })
}

/// The bytes of a number at `at`.
pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
