//! Known outputs, cut as people cut them, at random by seed: columns dropped and put in another order,
//! lines cut at the head and at the tail, prompts and other outputs before, one report alone. No cut makes
//! a value that the whole output does not have, and nothing panics.

use std::collections::{BTreeMap, BTreeSet};

use holdup_import::text::{Pasted, Understood};

/// 2026-11-26 00:00:00 UTC.
const DAY: i64 = 1_795_651_200_000_000_000;

/// Mutated inputs.
const INPUTS: usize = 9_000;

/// A table by its columns, so that they can be cut.
struct Table {
    /// The command, in which `COLUMNS` stands for their fields.
    command: &'static str,
    /// Of each column: its field in the command, its name in the header, and its cells.
    columns: &'static [(&'static str, &'static str, &'static [&'static str])],
    /// Columns without which it is another output.
    needed: &'static [&'static str],
}

const TABLES: [Table; 4] = [
    Table {
        command: "ps -eLo COLUMNS",
        columns: &[
            ("pid", "PID", &["5100", "5100", "5100", "91"]),
            ("lwp", "LWP", &["5101", "5102", "5103", "91"]),
            ("stat", "STAT", &["Dl", "Dl", "Ssl", "D"]),
            ("pcpu", "%CPU", &["1.5", "2.5", "0.0", "0.5"]),
            ("user", "USER", &["dbadmin", "dbadmin", "dbadmin", "root"]),
            ("comm", "COMMAND", &["mariadbd", "mariadbd", "mariadbd", "jbd2/sda1-8"]),
            ("wchan:32", "WCHAN", &["unlinkat", "unlinkat", "ep_poll", "bit_wait_io"]),
        ],
        needed: &["PID", "STAT", "COMMAND"],
    },
    Table {
        command: "iostat -xy 1 1",
        columns: &[
            ("", "Device", &["sda", "md0"]),
            ("", "r/s", &["310.00", "11.00"]),
            ("", "rkB/s", &["4960.00", "44.00"]),
            ("", "r_await", &["20.00", "2.00"]),
            ("", "w/s", &["21.00", "3.00"]),
            ("", "wkB/s", &["160.00", "12.00"]),
            ("", "w_await", &["5.00", "1.00"]),
            ("", "aqu-sz", &["6.30", "0.10"]),
            ("", "%util", &["97.00", "4.00"]),
        ],
        needed: &["Device", "r/s", "w/s"],
    },
    Table {
        command: "vmstat 1 2",
        columns: &[
            ("", "r", &["1", "5"]),
            ("", "b", &["0", "9"]),
            ("", "swpd", &["1024", "1032"]),
            ("", "free", &["2048", "2040"]),
            ("", "si", &["0", "40"]),
            ("", "so", &["0", "80"]),
            ("", "cs", &["700", "20000"]),
            ("", "us", &["5", "30"]),
            ("", "sy", &["5", "10"]),
            ("", "id", &["88", "15"]),
            ("", "wa", &["2", "45"]),
        ],
        needed: &["r", "b", "si", "so", "us", "id"],
    },
    Table {
        command: "netstat -i",
        columns: &[
            ("", "Iface", &["ens5", "ens6"]),
            ("", "MTU", &["9001", "1500"]),
            ("", "RX-OK", &["8912345", "17"]),
            ("", "RX-ERR", &["3", "1"]),
            ("", "RX-DRP", &["71", "2"]),
            ("", "TX-OK", &["7812345", "19"]),
            ("", "TX-DRP", &["5", "6"]),
        ],
        needed: &["Iface", "MTU", "RX-OK", "TX-OK"],
    },
];

