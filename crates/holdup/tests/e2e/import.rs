//! Captures of packets and pasted text as a person imports them: from a pipe or a folder, with a way on that is true.

use std::io::Write as _;
use std::process::Stdio;

use crate::program::{finish, holdup};

/// A classic capture file of IP packets, with one statement of a connection that was open before, answered after 5 ms.
fn capture(port: u16) -> Vec<u8> {
    let head = [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 65_535, 101];
    let mut bytes: Vec<u8> = head.iter().flat_map(|number| number.to_ne_bytes()).collect();
    // Major and minor are two numbers of two bytes.
    bytes[4..8].copy_from_slice(&[2_u16.to_ne_bytes(), 4_u16.to_ne_bytes()].concat());
    let statement = b"\x09\0\0\0\x03SELECT 7";
    let ok = b"\x07\0\0\x01\0\0\0\x02\0\0\0";
    let asked = (0_u32, 1_u8, [40_000, port], [0, 50], &statement[..]);
    let answered = (5_000, 2, [port, 40_000], [50, statement.len() as u32], &ok[..]);
    for (us, from, ports, numbers, payload) in [asked, answered] {
        let length = 40 + payload.len();
        let mut packet = vec![0x45, 0];
        packet.extend((length as u16).to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, from, 10, 0, 0, 3 - from]);
        packet.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        packet.extend(numbers.iter().flat_map(|number| number.to_be_bytes()));
        packet.extend([0x50, 0x10, 1, 0, 0, 0, 0, 0]);
        packet.extend(payload);
        bytes.extend([1_700_000_000, us, length as u32, length as u32].iter().flat_map(|number| number.to_ne_bytes()));
        bytes.extend(packet);
    }
    bytes
}

#[test]
fn a_capture_from_a_pipe() {
    // A second server's port is known, too.
    for port in [3306, 3307] {
        let dir = tempfile::tempdir().unwrap();
        let mut command = holdup(["import", "-", "-o", "db", "--json"]);
        let mut child = command.current_dir(dir.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&capture(port)).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let found = String::from_utf8(output.stdout).unwrap();
        assert!(found.contains("SELECT ?"), "{port}: {found}");
    }
}

#[test]
fn the_import_names_the_next_commands() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("db.pcap"), capture(3306)).unwrap();
    let done = finish(holdup(["import", "db.pcap", "-o", "db"]).current_dir(dir.path()), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    assert!(done.stdout.contains("1 exchanges") && done.stdout.contains("SELECT ?"), "{}", done.stdout);
    assert!(done.stderr.contains("db/exchanges.parquet") && dir.path().join("db/exchanges.parquet").exists());
    assert!(!done.stderr.contains("holdup diagnose"), "it finds no requests in it: {}", done.stderr);
}

#[test]
fn a_paste_from_standard_input_is_diagnosed() {
    let dir = tempfile::tempdir().unwrap();
    let paste = include_str!("../../../holdup-import/tests/pastes/readahead.txt");
    let mut command = holdup(["import", "-", "-o", "incident", "--json"]);
    let mut child = command.current_dir(dir.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(paste.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["not_understood_lines"], 0, "{found}");
    assert!(found["understood"].as_array().unwrap().iter().any(|part| part["kind"] == "iostat"), "{found}");
    let done = finish(holdup(["diagnose", "incident", "--verbose"]).current_dir(dir.path()), 60);
    assert_eq!(done.code(), Some(0), "{}{}", done.stdout, done.stderr);
    assert!(done.stdout.contains("load average up to 7.6 per CPU"), "{}", done.stdout);
    let brief = finish(holdup(["diagnose", "incident"]).current_dir(dir.path()), 60);
    for part in ["The disk has no time left: vda", "Settled: Not memory_pressure", "Paste next", "sar -B 1 10"] {
        assert!(brief.stdout.contains(part), "{part}: {}", brief.stdout);
    }
}

#[test]
fn a_folder_of_text_becomes_one_recording_and_says_what_it_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("collected");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("1-uptime"), " 10:11:12 up 1 day, 1 user, load average: 9.00, 5.00, 2.00\nodd\n")
        .unwrap();
    std::fs::write(folder.join("2-notes"), "nothing of a tool\n").unwrap();
    let done = finish(holdup(["import", "collected", "-o", "r"]).current_dir(dir.path()), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    for part in ["uptime", "not understood: 1 lines", "1-uptime:2: odd", "left out: 1 files", "2-notes"] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
    assert!(done.stderr.contains("next: holdup diagnose r"), "{}", done.stderr);
    std::fs::remove_file(folder.join("1-uptime")).unwrap();
    let done = finish(holdup(["import", "collected"]).current_dir(dir.path()), 60);
    assert_eq!(done.code(), Some(2), "{}", done.stdout);
    assert!(done.stderr.contains("2-notes: no output of a known tool in it"), "{}", done.stderr);
}

#[test]
fn a_folder_of_pt_stalk_has_its_time_in_its_names() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("pt");
    std::fs::create_dir(&folder).unwrap();
    let write =
        |name: &str, text: &str| std::fs::write(folder.join(format!("2026_11_26_10_11_12-{name}")), text).unwrap();
    let row = " 1 0 1 2 3 4 0 0 0 0 0 0 40 10 50 0 0\n";
    write("vmstat", &format!("r b swpd free buff cache si so bi bo in cs us sy id wa st\n{row}{row}{row}"));
    write(
        "df",
        "TS 1795687873.001 2026-11-26 10:11:13\nFilesystem 1K-blocks Used Available Use% Mounted on\n/dev/sda1 1000 400 600 40% /\n",
    );
    let pair = |value: u32| format!("| Variable_name | Value |\n| Questions | {value} |\n\n");
    write("mysqladmin", &(pair(100) + &pair(250)));
    write("trigger", "watched by a person\n");
    let done = finish(holdup(["import", "pt", "-o", "r", "--json"]).current_dir(dir.path()), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let found: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(found["left_out_files"][0], "2026_11_26_10_11_12-trigger", "{found}");
    assert_eq!(
        (found["from"].as_str(), found["to"].as_str()),
        (Some("2026-11-26T10:11:12.000Z"), Some("2026-11-26T10:11:14.000Z"))
    );
}

