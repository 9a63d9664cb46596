//! A probe as `kubectl describe` prints it, in the form of the live source: `http-get :8080/health
//! every=10s timeout=1s failures=3`. Of a command only the program is kept, and of a path no query.

/// The probe as a setting; none if its form is unknown.
pub(super) fn setting(text: &str) -> Option<String> {
    let (what, numbers) = text.split_once(" delay=").unwrap_or((text, ""));
    let (kind, rest) = what.trim().split_once(' ').unwrap_or((what.trim(), ""));
    let mut out = match kind {
        "http-get" => {
            let (scheme, place) = rest.split_once("://").unwrap_or(("http", rest));
            let kind = if scheme == "https" { "https-get" } else { "http-get" };
            let place = place.split_once('?').map_or_else(|| place.to_owned(), |(path, _)| format!("{path}?…"));
            format!("{kind} {place}")
        }
        "tcp-socket" => format!("tcp {rest}"),
        "grpc" => format!("grpc {}", rest.replace("<pod>", "")),
        "exec" => {
            let words: Vec<&str> = rest.trim_matches(['[', ']']).split_whitespace().collect();
            let program = words.first().map_or("?", |program| program.rsplit('/').next().unwrap_or(program));
            format!("exec {program}{}", if words.len() > 1 { " …" } else { "" })
        }
        _ => return None,
    };
    let numbers = format!("delay={numbers}");
    let number = |name: &str| {
        let text = numbers.split_whitespace().find_map(|word| word.trim_start_matches('#').strip_prefix(name));
        text.and_then(|text| text.strip_prefix('=')).map(|text| text.trim_end_matches('s').to_owned())
    };
    let known = |name: &str, usual: &str| number(name).filter(|n| n != "0").unwrap_or_else(|| usual.to_owned());
    out += &format!(
        " every={}s timeout={}s failures={}",
        known("period", "10"),
        known("timeout", "1"),
        known("failure", "3")
    );
    if let Some(delay) = number("delay").filter(|delay| delay != "0" && !delay.is_empty()) {
        out += &format!(" delay={delay}s");
    }
    if let Some(successes) = number("success").filter(|n| n != "1" && n != "0") {
        out += &format!(" successes={successes}");
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_the_live_source() {
        let numbers = "delay=5s timeout=2s period=15s #success=1 #failure=4";
        for (text, expected) in [
            (
                "http-get http://:8080/health?key=hush",
                "http-get :8080/health?… every=15s timeout=2s failures=4 delay=5s",
            ),
            ("http-get https://:web/live", "https-get :web/live every=15s timeout=2s failures=4 delay=5s"),
            ("tcp-socket :5432", "tcp :5432 every=15s timeout=2s failures=4 delay=5s"),
            ("exec [/bin/sh -c check --token=hush]", "exec sh … every=15s timeout=2s failures=4 delay=5s"),
            ("grpc <pod>:9090 health", "grpc :9090 health every=15s timeout=2s failures=4 delay=5s"),
        ] {
            assert_eq!(setting(&format!("{text} {numbers}")).as_deref(), Some(expected));
        }
        assert_eq!(setting("tcp-socket :1").as_deref(), Some("tcp :1 every=10s timeout=1s failures=3"));
        assert_eq!(setting("none"), None);
    }
}
