//! Pasted outputs, read to exact values with their units.

use holdup_import::text::{Pasted, Understood, recognises};

const S: i64 = 1_000_000_000;
/// 2026-11-26 00:00:00 UTC.
const DAY: i64 = 1_795_651_200 * S;

fn read(text: &str) -> Understood {
    let mut pasted = Pasted::new(None);
    pasted.read("paste", text.as_bytes(), DAY);
    pasted.finish()
}

/// Times in seconds of the day, and values, of a metric with these labels.
fn series(found: &Understood, metric: &str, labels: &[(&str, &str)]) -> Vec<(f64, f64)> {
    let rows = found.batch.samples.iter().filter(|row| row.metric == metric && row.labels.contains(labels));
    rows.map(|row| ((row.observed_at - DAY) as f64 / 1e9, (row.value * 1e6).round() / 1e6)).collect()
}

fn last(found: &Understood, metric: &str, labels: &[(&str, &str)]) -> Option<f64> {
    series(found, metric, labels).last().map(|(_, value)| *value)
}

fn setting<'a>(found: &'a Understood, name: &str) -> Option<&'a str> {
    found.batch.settings.iter().find(|row| row.name == name).map(|row| row.value.as_str())
}

fn kinds(found: &Understood) -> Vec<&'static str> {
    found.parts.iter().map(|part| part.kind).collect()
}

#[test]
fn the_paste_of_incident_b() {
    let found = read(include_str!("pastes/readahead.txt"));
    assert_eq!(found.unread, [], "{:?}", found.parts);
    let at = 36_672.0;
    assert_eq!(series(&found, "system_load_average_1m", &[]), [(at, 30.35), (at + 8.0, 30.35)]);
    assert_eq!(last(&found, "system_load_average_15m", &[]), Some(10.1));
    // 66.7 % of 4 CPUs for the 3 s of top, then 66.6 % for the 10 s of iostat.
    let waited = series(&found, "system_cpu_time_seconds_total", &[("cpu_mode", "iowait")]);
    assert_eq!(waited.last().map(|(_, value)| *value), Some(34.644), "{waited:?}");
    let read = [("device", "vda"), ("direction", "read")];
    let operations = series(&found, "system_disk_operations_total", &read);
    assert_eq!(operations.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [0.0, 2340.0]);
    assert_eq!(operations[1].0 - operations[0].0, 10.0);
    assert_eq!(last(&found, "system_disk_io_bytes_total", &read), Some(3568.0 * 1024.0 * 10.0));
    assert_eq!(last(&found, "system_disk_operation_time_seconds_total", &read), Some(427.9626));
    assert_eq!(last(&found, "system_disk_weighted_io_time_seconds_total", &[("device", "vda")]), Some(244.1));
    assert_eq!(last(&found, "system_disk_io_time_seconds_total", &[("device", "vda")]), Some(10.0));
    assert_eq!(last(&found, "system_memory_total_bytes", &[]), Some(3951.6 * 1_048_576.0));
    assert_eq!(last(&found, "system_cpu_logical_count", &[]), Some(4.0));
    assert_eq!(setting(&found, "block.vda.read_ahead_kb"), Some("128"));
    assert_eq!(setting(&found, "mount[/var/lib/mongodb].options"), Some("data=ordered,rw,strictatime"));
    assert_eq!(setting(&found, "transparent_hugepage.enabled"), Some("always"));
    assert_eq!(setting(&found, "comm"), Some("mongod"));
    assert!(found.notes.iter().any(|note| note.contains("since boot")), "{:?}", found.notes);
}

#[test]
fn the_paste_of_incident_e() {
    let found = read(include_str!("pastes/unlink.txt"));
    assert_eq!(found.unread, []);
    assert_eq!(last(&found, "system_threads", &[("state", "D")]), Some(547.0));
    assert_eq!(last(&found, "system_threads", &[("state", "R")]), Some(7.0));
    let blocked = found.batch.threads.iter().find(|row| row.state == "D").unwrap();
    assert_eq!((blocked.process.as_str(), blocked.wchan.as_deref(), blocked.count), ("mysqld", Some("unlinkat"), 547));
    assert_eq!(last(&found, "system_cpu_logical_count", &[]), Some(14.0));
    assert_eq!(last(&found, "system_cpu_time_seconds_total", &[("cpu_mode", "idle")]), Some(18.858));
    assert_eq!(last(&found, "system_memory_total_bytes", &[]), Some(29_255_270.0 * 1024.0));
    assert_eq!(found.batch.sessions.len(), 25);
    let first = &found.batch.sessions[0];
    assert_eq!(
        first.digest_text.as_ref().unwrap().as_str(),
        "SELECT title, body FROM notes WHERE owner = ? ORDER BY r LIMIT ?"
    );
    assert_eq!((first.state.as_ref().unwrap().as_str(), first.age_ns), ("removing tmp table", Some(0)));
    let running = [("command", "Query"), ("true_state", "executing")];
    assert_eq!(last(&found, "mysql_sessions", &running), Some(24.0));
}

