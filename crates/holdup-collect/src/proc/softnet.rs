//! What each CPU did with received packets: `/proc/net/softnet_stat`, whose columns have no names,
//! and the row `NET_RX` of `/proc/softirqs`.
//!
//! The first three columns of `softnet_stat` are the same in every version (`softnet_seq_show` in
//! the kernel's net/core/net-procfs.c). Later versions appended some: nine became ten (receive
//! packet steering), eleven (flow limits), thirteen (the backlog's length, the CPU's number) and
//! fifteen. Only online CPUs have a row, so the number of a row is not that of its CPU.

use crate::ReadError;
use crate::proc::{hexadecimal, number};

const SOFTNET: &str = "/proc/net/softnet_stat";
const SOFTIRQS: &str = "/proc/softirqs";

/// The row of `/proc/softirqs` for received packets.
const RECEIVE: &str = "NET_RX:";

/// The column with the CPU's number, behind the first three and nine others.
const CPU_AFTER: usize = 9;

/// One row: what a CPU did since boot. The kernel counts with 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Softnet {
    /// The CPU; older kernels do not say.
    pub cpu: Option<u32>,
    /// Packets that it took up.
    pub processed: u32,
    /// Packets dropped in front of it: its backlog was full.
    pub dropped: u32,
    /// Rounds that ended by their budget of packets or of time, with packets left.
    pub squeezed: u32,
}

/// The rows of `/proc/net/softnet_stat`, in order.
///
/// # Errors
/// If a row is malformed, or the file has no row.
pub fn softnet(text: &str) -> Result<Vec<Softnet>, ReadError> {
    let row = |line: &str| -> Result<Softnet, ReadError> {
        let mut fields = line.split_ascii_whitespace();
        let mut next = |what| hexadecimal(SOFTNET, what, fields.next());
        let (processed, dropped, squeezed) = (next("processed")?, next("dropped")?, next("time_squeeze")?);
        let cpu = fields.nth(CPU_AFTER).map(|field| hexadecimal(SOFTNET, "the CPU", Some(field))).transpose()?;
        Ok(Softnet { cpu, processed, dropped, squeezed })
    };
    let rows: Vec<Softnet> = text.lines().map(row).collect::<Result<_, _>>()?;
    if rows.is_empty() { Err(ReadError(format!("{SOFTNET}: no row"))) } else { Ok(rows) }
}

/// CPUs, and how many soft interrupts for received packets each had.
///
/// # Errors
/// If the heading or that row is missing, or a number is.
pub fn receive_softirqs(text: &str) -> Result<Vec<(u32, u64)>, ReadError> {
    let mut lines = text.lines();
    let heading = lines.next().unwrap_or_default().split_ascii_whitespace();
    let row = lines.find_map(|line| line.trim_start().strip_prefix(RECEIVE));
    let mut counts = row.ok_or_else(|| ReadError(format!("{SOFTIRQS}: no row {RECEIVE}")))?.split_ascii_whitespace();
    let of_cpu = |name: &str| {
        let cpu = number(SOFTIRQS, "a CPU of the heading", name.strip_prefix("CPU"))?;
        Ok((cpu, number(SOFTIRQS, name, counts.next())?))
    };
    heading.map(of_cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two CPUs' rows with `columns` columns: as Linux 2.6.32, 3.2, 4.19, 5.15 and 6.18 write them.
    fn rows(columns: usize) -> String {
        let row = |cpu: usize| {
            let mut row = vec!["00000000".to_owned(); columns];
            (row[0], row[1], row[2]) = (format!("0001e2{cpu:02x}"), "0000000a".to_owned(), format!("000000{cpu:02x}"));
            if columns >= 13 {
                row[12] = format!("{cpu:08x}");
            }
            row.join(" ") + "\n"
        };
        row(0) + &row(16)
    }

    #[test]
    fn every_version_s_columns() {
        for (columns, cpus) in [
            (9, [None, None]),
            (10, [None, None]),
            (11, [None, None]),
            (13, [Some(0), Some(16)]),
            (15, [Some(0), Some(16)]),
        ] {
            let found = softnet(&rows(columns)).unwrap();
            assert_eq!([found[0].cpu, found[1].cpu], cpus, "{columns} columns");
            let second = Softnet { cpu: cpus[1], processed: 0x1e210, dropped: 10, squeezed: 16 };
            assert_eq!(found[1], second, "{columns} columns");
        }
    }

    #[test]
    fn malformed_rows_are_errors() {
        for bad in ["", "\n", "0001 0002\n", "0001 0002 zz\n", "0001 0002 +003\n", "0001 0002 123456789\n"] {
            assert!(softnet(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_row_of_received_packets_by_cpu() {
        let text = "                    CPU0       CPU2\n          HI:          1          0\n      NET_RX:   44676593   38279759\n";
        assert_eq!(receive_softirqs(text).unwrap(), [(0, 44_676_593), (2, 38_279_759)]);
        for bad in
            ["", "CPU0\n", "CPU0 CPU1\nNET_RX: 4\n", "CPUx\nNET_RX: 4\n", "CPU0\nNET_RX: x\n", "CPU0\nNET_TX: 4\n"]
        {
            assert!(receive_softirqs(bad).is_err(), "{bad:?}");
        }
    }
}
