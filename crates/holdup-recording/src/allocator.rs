//! Memory that is free, but not given back.

/// Gives free memory of the whole process back to the system. glibc keeps the pages of an arena
/// below its topmost block in use, however many of them are free (`malloc_trim(3)`).
pub(crate) fn give_back_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes no pointer, and locks each arena while it works there.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: usize = 60_000;

    fn resident_pages() -> usize {
        std::fs::read_to_string("/proc/self/statm").unwrap().split(' ').nth(1).unwrap().parse().unwrap()
    }

    #[test]
    fn free_memory_below_what_is_in_use_goes_back() {
        let mut blocks: Vec<Box<[u8; 1_000]>> = (0..BLOCKS).map(|_| Box::new([1; 1_000])).collect();
        let top = blocks.pop();
        drop(blocks);
        let before = resident_pages();
        give_back_memory();
        let given = before.saturating_sub(resident_pages());
        // Of some 60 MB in pages of 4 KiB.
        assert!(given > 10_000, "{given} pages");
        drop(top);
    }
}