#[test]
fn the_paste_of_incident_a_with_decimal_commas() {
    let found = read(include_str!("pastes/hidden_queue.txt"));
    assert_eq!(found.unread, []);
    assert_eq!(last(&found, "mysql_sessions", &[("command", "Sleep")]), Some(40.0));
    assert_eq!(last(&found, "mysql_sessions", &[("command", "Query")]), Some(1.0));
    let write = [("device", "nvme0n1"), ("direction", "write")];
    assert_eq!(last(&found, "system_disk_operations_total", &write), Some(800.0));
    assert_eq!(last(&found, "system_disk_operation_time_seconds_total", &write), Some(0.4));
    assert_eq!(last(&found, "system_disk_merged_total", &write), Some(80.0));
    assert_eq!(last(&found, "system_cpu_time_seconds_total", &[("cpu_mode", "user")]), Some(15.2));
}

#[test]
fn load_averages_of_any_version_and_language() {
    for line in [
        " 10:11:12 up 12 days,  3:04,  3 users,  load average: 30.35, 21.91, 10.10",
        " 10:11:12 up 1 min,  0 users,  load average: 30,35, 21,91, 10,10",
        "10:11:12 an 12 Tage,  3:04,  3 Benutzer,  Durchschnittslast: 30,35, 21,91, 10,10",
        "10:11AM  up 12 days, 3 users, load averages: 30.35 21.91 10.10",
        "30.35 21.91 10.10 31/812 12345",
    ] {
        let found = read(line);
        let values = ["1m", "5m", "15m"].map(|span| last(&found, &format!("system_load_average_{span}"), &[]));
        assert_eq!(values, [Some(30.35), Some(21.91), Some(10.1)], "{line}");
    }
    let found = read(
        "2026-11-26 23:00:00\n 03:04:05pm up 1 day, 1 user, load average: 1.00, 2.00, 3.00\nUSER TTY FROM LOGIN@ IDLE WHAT\nann pts/0 - 10:11 1.00s w\n",
    );
    assert_eq!((series(&found, "system_load_average_1m", &[]), found.unread_total), (vec![(54_245.0, 1.0)], 0));
}

#[test]
fn vmstat_leaves_out_the_line_since_boot() {
    let head = "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n";
    let rows = " 1  0   1024 2048    16   4096    9    9     9     9    9    9 90  9  1  0  0\n 5  2   1024 2048    16   4096    4    8    16    32  100 2000 50 25 20  5  0\n";
    let found = read(&format!(
        "$ nproc\n2\n$ vmstat 2\n{head}{rows}{head} 7  2   1024 2048    16   4096    4    8    16    32  100 2000 50 25 20  5  0\n"
    ));
    assert_eq!(found.unread, []);
    let user = series(&found, "system_cpu_time_seconds_total", &[("cpu_mode", "user")]);
    assert_eq!(user, [(0.0, 0.0), (2.0, 2.0), (4.0, 4.0)]);
    assert_eq!(last(&found, "system_context_switches_total", &[]), Some(8000.0));
    assert_eq!(last(&found, "system_paging_operations_total", &[("direction", "out")]), Some(8.0));
    assert_eq!(last(&found, "system_memory_usage_bytes", &[("state", "free")]), Some(2_097_152.0));
    let runnable: Vec<f64> = series(&found, "system_processes_runnable", &[]).iter().map(|(_, v)| *v).collect();
    assert_eq!(runnable, [1.0, 5.0, 7.0]);
    // Without a prompt the interval is assumed.
    let found = read(&format!("{head}{rows}"));
    assert_eq!(series(&found, "system_cpu_time_seconds_total", &[("cpu_mode", "user")]), [(0.0, 0.0), (1.0, 0.5)]);
    assert!(found.notes.iter().any(|note| note.contains("1 s apart")), "{:?}", found.notes);
    // In MiB, with the time at the end of each row.
    let found = read(
        " r  b swpd free buff cache si so bi bo in cs us sy id wa st                 UTC\n 1 0 1 2 3 4 0 0 0 0 0 0 1 1 98 0 0 2026-11-26 00:00:05\n 1 0 1 2 3 4 0 0 0 0 0 0 1 1 98 0 0 2026-11-26 00:00:09\n",
    );
    let times: Vec<f64> = series(&found, "system_processes_runnable", &[]).iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [5.0, 9.0]);
}

