//! Block devices as they are set up: scheduler, readahead, sizes, and which device lies on which: a
//! loop device on its file, a device-mapper or RAID device on its parts, a partition on its disk.

use std::path::Path;

use crate::proc::diskstats::SECTOR_BYTES;
use crate::proc::{Proc, Tree};

/// Our setting names, and the files in a device's folder.
const FILES: [(&str, &str); 8] = [
    ("scheduler", "queue/scheduler"),
    ("read_ahead_kb", "queue/read_ahead_kb"),
    ("rotational", "queue/rotational"),
    ("nr_requests", "queue/nr_requests"),
    ("logical_block_bytes", "queue/logical_block_size"),
    ("max_sectors_kb", "queue/max_sectors_kb"),
    ("backing", "loop/backing_file"),
    // The name of `/dev/mapper/NAME`.
    ("name", "dm/name"),
];

/// Largest number of devices read, partitions not counted.
const DEVICES_MAX: usize = 500;

/// Settings of every configured device, partitions included.
pub(super) fn settings(proc: &Proc) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in entries(&proc.path(Tree::Sys, "block")).into_iter().take(DEVICES_MAX) {
        let word = |file: &str| proc.word(Tree::Sys, &format!("block/{folder}/{file}"));
        let Some(sectors) = word("size").and_then(|text| text.parse::<u64>().ok()).filter(|sectors| *sectors > 0)
        else {
            continue;
        };
        // sysfs writes `!` for a slash in a device's name.
        let device = folder.replace('!', "/");
        let mut put = |name: &str, value: String| found.push((format!("block.{device}.{name}"), value));
        for (name, file) in FILES {
            if let Some(value) = word(file) {
                put(name, if name == "scheduler" { chosen(&value) } else { value });
            }
        }
        put("size_bytes", (sectors as f64 * SECTOR_BYTES).to_string());
        let parts = entries(&proc.path(Tree::Sys, &format!("block/{folder}/slaves")));
        if !parts.is_empty() {
            put("parts", parts.join(",").replace('!', "/"));
        }
        for entry in entries(&proc.path(Tree::Sys, &format!("block/{folder}"))) {
            if proc.path(Tree::Sys, &format!("block/{folder}/{entry}/partition")).exists() {
                found.push((format!("block.{}.parent", entry.replace('!', "/")), device.clone()));
            }
        }
    }
    found
}

/// The word in brackets of `always [madvise] never`; other text unchanged.
pub(super) fn chosen(words: &str) -> String {
    let word = words.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(word, _)| word);
    word.unwrap_or(words).to_owned()
}

/// Sorted names in a folder; none if it cannot be read.
pub(super) fn entries(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_in_brackets() {
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("128"), "128");
    }

    #[test]
    fn stacked_devices_name_the_devices_below() {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("loop3/size", "2048\n"),
            ("loop3/loop/backing_file", "/var/lib/disk [1].img\n"),
            ("dm-0/size", "4096\n"),
            ("dm-0/dm/name", "vg-data\n"),
            ("dm-0/slaves/md0/x", ""),
            ("md0/size", "4096\n"),
            ("md0/slaves/sda1/x", ""),
            ("md0/slaves/sdb1/x", ""),
            ("sda/size", "8192\n"),
            ("sda/queue/logical_block_size", "4096\n"),
            ("sda/sda1/partition", "1\n"),
            ("cciss!c0d0/size", "8\n"),
            ("cciss!c0d0/cciss!c0d0p1/partition", "1\n"),
            ("loop9/size", "0\n"),
        ] {
            let path = dir.path().join("sys/block").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let found = settings(&Proc::at(dir.path()));
        let value = |name: &str| found.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
        assert_eq!(value("block.loop3.backing"), Some("/var/lib/disk [1].img"));
        assert_eq!(value("block.loop3.size_bytes"), Some("1048576"));
        assert_eq!((value("block.dm-0.parts"), value("block.md0.parts")), (Some("md0"), Some("sda1,sdb1")));
        assert_eq!((value("block.dm-0.name"), value("block.sda.parts")), (Some("vg-data"), None));
        assert_eq!((value("block.sda1.parent"), value("block.sda.logical_block_bytes")), (Some("sda"), Some("4096")));
        assert_eq!(value("block.cciss/c0d0p1.parent"), Some("cciss/c0d0"));
        assert!(!found.iter().any(|(name, _)| name.starts_with("block.loop9")));
    }
}
