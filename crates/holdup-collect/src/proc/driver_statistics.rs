//! What the driver of a network device counts by itself, under names of its own, as `ethtool -S`
//! shows it: by the ioctl `SIOCETHTOOL` (linux/ethtool.h), which needs no privilege for these.
//! ethtool's newer netlink family has only what the kernel itself defines, not what drivers add.

use std::io::{Error, Result};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::ptr;

/// `SIOCETHTOOL` (linux/sockios.h).
const ETHTOOL: libc::Ioctl = 0x8946;

/// Commands and the set of strings that names statistics: `ETHTOOL_GSTRINGS`, `ETHTOOL_GSTATS`,
/// `ETHTOOL_GSSET_INFO`, `ETH_SS_STATS` (linux/ethtool.h).
const GET_STRINGS: u32 = 0x1b;
const GET_STATISTICS: u32 = 0x1d;
const GET_SET_SIZE: u32 = 0x37;
const STATISTICS: u32 = 1;

/// Bytes in front of the answers of the three: command, set and number; command and number;
/// command, room and a mask of sets.
const STRINGS_AT: usize = 12;
const VALUES_AT: usize = 8;
const SET_SIZE_AT: usize = 16;

/// Bytes of a name, filled up with zeros (`ETH_GSTRING_LEN`).
const NAME_BYTES: usize = 32;

/// Room for an answer: the names of 8,191 statistics. The largest drivers have some hundred for
/// each of their queues.
const ANSWER_BYTES: usize = 256 << 10;

/// Behind it: at least a page on every machine.
const GUARD_BYTES: usize = 64 << 10;

/// Memory for an answer, and behind it some that cannot be written. The kernel writes as many
/// statistics as the driver has at that moment, however many it was asked for. If they have become
/// more than there is room for, the call fails there and overwrites nothing.
struct Answer(*mut libc::c_void);

impl Answer {
    fn new() -> Result<Self> {
        let (flags, length) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, ANSWER_BYTES + GUARD_BYTES);
        // SAFETY: a new mapping, where the kernel finds room for it.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, libc::PROT_NONE, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        let answer = Self(start);
        // SAFETY: it is the beginning of that mapping, and nothing else uses it.
        let result = unsafe { libc::mprotect(start, ANSWER_BYTES, libc::PROT_READ | libc::PROT_WRITE) };
        if result == 0 { Ok(answer) } else { Err(Error::last_os_error()) }
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: so many bytes are mapped, readable and writable, for as long as `self` lives.
        unsafe { std::slice::from_raw_parts_mut(self.0.cast(), ANSWER_BYTES) }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's own, and no slice of it outlives it.
        unsafe { libc::munmap(self.0, ANSWER_BYTES + GUARD_BYTES) };
    }
}

/// A socket to ask the drivers of this network namespace through.
pub(crate) struct Drivers(OwnedFd);

impl Drivers {
    /// Opens it.
    ///
    /// # Errors
    /// If no socket is to be had.
    pub(crate) fn open() -> Result<Self> {
        // SAFETY: socket has no preconditions.
        let number = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        if number < 0 {
            return Err(Error::last_os_error());
        }
        // SAFETY: the descriptor is new, and no other code owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(number) }))
    }

    /// Names of the statistics of `device` in their order; none if its driver has none.
    ///
    /// # Errors
    /// If the kernel does not say, or they are too many.
    pub(crate) fn names(&self, device: &str) -> Result<Vec<String>> {
        let mut answer = Answer::new()?;
        let count = match self.ask(device, &mut answer, &[GET_SET_SIZE, 0, 1 << STATISTICS, 0]) {
            // The mask has a bit for each set that there is.
            Ok(bytes) if word(bytes, 8) != Some(0) => word(bytes, SET_SIZE_AT).unwrap_or(0),
            Ok(_) => 0,
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => 0,
            Err(error) => return Err(error),
        };
        if count == 0 {
            return Ok(Vec::new());
        }
        names_in(self.ask(device, &mut answer, &[GET_STRINGS, STATISTICS, count])?)
    }

    /// The values of all statistics of `device`, which had `count` of them.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub(crate) fn values(&self, device: &str, count: usize) -> Result<Vec<u64>> {
        let mut answer = Answer::new()?;
        values_in(self.ask(device, &mut answer, &[GET_STATISTICS, count as u32])?)
    }

    /// Sends the words of `command`; the answer begins with them again.
    fn ask<'a>(&self, device: &str, answer: &'a mut Answer, command: &[u32]) -> Result<&'a [u8]> {
        let words = command.iter().flat_map(|word| word.to_ne_bytes());
        answer.bytes().iter_mut().zip(words).for_each(|(byte, word)| *byte = word);
        let mut name = [0; libc::IF_NAMESIZE];
        if device.is_empty() || device.len() >= name.len() {
            return Err(Error::from_raw_os_error(libc::ENODEV));
        }
        name.iter_mut().zip(device.bytes()).for_each(|(to, byte)| *to = byte as libc::c_char);
        let data = libc::__c_anonymous_ifr_ifru { ifru_data: answer.0.cast() };
        let mut request = libc::ifreq { ifr_name: name, ifr_ifru: data };
        // SAFETY: the request is valid for the call, and so is what it points to. The kernel writes
        // behind that only where it cannot, and then fails.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), ETHTOOL, &raw mut request) };
        if result == 0 { Ok(answer.bytes()) } else { Err(Error::last_os_error()) }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_ne_bytes(*word))
}

