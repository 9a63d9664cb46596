//! The servers that load goes to: the bundled responder, and nginx with a configuration of its own. One for each run,
//! on a free port of 127.0.0.1, in a folder of its own, on its cores.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::process::{Running, interrupted};
use crate::responder::Seen;
use crate::system::CpuTime;

/// How long a server has until it answers.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// Requests that nginx is to serve on one connection: no run comes near it.
const REQUESTS_A_CONNECTION: u64 = 1_000_000_000;

/// A server to start.
#[derive(Clone, Debug)]
pub enum Kind {
    /// The bundled one, with these arguments.
    Responder(Vec<String>),
    /// nginx serving one small file.
    Nginx {
        /// HTTPS, with HTTP/2 for those who ask for it.
        tls: bool,
    },
}

/// Programs that servers are made of.
#[derive(Clone, Debug)]
pub struct Programs {
    /// This program.
    pub responder: String,
    /// nginx, or why it isn't here.
    pub nginx: Result<String, String>,
}

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    running: Running,
    /// Its port.
    pub port: u16,
    /// Where to ask.
    pub url: String,
    /// How it was started.
    pub command: Vec<String>,
    stdout: PathBuf,
    is_responder: bool,
}

/// What a server leaves behind.
#[derive(Clone, Debug)]
pub struct Stopped {
    /// Its CPU time.
    pub cpu: CpuTime,
    /// What it saw, if it is one that says so.
    pub seen: Option<Seen>,
}

impl Server {
    /// Starts it on `cpus`. Its files are in `folder` (a path from `root`).
    pub fn start(kind: &Kind, programs: &Programs, root: &Path, folder: &Path, cpus: &[usize]) -> Result<Self> {
        let cores = cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let mut command: Vec<String> = ["taskset", "-c", &cores].map(str::to_owned).into();
        let port = match kind {
            Kind::Responder(arguments) => {
                command.extend([programs.responder.clone(), "responder".into(), "--cpus".into(), cores]);
                command.extend(arguments.iter().cloned());
                None
            }
            Kind::Nginx { tls } => {
                let Ok(nginx) = &programs.nginx else { bail!("nginx is not here") };
                let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
                configure(&root.join(folder), port, *tls)?;
                let folder = format!("{}/", folder.display());
                command.extend([nginx.clone(), "-p".into(), folder, "-c".into(), "nginx.conf".into()]);
                Some(port)
            }
        };
        let (stdout, stderr) = (root.join(folder).join("server.out"), root.join(folder).join("server.err"));
        let running = Running::start(&command, root, &stdout, &stderr)?;
        let Some(port) = wait_until_ready(&running, port, &stdout) else {
            let said = fs::read_to_string(&stderr).unwrap_or_default();
            bail!("the server {} didn't start: {}", command.join(" "), said.trim());
        };
        let tls = matches!(kind, Kind::Nginx { tls: true });
        let url = format!("{}://127.0.0.1:{port}/", if tls { "https" } else { "http" });
        Ok(Self { running, port, url, command, stdout, is_responder: matches!(kind, Kind::Responder(_)) })
    }

    /// Ends it.
    pub fn stop(self) -> Result<Stopped> {
        let cpu = self.running.stop()?;
        let seen = if self.is_responder {
            let said = fs::read_to_string(&self.stdout)?;
            let last = said.lines().next_back().unwrap_or_default();
            Some(serde_json::from_str(last).with_context(|| format!("the responder ended with {last:?}"))?)
        } else {
            None
        };
        Ok(Stopped { cpu, seen })
    }
}

/// The port once it answers. The responder says it; of nginx it is known.
fn wait_until_ready(running: &Running, port: Option<u16>, stdout: &Path) -> Option<u16> {
    let begun = Instant::now();
    while begun.elapsed() < READY_WITHIN && running.is_running() && !interrupted() {
        let ready = match port {
            Some(port) => TcpStream::connect(("127.0.0.1", port)).is_ok().then_some(port),
            None => fs::read_to_string(stdout)
                .ok()
                .and_then(|text| text.lines().next()?.strip_prefix("listening 127.0.0.1:")?.parse().ok()),
        };
        if ready.is_some() {
            return ready;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

/// Writes nginx's configuration, what it serves, and a certificate if it needs one.
fn configure(folder: &Path, port: u16, tls: bool) -> Result<()> {
    fs::create_dir_all(folder.join("www"))?;
    fs::create_dir_all(folder.join("temporary"))?;
    fs::write(folder.join("www/index.html"), "Hello, world\n")?;
    if tls {
        certificate(folder)?;
    }
    fs::write(folder.join("nginx.conf"), configuration(port, tls, is_root()))?;
    Ok(())
}

fn configuration(port: u16, tls: bool, as_root: bool) -> String {
    // Its worker would give root up and then not find its files.
    let user = if as_root { "user root;\n" } else { "" };
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("  {kind}_temp_path temporary/{kind};\n"))
        .concat();
    // One suite for all clients, or they would be measured with different ones.
    let (listen, secure) = if tls {
        let secure = "    ssl_certificate certificate.pem;\n    ssl_certificate_key key.pem;\n    \
             ssl_protocols TLSv1.3;\n    ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;\n";
        (" ssl http2", secure)
    } else {
        ("", "")
    };
    format!(
        "{user}worker_processes 1;\ndaemon off;\npid nginx.pid;\nerror_log error.log warn;\n\
         worker_rlimit_nofile 20000;\nevents {{ worker_connections 16000; }}\nhttp {{\n  access_log off;\n{temporary}  \
         keepalive_requests {REQUESTS_A_CONNECTION};\n  keepalive_timeout 300s;\n  open_file_cache max=16 inactive=300s;\n  \
         server {{\n    listen 127.0.0.1:{port}{listen} backlog=4096;\n    root www;\n{secure}  }}\n}}\n"
    )
}

/// A certificate of its own for 127.0.0.1, good for a day.
fn certificate(folder: &Path) -> Result<()> {
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]);
    openssl.args(["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]);
    openssl.args(["-keyout", "key.pem", "-out", "certificate.pem"]).current_dir(folder);
    let made = openssl.output().context("failed to start openssl, which makes the certificate; install openssl")?;
    if !made.status.success() {
        bail!("openssl made no certificate: {}", String::from_utf8_lossy(&made.stderr).trim());
    }
    Ok(())
}

fn is_root() -> bool {
    // SAFETY: asks for a number.
    unsafe { libc::geteuid() == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_and_secure() {
        let plain = configuration(8080, false, false);
        assert!(
            plain.contains("listen 127.0.0.1:8080 backlog") && !plain.contains("ssl") && !plain.contains("user root")
        );
        let secure = configuration(8443, true, true);
        assert!(secure.contains("listen 127.0.0.1:8443 ssl http2") && secure.starts_with("user root;"));
        assert_eq!(secure.matches('{').count(), secure.matches('}').count());
    }
}
