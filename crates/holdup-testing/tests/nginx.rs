//! An nginx of the test's own: the test writes what is in its `http` block, and may put files into its folder before.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::{Process, program};

/// What runs in the foreground as one process, with all its files in its folder.
const FRAME: &str = "worker_processes 1; daemon off; master_process off; pid nginx.pid; error_log error.log;
events { worker_connections CONNECTIONS; }
http {
    client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4; scgi_temp_path t5;
HTTP
}";

/// A running one.
pub struct Nginx {
    _process: Process,
    dir: TempDir,
}

impl Nginx {
    /// Where its program is; none, with a reason, where it is not installed.
    pub fn program() -> Option<PathBuf> {
        program("nginx", "nginx-light")
    }

    /// One with this `http` block and so many connections, once it listens on `port`; none where it is not installed.
    pub fn start(dir: TempDir, connections: u32, http: &str, port: u16) -> Option<Self> {
        let program = Self::program()?;
        let options = FRAME.replace("CONNECTIONS", &connections.to_string()).replace("HTTP", http);
        std::fs::write(dir.path().join("nginx.conf"), options).expect("a file");
        let mut command = Command::new(program);
        command.args(["-e", "error.log", "-c", "nginx.conf", "-p"]).arg(dir.path()).current_dir(dir.path());
        let mut process = Process::start(&mut command, &dir.path().join("log"), libc::SIGKILL);
        process.wait_for_port(port);
        Some(Self { _process: process, dir })
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        self.dir.path()
    }
}
