//! The sockets of the responder: listening ones that share a port, and reading with the kernel's receive time.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use anyhow::{Context as _, Result};

/// Connections that may wait to be accepted; the kernel cuts it to `net.core.somaxconn`.
const BACKLOG: i32 = 16_384;

/// Room for one control message with a timestamp.
const CONTROL_BYTES: usize = 64;

/// Listens on 127.0.0.1 on a port that others of this process listen on too. With `stamped`, sockets accepted from it
/// have the kernel's receive time.
pub fn listen(port: u16, stamped: bool) -> Result<OwnedFd> {
    let open = || -> io::Result<OwnedFd> {
        // SAFETY: plain system calls; the new descriptor is owned by `socket` at once.
        let socket = unsafe {
            let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
            let fd = check(libc::socket(libc::AF_INET, kind, 0))?;
            OwnedFd::from_raw_fd(fd)
        };
        switch_on(&socket, libc::SOL_SOCKET, libc::SO_REUSEADDR)?;
        switch_on(&socket, libc::SOL_SOCKET, libc::SO_REUSEPORT)?;
        switch_on(&socket, libc::IPPROTO_TCP, libc::TCP_NODELAY)?;
        if stamped {
            switch_on(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS)?;
        }
        // SAFETY: an all-zero sockaddr_in is valid, and its size is passed with it.
        unsafe {
            let mut address: libc::sockaddr_in = mem::zeroed();
            address.sin_family = libc::AF_INET as libc::sa_family_t;
            address.sin_port = port.to_be();
            address.sin_addr.s_addr = u32::from_be_bytes([127, 0, 0, 1]).to_be();
            let size = mem::size_of::<libc::sockaddr_in>() as libc::socklen_t;
            check(libc::bind(socket.as_raw_fd(), (&raw const address).cast(), size))?;
            check(libc::listen(socket.as_raw_fd(), BACKLOG))?;
        }
        Ok(socket)
    };
    open().with_context(|| format!("failed to listen on 127.0.0.1:{port}"))
}

/// The port it listens on.
pub fn port(socket: &OwnedFd) -> Result<u16> {
    // SAFETY: the kernel writes at most `size` bytes of an address, which all-zero bytes are too.
    let address = unsafe {
        let mut address: libc::sockaddr_in = mem::zeroed();
        let mut size = mem::size_of::<libc::sockaddr_in>() as libc::socklen_t;
        check(libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut size))?;
        address
    };
    Ok(u16::from_be(address.sin_port))
}

/// The next connection that waits, if one does.
pub fn accept(listener: &OwnedFd) -> Option<OwnedFd> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no address is asked for; the new descriptor is owned at once.
    unsafe {
        let fd = libc::accept4(listener.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut(), flags);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))
    }
}

/// Reads what has come. 0 bytes: the other side has closed.
pub fn read(fd: i32, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer is valid for writing for its whole length.
    let length = unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    usize::try_from(length).map_err(|_| io::Error::last_os_error())
}

/// Reads what has come, and when the kernel received the last of it (nanoseconds since 1970).
pub fn read_stamped(fd: i32, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    let mut control = [0_u64; CONTROL_BYTES / 8];
    // SAFETY: the message points at live buffers with their true lengths; the kernel's control messages are walked
    // with its own macros, and a timestamp is read only from a message of that type.
    unsafe {
        let mut vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = CONTROL_BYTES as _;
        let length = libc::recvmsg(fd, &raw mut message, 0);
        let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_TIMESTAMPNS {
                let time: libc::timespec = std::ptr::read_unaligned(libc::CMSG_DATA(header).cast());
                return Ok((length, Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)));
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
        Ok((length, None))
    }
}

/// Of several sockets that listen on one port, takes the connections whose first packet `cpu` handles: on loopback, those
/// that a client on `cpu` makes. Two clients on two cores then have a server each, and share nothing.
pub fn prefer_cpu(socket: &OwnedFd, cpu: usize) {
    // A kernel that does not know it (before 6.2) spreads connections at random.
    let _ = set(socket, libc::SOL_SOCKET, libc::SO_INCOMING_CPU, cpu as i32);
}

fn switch_on(socket: &OwnedFd, level: i32, option: i32) -> io::Result<()> {
    set(socket, level, option, 1)
}

fn set(socket: &OwnedFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    // SAFETY: the value is an int of the size that is passed.
    check(unsafe {
        let size = mem::size_of::<i32>() as libc::socklen_t;
        libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), size)
    })?;
    Ok(())
}

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