#[test]
fn iostat_of_newer_versions() {
    let new = "Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz     d/s     dkB/s   drqm/s  %drqm d_await dareq-sz     f/s f_await  aqu-sz  %util\nsda             10.00     40.00     1.00   9.09    2.00     4.00   20.00    160.00     0.00   0.00    5.00     8.00    3.00      0.00     0.00   0.00    0.00     0.00    4.00    7.00    0.12   6.00\nsda1             1.00     40.00     1.00   9.09    2.00     4.00   20.00    160.00     0.00   0.00    5.00     8.00    0.00      0.00     0.00   0.00    0.00     0.00    4.00    7.00    0.12   6.00\n";
    let found = read(new);
    let of = |metric: &str, direction: &str| {
        last(&found, &format!("system_disk_{metric}_total"), &[("device", "sda"), ("direction", direction)])
    };
    assert_eq!((of("operations", "read"), of("operations", "write")), (Some(10.0), Some(20.0)));
    assert_eq!(of("operation_time_seconds", "write"), Some(0.1));
    assert_eq!(last(&found, "system_disk_flushes_total", &[("device", "sda")]), Some(4.0));
    assert_eq!(last(&found, "system_disk_flush_time_seconds_total", &[]), Some(0.028));
    assert_eq!(series(&found, "system_disk_flushes_total", &[("device", "sda1")]), []);
    let plain = read(
        "Device             tps    kB_read/s    kB_wrtn/s    kB_dscd/s    kB_read    kB_wrtn    kB_dscd\nvdb               5.00        10.00        20.00         0.00        100        200          0\n",
    );
    assert_eq!(last(&plain, "system_disk_io_bytes_total", &[("direction", "write")]), Some(20_480.0));
    let sectors = read(
        "Device: rrqm/s wrqm/s r/s w/s rsec/s wsec/s avgrq-sz avgqu-sz await svctm %util\nhdb 0 0 2 0 16 0 8 0.1 5 1 1\n",
    );
    assert_eq!(last(&sectors, "system_disk_io_bytes_total", &[("direction", "read")]), Some(8192.0));
    assert_eq!(last(&sectors, "system_disk_operation_time_seconds_total", &[("direction", "read")]), Some(0.01));
}

#[test]
fn top_of_threads_counts_states() {
    let screen = "\u{1b}[H\u{1b}[Jtop - 00:00:10 up 1 day,  1 user,  load average: 9,50, 4,00, 2,00\u{1b}[K\r\nThreads: \u{1b}[1m120\u{1b}[m total,   3 running, 117 sleeping,   0 stopped,   0 zombie\r\n%Cpu0  : 50,0 us, 10,0 sy,  0,0 ni, 40,0 id,  0,0 wa,  0,0 hi,  0,0 si,  0,0 st\r\n%Cpu1  : 10,0 us, 10,0 sy,  0,0 ni, 80,0 id,  0,0 wa,  0,0 hi,  0,0 si,  0,0 st\r\nGiB Mem :     31,2 total,      1,5 free,     20,2 used,      9,5 buff/cache\r\n\r\n    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\r\n    901 mysql     20   0   20,0g   9,1g  12004 D  12,0  29,0   1:02.00 my conn\r\n    902 mysql     20   0   20,0g   9,1g  12004 R  12,0  29,0   1:02.00 connection\r\n";
    let found = read(screen);
    assert_eq!(found.unread, []);
    let states = ["R", "S", "D"].map(|state| last(&found, "system_threads", &[("state", state)]));
    assert_eq!(states, [Some(3.0), Some(116.0), Some(1.0)]);
    assert_eq!(series(&found, "system_cpu_time_seconds_total", &[("cpu_mode", "user")]), [(7.0, 0.0), (10.0, 1.8)]);
    assert_eq!(last(&found, "system_memory_usage_bytes", &[("state", "free")]), Some(1.5 * 1_073_741_824.0));
    assert_eq!(found.batch.threads.iter().find(|row| row.state == "D").unwrap().process, "my conn");
    assert!(found.notes.iter().any(|note| note.contains("2 of 120 threads")), "{:?}", found.notes);
}

