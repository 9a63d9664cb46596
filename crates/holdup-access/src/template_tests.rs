//! Formats as configurations have them, lines read by them, and what is refused.

use super::*;

fn read(format: &str, line: &str) -> (String, u16, Option<i64>, Option<i64>, Option<i64>) {
    let (template, _) = Template::from_user(format).unwrap();
    let entry = template.read(line).unwrap_or_else(|why| panic!("{line}: {why}"));
    let ms = |ns: Option<i64>| ns.map(|ns| ns / 1_000_000);
    let request = format!("{} {}", entry.method, entry.target);
    (request, entry.status, ms(entry.whole_ns), ms(entry.upstream_ns), entry.started_at().map(|at| at / 1_000_000))
}

/// 3 November 2026, 08:09:10 UTC.
const AT_MS: i64 = 1_793_693_350_000;

#[test]
fn nginx_formats() {
    let format = r#"$host [$time_iso8601] ${remote_addr} "$request" $status t=$request_time u=$upstream_response_time c=$upstream_connect_time a=$upstream_addr"#;
    let line = r#"shop.example [2026-11-03T08:09:10+00:00] 192.0.2.7 "GET /cart/17?x=1 HTTP/1.1" 200 t=0.412 u=0.100, 0.300 c=0.000, 0.001 a=10.0.0.1:80, 10.0.0.2:80"#;
    let at = AT_MS + 500 - 412;
    assert_eq!(read(format, line), ("GET /cart/17?x=1".into(), 200, Some(412), Some(400), Some(at)));
    let format = r#"log_format timed escape=json '{"ts":"$msec","uri":"$request_uri",' '"rt":$request_time}';"#;
    let line = r#"{"ts":"1793693350.250","uri":"/a","rt":0.050}"#;
    assert_eq!(read(format, line), (" /a".into(), 0, Some(50), None, Some(AT_MS + 200)));
    let format = "$time_local\t$request_method\t$uri\t$status\t$request_time\t$upstream_response_time";
    let line = "03/Nov/2026:08:09:10 +0000\tPOST\t/pay\t504\t60.001\t-";
    assert_eq!(read(format, line), ("POST /pay".into(), 504, Some(60_001), None, Some(AT_MS + 500 - 60_001)));
}

#[test]
fn apache_formats() {
    let format = r#"LogFormat "%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" %D" timed"#;
    let line = r#"192.0.2.7 - - [03/Nov/2026:08:09:10 +0000] "GET /a\"b HTTP/1.1" 200 512 "-" 412000"#;
    assert_eq!(read(format, line), ("GET /a\\\"b".into(), 200, Some(412), None, Some(AT_MS + 500)));
    let line = "[2026-11-03T08:09:10.250+0000] GET /x 503 17ms";
    let found = read("%{%Y-%m-%dT%H:%M:%S.250%z}t %m %U %>s %{ms}Tms", &line.replace("[", "").replace("]", ""));
    assert_eq!(found, ("GET /x".into(), 503, Some(17), None, Some(AT_MS + 250)));
    let found = read("%{end:msec}t %m %U%q %s %T", "1793693350250 GET /x 200 3");
    assert_eq!(found.2, Some(3_000));
}

#[test]
fn envoy_formats() {
    let format = r#"[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%UPSTREAM_HOST%"\n"#;
    let line = r#"[2026-11-03T08:09:10.250Z] "GET /cart HTTP/2" 200 88 80 "10.0.0.2:80""#;
    assert_eq!(read(format, line), ("GET /cart".into(), 200, Some(88), Some(80), Some(AT_MS + 250)));
    let short = "%START_TIME(%s.%3f)% %REQ(:PATH)% %DURATION%";
    assert_eq!(read(short, "1793693350.250 /x 7"), (" /x".into(), 0, Some(7), None, Some(AT_MS + 250)));
    assert_eq!(read("%START_TIME% %DURATION%|%BYTES_SENT%", "2026-11-03T08:09:10Z 7|1").2, Some(7));
}

#[test]
fn what_is_wrong_with_a_format() {
    for (format, word) in [
        ("", "no variables"),
        ("plain", "no variables"),
        ("$status$request_time $msec", "nothing between"),
        ("$status $request_time", "no time"),
        ("%h %D", "no time"),
        ("%t %{x", "without }"),
        ("${msec", "without }"),
        ("%t %", "ends inside"),
        ("%DURATION% %START_TIME", "closes"),
    ] {
        let why = Template::from_user(format).unwrap_err();
        assert!(why.contains(word), "{format}: {why}");
    }
}

#[test]
fn lines_that_do_not_fit_and_lines_cut_anywhere() {
    let format = r#"$remote_addr [$time_local] "$request" $status $request_time"#;
    let (template, _) = Template::from_user(format).unwrap();
    let line = r#"192.0.2.7 [03/Nov/2026:08:09:10 +0000] "GET / HTTP/1.1" 200 0.412"#;
    assert!(template.read(line).is_ok() && template.read(&format!("{line} more")).is_err());
    for end in 0..line.len() {
        // The last digits are a number, too.
        let is_number = end > line.len() - 4;
        assert_eq!(template.read(&line[..end]).is_ok(), is_number, "{}", &line[..end]);
    }
}
