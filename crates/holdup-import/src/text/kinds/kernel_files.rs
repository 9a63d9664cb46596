//! Counters of the kernel since boot: `/proc/diskstats`, `vmstat -d`, `vmstat -s`, `/proc/vmstat`,
//! `/proc/net/netstat`; and `/proc/PID/stack`.

use holdup_recording::Labels;
use holdup_recording::layouts::diskstats::NUMBERS;
use holdup_recording::metrics::{Metric, host};
use holdup_recording::rows::Thread;

use super::iostat::is_partition;
use super::kernel_events::frame;
use super::memory::Usage;
use super::{Context, HOST, Kind, Line, netstat, number, text};

pub(super) const DISKSTATS: Kind =
    Kind::lines("/proc/diskstats", |lines| diskstats(text(lines, 0)).is_some(), read_diskstats);

pub(super) const VMSTAT_DISKS: Kind = Kind::lines("vmstat -d", |lines| is_disks(text(lines, 0)), read_disks);

pub(super) const COUNTERS: Kind = Kind::lines("vmstat -s", |lines| counter(text(lines, 0)).is_some(), read_counters);

pub(super) const PAIRED: Kind = Kind::lines("/proc/net/netstat", |lines| pair(lines).is_some(), read_pairs);

pub(super) const STACK: Kind = Kind::lines("/proc/PID/stack", |lines| is_frame(text(lines, 0)), read_stack);

/// Frames kept of a stack.
const FRAMES_MAX: usize = 24;

/// Functions in which a thread sleeps until something comes: it can be interrupted there, and does not
/// count in the load average.
const INTERRUPTIBLE: [&str; 24] = [
    "futex_wait_queue",
    "futex_wait_queue_me",
    "ep_poll",
    "do_epoll_wait",
    "do_poll",
    "poll_schedule_timeout",
    "do_select",
    "do_sys_poll",
    "inet_csk_accept",
    "inet_csk_wait_for_connect",
    "pipe_wait",
    "pipe_read",
    "anon_pipe_read",
    "do_wait",
    "hrtimer_nanosleep",
    "do_nanosleep",
    "do_sigtimedwait",
    "sk_wait_data",
    "wait_woken",
    "unix_stream_read_generic",
    "unix_stream_data_wait",
    "read_events",
    "worker_thread",
    "do_semtimedop",
];

/// A counter: its words in `vmstat -s` and its name in `/proc/vmstat`, its metric with the label, and how
/// many are one of the metric's unit.
type Counted = (&'static str, &'static str, Metric, Option<(&'static str, &'static str)>, f64);

const COUNTS: [Counted; 15] = [
    ("pages swapped in", "pswpin", host::PAGING_OPERATIONS, Some(("direction", "in")), 1.0),
    ("pages swapped out", "pswpout", host::PAGING_OPERATIONS, Some(("direction", "out")), 1.0),
    ("major page faults", "pgmajfault", host::PAGING_FAULTS, Some(("type", "major")), 1.0),
    ("OOM kills", "oom_kill", host::OUT_OF_MEMORY_KILLS, None, 1.0),
    ("pages direct scanned", "pgscan_direct", host::MEMORY_RECLAIM_PAGES, Some(("kind", "scan_direct")), 1.0),
    ("CPU context switches", "", host::CONTEXT_SWITCHES, None, 1.0),
    ("forks", "", host::PROCESS_CREATED, None, 1.0),
    ("non-nice user cpu ticks", "", host::CPU_TIME, Some(("cpu_mode", "user")), 100.0),
    ("nice user cpu ticks", "", host::CPU_TIME, Some(("cpu_mode", "nice")), 100.0),
    ("system cpu ticks", "", host::CPU_TIME, Some(("cpu_mode", "system")), 100.0),
    ("idle cpu ticks", "", host::CPU_TIME, Some(("cpu_mode", "idle")), 100.0),
    ("IO-wait cpu ticks", "", host::CPU_TIME, Some(("cpu_mode", "iowait")), 100.0),
    ("IRQ cpu ticks", "", host::CPU_TIME, Some(("cpu_mode", "interrupt")), 100.0),
    ("softirq cpu ticks", "", host::CPU_TIME, Some(("cpu_mode", "softirq")), 100.0),
    ("stolen cpu ticks", "", host::CPU_TIME, Some(("cpu_mode", "steal")), 100.0),
];