#[test]
fn free_in_its_units() {
    let rows = "              total        used        free      shared  buff/cache   available\nMem:           4096        1024         512          10        2560        2900\nSwap:          2048           8        2040\n";
    for (command, bytes) in [("free -m", 1_048_576.0), ("free", 1024.0), ("free -b", 1.0)] {
        let found = read(&format!("$ {command}\n{rows}"));
        assert_eq!(last(&found, "system_memory_total_bytes", &[]), Some(4096.0 * bytes), "{command}");
        assert_eq!(last(&found, "system_memory_available_bytes", &[]), Some(2900.0 * bytes));
        assert_eq!(last(&found, "system_paging_usage_bytes", &[("state", "used")]), Some(8.0 * bytes));
    }
    let human = read(
        "total used free shared buff/cache available\nMem: 3.9Gi 1.6Gi 108Mi 10Mi 2.1Gi 2.0Gi\nSwap: 2.0Gi 0B 2.0Gi\n",
    );
    assert_eq!(last(&human, "system_memory_usage_bytes", &[("state", "free")]), Some(108.0 * 1_048_576.0));
    let old = read(
        "$ free -k\n             total       used       free     shared    buffers     cached\nMem:          1000        900        100          0         50        350\n-/+ buffers/cache:        500        500\nSwap:          200         40        160\n",
    );
    assert_eq!(last(&old, "system_memory_usage_bytes", &[("state", "used")]), Some(500.0 * 1024.0));
    assert_eq!((last(&old, "system_paging_usage_bytes", &[("state", "free")]), old.unread_total), (Some(163_840.0), 0));
    let meminfo = read(
        "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    600 kB\nBuffers:          50 kB\nCached:          300 kB\nSReclaimable:     50 kB\nDirty:             7 kB\n",
    );
    assert_eq!(last(&meminfo, "system_memory_usage_bytes", &[("state", "cached")]), Some(358_400.0));
    assert_eq!(last(&meminfo, "system_memory_dirty_bytes", &[]), Some(7168.0));
}

#[test]
fn process_lists_in_three_forms() {
    let table = "| Id | User | Host | db | Command | Time | State | Info |\n| 7 | a | h:1 | d | Query | 3 | Waiting for table metadata lock | UPDATE t SET a = 'x | y' |\n";
    let vertical = "*************************** 1. row ***************************\n     Id: 7\n   User: a\n   Host: h:1\n     db: d\nCommand: Query\n   Time: 3\n  State: Waiting for table metadata lock\n   Info: UPDATE t SET a = 'x | y'\n";
    let tabs = "Id\tUser\tHost\tdb\tCommand\tTime\tState\tInfo\n7\ta\th:1\td\tQuery\t3\tWaiting for table metadata lock\tUPDATE t SET a = 'x | y'\n";
    for text in [table, vertical, tabs] {
        let found = read(text);
        let [session] = found.batch.sessions.as_slice() else { panic!("{text}: {:?}", found.batch.sessions) };
        assert_eq!((session.session_id, session.true_state.as_str(), session.age_ns), (7, "lock_wait", Some(3 * S)));
        assert_eq!(session.digest_text.as_ref().unwrap().as_str(), "UPDATE t SET a = ?");
        assert_eq!((session.client.as_ref().unwrap().as_str(), found.unread_total), ("h:1", 0));
    }
    let counted = read(
        "+----------+---------+--------------+\n| COUNT(*) | command | state        |\n+----------+---------+--------------+\n|       45 | Query   | closing tables |\n|      600 | Sleep   |              |\n+----------+---------+--------------+\n",
    );
    assert_eq!(
        (counted.batch.sessions.len(), last(&counted, "mysql_sessions", &[("command", "Query")])),
        (645, Some(45.0))
    );
}

#[test]
fn status_is_counted_and_variables_are_settings_without_secrets() {
    for text in [
        "+--+--+\n| Variable_name | Value |\n+--+--+\n| Threads_running | 57 |\n| tmp_table_size | 33554432 |\n| master_password | hush |\n+--+--+\n",
        "Variable_name\tValue\nThreads_running\t57\ntmp_table_size\t33554432\nmaster_password\thush\n",
        "*************************** 1. row ***************************\nVariable_name: Threads_running\n        Value: 57\n*************************** 2. row ***************************\nVariable_name: tmp_table_size\n        Value: 33554432\n",
    ] {
        let found = read(text);
        assert_eq!(last(&found, "mysql_global_status_threads_running", &[]), Some(57.0), "{text}");
        assert_eq!((setting(&found, "tmp_table_size"), setting(&found, "master_password")), (Some("33554432"), None));
    }
}

