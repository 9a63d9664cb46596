//! How a container ended, cut out of `kubectl describe pod`, `-o yaml` or `-o json`: its last state with
//! the lines below, in any of the three notations.

use holdup_recording::{Labels, clock as wall, events};

use super::super::{Context, Kind, Line, clock, text};
use super::{asked_namespace, happened, shown, source};

pub(in super::super) const KIND: Kind = Kind::lines("state of a container", recognises, read);

/// Lines below that belong to it.
const LINES: usize = 24;

/// A key in small letters alone, and its value without quotes: the notations differ in nothing else.
fn pair(line: &str) -> Option<(String, &str)> {
    let line = line.trim().trim_start_matches("- ");
    let (key, value) = line.split_once(':')?;
    let name: String = key.chars().filter(char::is_ascii_alphabetic).collect::<String>().to_lowercase();
    let value = value.trim().trim_end_matches(',').trim_matches('"').trim();
    (!name.is_empty() && name.len() <= 20).then_some((name, value))
}

fn recognises(lines: &[Line]) -> bool {
    let Some((key, value)) = pair(text(lines, 0)) else { return false };
    let ends = |from: usize| {
        lines.iter().skip(from).take(LINES).any(|line| pair(&line.text).is_some_and(|(key, _)| key == "exitcode"))
    };
    match key.as_str() {
        "laststate" | "terminated" => ends(1),
        "state" => value == "Terminated" && ends(1),
        _ => false,
    }
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let mut used = 1;
    let (mut reason, mut code, mut finished, mut name, mut restarts) = (None, None, None, None, None);
    for (place, line) in lines.iter().enumerate().take(LINES).skip(1) {
        let Some((key, value)) = pair(&line.text) else {
            // Brackets of JSON.
            if line.text.trim().trim_matches(['{', '}', '[', ']', ',']).is_empty() && !line.is_blank() {
                continue;
            }
            break;
        };
        match key.as_str() {
            // The next one, or the head of the next container.
            "state" | "laststate" | "terminated" if code.is_some() => break,
            "containers" | "image" if code.is_some() => break,
            "reason" => reason = reason.or(Some(value)),
            "exitcode" => code = code.or(value.parse::<i64>().ok()),
            "finished" | "finishedat" => {
                finished = finished.or_else(|| wall::parse_rfc3339(value).or_else(|| clock::with_offset(value)));
            }
            "name" => name = name.or(Some(value)),
            "restartcount" => restarts = restarts.or(value.parse::<f64>().ok()),
            _ => {}
        }
        used = place + 1;
    }
    let Some(code) = code else { return used };
    let (now, source) = (context.instant(), source(&asked_namespace(context), None));
    let name = name.unwrap_or_default();
    let container = || Labels::new([("container", name)]).with("restarts", "1");
    let reason = shown(reason.unwrap_or("unknown"));
    let mut labels = container().with("reason", reason.as_str()).with("exit_code", code.to_string());
    if (129..=192).contains(&code) {
        labels = labels.with("signal", (code - 128).to_string());
    }
    let text = format!("container {name} ended and was restarted: {reason}, exit code {code}");
    happened::put(context, finished.unwrap_or(now), &source, events::CONTAINER_RESTARTED, text, labels);
    if let Some(restarts) = restarts {
        let metric = holdup_recording::metrics::kubernetes::RESTARTS.name;
        context.out.gauge(now, &source, metric, Labels::new([("container", name)]), restarts);
    }
    used
}

#[cfg(test)]
mod tests {
    use super::super::super::super::paste;
    use super::*;

    #[test]
    fn the_three_notations_are_one() {
        for text in [
            "    Last State:     Terminated\n      Reason:       Error\n      Exit Code:    137\n    Restart Count:  3\n",
            "  lastState:\n    terminated:\n      exitCode: 137\n      reason: Error\n  name: ledger\n",
            "\"lastState\": {\n  \"terminated\": {\n    \"exitCode\": 137,\n    \"reason\": \"Error\"\n  }\n},\n\"name\": \"ledger\",\n",
        ] {
            let lines = paste::lines(text.as_bytes(), |_| false);
            assert!(recognises(&lines), "{text}");
            let mut context = Context::default();
            assert_eq!(read(&lines, &mut context), text.lines().count(), "{text}");
            let event = &context.out.batch.events[0];
            assert!(event.labels.contains(&[("reason", "Error"), ("exit_code", "137"), ("signal", "9")]), "{event:?}");
        }
        let running = paste::lines(b"State: Running\n  Started: now\n", |_| false);
        assert!(!recognises(&running));
    }
}