/// Items of an answer that begin at `start`, of `size` bytes each; their number is in front of them.
fn items(bytes: &[u8], start: usize, size: usize) -> Result<impl Iterator<Item = &[u8]>> {
    let whole = word(bytes, start - 4).and_then(|count| bytes.get(start..)?.get(..size.checked_mul(count as usize)?));
    Ok(whole.ok_or_else(|| Error::other("ethtool: more statistics than there is room for"))?.chunks_exact(size))
}

/// Names in an answer to `ETHTOOL_GSTRINGS`.
fn names_in(bytes: &[u8]) -> Result<Vec<String>> {
    let text = |name: &[u8]| String::from_utf8_lossy(name.split(|byte| *byte == 0).next().unwrap_or(name)).into_owned();
    Ok(items(bytes, STRINGS_AT, NAME_BYTES)?.map(text).collect())
}

/// Values in an answer to `ETHTOOL_GSTATS`.
fn values_in(bytes: &[u8]) -> Result<Vec<u64>> {
    let value = |value: &[u8]| value.first_chunk().map_or(0, |value| u64::from_ne_bytes(*value));
    Ok(items(bytes, VALUES_AT, size_of::<u64>())?.map(value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_decoded_and_cut_ones_are_errors() {
        let head = |words: &[u32]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        let mut strings = head(&[GET_STRINGS, STATISTICS, 2]);
        for name in ["suspend", "bw_in_allowance_exceeded_longest"] {
            let mut field = name.as_bytes().to_vec();
            field.resize(NAME_BYTES, 0);
            strings.extend(field);
        }
        assert_eq!(names_in(&strings).unwrap(), ["suspend", "bw_in_allowance_exceeded_longest"]);
        let values = [head(&[GET_STATISTICS, 2]), [7_u64, u64::MAX].map(u64::to_ne_bytes).concat()].concat();
        assert_eq!(values_in(&values).unwrap(), [7, u64::MAX]);
        for end in 0..strings.len() {
            assert!(names_in(&strings[..end]).is_err(), "names cut at {end}");
        }
        for end in 0..values.len() {
            assert!(values_in(&values[..end]).is_err(), "values cut at {end}");
        }
        assert!(names_in(&head(&[GET_STRINGS, STATISTICS, u32::MAX])).is_err());
    }

    #[test]
    fn this_machine_answers() {
        let drivers = Drivers::open().unwrap();
        assert_eq!(drivers.names("lo").unwrap(), [""; 0], "the loopback device counts nothing of its own");
        for bad in ["", "no_such_device_0", "a_name_that_is_too_long_for_a_device"] {
            assert!(drivers.names(bad).is_err(), "{bad}");
        }
    }

    /// A pair of devices in a network of this thread's own, asked as a user without any privilege.
    #[test]
    fn a_pair_of_devices_answers_without_privileges() {
        let ask = || -> Result<(Vec<String>, Vec<u64>)> {
            // SAFETY: it moves this thread alone.
            if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
                return Err(Error::last_os_error());
            }
            let pair = ["link", "add", "line0", "type", "veth", "peer", "name", "line1"];
            if !std::process::Command::new("ip").args(pair).status()?.success() {
                return Err(Error::other("ip link add"));
            }
            // SAFETY: the plain system call changes this thread alone, unlike the library's function.
            assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, 65_534, 65_534, 65_534) }, 0);
            let drivers = Drivers::open()?;
            let names = drivers.names("line0").unwrap();
            let values = drivers.values("line0", names.len()).unwrap();
            Ok((names, values))
        };
        match std::thread::spawn(ask).join().unwrap() {
            Ok((names, values)) => {
                assert_eq!(names.len(), values.len());
                let peer = names.iter().position(|name| name == "peer_ifindex").unwrap();
                assert!(values[peer] > 0, "{names:?} {values:?}");
                assert!(names.iter().any(|name| name == "rx_queue_0_drops"), "{names:?}");
            }
            Err(why) => {
                assert!(std::env::var_os("CI").is_none(), "{why}");
                eprintln!("skipped: only root with ip can make a network ({why})");
            }
        }
    }
}