#[test]
fn disks_and_kernel_settings() {
    let found = read(
        "$ df -h\nFilesystem      Size  Used Avail Use% Mounted on\n/dev/mapper/a-very-long-volume-group-data\n                100G   40G   60G  40% /var/lib/mysql\ntmpfs           2.0G     0  2.0G   0% /tmp\n\n$ sysctl vm.swappiness\nvm.swappiness = 60\n$ cat /sys/block/sda/queue/scheduler\nnone [mq-deadline]\n$ blockdev --getra /dev/sda\n256\n",
    );
    assert_eq!(setting(&found, "mount[/var/lib/mysql].free_bytes"), Some("64424509440"));
    assert_eq!(setting(&found, "mount[/tmp].size_bytes"), Some("2147483648"));
    assert_eq!(
        (setting(&found, "vm.swappiness"), setting(&found, "block.sda.scheduler")),
        (Some("60"), Some("mq-deadline"))
    );
    assert_eq!((setting(&found, "block.sda.read_ahead_kb"), found.unread_total), (Some("128"), 0));
    let posix = read("Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/sda1 1000 400 600 40% /\n");
    assert_eq!(setting(&posix, "mount[/].free_bytes"), Some("614400"));
    let fstab =
        read("# mounts\nUUID=9f-a / ext4 defaults,noatime 0 1\n//srv/s /mnt cifs username=a,password=hush,rw 0 0\n");
    assert_eq!(setting(&fstab, "mount[/].options"), Some("defaults,noatime"));
    assert!(!format!("{:?}", fstab.batch).contains("hush"));
    let keys = read(
        "10.0.0.1:/ on /srv type ceph (rw,name=admin,secret=hush,acl)\n\nvm.swappiness = 60\nnet.ipv4.tcp_fastopen_key = hush\n",
    );
    assert_eq!(setting(&keys, "mount[/srv].options"), Some("acl,name=admin,rw,secret=***"));
    assert_eq!((setting(&keys, "vm.swappiness"), setting(&keys, "net.ipv4.tcp_fastopen_key")), (Some("60"), None));
    assert!(!format!("{:?}", keys.batch).contains("hush"));
}

#[test]
fn sysstat_by_its_times() {
    let banner = "Linux 5.10.0 (h) \t2026-11-26 \t_x86_64_\t(2 CPU)\n\n";
    let mpstat = read(&format!(
        "{banner}12:00:01 AM  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle\n12:00:03 AM  all   50.00    0.00   25.00    0.00    0.00    0.00    0.00    0.00    0.00   25.00\n12:00:03 AM    0   50.00    0.00   25.00    0.00    0.00    0.00    0.00    0.00    0.00   25.00\n12:00:03 AM    1   50.00    0.00   25.00    0.00    0.00    0.00    0.00    0.00    0.00   25.00\n\nAverage:     CPU    %usr\n"
    ));
    assert_eq!(series(&mpstat, "system_cpu_time_seconds_total", &[("cpu_mode", "user")]), [(1.0, 0.0), (3.0, 2.0)]);
    let sar = read(&format!(
        "{banner}00:00:01        CPU     %user     %nice   %system   %iowait    %steal     %idle\n00:10:01        all     10.00      0.00      5.00      5.00      0.00     80.00\n00:20:01        all     20.00      0.00      5.00      5.00      0.00     70.00\nAverage:        all     15.00      0.00      5.00      5.00      0.00     75.00\n\n00:00:01      runq-sz  plist-sz   ldavg-1   ldavg-5  ldavg-15   blocked\n00:10:01            4       120      3.50      2.50      1.50         0\n\n00:00:01          DEV       tps     rkB/s     wkB/s   areq-sz    aqu-sz     await     %util\n00:10:01          vda     10.00    100.00     50.00     15.00      0.50      5.00     10.00\n"
    ));
    assert_eq!(sar.unread, []);
    let user = series(&sar, "system_cpu_time_seconds_total", &[("cpu_mode", "user")]);
    assert_eq!(user, [(1.0, 0.0), (601.0, 120.0), (1201.0, 360.0)]);
    assert_eq!(series(&sar, "system_load_average_1m", &[]), [(601.0, 3.5)]);
    assert_eq!(last(&sar, "system_disk_io_bytes_total", &[("direction", "read")]), Some(61_440_000.0));
}

#[test]
fn postgresql_in_forms_of_psql() {
    let aligned = " pid  | usename | state  | wait_event_type | wait_event | query_start | query \n------+---------+--------+-----------------+------------+------+-------\n 4101 | app     | active | Lock            | tuple      | 2026-11-26 00:00:00+00 | UPDATE t SET a = 5 WHERE id = 7\n 4102 | app     | idle   | Client          | ClientRead |  | COMMIT\n(2 rows)\n";
    let expanded = "-[ RECORD 1 ]---+---------\npid | 4101\nusename | app\nstate | active\nwait_event_type | Lock\nwait_event | tuple\nquery | UPDATE t SET a = 5 WHERE id = 7\n";
    let csv = "pid,usename,state,wait_event_type,wait_event,query\n4101,app,active,Lock,tuple,UPDATE t SET a = 5 WHERE id = 7\n";
    for text in [aligned, expanded, csv] {
        let found = read(text);
        let session = &found.batch.sessions[0];
        assert_eq!((session.session_id, session.true_state.as_str()), (4101, "lock_wait"), "{text}");
        assert_eq!(session.state.as_ref().unwrap().as_str(), "Lock:tuple");
        assert_eq!(session.digest_text.as_ref().unwrap().as_str(), "UPDATE t SET a = ? WHERE id = ?");
        assert_eq!(found.unread_total, 0);
    }
    let settings = read(
        " name | setting | unit\n------+---------+------\n shared_buffers | 16384 | 8kB\n primary_conninfo | password=hush | \n(2 rows)\n",
    );
    assert_eq!((setting(&settings, "shared_buffers"), setting(&settings, "primary_conninfo")), (Some("128MB"), None));
}