/// Outputs without columns to choose: lines are cut.
const TEXTS: [&str; 14] = [
    "$ uptime\n 10:11:12 up 112 days, 4:51, 3 users, load average: 588.21, 540.77, 401.30\n",
    "top - 10:11:13 up 112 days,  4:51,  3 users,  load average: 588.21, 540.77, 401.30\nTasks: 310 total,   2 running, 308 sleeping,   0 stopped,   0 zombie\n%Cpu(s): 30.1 us, 24.2 sy,  0.0 ni, 44.9 id,  0.5 wa,  0.0 hi,  0.3 si,  0.0 st\nMiB Mem :  27900.0 total,   7800.0 free,  11900.0 used,   8200.0 buff/cache\nMiB Swap:   2048.0 total,   2048.0 free,      0.0 used.  15000.0 avail Mem\n\n    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n   5100 dbadmin   20   0   28.4g  11.3g  12480 S 188.1  41.0 345:12.03 mariadbd\n",
    "$ free -m\n              total        used        free      shared  buff/cache   available\nMem:          27900       11900        7800          10        8200       15000\nSwap:          2048           0        2048\n",
    "$ netstat -s\nTcp:\n    40212 active connection openings\n    81023 passive connection openings\n    9120345 segments received\n    8234112 segments sent out\n    51234 segments retransmitted\nTcpExt:\n    4821 times the listen queue of a socket overflowed\n    4900 SYNs to LISTEN sockets dropped\n    TCPTimeouts: 77\n",
    "$ cat /proc/pressure/io\nsome avg10=61.50 avg60=40.00 avg300=12.00 total=123456789\nfull avg10=48.25 avg60=30.00 avg300=10.00 total=98765432\n",
    "$ cat /proc/diskstats\n 259       0 nvme0n1 1000 5 8000 700 900 6 7000 600 3 1500 1300\n 259       1 nvme0n1p1 1 2 3 4 5 6 7 8 9 10 11\n   9     127 md127 10 0 80 7 9 0 70 6 0 15 13\n",
    "$ ls -l /var/tmp/t\ntotal 96\n-rw-rw---- 1 dbadmin dbadmin 1024 Nov 26 10:11 #sql_13ec_0.MYI\n-rw-rw---- 1 dbadmin dbadmin    0 Nov 26 10:11 #sql_13ec_0.MYD\n",
    "$ ps -eLo state | grep D | wc -l\n431\n",
    "$ netstat -ant | awk '{print $6}' | sort | uniq -c\n     12 LISTEN\n    310 ESTABLISHED\n  28104 TIME_WAIT\n",
    "# pxname,svname,qcur,qmax,scur,smax,slim,stot,status,qtime,ctime,rtime,ttime\nshop_in,FRONTEND,,,1810,2000,2000,912345,OPEN,,,,\nshop_app,app1,14,90,20,20,20,456789,UP,812,1,340,1153\nshop_app,BACKEND,231,400,40,60,200,912000,UP,4210,1,338,4550\n",
    "State    Recv-Q   Send-Q     Local Address:Port     Peer Address:Port\nLISTEN   129      128              0.0.0.0:8080          0.0.0.0:*\nLISTEN   0        128                 [::]:8080             [::]:*\nLISTEN   3        511              0.0.0.0:3306          0.0.0.0:*\n",
    "Filesystem    512-blocks      Used Available Capacity iused      ifree %iused  Mounted on\n/dev/disk3s1s1 965595304  23000000 300000000     8%  404459 1500000000    0%   /\n/dev/disk3s5   965595304 600000000 200000000    67% 2400000 1500000000    0%   /Volumes/Data\n",
    "# TYPE node_load1 gauge\nnode_load1 588.2\nnode_disk_io_time_seconds_total{device=\"nvme0n1\"} 12345.5\nnode_netstat_TcpExt_ListenOverflows 4821\nmysql_global_status_threads_running 45\n",
    "10:11:10 AM  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle\n10:11:12 AM  all   50.00    0.00   25.00    5.00    1.00    2.00    0.00    0.00    0.00   17.00\n10:11:12 AM    0   50.00    0.00   25.00    5.00    1.00    2.00    0.00    0.00    0.00   17.00\n10:11:12 AM    1   50.00    0.00   25.00    5.00    1.00    2.00    0.00    0.00    0.00   17.00\n",
];

/// Metrics that add up over lines or cells: a cut shows fewer, never more.
const SUMS: [&str; 5] = [
    // The fullest of several listeners.
    "tcp_accept_queue_length",
    "system_threads",
    "system_temporary_table_files",
    "system_temporary_table_files_vanished",
    // Without a list of CPUs their number is unknown, and 1 is assumed.
    "system_cpu_time_seconds_total",
];

/// Metrics of which a cut may leave out what they are computed from.
const DERIVED: [&str; 3] = ["system_memory_usage_bytes", "system_cpu_logical_count", "system_paging_usage_bytes"];

struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % most.max(1)
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

fn read(text: &str) -> Understood {
    let mut pasted = Pasted::new(None);
    pasted.read("paste", text.as_bytes(), DAY);
    pasted.finish()
}

/// The values of each series, as growth for counters that begin at 0.
fn values(found: &Understood) -> BTreeMap<(String, String, String), BTreeSet<String>> {
    let mut all: BTreeMap<(String, String, String), BTreeSet<String>> = BTreeMap::new();
    for row in &found.batch.samples {
        let labels = format!("{:?}", row.labels);
        let value = format!("{:.6}", row.value);
        all.entry((row.source.clone(), row.metric.clone(), labels)).or_default().insert(value);
    }
    all
}

fn render(table: &Table, chosen: &[usize], rows: &[usize], has_header: bool, has_command: bool) -> String {
    let fields: Vec<&str> = chosen.iter().map(|at| table.columns[*at].0).collect();
    let mut text = String::new();
    if has_command {
        text.push_str(&format!("ann@db1:~$ {}\n", table.command.replace("COLUMNS", &fields.join(","))));
    }
    let line = |cell: &dyn Fn(usize) -> &'static str| {
        chosen.iter().map(|at| format!("{:<12}", cell(*at))).collect::<String>().trim_end().to_owned() + "\n"
    };
    if has_header {
        text.push_str(&line(&|at| table.columns[at].1));
    }
    for row in rows {
        text.push_str(&line(&|at| table.columns[at].2[*row]));
    }
    text
}

