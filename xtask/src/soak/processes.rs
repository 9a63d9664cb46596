//! Small processes of the soak's own to be watched: most sleep, every tenth works a little. They end when their standard input
//! does, so that none outlives the soak however it ends.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// One in so many is busy.
const BUSY_EVERY: usize = 10;

/// A busy one works for so long, then sleeps [`PAUSE`].
const WORK: Duration = Duration::from_micros(200);

/// What a busy one sleeps between two stretches of work.
const PAUSE: Duration = Duration::from_millis(50);

/// Those that run.
pub struct Workers(Vec<Child>);

impl Workers {
    /// Starts `count` copies of this program.
    pub fn start(count: usize) -> Result<Self> {
        let program = std::env::current_exe().context("could not find this program")?;
        let mut workers = Self(Vec::new());
        for number in 0..count {
            let kind = if number % BUSY_EVERY == 0 { "busy" } else { "idle" };
            let mut command = Command::new(&program);
            command.args(["soak", "worker", kind]).stdin(Stdio::piped()).stdout(Stdio::null());
            workers.0.push(command.spawn().context("could not start a process to watch")?);
        }
        Ok(workers)
    }

    /// Their process ids.
    pub fn pids(&self) -> Vec<u32> {
        self.0.iter().map(Child::id).collect()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            drop(child.stdin.take());
        }
        for child in &mut self.0 {
            let _ = child.wait();
        }
    }
}

/// What one of them does until its standard input ends.
pub fn work(is_busy: bool) {
    if is_busy {
        // It ends with the process.
        std::thread::spawn(|| {
            loop {
                let begun = Instant::now();
                while begun.elapsed() < WORK {
                    std::hint::spin_loop();
                }
                std::thread::sleep(PAUSE);
            }
        });
    }
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
}