#[test]
fn outputs_of_a_loop_are_apart() {
    let status = "| Variable_name | Value |\n| Questions | 100 |\n\n| Variable_name | Value |\n| Questions | 900 |\n";
    assert_eq!(series(&read(status), "mysql_global_status_questions", &[]), [(0.0, 100.0), (1.0, 900.0)]);
    let told = read(&format!("$ mysqladmin ext -i10\n{status}"));
    assert_eq!(series(&told, "mysql_global_status_questions", &[]), [(0.0, 100.0), (10.0, 900.0)]);
    let stamped = read(
        "TS 1795651205.000 x\n| Variable_name | Value |\n| Questions | 100 |\nTS 1795651209.000 x\n| Variable_name | Value |\n| Questions | 900 |\n",
    );
    assert_eq!(series(&stamped, "mysql_global_status_questions", &[]), [(5.0, 100.0), (9.0, 900.0)]);
}

#[test]
fn a_file_that_a_tool_wrote_begins_with_the_time_since_boot() {
    let rows = " r b swpd free buff cache si so bi bo in cs us sy id wa st\n 1 0 1 2 3 4 0 0 0 0 0 0 90 9 1 0 0\n 1 0 1 2 3 4 0 0 0 0 0 0 40 10 50 0 0\n";
    let mut pasted = Pasted::new(Some(1));
    pasted.read_output("1-vmstat", rows.as_bytes(), DAY);
    let found = pasted.finish();
    assert_eq!(series(&found, "system_cpu_time_seconds_total", &[("cpu_mode", "user")]), [(0.0, 0.0), (1.0, 0.4)]);
}

#[test]
fn outputs_without_anything_between_them() {
    let found = read(
        " 10:11:12 up 1 day, 1 user, load average: 9.00, 5.00, 2.00\nUSER TTY FROM LOGIN@ IDLE WHAT\nann pts/0 - 10:11 1.00s w\n\
        USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND\nmysql 7 0.0 1 1 1 ? D 1 1 /usr/sbin/mysqld --x\n\
        Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/sda1 1000 400 600 40% /\n\
        State Recv-Q Send-Q Local Address:Port Peer Address:Port\nLISTEN 1 128 0.0.0.0:80 0.0.0.0:*\n\
        total used free shared buff/cache available\nMem: 4Gi 2Gi 1Gi 0 1Gi 2Gi\n/dev/sda1 on / type ext4 (rw)\n\
        vm.swappiness = 1\n 10:11:13 up 1 day, 1 user, load average: 9.00, 5.00, 2.00\n",
    );
    assert_eq!(kinds(&found), ["uptime", "ps", "df", "ss", "free", "mount", "sysctl", "uptime"]);
    assert_eq!((found.unread, found.batch.threads[0].process.as_str()), (vec![], "mysqld"));
}

#[test]
fn a_table_ends_at_the_header_of_the_next() {
    let found = read(
        "PID STAT COMMAND\n7 D a\nPID SPID STAT COMMAND WCHAN\n7 8 D b io_schedule\n\
        Filesystem 1K-blocks Used Available Use% Mounted on\n/dev/sda1 1000 400 600 40% /\n\
        Filesystem Inodes IUsed IFree IUse% Mounted on\n/dev/sda1 90 50 40 60% /\n",
    );
    assert_eq!((found.unread.as_slice(), found.batch.threads.len()), (&[][..], 2));
    assert_eq!(last(&found, "system_threads", &[("state", "D")]), Some(1.0));
    let free = found.batch.settings.iter().filter(|row| row.name == "mount[/].free_bytes");
    assert_eq!(free.map(|row| row.value.as_str()).collect::<Vec<_>>(), ["614400"]);
}

#[test]
fn partitions_lie_on_disks() {
    let found = read(
        "NAME MAJ:MIN RM SIZE RO TYPE MOUNTPOINTS\nsda 8:0 0 100G 0 disk\n├─sda1 8:1 0 1G 0 part /boot\n\
        └─sda2 8:2 0 99G 0 part\n  └─vg-data 253:0 0 99G 0 lvm /data\nnvme0n1 259:0 0 9G 0 disk\n\
        `-nvme0n1p1 259:1 0 9G 0 part /x\n",
    );
    let parents = ["sda2", "nvme0n1p1", "vg-data"].map(|name| setting(&found, &format!("block.{name}.parent")));
    assert_eq!((parents, found.unread_total), ([Some("sda"), Some("nvme0n1"), None], 0));
}

