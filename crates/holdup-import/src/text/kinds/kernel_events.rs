//! Messages of the kernel that name a cause: parsed to an event with its facts. The sentence is
//! holdup's own; names of processes, devices and ports are kept as labels.

use std::sync::OnceLock;

use holdup_recording::events;
use regex::{Captures, Regex};

use super::kernel_event::{KernelEvent, event, part};
use super::kernel_kill::kill;

/// Makes an event of a message that matched.
type Make = fn(&Captures<'_>) -> Option<KernelEvent>;

/// Words that a message must hold, its pattern, and the event.
const PATTERNS: [(&str, &str, Make); 27] = [
    ("blocked", r"task (?P<process>.{1,64}):(?P<pid>\d+) blocked .{0,80}more than (?P<seconds>\d+) seconds", hung),
    (
        "soft lockup",
        r"soft lockup - CPU#(?P<cpu>\d+) stuck for (?P<seconds>\d+)s! \[(?P<process>[^\]]{1,64}):(?P<pid>\d+)\]",
        lockup,
    ),
    (
        "Killed process",
        r"Killed process (?P<pid>\d+),? (?:UID \d+,? )?\((?P<process>[^)]{1,64})\)(?:.*anon-rss:(?P<kb>\d+)kB)?",
        kill,
    ),
    ("Kill process", r"Kill process (?P<pid>\d+) \((?P<process>[^)]{1,64})\) score", kill),
    ("oom-kill:", r"oom-kill:constraint=.*,task=(?P<process>[^,]{1,64}),pid=(?P<pid>\d+)", kill),
    ("oom_reaper:", r"oom_reaper: reaped process (?P<pid>\d+) \((?P<process>[^)]{1,64})\)", kill),
    ("victim process", r"^System OOM encountered, victim process: (?P<process>[^,]{1,64}), pid: (?P<pid>\d+)", kill),
    ("by the OOM killer", r"(?P<unit>\S{1,255}): A process of this unit has been killed by the OOM killer", kill),
    ("oom-kill", r"(?P<unit>\S{1,255}): Failed with result 'oom-kill'", kill),
    ("due to memory", r"^Killed (?P<unit>/\S{1,255}) due to memory (?:used|pressure)", kill),
    (
        "error, dev",
        r"(?:I/O|critical \w+) error, dev (?P<device>[\w-]+), sector \d+(?: op \S+:\((?P<op>[A-Z_]+)\))?",
        disk_error,
    ),
    ("Buffer I/O error", r"Buffer I/O error on dev(?:ice)? (?P<device>[\w-]+)", disk_error),
    ("failed command", r"(?P<device>ata\d+\.\d+): failed command: (?P<op>READ|WRITE|FLUSH)?", disk_error),
    ("Unrecovered read error", r"\[(?P<device>\w+)\].*Unrecovered read error", disk_error),
    ("flushing file data", r"Detected IO errors while flushing file data on (?P<device>[\w-]+)", disk_error),
    ("timeout", r"^nvme (?P<device>nvme\d+): I/O .*timeout", disk_timeout),
    ("controller is down", r"^nvme (?P<device>nvme\d+): controller is down", disk_timeout),
    ("resetting link", r"(?P<device>ata\d+)(?:\.\d+)?: (?:hard|soft) resetting link", disk_timeout),
    ("timing out command", r"\[(?P<device>\w+)\].*timing out command", disk_timeout),
    ("-fs error", r"-fs error \(device (?P<device>[\w-]+)\)", file_system),
    ("emounting filesystem read-only", r"(?:\((?P<device>[\w-]+)\): )?[Rr]emounting filesystem read-only", file_system),
    (
        "XFS (",
        r"XFS \((?P<device>[\w-]+)\): .*(?:I/O error|has been shut down|corruption detected|Corruption of)",
        file_system,
    ),
    (
        "ossible SYN flooding",
        r"ossible SYN flooding on port (?:\S*:)?(?P<port>\d+)\.(?: (?P<what>Sending cookies|Dropping request))?",
        flooding,
    ),
    ("conntrack: table full", r"conntrack: table full, dropping packet", conntrack),
    ("table overflow", r"[Nn]eighbou?r table overflow", neighbours),
    ("not responding", r"nfs: server (?P<server>\S{1,255}) not responding", nfs),
    ("allocation failure", r"(?P<process>[^\s:]{1,64}): page allocation failure[:.] order:(?P<order>\d+)", allocation),
];

fn patterns() -> &'static [Option<Regex>] {
    static ALL: OnceLock<Vec<Option<Regex>>> = OnceLock::new();
    ALL.get_or_init(|| PATTERNS.iter().map(|(_, pattern, _)| Regex::new(pattern).ok()).collect())
}

