//! TCP sockets from `/proc/net/tcp` and `tcp6`, or from `sock_diag`. The lists are not read at one
//! instant: meanwhile a socket may be missed or appear twice. They cover only the reader's network
//! namespace.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::ReadError;
use crate::proc::socket::{CLOSE_WAIT, ESTABLISHED, LISTEN, Socket};
use crate::proc::{Proc, clip, sock_diag};

/// Calls `each` with every listening or connected TCP socket, of IP versions 4 and 6: on the live
/// machine from `sock_diag`, which is cheap, else from the files.
///
/// # Errors
/// Those of [`each_listed`].
pub fn each(proc: &Proc, buffer: &mut Vec<u8>, mut each: impl FnMut(Socket)) -> Result<(), ReadError> {
    if proc.is_live() {
        let mut found = Vec::new();
        if sock_diag::each(&[ESTABLISHED, CLOSE_WAIT, LISTEN], buffer, |socket| found.push(socket)).is_ok() {
            found.into_iter().for_each(each);
            return Ok(());
        }
    }
    each_listed(proc, buffer, &mut each)
}

/// Calls `each` with every TCP socket in the files, of all states.
///
/// # Errors
/// If a list cannot be read or a line is malformed. A missing `tcp6` is fine: IPv6 is off.
pub fn each_listed(proc: &Proc, buffer: &mut Vec<u8>, each: &mut dyn FnMut(Socket)) -> Result<(), ReadError> {
    for line in proc.read_lines("net/tcp", buffer)?.lines().skip(1) {
        each(parse("net/tcp", line)?);
    }
    if !proc.path(super::Tree::Proc, "net/tcp6").exists() {
        return Ok(());
    }
    for line in proc.read_lines("net/tcp6", buffer)?.lines().skip(1) {
        each(parse("net/tcp6", line)?);
    }
    Ok(())
}

fn parse(file: &str, line: &str) -> Result<Socket, ReadError> {
    read(line).ok_or_else(|| ReadError(format!("/proc/{file}: `{}` is not a socket", clip(line))))
}

fn read(line: &str) -> Option<Socket> {
    let mut fields = line.split_ascii_whitespace();
    let (address, port) = fields.nth(1)?.split_once(':')?;
    let state = fields.nth(1)?;
    let (_, receive_queue) = fields.next()?.split_once(':')?;
    Some(Socket {
        address: read_address(address)?,
        port: u16::from_str_radix(port, 16).ok()?,
        state: u8::from_str_radix(state, 16).ok()?,
        receive_queue: u32::from_str_radix(receive_queue, 16).ok()?,
        inode: fields.nth(4)?.parse().ok()?,
    })
}

/// The kernel prints each 32-bit word of the address as a number in the machine's byte order.
fn read_address(hex: &str) -> Option<IpAddr> {
    let mut octets = [0; 16];
    let words = hex.len() / 8;
    if !hex.is_ascii() || !(hex.len() == 8 || hex.len() == 32) {
        return None;
    }
    for word in 0..words {
        let value = u32::from_str_radix(&hex[word * 8..word * 8 + 8], 16).ok()?;
        octets[word * 4..word * 4 + 4].copy_from_slice(&value.to_ne_bytes());
    }
    if words == 1 {
        return Some(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3]).into());
    }
    Some(Ipv6Addr::from(octets).to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: &str = "   1: 0100007F:0CEA 507100CB:01BB 01 00000000:0000002B 00:00000000 00000000     0        0 17808 1 0 20 4 1 151 -1";

    #[test]
    #[cfg(target_endian = "little")]
    fn one_line_of_each_version() {
        let socket = read(V4).unwrap();
        assert_eq!((socket.address, socket.port), ("127.0.0.1".parse().unwrap(), 3306));
        assert_eq!((socket.state, socket.receive_queue, socket.inode), (ESTABLISHED, 43, 17_808));
        let v6 = V4.replace("0100007F:", "00000000000000000000000001000000:");
        assert_eq!(read(&v6).unwrap().address, "::1".parse::<IpAddr>().unwrap());
        let mapped = V4.replace("0100007F:", "0000000000000000FFFF00000100007F:");
        assert_eq!(read(&mapped).unwrap().address, "127.0.0.1".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn a_cut_line_is_no_socket() {
        for end in 0..V4.find("17808").unwrap() {
            assert_eq!(read(&V4[..end]), None, "{end}");
        }
        assert_eq!(read(&V4.replace("0100007F", "010000é")), None);
    }
}
