//! The kernel's table of tracked connections in a network of its own, with entries made by netlink. As root only: elsewhere no
//! network can be made. A full table is not made here: its size is the whole machine's. What a full one counts is in the unit
//! tests of `proc/conntrack.rs`.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::fs::symlink;

use holdup_collect::Collector;
use holdup_collect::host::Host;
use holdup_collect::proc::Proc;
use holdup_recording::Batch;

use crate::value;

/// An attribute of netlink; `NESTED` marks one that holds others.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = [(4 + value.len() as u16).to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

const NESTED: u16 = 0x8000;

/// One direction of a datagram's way (linux/netfilter/nfnetlink_conntrack.h): addresses, protocol and ports.
fn tuple(kind: u16, from: ([u8; 4], u16), to: ([u8; 4], u16)) -> Vec<u8> {
    let addresses = [attribute(1, &from.0), attribute(2, &to.0)].concat();
    let ports = [attribute(1, &[17]), attribute(2, &from.1.to_be_bytes()), attribute(3, &to.1.to_be_bytes())].concat();
    attribute(kind | NESTED, &[attribute(1 | NESTED, &addresses), attribute(2 | NESTED, &ports)].concat())
}

/// Enters a connection from `port` into the table of this thread's network.
fn enter(line: &OwnedFd, port: u16) -> Result<()> {
    let (client, server) = (([10, 9, 8, 7], port), ([10, 9, 8, 6], 53));
    let body = [
        vec![libc::AF_INET as u8, 0, 0, 0],
        tuple(1, client, server),
        tuple(2, server, client),
        attribute(7, &60_u32.to_be_bytes()),
    ]
    .concat();
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL) as u16;
    let mut request = (16 + body.len() as u32).to_ne_bytes().to_vec();
    // The subsystem of connections, and its message for a new one.
    request.extend(0x0100_u16.to_ne_bytes());
    request.extend(flags.to_ne_bytes());
    request.extend([0; 8]);
    request.extend(body);
    // SAFETY: the bytes are valid for the call to read.
    let sent = unsafe { libc::send(line.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
    let mut answer = [0_u8; 4096];
    // SAFETY: the buffer is valid for the call to fill.
    let got = unsafe { libc::recv(line.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0) };
    if sent < 0 || got < 20 {
        return Err(Error::last_os_error());
    }
    let error = i32::from_ne_bytes(answer[16..20].try_into().unwrap());
    if error == 0 { Ok(()) } else { Err(Error::from_raw_os_error(-error)) }
}

/// How many connections the host's source counts in a network with `count` of them, and the room that it has.
fn counted(count: u16) -> Result<(Option<f64>, Option<f64>)> {
    // SAFETY: it moves this thread alone.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: socket has no preconditions.
    let number =
        unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_NETFILTER) };
    if number < 0 {
        return Err(Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and no other code owns it.
    let line = unsafe { OwnedFd::from_raw_fd(number) };
    (0..count).try_for_each(|n| enter(&line, 2_000 + n))?;
    // The process has the network that it was started in: only `thread-self` is this thread's.
    let dir = tempfile::tempdir()?;
    std::fs::create_dir(dir.path().join("proc"))?;
    symlink("/proc/thread-self/net", dir.path().join("proc/net"))?;
    symlink("/proc/sys", dir.path().join("proc/sys"))?;
    let mut batch = Batch::default();
    // Its other sections have no files here.
    let _ = Host::new(Proc::at(dir.path())).sample(&mut batch);
    let of = |metric: &str| value(&batch, metric, &[]);
    assert_eq!(of("system_network_conntrack_dropped_total"), Some(0.0));
    Ok((of("system_network_conntrack_count"), of("system_network_conntrack_max")))
}

#[test]
fn connections_of_a_network_are_counted() {
    match std::thread::spawn(|| counted(7)).join().unwrap() {
        Ok((count, most)) => {
            assert_eq!(count, Some(7.0));
            assert!(most.unwrap() >= 7.0, "{most:?}");
        }
        Err(why) => {
            assert!(std::env::var_os("CI").is_none(), "{why}");
            eprintln!("skipped: it takes root, and a kernel with nf_conntrack and its netlink ({why})");
        }
    }
}
