//! What servers, processes, files and recordings say is shown on the terminal and never acts on it: no escape sequence, no
//! control character and no mark that turns text round gets there.

use std::path::Path;

use crate::program::{Finished, finish, holdup};
use crate::service::Service;

/// Writes the clipboard (OSC 52), moves the cursor, is a C1 control, and turns what follows round.
const HOSTILE: &str = "\u{1b}]52;c;aGk=\u{7}\u{1b}[2J\u{9b}31m\u{202e}gnp\u{2066}\u{200f}\u{7f}";

/// The same as a string of YAML, JSON and JavaScript may write it.
const WRITTEN: &str = "\\u001b]52;c;aGk=\\u0007\\u001b[2J\\u009b31m\\u202egnp\\u2066\\u200f\\u007f";

fn is_hostile(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Nothing of it got out, and it was seen: `shown` is how it looks.
fn shown_only(done: &Finished, shown: &str) {
    for text in [&done.stdout, &done.stderr] {
        let found = text.chars().find(|c| is_hostile(*c));
        assert!(found.is_none(), "{found:?} in {}", text.escape_debug());
    }
    let all = format!("{}{}", done.stdout, done.stderr);
    assert!(all.contains(shown), "it is not shown: {all}");
}

#[test]
fn names_of_a_recording_are_shown_and_not_sent() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::start();
    let (file, out) = (dir.path().join("s.yaml"), dir.path().join("out"));
    let text = format!(
        "name: \"{WRITTEN}\"\ntarget: {}\nload: {{rate: 50, duration: 2s}}\noperations: [{{name: \"{WRITTEN}\", get: /}}]\nthresholds: ['p99 < 1ns']\n",
        service.url().trim_end_matches('/')
    );
    std::fs::write(&file, text).unwrap();
    let run = finish(holdup(["run", "--no-collect"]).arg(&file).arg("-o").arg(&out), 60);
    assert_eq!(run.code(), Some(1), "{}", run.stderr);
    shown_only(&run, "]52;c;");
    shown_only(&finish(holdup(["run", "--check"]).arg(&file), 30), "]52;c;");
    shown_only(&finish(holdup(["diagnose"]).arg(&out), 60), "]52;c;");
    shown_only(&finish(holdup(["bundle"]).arg(&out), 60), "]52;c;");
    let json = finish(holdup(["diagnose", "--json"]).arg(&out), 60);
    shown_only(&json, "\\u001b]52;c;");
    assert!(json.json().to_string().contains("]52;c;"));
    let pair = ["a", "b"].map(|name| format!("{name}={}", out.display()));
    shown_only(&finish(holdup(["compare", "--markdown"]).args(pair), 60), "]52;c;");
    // With colours, which are holdup's own escape sequences, still none of the recording's.
    let colored = finish(holdup(["diagnose"]).arg(&out).env_remove("NO_COLOR").env("CLICOLOR_FORCE", "1"), 60);
    let kept = |text: &str| text.contains("\u{1b}]") || text.contains("\u{1b}[2J") || text.contains('\u{9b}');
    assert!(colored.stdout.contains("\u{1b}[1m"), "{}", colored.stdout.escape_debug());
    assert!(!kept(&colored.stdout) && !colored.stdout.contains('\u{202e}'), "{}", colored.stdout.escape_debug());
    page(&out.join("report.html"));
}

/// The page has it neither as it is nor in a form that the script would make it again.
fn page(path: &Path) {
    let page = std::fs::read_to_string(path).unwrap();
    assert!(
        page.contains(
            r#"http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline';"#
        )
    );
    let report = page.split("id=\"holdup-report\">").nth(1).and_then(|rest| rest.split("</script>").next()).unwrap();
    let title = page.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next()).unwrap();
    assert!(!title.chars().any(is_hostile) && title.contains("]52;c;"), "{}", title.escape_debug());
    let read: serde_json::Value = serde_json::from_str(report).unwrap();
    let mut texts = Vec::new();
    strings(&read, &mut texts);
    let found = texts.iter().find(|text| text.chars().any(is_hostile));
    assert!(found.is_none(), "{found:?}");
    assert!(texts.iter().any(|text| text.contains("]52;c;")), "{report}");
}

fn strings<'a>(value: &'a serde_json::Value, into: &mut Vec<&'a str>) {
    match value {
        serde_json::Value::String(text) => into.push(text),
        serde_json::Value::Array(items) => items.iter().for_each(|item| strings(item, into)),
        serde_json::Value::Object(entries) => entries.iter().for_each(|(name, value)| {
            into.push(name);
            strings(value, into);
        }),
        _ => {}
    }
}

#[test]
fn logs_and_names_of_files_are_shown_and_not_sent() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join(format!("{HOSTILE}.log"));
    let entry = format!(
        "# Time: 2030-01-01T00:00:00.000000Z\n# User@Host: {HOSTILE}[u] @ h []  Id: 1\n# Query_time: 1.0  Lock_time: 0.0  Rows_sent: 1  Rows_examined: 1\nSET timestamp=1893456000;\nSELECT `{HOSTILE}` FROM t WHERE a = 1;\n"
    );
    std::fs::write(&log, entry.repeat(3)).unwrap();
    for form in [&["digest"][..], &["digest", "--json"], &["digest", "--samples"]] {
        let done = finish(holdup(form).arg(&log), 60);
        if form.last() != Some(&"--samples") || done.code() == Some(0) {
            assert_eq!(done.code(), Some(0), "{}", done.stderr);
            shown_only(&done, "]52;c;");
        }
    }
    for command in ["diagnose", "report", "digest", "run", "explain", "lab"] {
        let done = finish(holdup([command, &format!("no-{HOSTILE}")]), 30);
        assert_eq!(done.code(), Some(2), "{}", done.stderr);
        shown_only(&done, "]52;c;");
    }
    // Of arguments that it does not know, clap shows what is before an escape sequence.
    for arguments in [["run".to_owned(), format!("--no-{HOSTILE}")], ["lab".to_owned(), format!("--{HOSTILE}=x")]] {
        shown_only(&finish(holdup(arguments), 30), "unexpected argument");
    }
}

/// A server that answers with hostile words, to those who look at it.
#[test]
fn what_a_server_answers_is_shown_and_not_sent() {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut line in listener.incoming().flatten() {
            // MySQL's ERR packet instead of a greeting: 1040, with a text of the server's own.
            let text = [0xff, 0x10, 0x04].into_iter().chain(HOSTILE.bytes()).collect::<Vec<u8>>();
            let mut packet = vec![text.len() as u8, 0, 0, 0];
            packet.extend(text);
            let _ = line.write_all(&packet);
            let _ = line.read(&mut [0; 16]);
        }
    });
    let address = format!("mysql://u:p@127.0.0.1:{port}");
    for form in [
        &["top", "--once", &address][..],
        &["doctor", "--watch", &address],
        &["watch", "--for=1s", "--watch", &address],
    ] {
        shown_only(&finish(holdup(form), 60), "]52;c;");
    }
}
