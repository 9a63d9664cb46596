//! A container's probe as one line: `http-get :8080/health every=10s timeout=1s failures=3`.
//! Missing values are Kubernetes' defaults. Only the program of a command is kept, and a path
//! without its query: the rest may hold secrets.

use serde_json::Value;

use crate::kubernetes::objects::document::{Container, Probe};

/// The probe as text; none if its kind is unknown.
pub(crate) fn text(probe: &Probe, container: &Container) -> Option<String> {
    let port = |port: Option<&Value>| port.map_or_else(|| "?".to_owned(), |port| port_number(port, container));
    let Probe { http_get, tcp_socket, grpc, exec, .. } = probe;
    let mut text = if let Some(get) = http_get {
        let scheme = if get.scheme.as_deref() == Some("HTTPS") { "https-get" } else { "http-get" };
        let path = get.path.as_deref().unwrap_or("/");
        let path = path.split_once('?').map_or_else(|| path.to_owned(), |(path, _)| format!("{path}?…"));
        format!("{scheme} {}:{}{path}", get.host.as_deref().unwrap_or_default(), port(get.port.as_ref()))
    } else if let Some(socket) = tcp_socket {
        format!("tcp {}:{}", socket.host.as_deref().unwrap_or_default(), port(socket.port.as_ref()))
    } else if let Some(grpc) = grpc {
        let service = grpc.service.as_deref().filter(|name| !name.is_empty());
        let service = service.map_or_else(String::new, |name| format!(" {name}"));
        format!("grpc :{}{service}", port(grpc.port.as_ref()))
    } else {
        let command = exec.as_ref()?.command.as_deref().unwrap_or_default();
        let program = command.first().map_or("?", |program| program.rsplit('/').next().unwrap_or(program));
        format!("exec {program}{}", if command.len() > 1 { " …" } else { "" })
    };
    let seconds = |value: Option<u64>, usual| value.filter(|value| *value > 0).unwrap_or(usual);
    text += &format!(
        " every={}s timeout={}s failures={}",
        seconds(probe.period_seconds, 10),
        seconds(probe.timeout_seconds, 1),
        seconds(probe.failure_threshold, 3)
    );
    for (name, value, unit, usual) in
        [("delay", probe.initial_delay_seconds, "s", 0), ("successes", probe.success_threshold, "", 1)]
    {
        let value = seconds(value, usual);
        if value != usual {
            text += &format!(" {name}={value}{unit}");
        }
    }
    Some(text)
}

/// A port's number, resolved by its name if the container declares it.
fn port_number(port: &Value, container: &Container) -> String {
    let Some(name) = port.as_str() else { return port.to_string() };
    let ports = container.ports.as_deref().unwrap_or_default();
    let known = ports.iter().find(|port| port.name.as_deref() == Some(name)).and_then(|port| port.container_port);
    known.map_or_else(|| name.to_owned(), |port| port.to_string())
}
