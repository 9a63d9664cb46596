//! Listening sockets: the addresses they may have, and how many connections the kernel keeps for
//! them.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;

use crate::service::ServiceError;

/// Listens on `address`, which `option` gave. The socket does not block: the accepting thread waits
/// first, to look for a stop.
///
/// # Errors
///
/// If the address is not on loopback (and that was not allowed) or taken.
pub fn bind(address: SocketAddr, option: &'static str, allow_remote: bool) -> Result<TcpListener, ServiceError> {
    if !address.ip().is_loopback() && !allow_remote {
        let why = format!("{address} is not on loopback; --allow-remote would allow it");
        return Err(ServiceError::BadOption { option, why });
    }
    let listener = TcpListener::bind(address).map_err(|source| ServiceError::Listen { address, source })?;
    // A client may be gone by the time it is accepted, even after waiting for it.
    listener.set_nonblocking(true).map_err(|source| ServiceError::Listen { address, source })?;
    Ok(listener)
}

/// The address that a listener got.
///
/// # Errors
///
/// If the system does not return it.
pub fn own_address(listener: &TcpListener) -> Result<SocketAddr, ServiceError> {
    listener.local_addr().map_err(|source| ServiceError::System { what: "read the address bound", source })
}

/// Makes the kernel keep up to `connections` (and one more) that are not accepted yet;
/// `net.core.somaxconn` is the upper limit. Linux takes a new number for a socket that already
/// listens.
///
/// # Errors
///
/// If the system refuses.
pub fn set_backlog(listener: &TcpListener, connections: u32) -> Result<(), ServiceError> {
    // SAFETY: the descriptor is the listener's own, and open.
    let result = unsafe { libc::listen(listener.as_raw_fd(), connections as libc::c_int) };
    if result == 0 {
        return Ok(());
    }
    Err(ServiceError::System { what: "set the backlog", source: std::io::Error::last_os_error() })
}

/// Waits up to 100 ms for a connection to accept.
pub fn readable(listener: &TcpListener) -> bool {
    let mut asked = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd, alive for the call.
    unsafe { libc::poll(&raw mut asked, 1, 100) > 0 }
}
