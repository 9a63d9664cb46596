//! Three network namespaces: generator, app, database. Between them are pairs of TUN devices, whose
//! packets a thread carries and delays, because not every kernel has something that delays packets.
//! All of it goes with the test.

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

/// A way between two namespaces: how long a packet takes in either direction.
#[derive(Clone, Default)]
pub struct Way {
    delay_us: Arc<AtomicU64>,
}

impl Way {
    /// Delays each packet by this much from now on.
    pub fn delay(&self, by: Duration) {
        self.delay_us.store(by.as_micros() as u64, Ordering::Relaxed);
    }
}

/// The namespaces and the ways between them.
pub struct Networks {
    pub generator: String,
    pub app: String,
    pub database: String,
    /// The app's address for the generator.
    pub app_address: String,
    /// The database's address for the app.
    pub database_address: String,
    pub generator_to_app: Way,
    pub app_to_database: Way,
    stop: Arc<AtomicBool>,
    carriers: Vec<std::thread::JoinHandle<()>>,
}

/// Runs `ip`; what it says if it fails.
fn ip(words: &str) -> Result<(), String> {
    let done = finish(Command::new("ip").args(words.split(' ')), 30);
    if done.status.success() { Ok(()) } else { Err(format!("ip {words}: {}", done.stderr.trim())) }
}

impl Networks {
    /// Makes them; an error says why they cannot be made here.
    pub fn make() -> Result<Self, String> {
        // SAFETY: it reads the process's own user id and cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return Err("only root can make a network".to_owned());
        }
        let pid = std::process::id();
        let [generator, app, database] = ["g", "a", "d"].map(|role| format!("holdup-fleet-{role}-{pid}"));
        let net = format!("10.{}.{}", 208 + pid / 256 % 16, pid % 256);
        let mut networks = Self {
            app_address: format!("{net}.2"),
            database_address: format!("{net}.6"),
            generator,
            app,
            database,
            generator_to_app: Way::default(),
            app_to_database: Way::default(),
            stop: Arc::default(),
            carriers: Vec::new(),
        };
        for namespace in [&networks.generator, &networks.app, &networks.database] {
            ip(&format!("netns add {namespace}"))?;
            ip(&format!("-n {namespace} link set lo up"))?;
        }
        let (generator, app, database) = (networks.generator.clone(), networks.app.clone(), networks.database.clone());
        let ways = [networks.generator_to_app.clone(), networks.app_to_database.clone()];
        networks.lay(&ways[0], (&generator, &format!("{net}.1")), (&app, &format!("{net}.2")))?;
        networks.lay(&ways[1], (&app, &format!("{net}.5")), (&database, &format!("{net}.6")))?;
        Ok(networks)
    }

    /// Lays `way` between two namespaces, each with an address.
    fn lay(&mut self, way: &Way, one: (&str, &str), other: (&str, &str)) -> Result<(), String> {
        let names = [0, 1].map(|end| format!("hf{}{end}x{}", self.carriers.len(), std::process::id()));
        let devices = [tun(&names[0])?, tun(&names[1])?];
        for ((namespace, address), name) in [one, other].iter().zip(&names) {
            ip(&format!("link set {name} netns {namespace}"))?;
            ip(&format!("-n {namespace} addr add {address}/30 dev {name}"))?;
            ip(&format!("-n {namespace} link set {name} up"))?;
        }
        let (way, stop) = (way.clone(), Arc::clone(&self.stop));
        self.carriers.push(std::thread::spawn(move || carry(devices, &way.delay_us, &stop)));
        Ok(())
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.carriers.drain(..).for_each(|carrier| drop(carrier.join()));
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