#[test]
fn odd_times_do_not_overflow() {
    let row = " 1 0 1 2 3 4 0 0 0 0 0 0 40 10 50 0 0\n";
    let head = "r b swpd free buff cache si so bi bo in cs us sy id wa st\n";
    for start in ["9999-12-31 23:59:59", "2199-12-31 23:59:59", "TS 9223372036.0", "0001-01-01 00:00:00"] {
        let text = format!("{start}\n$ vmstat 999999\n{head}{}23:59:59\n00:00:01\n", row.repeat(3_000));
        assert_eq!(read(&text).parts[0].kind, "vmstat", "{start}");
    }
    let mut pasted = Pasted::new(None);
    pasted.read("late", b"00:00:01 up 1 day, 1 user, load average: 1.00, 1.00, 1.00\n", i64::MAX);
    pasted.read("early", b"23:00:01 up 1 day, 1 user, load average: 1.00, 1.00, 1.00\n", i64::MIN);
    assert_eq!(pasted.finish().parts.len(), 2);
    // Two files of one name are two outputs.
    let mut pasted = Pasted::new(None);
    pasted.read("a", b"\n\n 1.00 1.00 1.00 1/2 3\n", DAY);
    pasted.read("a", b"1.00 1.00 1.00 1/2 3\n", DAY);
    let lines: Vec<usize> = pasted.finish().parts.iter().map(|part| part.last_line).collect();
    assert_eq!(lines, [3, 1]);
}

#[test]
fn the_thread_pool() {
    let found = read(
        "GROUP_ID\tCONNECTIONS\tTHREADS\tACTIVE_THREADS\tSTANDBY_THREADS\tQUEUE_LENGTH\tHAS_LISTENER\tIS_STALLED\n0\t120\t3\t2\t1\t17\t1\t0\n1\t121\t4\t2\t1\t5\t0\t1\n\nGROUP_ID\tPOSITION\tPRIORITY\tCONNECTION_ID\tQUEUEING_TIME_MICROSECONDS\n0\t0\t1\t70\t1500000\n0\t1\t1\tNULL\t200\n",
    );
    assert_eq!(last(&found, "mysql_thread_pool_queue_length", &[]), Some(22.0));
    assert_eq!(last(&found, "mysql_thread_pool_group_stalled", &[("group", "1")]), Some(1.0));
    assert_eq!(last(&found, "mysql_thread_pool_queueing_time_seconds_max", &[]), Some(1.5));
    assert_eq!(last(&found, "mysql_thread_pool_queued_unknown_connections", &[]), Some(1.0));
    assert_eq!((kinds(&found), found.unread_total), (vec!["THREAD_POOL_GROUPS", "THREAD_POOL_QUEUES"], 0));
}

#[test]
fn sockets_and_innodb() {
    let found = read(
        "State   Recv-Q  Send-Q   Local Address:Port    Peer Address:Port  Process\nLISTEN  129     128            0.0.0.0:8080         0.0.0.0:*\nESTAB   0       0            10.0.0.1:8080        10.0.0.2:5000\n\nTcpExt:\n    19 times the listen queue of a socket overflowed\n    21 SYNs to LISTEN sockets dropped\n",
    );
    assert_eq!(last(&found, "tcp_accept_queue_length", &[("port", "8080")]), Some(129.0));
    assert_eq!(last(&found, "tcp_accept_queue_limit", &[("port", "8080")]), Some(128.0));
    assert_eq!(
        (last(&found, "tcp_listen_overflows_total", &[]), last(&found, "tcp_listen_drops_total", &[])),
        (Some(19.0), Some(21.0))
    );
    let innodb = read(
        "=====================================\n2026-11-26 00:00:30 0x7f01 INNODB MONITOR OUTPUT\n=====================================\nTRANSACTIONS\n------------\nHistory list length 41234\n------- TRX HAS BEEN WAITING 12 SEC FOR THIS LOCK TO BE GRANTED:\nLog sequence number 9000500\nLast checkpoint at  9000000\nEND OF INNODB MONITOR OUTPUT\n============================\n",
    );
    assert_eq!(series(&innodb, "mysql_innodb_history_list_length", &[]), [(30.0, 41234.0)]);
    assert_eq!(last(&innodb, "mysql_innodb_checkpoint_age_bytes", &[]), Some(500.0));
    assert_eq!(last(&innodb, "mysql_global_status_innodb_row_lock_current_waits", &[]), Some(1.0));
}

