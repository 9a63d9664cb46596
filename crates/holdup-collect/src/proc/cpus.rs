//! Which CPUs are online, from sysfs.

use crate::proc::{Proc, Tree};

/// Numbers of the online CPUs, `most` at most, from a list such as `0-3,8`; CPU 0 without the list.
pub(crate) fn online(proc: &Proc, most: usize) -> Vec<usize> {
    let text = proc.word(Tree::Sys, "devices/system/cpu/online").unwrap_or_else(|| "0".to_owned());
    let ranges = text.split(',').filter_map(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.trim().parse::<usize>().ok()?..=to.trim().parse::<usize>().ok()?)
    });
    ranges.flatten().take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("sys/devices/system/cpu");
        std::fs::create_dir_all(&folder).unwrap();
        for (text, expected) in [("0-1\n", vec![0, 1]), ("0,2-3\n", vec![0, 2, 3]), ("x\n", vec![])] {
            std::fs::write(folder.join("online"), text).unwrap();
            assert_eq!(online(&Proc::at(dir.path()), 9), expected, "{text}");
        }
        std::fs::write(folder.join("online"), "0-99999999\n").unwrap();
        assert_eq!(online(&Proc::at(dir.path()), 9).len(), 9);
    }
}