/// The event of a message, if it is a known one.
pub(super) fn parse(message: &str) -> Option<KernelEvent> {
    let candidates = PATTERNS.iter().zip(patterns()).filter(|((words, ..), _)| message.contains(words));
    candidates.filter_map(|((_, _, make), pattern)| make(&pattern.as_ref()?.captures(message)?)).next()
}

/// The function of a line of a stack: `io_schedule+0x46/0x70`. Unsure frames (`? `) are left out.
pub(super) fn frame(message: &str) -> Option<&str> {
    let message = message.trim();
    let message = message.strip_prefix("[<").and_then(|rest| rest.split_once(">] ")).map_or(message, |(_, rest)| rest);
    let word = message.split_whitespace().next()?;
    let (name, place) = word.split_once("+0x")?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte));
    (is_name && place.contains("/0x")).then_some(name)
}

fn hung(found: &Captures<'_>) -> Option<KernelEvent> {
    let (process, pid, seconds) = (part(found, "process")?, part(found, "pid")?, part(found, "seconds")?);
    let text = format!("{process} (thread {pid}) was in uninterruptible sleep for more than {seconds} s");
    let labels = [("process", Some(process)), ("pid", Some(pid)), ("seconds", Some(seconds))];
    Some(KernelEvent { is_hung: true, ..event(events::HUNG_TASK, text, &labels) })
}

fn lockup(found: &Captures<'_>) -> Option<KernelEvent> {
    let (process, pid, seconds) = (part(found, "process")?, part(found, "pid")?, part(found, "seconds")?);
    let text = format!("{process} kept a CPU in the kernel for {seconds} s");
    let labels =
        [("process", Some(process)), ("pid", Some(pid)), ("cpu", part(found, "cpu")), ("seconds", Some(seconds))];
    Some(event(events::SOFT_LOCKUP, text, &labels))
}

fn disk_error(found: &Captures<'_>) -> Option<KernelEvent> {
    let device = part(found, "device")?;
    let operation = part(found, "op").map(str::to_ascii_lowercase);
    let text = format!("device {device} returned an I/O error");
    Some(event(events::IO_ERROR, text, &[("device", Some(device)), ("operation", operation.as_deref())]))
}

fn disk_timeout(found: &Captures<'_>) -> Option<KernelEvent> {
    let device = part(found, "device")?;
    Some(event(
        events::IO_TIMEOUT,
        format!("a request to {device} timed out, or the device was reset"),
        &[("device", Some(device))],
    ))
}

fn file_system(found: &Captures<'_>) -> Option<KernelEvent> {
    let device = part(found, "device");
    let of = device.map_or_else(String::new, |device| format!(" on {device}"));
    Some(event(events::FILE_SYSTEM_ERROR, format!("the file system{of} has an error"), &[("device", device)]))
}

fn flooding(found: &Captures<'_>) -> Option<KernelEvent> {
    let port = part(found, "port")?;
    let action = part(found, "what").map(|what| if what.starts_with('D') { "dropped" } else { "cookies" });
    let text = format!("the queue of new connections to port {port} was full");
    Some(event(events::SYN_FLOODING, text, &[("port", Some(port)), ("action", action)]))
}

fn conntrack(_: &Captures<'_>) -> Option<KernelEvent> {
    Some(event("conntrack_full", "the table of tracked connections was full: packets were dropped".to_owned(), &[]))
}

fn neighbours(_: &Captures<'_>) -> Option<KernelEvent> {
    Some(event("neighbor_table_full", "the table of neighbours (ARP) was full".to_owned(), &[]))
}

fn nfs(found: &Captures<'_>) -> Option<KernelEvent> {
    let server = part(found, "server")?;
    Some(event("nfs_not_responding", format!("the NFS server {server} did not respond"), &[("server", Some(server))]))
}

fn allocation(found: &Captures<'_>) -> Option<KernelEvent> {
    let (process, order) = (part(found, "process")?, part(found, "order")?);
    let text = format!("{process} got no contiguous memory of order {order}");
    Some(event("page_allocation_failure", text, &[("process", Some(process)), ("order", Some(order))]))
}