/// A list shows who waits for a row as `Updating`, and who waits for the pool's thread as asleep.
#[test]
fn other_outputs_say_what_the_sessions_of_a_list_wait_for() {
    let list = "+----+------+----------------+------+---------+------+----------+---------------------+
| Id | User | Host           | db   | Command | Time | State    | Info                |
+----+------+----------------+------+---------+------+----------+---------------------+
|  5 | app  | 10.0.0.7:40001 | shop | Query   |    1 | Updating | UPDATE day SET n=2  |
|  6 | app  | 10.0.0.7:40002 | shop | Query   |    1 | Updating | UPDATE day SET n=3  |
|  7 | app  | 10.0.0.7:40003 | shop | Sleep   |    1 |          | NULL                |
|  8 | app  | 10.0.0.7:40004 | shop | Sleep   |    1 |          | NULL                |
+----+------+----------------+------+---------+------+----------+---------------------+
";
    let queue = "+----------+----------+----------+---------------+----------------------------+
| GROUP_ID | POSITION | PRIORITY | CONNECTION_ID | QUEUEING_TIME_MICROSECONDS |
+----------+----------+----------+---------------+----------------------------+
|        0 |        0 |        1 |             8 |                     366097 |
+----------+----------+----------+---------------+----------------------------+
";
    let innodb = "=====================================
2026-11-26 00:00:30 0x7f01 INNODB MONITOR OUTPUT
=====================================
TRANSACTIONS
------------
---TRANSACTION 421, ACTIVE 9 sec
2 lock struct(s), heap size 1128, 1 row lock(s)
MySQL thread id 7, OS thread handle 1401, query id 88 10.0.0.7 app
---TRANSACTION 422, ACTIVE 1 sec starting index read
MySQL thread id 5, OS thread handle 1402, query id 90 10.0.0.7 app Updating
UPDATE day SET n=2
------- TRX HAS BEEN WAITING 1 SEC FOR THIS LOCK TO BE GRANTED:
RECORD LOCKS space id 8 page no 3 n bits 72 index PRIMARY of table `shop`.`day` trx id 422 lock_mode X waiting
---TRANSACTION 423, ACTIVE 1 sec
MySQL thread id 6, OS thread handle 1403, query id 91 10.0.0.7 app Updating
END OF INNODB MONITOR OUTPUT
============================
";
    let found = read(&format!("{list}\n{queue}\n{innodb}"));
    let states: Vec<(i64, &str, Option<i64>)> =
        found.batch.sessions.iter().map(|s| (s.session_id, s.true_state.as_str(), s.queued_ns)).collect();
    assert_eq!(
        states,
        [(5, "lock_wait", None), (6, "executing", None), (7, "idle", None), (8, "queued", Some(366_097_000))]
    );
    let count = |state| last(&found, "mysql_sessions", &[("true_state", state)]);
    assert_eq!((count("lock_wait"), count("queued")), (Some(1.0), Some(1.0)));
}

#[test]
fn lines_that_no_kind_reads_are_counted_with_their_numbers() {
    let found = read("hello there\n\n$ nproc\n4\nwhat now\n");
    let lines: Vec<(usize, &str)> = found.unread.iter().map(|line| (line.line, line.text.as_str())).collect();
    assert_eq!((lines, found.unread_total), (vec![(1, "hello there"), (5, "what now")], 2));
    assert_eq!(kinds(&found), ["answer to a command"]);
    assert!(!recognises(b"hello there\n") && recognises(include_bytes!("pastes/unlink.txt")));
}

#[test]
fn whatever_the_bytes_it_ends() {
    let all = [include_str!("pastes/readahead.txt"), include_str!("pastes/hidden_queue.txt")].concat();
    let whole = include_str!("pastes/readahead.txt").len();
    for end in (0..whole).chain((whole..all.len()).step_by(61)) {
        let mut pasted = Pasted::new(None);
        pasted.read("cut", &all.as_bytes()[..end], DAY);
        pasted.finish();
    }
    let garbage: Vec<u8> = (0..200_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let long = [b"| Id | User | Command | Time | State |\n| 1 | ".as_slice(), &vec![b'x'; 1 << 20]].concat();
    for bytes in [garbage.as_slice(), &long, &[0; 4096], b"\r\r\n\n\r"] {
        let mut pasted = Pasted::new(Some(2));
        pasted.read("odd", bytes, DAY);
        let found = pasted.finish();
        assert!(found.batch.len() <= bytes.len() && found.unread.len() <= 1_000);
    }
    // Line ends of other systems make no difference.
    let crlf = all.replace('\n', "\r\n");
    assert_eq!(read(&crlf).batch.samples, read(&all).batch.samples);
}
