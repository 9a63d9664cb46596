//! Three network namespaces: generator, app, database. Between generator and app is a pair of veth
//! devices; between app and database two TUN devices, whose packets a thread carries and delays: not
//! every kernel has something that delays packets. All of it goes with the test.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::program::finish;

/// The namespaces, and the link's delay in each direction.
pub struct Networks {
    pub generator: String,
    pub app: String,
    pub database: String,
    /// The app's address for the generator.
    pub app_address: String,
    /// The database's address for the app.
    pub database_address: String,
    delay_us: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    carrier: Option<std::thread::JoinHandle<()>>,
}

/// Runs `ip`; what it says if it fails.
fn ip(words: &str) -> Result<(), String> {
    let done = finish(Command::new("ip").args(words.split(' ')), 30);
    if done.status.success() { Ok(()) } else { Err(format!("ip {words}: {}", done.stderr)) }
}

impl Networks {
    /// Why they cannot be made here, as an error.
    pub fn make() -> Result<Self, String> {
        let pid = std::process::id();
        let [generator, app, database] = ["g", "a", "d"].map(|role| format!("holdup-fleet-{role}-{pid}"));
        let net = format!("10.{}.{}", 208 + pid / 256 % 16, pid % 256);
        let mut networks = Self {
            app_address: format!("{net}.2"),
            database_address: format!("{net}.6"),
            generator,
            app,
            database,
            delay_us: Arc::default(),
            stop: Arc::default(),
            carrier: None,
        };
        let Self { generator: g, app: a, database: d, .. } = &networks;
        for namespace in [g, a, d] {
            ip(&format!("netns add {namespace}"))?;
            ip(&format!("-n {namespace} link set lo up"))?;
        }
        let (near, far) = (format!("hfa{pid}"), format!("hfd{pid}"));
        let devices = [tun(&near)?, tun(&far)?];
        for words in [
            format!("-n {g} link add app type veth peer name gen netns {a}"),
            format!("-n {g} addr add {net}.1/30 dev app"),
            format!("-n {a} addr add {net}.2/30 dev gen"),
            format!("-n {g} link set app up"),
            format!("-n {a} link set gen up"),
            format!("link set {near} netns {a}"),
            format!("link set {far} netns {d}"),
            format!("-n {a} addr add {net}.5/30 dev {near}"),
            format!("-n {d} addr add {net}.6/30 dev {far}"),
            format!("-n {a} link set {near} up"),
            format!("-n {d} link set {far} up"),
        ] {
            ip(&words)?;
        }
        let (delay_us, stop) = (Arc::clone(&networks.delay_us), Arc::clone(&networks.stop));
        networks.carrier = Some(std::thread::spawn(move || carry(devices, &delay_us, &stop)));
        Ok(networks)
    }

    /// Delays each packet by this much from now on.
    pub fn delay(&self, by: Duration) {
        self.delay_us.store(by.as_micros() as u64, Ordering::Relaxed);
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.carrier.take().into_iter().for_each(|carrier| drop(carrier.join()));
        for namespace in [&self.generator, &self.app, &self.database] {
            let _ = ip(&format!("netns del {namespace}"));
        }
    }
}

fn tun(name: &str) -> Result<File, String> {
    let tun = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun");
    let tun = tun.map_err(|error| format!("/dev/net/tun: {error}"))?;
    // SAFETY: ifreq is plain data, for which all-zero bytes are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the descriptor is open, and `request` outlives the call that reads it.
    let made = unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if made < 0 { Err(format!("{name}: {}", std::io::Error::last_os_error())) } else { Ok(tun) }
}

/// Carries packets between both devices until `stop`.
fn carry(mut devices: [File; 2], delay_us: &AtomicU64, stop: &AtomicBool) {
    let mut ways: [VecDeque<(Instant, Vec<u8>)>; 2] = Default::default();
    let mut packet = vec![0; 65_536];
    while !stop.load(Ordering::Relaxed) {
        let due = ways.iter().filter_map(|way| way.front()).map(|(due, _)| *due).min();
        let wait = due.map_or(Duration::from_millis(50), |due| due.saturating_duration_since(Instant::now()));
        let mut polled =
            devices.each_ref().map(|d| libc::pollfd { fd: d.as_raw_fd(), events: libc::POLLIN, revents: 0 });
        let time = libc::timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        // SAFETY: both structures outlive the call; no signal mask is given.
        unsafe { libc::ppoll(polled.as_mut_ptr(), 2, &raw const time, std::ptr::null()) };
        for (device, way) in devices.iter_mut().zip(&mut ways) {
            while let Ok(length @ 1..) = device.read(&mut packet) {
                let due = Instant::now() + Duration::from_micros(delay_us.load(Ordering::Relaxed));
                // Packets stay in order.
                let due = way.back().map_or(due, |(last, _)| due.max(*last));
                way.push_back((due, packet[..length].to_vec()));
            }
        }
        let [a, b] = &mut devices;
        for (way, to) in ways.iter_mut().zip([b, a]) {
            while way.front().is_some_and(|(due, _)| *due <= Instant::now()) {
                let _ = way.pop_front().map(|(_, packet)| to.write(&packet));
            }
        }
    }
}
