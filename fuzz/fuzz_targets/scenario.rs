//! A text of anybody as a scenario: it is refused with a line and a reason, or it is one, whose sessions are then gone
//! through against a service that answers anything. They end or wait, in bounded memory; no request of theirs has a line
//! more than it was meant to have. Files that a text may name are not looked for: there are none where this runs.
#![no_main]

use std::sync::Once;

use holdup_load::Scenario;
use holdup_load::script::program::{Form, Script};
use holdup_load::script::session::{Moment, Next, Session};
use holdup_load::script::{FilledRequest, Response, fill};
use libfuzzer_sys::fuzz_target;

/// Requests and waits after which a session has been seen enough of.
const LOOKED_AT: usize = 40;
/// Sessions of each kind.
const SESSIONS: u64 = 2;
/// Longest text that is read: more of it is more of the same.
const LONGEST: usize = 8 << 10;

/// Away from whatever files there are; the folder goes when the machine tidies up.
fn go_away() {
    static AWAY: Once = Once::new();
    AWAY.call_once(|| {
        let folder = std::env::temp_dir().join(format!("holdup-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder of its own");
        std::env::set_current_dir(&folder).expect("a folder of its own");
        let _ = std::fs::remove_dir(&folder);
    });
}

fn goes_through(script: &Script, flow: u32, number: u64) {
    let mut session = Session::new(script, flow, number);
    let mut filled = FilledRequest::default();
    let mut now = Moment { monotonic_ns: 1_000, unix_ns: 1_769_849_377_250_000_000 };
    for round in 0..LOOKED_AT as u64 {
        match session.next(script, now) {
            Next::End | Next::Failed(_) => return,
            Next::Wait(length) => {
                assert!(length >= 0);
                now.monotonic_ns = now.monotonic_ns.saturating_add(length.max(1_000_000));
            }
            Next::Request(index) => {
                let asked = &script.requests[index as usize];
                let done = session.draw_rows(script, &asked.feeders).and_then(|()| {
                    session.with_context(script, now, round, |context| match &asked.form {
                        Form::Http { .. } => filled.http(&asked.form, context),
                        Form::Sql { statements } => {
                            fill::statements(statements, &mut |text, out| text.render(context, out)).map(drop)
                        }
                        Form::Mongodb { commands, .. } => {
                            fill::commands(commands, "shop", &mut |text, out| text.render(context, out)).map(drop)
                        }
                    })
                });
                if done.is_ok() && matches!(asked.form, Form::Http { .. }) {
                    assert!(filled.path.starts_with('/') && filled.path.bytes().all(|b| b.is_ascii_graphic()));
                    assert!(filled.headers.iter().all(|(_, value)| !value.contains(['\r', '\n', '\0'])));
                }
                let fields: [(&[u8], &[u8]); 2] = [(b"content-type", b"application/json"), (b"set-cookie", b"a=b")];
                let columns: [(&str, Option<&[u8]>); 2] = [("id", Some(b"7")), ("none", None)];
                let body = br#"{"id": 7, "token": "t\r\nx: ${y}", "items": [{"id": 1}, {"id": 2}]}"#;
                let response = Response {
                    status: if round % 5 == 4 { 503 } else { 200 },
                    fields: &fields,
                    body,
                    body_is_cut: round % 7 == 6,
                    body_bytes: body.len() as u64,
                    rows: 1,
                    columns: &columns,
                };
                let is_well = done.is_ok() && session.take(script, asked, &response, now, round).is_ok();
                if !session.ended(script, asked, is_well) {
                    return;
                }
                now.monotonic_ns += 1_000_000;
            }
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    go_away();
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // Devices and pipes may take for ever, and a folder above may hold files.
    if text.len() > LONGEST || ["/dev", "/proc", "/sys", "../"].iter().any(|path| text.contains(path)) {
        return;
    }
    match Scenario::parse(text, "s.yaml") {
        Err(error) => {
            let lines = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count() + 1;
            assert!(!error.message.is_empty() && error.line <= lines, "{error}");
        }
        Ok(scenario) => {
            assert!(!scenario.operations.is_empty());
            let Some(sessions) = &scenario.sessions else { return };
            let script = &sessions.script;
            assert!(!script.flows.is_empty() && sessions.flows >= 1);
            for flow in 0..script.flows.len() as u32 {
                (0..SESSIONS).for_each(|number| goes_through(script, flow, number));
            }
        }
    }
});
