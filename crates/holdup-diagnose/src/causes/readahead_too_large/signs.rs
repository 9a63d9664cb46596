//! Random reads that bring a window of readahead, most of which nothing asked for.

use holdup_recording::words::bytes;

use crate::instant::facts::{DiskWork, Facts};
use crate::instant::{OF_WINDOW, Signs};
use crate::resources::disk::{MAYBE_AMPLIFIED, WINDOWS_PER_FAULT};
use crate::strength::{FAIR, STRONG};

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let Some((disk, work)) = facts.full_disk().filter(|(_, work)| *work != DiskWork::Writes) else { return };
    let Some((window, setting)) = facts.wide_readahead(disk) else { return };
    // What was read for each page that a thread waited for is a window.
    if let Some((each, evidence)) = &facts.read_per_fault
        && (OF_WINDOW..=WINDOWS_PER_FAULT).contains(&(each / window))
    {
        signs.add(STRONG, evidence.clone());
    }
    // More was read than the storage engine asked of files. The other way round nothing follows, because
    // the kernel's page cache answers some of it.
    if let Some((ratio, evidence)) = facts.documents.read_per_asked.as_ref().filter(|(r, _)| *r >= MAYBE_AMPLIFIED) {
        signs.add(STRONG * (1.0 - 1.0 / ratio), evidence.clone());
    }
    match work {
        DiskWork::ReadsPages => {
            let needless = bytes(window);
            let text =
                format!("{}; reads are small and random, so that most of {needless} is not needed", setting.text);
            signs.add(facts.of_disk(FAIR), setting.saying("8 to 16 KiB", text));
        }
        DiskWork::ReadsWindows => {
            signs.extend(FAIR, facts.page_waiters());
            let text = format!("{}, and a read brought {}", setting.text, bytes(disk.bytes_each()));
            signs.add(facts.of_disk(FAIR), setting.saying("8 to 16 KiB", text));
        }
        DiskWork::ReadsMuch | DiskWork::Writes => {}
    }
}