/// Words of `vmstat -s` about memory, in the order of [`Usage`].
const MEMORY: [&str; 6] = ["total memory", "free memory", "buffer memory", "swap cache", "total swap", "free swap"];

/// The device and its numbers: 11, since Linux 4.18 15, since 5.5 17.
fn diskstats(line: &str) -> Option<(&str, Vec<f64>)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [major, minor, device, numbers @ ..] = words.as_slice() else { return None };
    let is_number = |word: &&&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let are_numbers = [major, minor].into_iter().chain(numbers).filter(is_number).count() == numbers.len() + 2;
    let is_device = device.starts_with(|c: char| c.is_ascii_lowercase());
    let is_own = are_numbers && is_device && [11, 15, 17].contains(&numbers.len());
    is_own.then(|| (*device, numbers.iter().filter_map(|word| number(word)).collect()))
}

fn put_disk(device: &str, numbers: &[(usize, f64)], at: i64, context: &mut Context) {
    for (place, value) in numbers {
        let Some((_, metric, direction, unit)) = NUMBERS.iter().find(|(known, ..)| known == place) else { continue };
        let labels = Labels::new([("device", device)].into_iter().chain(direction.map(|it| ("direction", it))));
        if metric.name == host::DISK_IN_FLIGHT.name {
            // Some kernels' count is off: it then is near 2^32.
            if *value < 1e9 {
                context.out.host(at, *metric, labels, *value);
            }
        } else {
            context.out.total(at, *metric, labels, value / unit);
        }
    }
}

fn read_diskstats(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant_of("/proc/diskstats");
    let mut seen = Vec::new();
    let mut used = 0;
    for (device, numbers) in lines.iter().map_while(|line| diskstats(&line.text)) {
        // A second reading begins with the first device.
        if seen.contains(&device) {
            break;
        }
        seen.push(device);
        used += 1;
        if !is_partition(device) {
            put_disk(device, &numbers.into_iter().enumerate().collect::<Vec<_>>(), at, context);
        }
    }
    used.max(1)
}

fn is_disks(line: &str) -> bool {
    line.starts_with("disk-") && line.contains("reads") && line.contains("writes")
        || line.split_whitespace().eq("total merged sectors ms total merged sectors ms cur sec".split(' '))
}

fn read_disks(lines: &[Line], context: &mut Context) -> usize {
    let above = lines.iter().take_while(|line| is_disks(&line.text)).count();
    let at = context.instant_of("vmstat -d");
    let mut used = above;
    for line in lines.iter().skip(above) {
        let words: Vec<&str> = line.text.split_whitespace().collect();
        let Some((device, rest)) = words.split_first() else { break };
        let numbers: Vec<f64> = rest.iter().filter_map(|word| number(word)).collect();
        if numbers.len() != 10 || rest.len() != 10 {
            break;
        }
        used += 1;
        if !is_partition(device) {
            // Its last column is in seconds.
            let places = numbers.into_iter().enumerate();
            let numbers: Vec<(usize, f64)> = places.map(|(at, n)| (at, if at == 9 { n * 1e3 } else { n })).collect();
            put_disk(device, &numbers, at, context);
        }
    }
    used.max(1)
}

/// What a line of `vmstat -s` or `/proc/vmstat` counts.
enum Count {
    Of(Metric, Option<(&'static str, &'static str)>, f64),
    Memory(usize, f64),
    Other,
}

fn counter(line: &str) -> Option<Count> {
    let (first, rest) = line.trim().split_once(' ')?;
    let rest = rest.trim();
    let known = |is: &dyn Fn(&str, &str) -> bool, value: f64| {
        let found = COUNTS.iter().find(|(words, name, ..)| is(words, name));
        found.map(|(_, _, metric, label, unit)| Count::Of(*metric, *label, value / unit))
    };
    if let Some(value) = number(first).filter(|value| *value >= 0.0 && value.fract() == 0.0) {
        // `4046868 K total memory`
        if let Some(place) = MEMORY.iter().position(|words| rest.strip_prefix("K ").unwrap_or(rest) == *words) {
            return Some(Count::Memory(place, value * 1024.0));
        }
        let is_other =
            ["used memory", "active memory", "inactive memory", "used swap", "pages paged", "interrupts", "boot time"];
        let is_other = is_other.iter().any(|words| rest.ends_with(words) || rest.starts_with(words));
        return known(&|words, _| words == rest, value).or(is_other.then_some(Count::Other));
    }
    let value = number(rest).filter(|_| rest.bytes().all(|byte| byte.is_ascii_digit()))?;
    let is_own = ["nr_", "pg", "pswp", "oom_kill", "workingset_", "thp_", "allocstall", "numa_", "compact_", "zone_"];
    let is_own = is_own.iter().any(|prefix| first.starts_with(prefix));
    known(&|_, name| !name.is_empty() && name == first, value).or(is_own.then_some(Count::Other))
}

