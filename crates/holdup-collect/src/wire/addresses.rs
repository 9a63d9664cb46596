//! The addresses of this machine, which tell on whose side packets are seen. Addresses of other
//! network namespaces (containers) are not included.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

/// All addresses of all interfaces; empty if the kernel reports none.
pub(super) fn own() -> Vec<IpAddr> {
    let mut list: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: the call fills in `list`, which is freed below.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Vec::new();
    }
    let (mut found, mut at) = (Vec::new(), list);
    while !at.is_null() {
        // SAFETY: an entry of the new list, which is not freed yet.
        let entry = unsafe { &*at };
        at = entry.ifa_next;
        if entry.ifa_addr.is_null() {
            continue;
        }
        // SAFETY: every address starts with its family.
        match i32::from(unsafe { (*entry.ifa_addr).sa_family }) {
            libc::AF_INET => {
                // SAFETY: an address of this family has this layout; it need not be aligned.
                let address: libc::sockaddr_in = unsafe { ptr::read_unaligned(entry.ifa_addr.cast()) };
                found.push(IpAddr::V4(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr))));
            }
            libc::AF_INET6 => {
                // SAFETY: as above.
                let address: libc::sockaddr_in6 = unsafe { ptr::read_unaligned(entry.ifa_addr.cast()) };
                found.push(IpAddr::V6(Ipv6Addr::from(address.sin6_addr.s6_addr)));
            }
            _ => {}
        }
    }
    // SAFETY: made by getifaddrs, and nothing refers to it any more.
    unsafe { libc::freeifaddrs(list) };
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_one() {
        assert!(own().contains(&IpAddr::V4(Ipv4Addr::LOCALHOST)));
    }
}
