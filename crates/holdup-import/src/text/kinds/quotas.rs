//! Periods of a CPU quota and those in which it ran out, as people put them into a table: a row for each pod or
//! container.

use holdup_recording::Labels;
use holdup_recording::metrics::kubernetes;

use super::{Context, Kind, Table};

pub(super) const KIND: Kind =
    Kind::table("periods of a CPU quota", |columns| columns.has_any(&PERIODS) && columns.has_any(&THROTTLED), read);

/// The source of what containers' own counters say.
const SOURCE: &str = "kubernetes:pasted";

const PERIODS: [&str; 5] = ["CFS periods", "nr_periods", "periods", "total periods", "cfs_periods_total"];
const THROTTLED: [&str; 5] =
    ["throttled periods", "nr_throttled", "throttled", "CFS throttled periods", "cfs_throttled_periods_total"];

fn read(table: &Table, context: &mut Context) {
    let at = context.instant_of(KIND.name);
    for row in table.rows() {
        let (Some(periods), Some(throttled)) = (row.number(&PERIODS), row.number(&THROTTLED)) else { continue };
        let name = row.cells().next().and_then(|(_, cell)| cell).unwrap_or("all");
        let labels = Labels::new([("pod", name)]);
        context.out.gauge(at, SOURCE, kubernetes::CPU_CFS_PERIODS.name, labels.clone(), periods);
        context.out.gauge(at, SOURCE, kubernetes::CPU_CFS_THROTTLED_PERIODS.name, labels, throttled);
    }
}