fn read_counters(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant_of("vmstat -s");
    let mut memory = [None; MEMORY.len()];
    let mut used = 0;
    for count in lines.iter().map_while(|line| counter(&line.text)) {
        match count {
            Count::Of(metric, label, value) => context.out.total(at, metric, Labels::new(label), value),
            Count::Memory(place, bytes) => memory[place] = Some(bytes),
            Count::Other => {}
        }
        used += 1;
    }
    let [total, free, buffers, cached, swap_total, swap_free] = memory;
    Usage { total, free, buffers, cached, available: None, swap_total, swap_free }.put(at, context);
    used.max(1)
}

/// Two lines of `/proc/net/netstat` or `/proc/net/snmp`: names and values behind the same word.
fn pair(lines: &[Line]) -> Option<(&str, Vec<(&str, f64)>)> {
    let (group, names) = text(lines, 0).split_once(": ")?;
    let values = text(lines, 1).strip_prefix(group)?.strip_prefix(": ")?;
    let is_group = ["Ip", "Icmp", "IcmpMsg", "Tcp", "Udp", "UdpLite", "TcpExt", "IpExt", "MPTcpExt"].contains(&group);
    let is_names = names.split_whitespace().all(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()));
    let pairs: Vec<(&str, f64)> =
        names.split_whitespace().zip(values.split_whitespace()).filter_map(|(n, v)| Some((n, number(v)?))).collect();
    (is_group && is_names).then_some((group, pairs))
}

fn read_pairs(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant_of("/proc/net/netstat");
    let mut used = 0;
    while let Some((group, pairs)) = lines.get(used..).and_then(pair) {
        for (name, value) in pairs {
            if let Some(metric) = netstat::metric(&format!("{group}{name}")) {
                context.out.total(at, metric, Labels::none(), value);
            }
        }
        used += 2;
    }
    used.max(1)
}

/// `[<0>] do_unlinkat+0x123/0x2a0`
fn is_frame(line: &str) -> bool {
    line.trim_start().starts_with("[<") && frame(line).is_some()
}

fn read_stack(lines: &[Line], context: &mut Context) -> usize {
    let is_end = |line: &str| line.trim() == "[<ffffffffffffffff>] 0xffffffffffffffff";
    let used = lines.iter().take_while(|line| is_frame(&line.text) || is_end(&line.text)).count();
    let frames: Vec<&str> = lines.iter().take(used.min(FRAMES_MAX)).filter_map(|line| frame(&line.text)).collect();
    let number_of =
        |word: &str, before: &str| -> Option<i64> { word.split_once(before)?.1.split('/').next()?.parse().ok() };
    let path = context.words().find(|word| word.ends_with("/stack")).unwrap_or_default().to_owned();
    let pid = number_of(&path, "/proc/").unwrap_or(0);
    let tid = number_of(&path, "/task/").unwrap_or(pid);
    let at = context.instant();
    // A stack of a running thread cannot be read, so it sleeps.
    let sleeps_lightly = frames.iter().take(3).any(|function| INTERRUPTIBLE.contains(function));
    let (state, process) = (if sleeps_lightly { 'S' } else { 'D' }, context.out.name_of(pid).unwrap_or_default());
    context.out.batch.threads.push(Thread {
        observed_at: at,
        source: HOST.to_owned(),
        pid,
        tid,
        thread: process.clone(),
        process,
        state: state.to_string(),
        stack: Some(frames.join(" < ")),
        count: 1,
        ..Thread::default()
    });
    used.max(1)
}
