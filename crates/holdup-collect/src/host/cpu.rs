//! Load average, CPU time by mode, context switches, open files: `/proc/loadavg`, `/proc/stat`, `/proc/sys/fs/file-nr`.

use holdup_recording::{Labels, metrics};

use super::Reader;
use crate::ReadError;
use crate::proc::{number, ticks_per_second};
use crate::reading::Out;

/// Modes in the order of the `cpu` line (proc_stat(5)). `user` and `nice` include guest time.
const MODES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "interrupt", "softirq", "steal"];

/// Largest number of CPUs of which each has rows of its own.
pub(super) const CPUS_MAX: usize = 256;

/// The position of softirq among the numbers of a line.
const SOFTIRQ: usize = 6;

/// Load averages (1, 5, 15 minutes) and the threads runnable at this moment, holdup's included.
pub(super) fn load(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    let text = reader.proc.read_lines("loadavg", &mut reader.buffer)?;
    let mut fields = text.split_ascii_whitespace();
    let mut average = |what| number::<f64>("/proc/loadavg", what, fields.next());
    let averages = [average("1 minute")?, average("5 minutes")?, average("15 minutes")?];
    let runnable = fields.next().and_then(|field| field.split_once('/')).map(|(runnable, _)| runnable);
    let runnable: f64 = number("/proc/loadavg", "runnable", runnable)?;
    let metrics = [metrics::host::LOAD_AVERAGE_1M, metrics::host::LOAD_AVERAGE_5M, metrics::host::LOAD_AVERAGE_15M];
    for (metric, value) in metrics.into_iter().zip(averages) {
        out.put_plain(metric, value);
    }
    out.put_plain(metrics::host::PROCESSES_RUNNABLE, runnable);
    Ok(())
}

/// CPU time summed over CPUs, soft interrupts of each, CPUs online, and context switches and processes created since boot.
pub(super) fn time(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    const FILE: &str = "/proc/stat";
    let text = reader.proc.read_lines("stat", &mut reader.buffer)?;
    let (mut modes, mut cpus, mut switches, mut created) = (None, 0_u32, None, None);
    let mut softirqs = Vec::new();
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace();
        match fields.next() {
            Some("cpu") => {
                let mut ticks = [0_u64; MODES.len()];
                for (tick, mode) in ticks.iter_mut().zip(MODES) {
                    *tick = number(FILE, mode, fields.next())?;
                }
                modes = Some(ticks);
            }
            Some("ctxt") => switches = Some(number::<f64>(FILE, "ctxt", fields.next())?),
            Some("processes") => created = Some(number::<f64>(FILE, "processes", fields.next())?),
            Some(name) => {
                let Some(cpu) = name.strip_prefix("cpu").and_then(|n| n.parse::<u32>().ok()) else { continue };
                cpus += 1;
                if softirqs.len() < CPUS_MAX {
                    softirqs.push((cpu, number::<u64>(FILE, "softirq", fields.nth(SOFTIRQ))?));
                }
            }
            None => {}
        }
    }
    let modes = modes.ok_or_else(|| ReadError(format!("{FILE}: no line `cpu`")))?;
    let switches = switches.ok_or_else(|| ReadError(format!("{FILE}: no line `ctxt`")))?;
    let created = created.ok_or_else(|| ReadError(format!("{FILE}: no line `processes`")))?;
    if cpus == 0 {
        return Err(ReadError(format!("{FILE}: no line `cpu0`")));
    }
    let per_second = ticks_per_second();
    for (mode, ticks) in MODES.into_iter().zip(modes) {
        out.put(metrics::host::CPU_TIME, Labels::new([("cpu_mode", mode)]), ticks as f64 / per_second);
    }
    for (cpu, ticks) in softirqs {
        out.put(metrics::host::CPU_SOFTIRQ_TIME, of_cpu(cpu), ticks as f64 / per_second);
    }
    out.put_plain(metrics::host::CPU_LOGICAL_COUNT, f64::from(cpus));
    out.put_plain(metrics::host::CONTEXT_SWITCHES, switches);
    out.put_plain(metrics::host::PROCESS_CREATED, created);
    Ok(())
}

/// Labels of one CPU.
pub(super) fn of_cpu(cpu: u32) -> Labels {
    Labels::new([("cpu_logical_number", cpu.to_string())])
}

/// Open files of the whole host, and their limit `fs.file-max`.
pub(super) fn open_files(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    const FILE: &str = "/proc/sys/fs/file-nr";
    let text = reader.proc.read_lines("sys/fs/file-nr", &mut reader.buffer)?;
    let mut fields = text.split_ascii_whitespace();
    let open: u64 = number(FILE, "open files", fields.next())?;
    // Read to the end to notice a cut line: unused files, and the limit.
    let _unused: u64 = number(FILE, "unused files", fields.next())?;
    let _limit: u64 = number(FILE, "limit", fields.next())?;
    out.put_plain(metrics::host::FILE_HANDLES, open as f64);
    Ok(())
}
