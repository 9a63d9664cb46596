//! A link between app and database whose delay, loss and bandwidth a fault can move: two TUN devices, one of them in the
//! app's network namespace, and a thread that carries packets from one to the other. Kernels without `sch_netem` have
//! nothing else that delays packets below TCP, and a proxy would hide loss from it. The devices go with the bench.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::process::{leftovers, run};
use super::running::Running;
use crate::random::Random;

/// The app's namespace is called so, with the process id of its bench behind it.
const NAMESPACE: &str = "holdup-strangers-";

/// Packets that wait in one direction at most; what comes then is lost, as in a router.
const QUEUE: usize = 200;

/// What the link does to a packet in either direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quality {
    /// Time under way, milliseconds.
    pub delay_ms: f64,
    /// Up to so much more, milliseconds. Packets stay in order.
    pub jitter_ms: f64,
    /// Share (0-1) of packets that get lost.
    pub loss_ratio: f64,
    /// Megabits per second; 0 for no limit.
    pub megabits: f64,
}

#[derive(Debug, Default)]
struct Settings {
    quality: Mutex<Quality>,
    stop: AtomicBool,
}

impl Settings {
    fn quality(&self) -> MutexGuard<'_, Quality> {
        self.quality.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handle on the link, for faults.
#[derive(Clone, Debug)]
pub struct Link {
    settings: Arc<Settings>,
    /// Name of the app's namespace.
    pub namespace: String,
    /// Address of the database, for the app.
    pub database: String,
    /// Address of the app, for the load; it does not pass the link.
    pub app: String,
    /// Address of this side, for what the app sends to holdup.
    pub watcher: String,
}

impl Link {
    /// Changes what it does to packets.
    pub fn set(&self, quality: Quality) {
        *self.settings.quality() = quality;
    }

    /// Changes it until the fault ends.
    pub fn set_until(&self, quality: Quality) -> Running {
        self.set(quality);
        let link = self.clone();
        Running::until(move || {
            link.set(Quality::default());
            Ok(())
        })
    }
}

/// The thread that carries packets.
pub struct Carried {
    /// The handle.
    pub link: Link,
    thread: Option<JoinHandle<()>>,
}

impl Carried {
    /// Makes the namespace, both devices, and a way for the load that does not pass the link.
    pub fn start() -> Result<Self> {
        for left in leftovers(Path::new("/run/netns"), NAMESPACE) {
            if let Some(name) = left.file_name().and_then(|name| name.to_str()) {
                let _ = run("ip", &["netns", "del", name]);
            }
        }
        let pid = std::process::id();
        let namespace = format!("{NAMESPACE}{pid}");
        // Private networks of four addresses, told apart by process id.
        let net = format!("10.{}.{}", 240 + pid / 256 % 16, pid % 256);
        let link = Link {
            settings: Arc::default(),
            namespace: namespace.clone(),
            database: format!("{net}.1"),
            app: format!("{net}.6"),
            watcher: format!("{net}.5"),
        };
        let (near, far) = (format!("hst{pid}"), format!("hsf{pid}"));
        run("ip", &["netns", "add", &namespace])?;
        let mut carried = Self { link, thread: None };
        let devices = [open_tun(&near)?, open_tun(&far)?];
        for words in commands(&net, &namespace, &near, &far, pid) {
            let words: Vec<&str> = words.split(' ').collect();
            run("ip", &words)?;
        }
        let settings = Arc::clone(&carried.link.settings);
        let thread = thread::Builder::new().name("link".to_owned()).spawn(move || carry(devices, &settings));
        carried.thread = Some(thread.context("could not start a thread")?);
        Ok(carried)
    }
}

impl Drop for Carried {
    fn drop(&mut self) {
        self.link.settings.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = run("ip", &["netns", "del", &self.link.namespace]);
    }
}

fn commands(net: &str, namespace: &str, near: &str, far: &str, pid: u32) -> Vec<String> {
    vec![
        format!("link set {far} netns {namespace}"),
        format!("addr add {net}.1/30 dev {near}"),
        format!("link set {near} up"),
        format!("-n {namespace} addr add {net}.2/30 dev {far}"),
        format!("-n {namespace} link set {far} up"),
        format!("-n {namespace} link set lo up"),
        format!("link add hsv{pid} type veth peer name app netns {namespace}"),
        format!("addr add {net}.5/30 dev hsv{pid}"),
        format!("link set hsv{pid} up"),
        format!("-n {namespace} addr add {net}.6/30 dev app"),
        format!("-n {namespace} link set app up"),
    ]
}

fn open_tun(name: &str) -> Result<File> {
    let tun = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun");
    let tun = tun.context("no TUN device can be made here; run as root, with /dev/net/tun")?;
    // SAFETY: ifreq is plain data, for which all-zero bytes are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the descriptor is open, and `request` outlives the call that reads it.
    let result = unsafe { libc::ioctl(tun.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if result < 0 {
        let error = std::io::Error::last_os_error();
        anyhow::bail!("the kernel makes no TUN device {name}: {error}; run as root");
    }
    Ok(tun)
}

/// One direction: packets under way, in the order in which they arrive.
#[derive(Default)]
struct Direction {
    under_way: VecDeque<(Instant, Vec<u8>)>,
    line_free: Option<Instant>,
}

impl Direction {
    /// Takes a packet, or loses it.
    fn take(&mut self, packet: &[u8], now: Instant, settings: &Settings, random: &mut Random) {
        let Quality { delay_ms, jitter_ms, loss_ratio, megabits } = *settings.quality();
        if random.unit() < loss_ratio || self.under_way.len() >= QUEUE {
            return;
        }
        let mut sent = now;
        if megabits > 0.0 {
            let begin = self.line_free.map_or(now, |free| free.max(now));
            sent = begin + Duration::from_secs_f64(packet.len() as f64 * 8.0 / (megabits * 1e6));
            self.line_free = Some(sent);
        }
        let delay_ms = delay_ms + random.unit() * jitter_ms;
        let due = sent + Duration::from_secs_f64(delay_ms * 1e-3);
        let due = self.under_way.back().map_or(due, |(last, _)| due.max(*last));
        self.under_way.push_back((due, packet.to_vec()));
    }

    fn hand_over(&mut self, now: Instant, to: &mut File) {
        while self.under_way.front().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, packet)) = self.under_way.pop_front() {
                // A full device loses it, as a full queue does.
                let _ = to.write(&packet);
            }
        }
    }

