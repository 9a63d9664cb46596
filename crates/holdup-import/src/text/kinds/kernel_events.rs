//! Messages of the kernel that name a cause: parsed to an event with its facts. The sentence is
//! holdup's own; names of processes, devices and ports are kept as labels.

use std::sync::OnceLock;

use holdup_recording::events;
use regex::{Captures, Regex};

use super::kernel_event::{KernelEvent, event, part};
use super::kernel_kill::kill;

/// How a message becomes an event.
enum Make {
    /// The event's kind, and its sentence: `{name}` stands for that part of the pattern, and what is in brackets
    /// is left out if a part in it is absent. Every named part is a label.
    Told(&'static str, &'static str),
    /// By its own rule.
    Own(fn(&Captures<'_>) -> Option<KernelEvent>),
}

use Make::{Own, Told};

const DISK_ERROR: Make = Told(events::IO_ERROR, "device {device} returned an I/O error");
const DISK_TIMEOUT: Make = Told(events::IO_TIMEOUT, "a request to {device} timed out, or the device was reset");
const FILE_SYSTEM: Make = Told(events::FILE_SYSTEM_ERROR, "the file system[ on {device}] has an error");

/// Words that a message must hold, its pattern, and the event.
const PATTERNS: [(&str, &str, Make); 28] = [
    (
        "blocked",
        r"task (?P<process>.{1,64}):(?P<pid>\d+) blocked .{0,80}more than (?P<seconds>\d+) seconds",
        Told(events::HUNG_TASK, "{process} (thread {pid}) was in uninterruptible sleep for more than {seconds} s"),
    ),
    (
        "soft lockup",
        r"soft lockup - CPU#(?P<cpu>\d+) stuck for (?P<seconds>\d+)s! \[(?P<process>[^\]]{1,64}):(?P<pid>\d+)\]",
        Told(events::SOFT_LOCKUP, "{process} kept a CPU in the kernel for {seconds} s"),
    ),
    (
        "Killed process",
        r"Killed process (?P<pid>\d+),? (?:UID \d+,? )?\((?P<process>[^)]{1,64})\)(?:.*anon-rss:(?P<kb>\d+)kB)?",
        Own(kill),
    ),
    ("Kill process", r"Kill process (?P<pid>\d+) \((?P<process>[^)]{1,64})\) score", Own(kill)),
    ("oom-kill:", r"oom-kill:constraint=.*,task=(?P<process>[^,]{1,64}),pid=(?P<pid>\d+)", Own(kill)),
    ("oom_reaper:", r"oom_reaper: reaped process (?P<pid>\d+) \((?P<process>[^)]{1,64})\)", Own(kill)),
    (
        "victim process",
        r"^System OOM encountered, victim process: (?P<process>[^,]{1,64}), pid: (?P<pid>\d+)",
        Own(kill),
    ),
    ("by the OOM killer", r"(?P<unit>\S{1,255}): A process of this unit has been killed by the OOM killer", Own(kill)),
    ("oom-kill", r"(?P<unit>\S{1,255}): Failed with result 'oom-kill'", Own(kill)),
    ("due to memory", r"^Killed (?P<unit>/\S{1,255}) due to memory (?:used|pressure)", Own(kill)),
    (
        "error, dev",
        r"(?:I/O|critical \w+) error, dev (?P<device>[\w-]+), sector \d+(?: op \S+:\((?P<operation>[A-Z_]+)\))?",
        DISK_ERROR,
    ),
    ("Buffer I/O error", r"Buffer I/O error on dev(?:ice)? (?P<device>[\w-]+)", DISK_ERROR),
    ("failed command", r"(?P<device>ata\d+\.\d+): failed command: (?P<operation>READ|WRITE|FLUSH)?", DISK_ERROR),
    ("Unrecovered read error", r"\[(?P<device>\w+)\].*Unrecovered read error", DISK_ERROR),
    ("flushing file data", r"Detected IO errors while flushing file data on (?P<device>[\w-]+)", DISK_ERROR),
    ("timeout", r"^nvme (?P<device>nvme\d+): I/O .*timeout", DISK_TIMEOUT),
    ("controller is down", r"^nvme (?P<device>nvme\d+): controller is down", DISK_TIMEOUT),
    (
        "Disk failure on",
        r"(?P<array>md\d+): Disk failure on (?P<device>[\w-]+)",
        Told(events::FILE_SYSTEM_ERROR, "the array {array} lost {device}"),
    ),
    ("resetting link", r"(?P<device>ata\d+)(?:\.\d+)?: (?:hard|soft) resetting link", DISK_TIMEOUT),
    ("timing out command", r"\[(?P<device>\w+)\].*timing out command", DISK_TIMEOUT),
    ("-fs error", r"-fs error \(device (?P<device>[\w-]+)\)", FILE_SYSTEM),
    ("emounting filesystem read-only", r"(?:\((?P<device>[\w-]+)\): )?[Rr]emounting filesystem read-only", FILE_SYSTEM),
    (
        "XFS (",
        r"XFS \((?P<device>[\w-]+)\): .*(?:I/O error|has been shut down|corruption detected|Corruption of)",
        FILE_SYSTEM,
    ),
    (
        "ossible SYN flooding",
        r"ossible SYN flooding on port (?:\S*:)?(?P<port>\d+)\.(?: (?P<what>Sending cookies|Dropping request))?",
        Own(flooding),
    ),
    (
        "conntrack: table full",
        r"conntrack: table full, dropping packet",
        Told("conntrack_full", "the table of tracked connections was full: packets were dropped"),
    ),
    (
        "table overflow",
        r"[Nn]eighbou?r table overflow",
        Told("neighbor_table_full", "the table of neighbours (ARP) was full"),
    ),
    (
        "not responding",
        r"nfs: server (?P<server>\S{1,255}) not responding",
        Told("nfs_not_responding", "the NFS server {server} did not respond"),
    ),
    (
        "allocation failure",
        r"(?P<process>[^\s:]{1,64}): page allocation failure[:.] order:(?P<order>\d+)",
        Told("page_allocation_failure", "{process} got no contiguous memory of order {order}"),
    ),
];

fn patterns() -> &'static [Option<Regex>] {
    static ALL: OnceLock<Vec<Option<Regex>>> = OnceLock::new();
    ALL.get_or_init(|| PATTERNS.iter().map(|(_, pattern, _)| Regex::new(pattern).ok()).collect())
}

/// The event of a message, if it is a known one.
pub(super) fn parse(message: &str) -> Option<KernelEvent> {
    let candidates = PATTERNS.iter().zip(patterns()).filter(|((words, ..), _)| message.contains(words));
    let mut made = candidates.filter_map(|((_, _, make), pattern)| {
        let pattern = pattern.as_ref()?;
        let found = pattern.captures(message)?;
        match make {
            Told(kind, sentence) => Some(told(kind, sentence, pattern, &found)),
            Own(make) => make(&found),
        }
    });
    made.next()
}

/// An event by its sentence, with the pattern's parts as labels.
fn told(kind: &'static str, sentence: &str, pattern: &'static Regex, found: &Captures<'_>) -> KernelEvent {
    let value = |name: &str| {
        let value = part(found, name)?;
        Some(if name == "operation" { value.to_ascii_lowercase() } else { value.to_owned() })
    };
    let names = pattern.capture_names().flatten();
    let labels: Vec<(&str, String)> = names.filter_map(|name| Some((name, value(name)?))).collect();
    let filled = |text: &str| {
        labels.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
    };
    let (head, rest) = sentence.split_once('[').unwrap_or((sentence, "]"));
    let (inner, tail) = rest.split_once(']').unwrap_or_default();
    let inner = Some(filled(inner)).filter(|inner| !inner.contains('{')).unwrap_or_default();
    let text = format!("{}{inner}{}", filled(head), filled(tail));
    KernelEvent { kind, text, labels, is_hung: kind == events::HUNG_TASK }
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

fn flooding(found: &Captures<'_>) -> Option<KernelEvent> {
    let port = part(found, "port")?;
    let action = part(found, "what").map(|what| if what.starts_with('D') { "dropped" } else { "cookies" });
    let text = format!("the queue of new connections to port {port} was full");
    Some(event(events::SYN_FLOODING, text, &[("port", Some(port)), ("action", action)]))
}
