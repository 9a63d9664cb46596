//! The network allowances of a cloud instance, as the driver of its network device counts what
//! exceeded them. [`KNOWN`] says which driver's name means which. Containers rarely see such a
//! device: watch the node.

use std::collections::BTreeMap;

use holdup_recording::Labels;
use holdup_recording::metrics::Metric;
use holdup_recording::metrics::host::{
    NETWORK_ALLOWANCE_AVAILABLE as AVAILABLE, NETWORK_ALLOWANCE_EXCEEDED as EXCEEDED,
    NETWORK_ALLOWANCE_EXCEEDED_BYTES as EXCEEDED_BYTES,
};

use super::Reader;
use super::block::entries;
use crate::ReadError;
use crate::proc::driver_statistics::Drivers;
use crate::proc::{Proc, Tree};
use crate::reading::Out;

/// Names of drivers' statistics, our metric and the allowance. `#` stands for the number of a
/// queue; queues are added up.
///
/// Amazon's ENA counts packets that were queued or dropped (Amazon EC2 User Guide, Network
/// performance metrics for ENA). virtio-net counts bytes that a device dropped by its rate limit
/// (Virtual I/O Device specification, `rx_ratelimit_bytes`). Google's gVNIC and Azure's hv_netvsc
/// document no count of what exceeded a limit.
const KNOWN: [(&str, Metric, &str); 8] = [
    ("bw_in_allowance_exceeded", EXCEEDED, "bandwidth_in"),
    ("bw_out_allowance_exceeded", EXCEEDED, "bandwidth_out"),
    ("pps_allowance_exceeded", EXCEEDED, "packets"),
    ("conntrack_allowance_exceeded", EXCEEDED, "connections"),
    ("linklocal_allowance_exceeded", EXCEEDED, "link_local"),
    ("conntrack_allowance_available", AVAILABLE, "connections"),
    ("rx#_hw_ratelimit_bytes", EXCEEDED_BYTES, "bandwidth_in"),
    ("tx#_hw_ratelimit_bytes", EXCEEDED_BYTES, "bandwidth_out"),
];

/// Largest number of devices that are asked.
const DEVICES_MAX: usize = 32;

/// What a device's driver counts of its allowances.
#[derive(Debug, PartialEq, Eq)]
struct Layout {
    /// How many statistics it has in all.
    count: usize,
    /// Position of a known one, and its row of [`KNOWN`].
    known: Vec<(usize, usize)>,
}

/// The devices that were asked.
#[derive(Default)]
pub(super) struct Devices {
    drivers: Option<Drivers>,
    layouts: BTreeMap<String, Layout>,
}

/// What exceeded the allowances of each device, and what is left of them.
pub(super) fn read(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    if !reader.proc.is_live() {
        return Ok(());
    }
    let Devices { drivers, layouts } = &mut reader.allowances;
    let drivers = match drivers {
        Some(drivers) => drivers,
        None => drivers.insert(Drivers::open().map_err(|e| ReadError(format!("a socket for ethtool: {e}")))?),
    };
    let devices = devices(&reader.proc);
    layouts.retain(|device, _| devices.contains(device));
    for device in devices {
        let layout = layouts.entry(device.clone()).or_insert_with(|| Layout::ask(drivers, &device));
        if layout.known.is_empty() {
            continue;
        }
        out.begin();
        match drivers.values(&device, layout.count) {
            Ok(values) if values.len() == layout.count => put(&device, layout, &values, out),
            // Its queues changed, and with them the order of its statistics.
            Ok(_) => drop(layouts.remove(&device)),
            Err(error) => {
                layouts.remove(&device);
                return Err(ReadError(format!("statistics of {device}: {error}")));
            }
        }
    }
    Ok(())
}

/// Network devices with hardware behind them, or what the hypervisor shows as such.
fn devices(proc: &Proc) -> Vec<String> {
    let folder = proc.path(Tree::Sys, "class/net");
    let names = entries(&folder).into_iter().filter(|name| folder.join(name).join("device").exists());
    names.take(DEVICES_MAX).collect()
}

impl Layout {
    /// A driver that does not say has no statistics.
    fn ask(drivers: &Drivers, device: &str) -> Self {
        Self::new(&drivers.names(device).unwrap_or_default())
    }

    fn new(names: &[String]) -> Self {
        let row = |name: &String| KNOWN.iter().position(|(pattern, ..)| is_meant(pattern, name));
        let known = names.iter().enumerate().filter_map(|(position, name)| Some((position, row(name)?)));
        Self { count: names.len(), known: known.collect() }
    }
}

fn is_meant(pattern: &str, name: &str) -> bool {
    let Some((before, after)) = pattern.split_once('#') else { return pattern == name };
    let number = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn put(device: &str, layout: &Layout, values: &[u64], out: &mut Out) {
    let mut sums = BTreeMap::<usize, f64>::new();
    for (position, row) in &layout.known {
        *sums.entry(*row).or_default() += values.get(*position).map_or(0.0, |value| *value as f64);
    }
    for (row, sum) in sums {
        let (_, metric, allowance) = KNOWN[row];
        out.put(metric, Labels::new([("device", device), ("allowance", allowance)]), sum);
    }
}

#[cfg(test)]
mod tests {
    use holdup_recording::Batch;

    use super::*;

    fn rows(names: &[&str], values: &[u64]) -> Vec<(String, String, f64)> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut batch = Batch::default();
        put("eth0", &Layout::new(&names), values, &mut Out::new(&mut batch, "host"));
        let row = |s: holdup_recording::rows::Sample| {
            assert_eq!(s.labels.get("device"), Some("eth0"));
            (s.metric, s.labels.get("allowance").unwrap().to_owned(), s.value)
        };
        batch.samples.into_iter().map(row).collect()
    }

    #[test]
    fn amazons_driver() {
        let names = [
            "tx_timeout",
            "suspend",
            "bw_in_allowance_exceeded",
            "bw_out_allowance_exceeded",
            "pps_allowance_exceeded",
            "conntrack_allowance_exceeded",
            "linklocal_allowance_exceeded",
            "conntrack_allowance_available",
            "queue_0_tx_cnt",
        ];
        let exceeded = "system_network_allowance_exceeded_total".to_owned();
        let row = |allowance: &str, value: f64| (exceeded.clone(), allowance.to_owned(), value);
        let expected = vec![
            row("bandwidth_in", 1.0),
            row("bandwidth_out", 2.0),
            row("packets", 3.0),
            row("connections", 4.0),
            row("link_local", 5.0),
            ("system_network_allowance_available".to_owned(), "connections".to_owned(), 136_812.0),
        ];
        assert_eq!(rows(&names, &[9, 9, 1, 2, 3, 4, 5, 136_812, 9]), expected);
        // Older ones have fewer.
        assert_eq!(rows(&names[..5], &[9, 9, 1, 2, 3]), expected[..3]);
    }

    #[test]
    fn queues_of_virtio_are_added_up_and_others_names_are_left_alone() {
        let names =
            ["rx0_hw_ratelimit_bytes", "rx11_hw_ratelimit_bytes", "tx0_hw_ratelimit_bytes", "rx_hw_ratelimit_bytes"];
        let bytes = "system_network_allowance_exceeded_bytes_total".to_owned();
        let expected = [(bytes.clone(), "bandwidth_in".to_owned(), 30.0), (bytes, "bandwidth_out".to_owned(), 4.0)];
        assert_eq!(rows(&names, &[10, 20, 4, 9]), expected);
        assert_eq!(rows(&["peer_ifindex", "rx_queue_0_drops", "tx0_drops"], &[1, 2, 3]), []);
    }
}
