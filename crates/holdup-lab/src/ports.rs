//! Ports of 127.0.0.1 for the servers of labs and tests.
//!
//! Asking the kernel for any free port (`bind` to port 0), giving it back and starting a server on it is a race: before the server
//! listens, the kernel may give the same port to another process, also as the source port of an outgoing connection. So the
//! ports here lie below the range that the kernel gives out, and each is leased for the life of the process.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Mutex;

/// The lowest port given out: below it are the well-known ports of servers that a host may run.
const LOWEST: u16 = 12_000;

/// The file in which the kernel shows the range that it gives out itself, as two numbers.
const KERNEL_RANGE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// The kernel's default for the lower end of that range (`ip(7)`).
const KERNEL_LOWEST: u16 = 32_768;

/// The leases of this process. A lease is an abstract Unix socket whose name holds the port. The
/// kernel lets one process of a network namespace have it, leaves no file behind, and ends it with
/// the process.
static LEASES: Mutex<Vec<UnixDatagram>> = Mutex::new(Vec::new());

/// A TCP port of 127.0.0.1 on which no server listens. No other process that leases here gets it
/// while this one lives.
///
/// # Errors
///
/// `AddrInUse` if none is free.
pub fn free() -> io::Result<u16> {
    first_free(LOWEST, kernel_lowest())
}

fn kernel_lowest() -> u16 {
    let range = std::fs::read_to_string(KERNEL_RANGE).unwrap_or_default();
    range.split_whitespace().next().and_then(|lowest| lowest.parse().ok()).unwrap_or(KERNEL_LOWEST)
}

/// The first free port of `lowest..end`, starting at a random one. If the kernel gives out all
/// ports from `lowest` on, no range is left, and any port from `lowest` on will do.
fn first_free(lowest: u16, end: u16) -> io::Result<u16> {
    let end = if end > lowest { end } else { u16::MAX };
    let count = u64::from(end - lowest);
    let first = RandomState::new().hash_one(0) % count;
    for step in 0..count {
        let port = lowest + u16::try_from((first + step) % count).map_err(io::Error::other)?;
        if let Some(lease) = lease(port)? {
            LEASES.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(lease);
            return Ok(port);
        }
    }
    Err(io::Error::new(io::ErrorKind::AddrInUse, format!("no port of {lowest} to {} is free", end - 1)))
}

/// Leases a port, if it is neither leased nor listened on.
fn lease(port: u16) -> io::Result<Option<UnixDatagram>> {
    let name = SocketAddr::from_abstract_name(format!("holdup-port-{port}"))?;
    let lease = match UnixDatagram::bind_addr(&name) {
        Ok(lease) => lease,
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok().then_some(lease))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ_and_the_kernel_gives_none_of_them_out() {
        let mut ports: Vec<u16> = (0..200).map(|_| free().unwrap()).collect();
        assert!(ports.iter().all(|port| (LOWEST..kernel_lowest()).contains(port)), "{ports:?}");
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 200);
    }

    #[test]
    fn a_port_that_is_listened_on_or_leased_is_not_given_out() {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        for port in [listener.local_addr().unwrap().port(), free().unwrap()] {
            assert_eq!(first_free(port, port + 1).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        }
    }
}
