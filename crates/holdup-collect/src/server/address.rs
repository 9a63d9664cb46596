//! Parses `server:PORT[?pid=N]`.

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) port: u16,
    /// The port is in the network namespace of this process; none means holdup's own.
    pub(super) pid: Option<u32>,
}

impl Address {
    pub(super) fn parse(rest: &str) -> Result<Self, String> {
        let (port, query) = rest.split_once('?').map_or((rest, None), |(port, query)| (port, Some(query)));
        let number = port.parse().ok().filter(|port| *port != 0).ok_or_else(|| {
            format!("'{port}' is not a port; give the server's listening port on this machine: server:8080")
        })?;
        let pid = match query {
            None => None,
            Some(query) => {
                let pid = query.strip_prefix("pid=").and_then(|number| number.parse().ok()).filter(|pid| *pid > 0);
                Some(pid.ok_or(
                    "the only option is ?pid=N: the port in the network namespace of process N, e.g. of a container",
                )?)
            }
        };
        Ok(Self { port: number, pid })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_and_networks() {
        assert_eq!(Address::parse("8080"), Ok(Address { port: 8080, pid: None }));
        assert_eq!(Address::parse("80?pid=71"), Ok(Address { port: 80, pid: Some(71) }));
        for bad in ["", "0", "x", "99999", "127.0.0.1:80", "80?pid=0", "80?x"] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
    }
}
