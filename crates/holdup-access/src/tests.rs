//! Whole logs: counts, hostile lines, and logs that are cut off.

use super::*;

fn read(text: &[u8], format: &str) -> Account {
    let mut log = AccessLog::new(Format::from_user(format).unwrap());
    let mut lines = lines::Lines::new(text);
    loop {
        let number = lines.number + 1;
        let Some(line) = lines.next_line().unwrap() else { break };
        log.line("a.log", number, line);
    }
    log.finish()
}

const FORMAT: &str =
    r#"$remote_addr [$time_local] "$request" $status $request_time $upstream_response_time $upstream_addr"#;

fn line(second: usize, status: u16, took: &str) -> String {
    format!("192.0.2.7 [03/Nov/2026:08:09:{second:02} +0000] \"GET /cart/{second} HTTP/1.1\" {status} {took}\n")
}

#[test]
fn an_account_of_a_log() {
    let mut text = String::new();
    for second in 0..50 {
        text += &line(second, if second == 30 { 502 } else { 200 }, "0.100 0.080 10.0.0.2:80");
    }
    text += "\n  \nnonsense\n";
    text += &line(50, 304, "- - -");
    let account = read(text.as_bytes(), FORMAT);
    let Counts { lines, untimed, failed, unreadable, .. } = account.counts;
    assert_eq!((lines, untimed, failed, unreadable), (52, 1, 1, 1));
    assert_eq!(account.counts.first_unreadable[0].line, 53);
    let mean = |family| account.timeline.mean_ms(family).map(|(ms, count)| (ms.round(), count));
    assert_eq!((mean(Family::Server), mean(Family::Client)), (Some((100.0, 50)), Some((80.0, 50))));
    let mut labels = Vec::new();
    account.timeline.samples("access_log:a", &mut |row| labels.push(format!("{:?}", row.labels)));
    assert!(labels.iter().any(|l| l.contains("/cart/{id}")) && labels.iter().any(|l| l.contains("10.0.0.2:80")));
}

#[test]
fn failures_by_kind_and_time() {
    let mut text = String::new();
    for (second, status) in [(1, 200), (2, 499), (3, 504), (3, 504), (4, 504), (5, 500), (6, 404), (7, 429)] {
        text += &line(second, status, "0.000 - -");
    }
    let account = read(text.as_bytes(), FORMAT);
    let counts = account.timeline.counts(Family::Failed);
    let found: Vec<(&str, u64)> = counts.iter().map(|one| (one.name.as_str(), one.count)).collect();
    assert_eq!(found[0], ("gateway_timeout", 3));
    assert!(found[1..].contains(&("client_gave_up", 1)) && found[1..].contains(&("server_error", 1)), "{found:?}");
    let second = |at: i64| at / 1_000_000_000 % 60;
    let timeouts = &counts[0];
    assert_eq!((second(timeouts.first_at), second(timeouts.most_at), timeouts.most), (3, 3, 2));
    assert_eq!((second(timeouts.last_at), found.len()), (4, 4));
    let mut last = 0.0;
    account.timeline.samples("access_log:a", &mut |row| {
        if row.metric == "access_log_failed_requests_total" && row.labels.get("error_type") == Some("gateway_timeout") {
            last = row.value;
        }
    });
    assert_eq!(last, 3.0);
}

#[test]
fn hostile_lines_are_counted_and_never_believed() {
    let good = line(1, 200, "0.100 - -");
    let mut text = good.clone().into_bytes();
    text.extend(std::iter::repeat_n(b'x', 1 << 20));
    text.extend(b"\n\x00\x01\x1b[31m\xff\xfe\n");
    for took in ["-3.000 - -", "99999.000 - -", "1e9 - -", "NaN - -", "0.1.2 - -"] {
        text.extend(line(1, 200, took).as_bytes());
    }
    text.extend(good.replace("2026", "1970").as_bytes());
    text.extend(good.replace("2026", "9999").as_bytes());
    text.extend(good.replace("GET /cart/1", "GET /\u{1b}[2J\u{7}").as_bytes());
    let account = read(&text, FORMAT);
    assert_eq!((account.counts.lines, account.counts.unreadable, account.counts.first_unreadable.len()), (11, 9, 3));
    let mut rows = String::new();
    account.timeline.samples("access_log:a", &mut |row| rows += &format!("{:?}", row.labels));
    assert!(!rows.contains("\\u{1b}") && rows.contains("/?[2J?"), "{rows}");
}

#[test]
fn a_log_cut_at_any_byte() {
    let text: String = (0..4).map(|second| line(second, 200, "0.100 0.080 10.0.0.2:80")).collect();
    for end in 0..=text.len() {
        let account = read(&text.as_bytes()[..end], FORMAT);
        let whole = text[..end].matches('\n').count() as u64;
        assert!(account.counts.lines - whole <= 1, "{end}");
        assert!(account.counts.unreadable <= 1, "{end}");
    }
}

#[test]
fn many_routes_servers_and_methods_cost_no_more_memory() {
    let mut text = String::new();
    for number in 0..3_000 {
        let word: String = format!("{number:06}").bytes().map(|b| (b + 49) as char).collect();
        let request = format!("M{number} /{word} HTTP/1.1");
        text +=
            &line(1, 200 + number % 300, "0.100 0.080 ").replace("GET /cart/1 HTTP/1.1", &request).replace('\n', "");
        text += &format!("10.0.0.2:{number}\n");
    }
    let account = read(text.as_bytes(), FORMAT);
    let mut rows = 0;
    account.timeline.samples("access_log:a", &mut |_| rows += 1);
    assert!(account.counts.unreadable == 0 && rows < 6_000, "{rows}");
}
