//! Memory of the nodes of a machine that has several (NUMA), by `/sys/devices/system/node`: what is
//! free on each, and on which node pages were taken. A machine with one node has no rows.

use holdup_recording::{Labels, metrics};

use super::Reader;
use super::settings::listed;
use crate::ReadError;
use crate::proc::{Tree, keyed, number};
use crate::reading::Out;

/// Most nodes: machines have up to some tens.
const NODES_MAX: usize = 64;

/// Fields of `numastat`, and our names for them.
const PAGES: [(&str, &str); 3] = [("numa_hit", "hit"), ("numa_miss", "miss"), ("interleave_hit", "interleave")];

/// Each node's memory.
pub(super) fn read(reader: &mut Reader, out: &mut Out) -> Result<(), ReadError> {
    let online = reader.proc.word(Tree::Sys, "devices/system/node/online").unwrap_or_default();
    let nodes = listed(&online);
    if nodes.len() < 2 {
        return Ok(());
    }
    for node in nodes.into_iter().take(NODES_MAX).map(|node| node.to_string()) {
        out.begin();
        let name = format!("devices/system/node/node{node}/meminfo");
        let text = reader.proc.read_in(Tree::Sys, &name, &mut reader.buffer)?;
        let bytes = |field: &str| {
            let value = text.lines().find_map(|line| line.split_once(field)?.1.strip_prefix(':'));
            let value = value.and_then(|rest| rest.trim().strip_suffix(" kB"));
            number::<f64>(&name, field, value).map(|kb| kb * 1024.0)
        };
        let labels = || Labels::new([("node", node.as_str())]);
        out.put(metrics::host::NUMA_MEMORY_TOTAL_BYTES, labels(), bytes("MemTotal")?);
        out.put(metrics::host::NUMA_MEMORY_FREE_BYTES, labels(), bytes("MemFree")?);
        out.begin();
        let name = format!("devices/system/node/node{node}/numastat");
        let counters = keyed::flat(&name, reader.proc.read_in(Tree::Sys, &name, &mut reader.buffer)?)?;
        for (field, kind) in PAGES {
            if let Some(pages) = counters.get(field) {
                out.put(metrics::host::NUMA_PAGES, labels().with("kind", kind.to_owned()), *pages as f64);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Host;
    use crate::Collector as _;
    use crate::proc::Proc;
    use holdup_recording::Batch;

    fn rows(online: &str) -> Vec<(String, String, f64)> {
        let dir = tempfile::tempdir().unwrap();
        for node in 0..2 {
            let folder = dir.path().join(format!("sys/devices/system/node/node{node}"));
            std::fs::create_dir_all(&folder).unwrap();
            let meminfo = format!("Node {node} MemTotal:  1000 kB\nNode {node} MemFree:  {} kB\n", 10 + 90 * node);
            std::fs::write(folder.join("meminfo"), meminfo).unwrap();
            let pages = "numa_hit 500\nnuma_miss 70\nnuma_foreign 0\ninterleave_hit 3\nlocal_node 490\nother_node 10\n";
            std::fs::write(folder.join("numastat"), pages).unwrap();
        }
        std::fs::write(dir.path().join("sys/devices/system/node/online"), format!("{online}\n")).unwrap();
        let (mut host, mut batch) = (Host::new(Proc::at(dir.path())), Batch::default());
        let _ = host.sample(&mut batch);
        let rows = batch.samples.into_iter().filter(|row| row.metric.starts_with("system_numa"));
        rows.map(|row| (row.metric, row.labels.to_string(), row.value)).collect()
    }

    #[test]
    fn each_of_several_nodes_has_its_memory_and_a_single_one_has_no_rows() {
        let found = rows("0-1");
        assert_eq!(found.len(), 10, "{found:?}");
        let of = |metric: &str, label: &str| -> Vec<f64> {
            let is = |row: &&(String, String, f64)| row.0 == metric && row.1.contains(label);
            found.iter().filter(is).map(|row| row.2).collect()
        };
        assert_eq!(of("system_numa_memory_free_bytes", "node"), [10.0 * 1024.0, 100.0 * 1024.0]);
        assert_eq!(of("system_numa_pages_total", "miss"), [70.0, 70.0]);
        assert_eq!(rows("0"), []);
    }
}
