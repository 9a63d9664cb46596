//! HAProxy or nginx in front of the app: started for a draw. A fault changes its limits while it serves.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::app::App;
use super::process::{self, Guarded, free_port};
use super::running::Running;
use crate::topology::Front;

/// Requests that HAProxy sends the app at once while nothing is wrong.
pub const SLOTS: u32 = 100;

/// Connections of nginx' worker, to clients and to the app, while nothing is wrong.
pub const CONNECTIONS: u32 = 2_000;

/// A handle on it, for faults.
#[derive(Clone, Debug)]
pub struct Proxy {
    front: Front,
    /// Its port on loopback, for the load.
    pub port: u16,
    /// HAProxy's socket for statistics and settings.
    stats: u16,
    pid: u32,
    /// nginx' configuration.
    options: PathBuf,
    app: String,
}

/// A proxy that runs until this value goes.
pub struct Proxied {
    _process: Guarded,
    /// The handle.
    pub proxy: Proxy,
}

impl Proxied {
    /// Starts it in `dir` before `app`; none where the draw has none.
    pub fn start(front: Front, dir: &Path, app: &App) -> Result<Option<Self>> {
        let name = match front {
            Front::Nothing => return Ok(None),
            Front::Haproxy => "haproxy",
            Front::Nginx => "nginx",
        };
        let folder = dir.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
        let (port, stats, options) = (free_port()?, free_port()?, folder.join("options"));
        let mut proxy = Proxy { front, port, stats, pid: 0, options, app: format!("{}:{}", app.host, app.port) };
        proxy.write(CONNECTIONS)?;
        let process = Guarded::start(dir, name, "TERM", &proxy.words(&folder), &[])?;
        proxy.pid = process.pid;
        process::until(name, Duration::from_secs(20), || TcpStream::connect(("127.0.0.1", port)).is_ok())
            .with_context(|| fs::read_to_string(dir.join(format!("{name}.log"))).unwrap_or_default())?;
        Ok(Some(Self { _process: process, proxy }))
    }
}

impl Proxy {
    /// Address for `holdup --watch`, which is also the source's name in recordings.
    pub fn watch_address(&self) -> String {
        match self.front {
            Front::Nginx => format!("nginx:http://127.0.0.1:{}/status", self.port),
            _ => format!("haproxy:127.0.0.1:{}", self.stats),
        }
    }

    fn words(&self, folder: &Path) -> Vec<String> {
        let mut words = vec![process::server(if self.front == Front::Nginx { "nginx" } else { "haproxy" })];
        let (options, folder) = (self.options.display().to_string(), folder.display().to_string());
        match self.front {
            Front::Nginx => words.extend(["-e", "stderr", "-c", &options, "-p", &folder].map(str::to_owned)),
            _ => words.extend(["-db", "-f", &options].map(str::to_owned)),
        }
        words
    }

    /// Writes its configuration; `connections` are nginx' alone.
    fn write(&self, connections: u32) -> Result<()> {
        let text = if self.front == Front::Nginx { self.nginx(connections) } else { self.haproxy() };
        fs::write(&self.options, text).with_context(|| format!("failed to write {}", self.options.display()))
    }

    fn haproxy(&self) -> String {
        let Self { port, stats, app, .. } = self;
        format!(
            "global\n  maxconn 2000\n  stats socket ipv4@127.0.0.1:{stats} level admin\n\
             defaults\n  mode http\n  timeout client 60s\n  timeout server 60s\n  timeout connect 10s\n  timeout queue 60s\n\
             frontend web\n  bind 127.0.0.1:{port}\n  default_backend app\n\
             backend app\n  server one {app} maxconn {SLOTS}\n"
        )
    }

    fn nginx(&self, connections: u32) -> String {
        let Self { port, app, .. } = self;
        format!(
            "worker_processes 1; daemon off; pid nginx.pid;\nevents {{ worker_connections {connections}; }}\nhttp {{\n\
             access_log off; keepalive_requests 1000000;\n\
             client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;\n\
             upstream app {{ server {app}; keepalive 64; }}\n\
             server {{\n  listen 127.0.0.1:{port};\n  location = /status {{ stub_status; }}\n\
             location / {{ proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection \"\"; }}\n}}\n}}\n"
        )
    }

    fn set_slots(&self, slots: u32) -> Result<()> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.stats)).context("HAProxy's socket is closed")?;
        let mut answer = String::new();
        let command = format!("set maxconn server app/one {slots}\n");
        socket.write_all(command.as_bytes()).and_then(|()| socket.read_to_string(&mut answer))?;
        ensure!(answer.trim().is_empty(), "HAProxy refuses: {answer}");
        Ok(())
    }

    /// Lets HAProxy send the app so many requests at once until the fault ends.
    pub fn set_slots_until(&self, slots: u32) -> Result<Running> {
        self.set_slots(slots)?;
        let proxy = self.clone();
        Ok(Running::until(move || proxy.set_slots(SLOTS)))
    }

    fn set_connections(&self, connections: u32) -> Result<()> {
        self.write(connections)?;
        process::signal(self.pid, "HUP")
    }

    /// Leaves nginx' worker so many connections until the fault ends.
    pub fn set_connections_until(&self, connections: u32) -> Result<Running> {
        self.set_connections(connections)?;
        let proxy = self.clone();
        Ok(Running::until(move || proxy.set_connections(CONNECTIONS)))
    }
}