#[test]
fn a_sosreport_gives_its_parts_and_no_link_is_followed() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("sosreport-db1");
    let write = |name: &str, text: &str| {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("sos_commands/host/uptime", " 10:11:12 up 1 day, 1:00, 1 user, load average: 9.00, 5.00, 2.00\n");
    write("sos_commands/kernel/dmesg", "[90000.500000] nf_conntrack: table full, dropping packet\n");
    write("sos_commands/processor/lscpu", "Architecture:        x86_64\nCPU(s):              16\n");
    write("sos_commands/process/ps_auxwww", "USER PID STAT COMMAND\nmysql 7 D /usr/sbin/mysqld --password=hush\n");
    write("sos_commands/date/date", "Thu Nov 26 10:11:12 UTC 2026\n");
    write("proc/meminfo", "MemTotal:       1000 kB\nMemFree:         100 kB\n");
    write("etc/passwd", "root:x:0:0\n");
    std::os::unix::fs::symlink(dir.path().join("elsewhere"), root.join("sos_commands/kernel/dmesg_link")).unwrap();
    std::fs::write(dir.path().join("elsewhere"), "[1.5] nf_conntrack: table full, dropping packet\n").unwrap();
    let done = finish(holdup(["import", "sosreport-db1", "-o", "r", "--json"]).current_dir(dir.path()), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    let found: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let files: Vec<&str> =
        found["understood"].as_array().unwrap().iter().map(|part| part["file"].as_str().unwrap()).collect();
    let expected = [
        "sos_commands/host/uptime",
        "proc/meminfo",
        "sos_commands/kernel/dmesg",
        "sos_commands/process/ps_auxwww",
        "sos_commands/processor/lscpu",
    ];
    assert_eq!(files, expected, "{found}");
    assert_eq!((&found["not_understood_lines"], &found["left_out_files"]), (&0.into(), &serde_json::json!([])));
    assert!(!done.stdout.contains("hush"), "{}", done.stdout);
}

#[test]
fn a_folder_of_anything_has_mongodb_redis_and_sadf() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("all/db1");
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("status.json", "{ host: 'db1', process: 'mongod', uptime: 5, connections: { current: 7 } }\n");
    write("info.txt", "# Server\r\nredis_version:7.2.4\r\n\r\n# Clients\r\nconnected_clients:5\r\n");
    write("notes.txt", "nothing of a tool\u{1b}[31m\n");
    let done = finish(holdup(["import", "all", "-o", "r"]).current_dir(dir.path()), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    for part in ["db1/status.json", "db.serverStatus()", "Redis INFO", "left out: 1 files", "db1/notes.txt"] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
    // Each kind of document is known alone, too.
    for name in ["status.json", "info.txt"] {
        let alone = finish(holdup(["import", &format!("all/db1/{name}"), "-o", name]).current_dir(dir.path()), 60);
        assert_eq!(alone.code(), Some(0), "{name}: {}", alone.stderr);
    }
    std::fs::write(dir.path().join("quiet"), "[    1.500000] usb 1-1: new device\n").unwrap();
    let done = finish(holdup(["import", "quiet", "-o", "q"]).current_dir(dir.path()), 60);
    assert!(done.code() == Some(2) && done.stderr.contains("quiet: read as kernel log, but"), "{}", done.stderr);
    let hostile =
        "\u{1b}]0;title\u{7}not a tool \u{9b}31m\n 10:11:12 up 1 day, 1 user, load average: 9.00, 5.00, 2.00\n";
    std::fs::write(dir.path().join("paste"), hostile).unwrap();
    let done = finish(holdup(["import", "paste", "-o", "p"]).current_dir(dir.path()), 60);
    assert!(!done.stdout.contains(['\u{1b}', '\u{7}', '\u{9b}']), "{:?}", done.stdout);
}

/// Files of MongoDB's `diagnostic.data`: a chunk of three samples, the same in the interim file of a copy, and
/// a chunk that is cut off. An interim file is empty after a clean end.
#[test]
fn diagnostic_data_of_a_mongod_is_imported() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("diagnostic.data");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("metrics.1"), include_bytes!("../captures/mongod-chunk.ftdc")).unwrap();
    std::fs::write(folder.join("metrics.interim"), include_bytes!("../captures/mongod-cut.ftdc")).unwrap();
    std::fs::write(folder.join("metrics.2"), "").unwrap();
    std::fs::write(folder.join("metrics.3"), "damaged from its beginning").unwrap();
    let done = finish(holdup(["import", "diagnostic.data", "-o", "mongod"]).current_dir(dir.path()), 60);
    assert_eq!(done.code(), Some(0), "{}", done.stderr);
    for part in [
        "3 samples in 2 chunks of 4 files",
        "3 samples of metrics.interim stood in another file as well",
        "metrics.3, byte 0",
        "metrics.interim, byte",
        "left out 1 document of a newer kind",
    ] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
    let judged = finish(holdup(["diagnose", "mongod", "--json"]).current_dir(dir.path()), 60);
    assert!(judged.stdout.contains("mongodb://diagnostic.data"), "{}", judged.stdout);
}