/// A table with some of its columns in another order, some of its rows, with or without its header.
fn cut_table(table: &Table, random: &mut Random) -> String {
    let mut chosen: Vec<usize> = (0..table.columns.len())
        .filter(|at| table.needed.contains(&table.columns[*at].1) || !random.one_in(3))
        .collect();
    // `vmstat` and `iostat` begin with the same column.
    let is_free = table.command.contains("COLUMNS");
    let first = usize::from(!is_free);
    for at in (first + 1..chosen.len()).rev() {
        let other = first + random.below(at + 1 - first);
        chosen.swap(at, other);
    }
    let all = table.columns[0].2.len();
    let from = if is_free { random.below(all) } else { 0 };
    let rows: Vec<usize> = (from..all).collect();
    let has_header = !is_free || !random.one_in(3);
    render(table, &chosen, &rows, has_header, true)
}

/// A text with lines cut at its head, its tail and within, or its last line cut short.
fn cut_text(text: &str, random: &mut Random) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let from = if random.one_in(3) { random.below(lines.len()) } else { 0 };
    let to = if random.one_in(3) { from + random.below(lines.len() - from) + 1 } else { lines.len() };
    let mut kept: Vec<&str> = lines[from..to].to_vec();
    if random.one_in(4) && kept.len() > 2 {
        kept.remove(1 + random.below(kept.len() - 2));
    }
    kept.join("\n") + "\n"
}

fn noise(random: &mut Random) -> &'static str {
    const BEFORE: [&str; 6] = [
        "ann@db1:~$ date\n",
        "it is slow since ten, see below:\n\n",
        "```\n",
        "root@db1 ~ #\n",
        "$ echo\n\n",
        "> quoted by a mail\n\n",
    ];
    BEFORE[random.below(BEFORE.len())]
}

#[test]
fn no_cut_makes_a_value_that_the_whole_output_does_not_have() {
    let mut random = Random(0x5eed_cafe_f00d_0048);
    let whole_tables: Vec<_> = TABLES
        .iter()
        .map(|table| {
            let all: Vec<usize> = (0..table.columns.len()).collect();
            let rows: Vec<usize> = (0..table.columns[0].2.len()).collect();
            values(&read(&render(table, &all, &rows, true, true)))
        })
        .collect();
    let whole_texts: Vec<_> = TEXTS.iter().map(|text| values(&read(text))).collect();
    let (mut wrong, mut with_values) = (Vec::new(), 0);
    for input in 0..INPUTS {
        let (mut text, whole) = if input % 2 == 0 {
            let at = random.below(TABLES.len());
            (cut_table(&TABLES[at], &mut random), &whole_tables[at])
        } else {
            let at = random.below(TEXTS.len());
            (cut_text(TEXTS[at], &mut random), &whole_texts[at])
        };
        if random.one_in(3) {
            text = format!("{}{text}", noise(&mut random));
        }
        if random.one_in(5) {
            text = text.replace('\n', "\r\n");
        }
        let cut = values(&read(&text));
        with_values += usize::from(!cut.is_empty());
        for ((source, metric, labels), values) in &cut {
            if DERIVED.contains(&metric.as_str()) {
                continue;
            }
            // Without its prompt, the folder of `ls` is not known.
            let labels = if labels.contains("\"path\": \"\"") {
                labels.replace("\"\"", "\"/var/tmp/t\"")
            } else {
                labels.clone()
            };
            let known = whole.get(&(source.clone(), metric.clone(), labels.clone()));
            let is_sum = SUMS.contains(&metric.as_str());
            let most = known.and_then(|known| known.iter().filter_map(|v| v.parse::<f64>().ok()).reduce(f64::max));
            let is_right = |value: &String| match known {
                Some(known) => known.contains(value) || is_sum && value.parse::<f64>().ok() <= most,
                None => false,
            };
            if let Some(value) = values.iter().find(|value| !is_right(value)) {
                wrong.push(format!("{metric}{labels} is {value}, in the whole {known:?}, in:\n{text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong values, e.g.\n{}", wrong.len(), wrong[..wrong.len().min(6)].join("\n---\n"));
    assert!(with_values > INPUTS * 3 / 4, "only {with_values} of {INPUTS} inputs had a value");
}

#[test]
fn no_cut_within_a_line_panics() {
    let mut random = Random(0x0dd_ba11);
    let tables: Vec<String> = TABLES.iter().map(|table| cut_table(table, &mut random)).collect();
    let all: Vec<&str> = TEXTS.iter().copied().chain(tables.iter().map(String::as_str)).collect();
    for _ in 0..INPUTS / 4 {
        let mut bytes: Vec<u8> = all[random.below(all.len())].bytes().collect();
        for _ in 0..=random.below(4) {
            if bytes.is_empty() {
                break;
            }
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] = b" \t|:,.-#%/0D\xff"[random.below(13)],
                1 => {
                    bytes.remove(at);
                }
                2 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, b"9\n \xc3,"[random.below(5)]),
            }
        }
        let mut pasted = Pasted::new(None);
        pasted.read("paste", &bytes, DAY);
        let found = pasted.finish();
        assert!(found.batch.samples.iter().all(|row| row.value.is_finite()));
    }
}
