//! Lines of each known format, and the format that they are taken for.

use super::*;

const DATE: &str = "[03/Nov/2026:08:09:10 +0000]";

fn named(lines: &[&str]) -> String {
    Format::detect(lines).map_or_else(String::new, |(format, read)| format!("{} {read}", format.name))
}

#[test]
fn formats_by_their_lines() {
    let head = format!(r#"192.0.2.7 - - {DATE} "GET /cart/17 HTTP/1.1" 200 512"#);
    let combined = format!(r#"{head} "-" "agent/1.0 (a; b)""#);
    for (line, name) in [
        (combined.clone(), "combined 1"),
        (head.clone(), "common 1"),
        (format!("{combined} 0.412"), "nginx, combined and $request_time 1"),
        (format!("{combined} 0.412 0.400"), "nginx, combined and $request_time $upstream_response_time 1"),
        (format!("{combined} 0.412 0.100, 0.300"), "nginx, combined and $request_time $upstream_response_time 1"),
        (format!(r#"{combined} "198.51.100.9" 0.412 -"#), "nginx, combined with X-Forwarded-For and $request_time $upstream_response_time 1"),
        (format!(r#"{combined} rt=0.412 uct="0.001" uht="0.399" urt="0.400""#), "nginx, combined and rt= uct= uht= urt= 1"),
        (format!("{combined} 300 0.412 [shop-web-80] [] 10.0.0.2:80 512 0.400 200 8f2c"), "nginx, combined and ingress controller 1"),
        (format!("{combined} 412000"), "Apache, combined and %D 1"),
        (format!("{combined} 3"), "Apache, combined and %T 1"),
        (format!("{head} 412000"), "Apache, common and %D 1"),
        (format!("{combined} 0/412000"), "Apache, combined and %T/%D 1"),
        (format!("{combined} what else"), "combined and unknown fields 1"),
        (format!("edge haproxy[8]: 192.0.2.7:50112 {} web shop/one 2/310/4/84/401 200 9 - - ---- 9/9/7/3/0 6/0 \"GET / HTTP/1.1\"", DATE.replace(" +0000", ".250")), "HAProxy, HTTP 1"),
        (r#"https 2026-11-03T08:09:10.250000Z app/shop/50dc 192.0.2.7:2817 10.0.0.2:80 0.001 0.400 0.011 200 200 34 366 "GET https://shop.example:443/cart/17 HTTP/2.0" "agent" TLS - arn x"#.to_owned(), "AWS application load balancer 1"),
        (r#"2026-11-03T08:09:10.250000Z shop 192.0.2.7:2817 10.0.0.2:80 0.001 0.400 0.011 200 200 34 366 "GET http://shop.example:80/ HTTP/1.1" "agent" - -"#.to_owned(), "AWS classic load balancer 1"),
        (r#"[2026-11-03T08:09:10.250Z] "GET /cart HTTP/2" 200 - 0 512 412 400 "192.0.2.7" "agent/1.0" "8f2c" "shop.example" "10.0.0.2:80""#.to_owned(), "Envoy, default 1"),
        (r#"[2026-11-03T08:09:10.250Z] "GET /cart HTTP/2" 200 - via_upstream - "-" 0 512 412 400 "192.0.2.7" "agent/1.0" "8f2c" "shop.example" "10.0.0.2:80" outbound|80||shop a b - d e"#.to_owned(), "Envoy, Istio's default 1"),
        (r#"{"time":"2026-11-03T08:09:10Z","method":"GET","path":"/","status":200,"duration_ms":412}"#.to_owned(), "JSON lines 1"),
        ("2026-11-03T08:09:10Z app[router]: method=GET path=/ connect=1ms service=5ms status=200".to_owned(), "key=value lines 1"),
    ] {
        assert_eq!(named(&[&line]), name, "{line}");
    }
    let columns = [
        "#Version: 1.0",
        "#Fields: date time cs-method cs-uri-stem sc-status time-taken",
        "2026-11-03 08:09:10 GET / 200 5",
    ];
    assert_eq!(named(&columns), "W3C extended log 1");
    for line in [
        "",
        "hello",
        "{",
        r#"{"Datapoints":[],"Label":"x"}"#,
        r#"{"time":"2026-11-03T08:09:10Z","msg":"up"}"#,
        "id,name",
        "# Time: 2026-11-03T08:09:10Z",
    ] {
        assert_eq!(named(&[line]), "", "{line}");
    }
}

#[test]
fn the_load_balancer_of_amazon_has_three_parts_and_no_whole() {
    let line = r#"https 2026-11-03T08:09:10.250000Z app/shop/50dc 192.0.2.7:2817 10.0.0.2:80 0.001 0.400 0.011 502 502 34 366 "GET https://shop.example:443/cart/17 HTTP/2.0" "agent" TLS - arn x"#;
    let (format, _) = Format::detect(&[line]).unwrap();
    let entry = format.read(line).unwrap();
    let ms = |n: i64| Some(n * 1_000_000);
    assert_eq!((entry.whole_ns, entry.upstream_ns, entry.queue_ns), (ms(412), ms(400), ms(1)));
    assert_eq!((entry.status, entry.started_at()), (502, Some(1_793_693_349_838_000_000)));
    let failed = line.replace("0.001 0.400 0.011", "-1 -1 -1");
    assert_eq!(format.read(&failed).unwrap().whole_ns, None);
}

#[test]
fn the_format_of_most_lines_wins() {
    let timed = format!(r#"192.0.2.7 - - {DATE} "GET / HTTP/1.1" 200 5 "-" "a" 0.412"#);
    let (plain, junk) = (timed.trim_end_matches(" 0.412"), "who knows");
    assert_eq!(named(&[&timed, junk, &timed, &timed]), "nginx, combined and $request_time 3");
    assert_eq!(named(&[&timed, plain, plain, plain]), "common 4");
}