    fn due(&self) -> Option<Instant> {
        self.under_way.front().map(|(due, _)| *due)
    }
}

fn carry(mut devices: [File; 2], settings: &Settings) {
    let mut random = Random::new(0, 7);
    let mut directions = [Direction::default(), Direction::default()];
    let mut packet = vec![0; 65_536];
    while !settings.stop.load(Ordering::Relaxed) {
        let next = directions.iter().filter_map(Direction::due).min();
        let wait = next.map_or(Duration::from_millis(100), |due| due.saturating_duration_since(Instant::now()));
        wait_for_packets([devices[0].as_raw_fd(), devices[1].as_raw_fd()], wait);
        for from in [0, 1] {
            while let Ok(length) = devices[from].read(&mut packet) {
                if length == 0 {
                    break;
                }
                directions[from].take(&packet[..length], Instant::now(), settings, &mut random);
            }
        }
        let now = Instant::now();
        directions[0].hand_over(now, &mut devices[1]);
        directions[1].hand_over(now, &mut devices[0]);
    }
}

fn wait_for_packets(descriptors: [RawFd; 2], wait: Duration) {
    let mut polled = descriptors.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let time =
        libc::timespec { tv_sec: wait.as_secs() as libc::time_t, tv_nsec: libc::c_long::from(wait.subsec_nanos()) };
    // SAFETY: both structures outlive the call; no signal mask is given.
    unsafe { libc::ppoll(polled.as_mut_ptr(), 2, &raw const time, std::ptr::null()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(quality: Quality) -> Arc<Settings> {
        let link = Link {
            settings: Arc::default(),
            namespace: String::new(),
            database: String::new(),
            app: String::new(),
            watcher: String::new(),
        };
        link.set(quality);
        link.settings
    }

    #[test]
    fn packets_take_their_time_and_keep_their_order() {
        let settings = settings(Quality { delay_ms: 10.0, jitter_ms: 5.0, megabits: 8.0, ..Quality::default() });
        let (mut direction, mut random, now) = (Direction::default(), Random::new(1, 0), Instant::now());
        for _ in 0..20 {
            direction.take(&[0; 1_000], now, &settings, &mut random);
        }
        let dues: Vec<Duration> = direction.under_way.iter().map(|(due, _)| *due - now).collect();
        assert!(dues.is_sorted());
        // A thousand bytes take a millisecond at 8 Mbit/s.
        assert!(dues[0] >= Duration::from_millis(11) && dues[0] < Duration::from_millis(17), "{:?}", dues[0]);
        assert!(dues[19] >= Duration::from_millis(30), "{:?}", dues[19]);
    }

    #[test]
    fn a_share_is_lost_and_a_queue_ends() {
        let lossy = settings(Quality { loss_ratio: 0.3, ..Quality::default() });
        let (mut direction, mut random, now) = (Direction::default(), Random::new(1, 0), Instant::now());
        for _ in 0..200 {
            direction.take(&[0], now, &lossy, &mut random);
        }
        assert!((100..180).contains(&direction.under_way.len()), "{}", direction.under_way.len());
        let slow = settings(Quality { delay_ms: 1e3, ..Quality::default() });
        for _ in 0..400 {
            direction.take(&[0], now, &slow, &mut random);
        }
        assert_eq!(direction.under_way.len(), QUEUE);
    }
}
