//! Random reads that bring a window of readahead, most of which nothing asked for.

use holdup_recording::words::bytes;

use crate::instant::facts::{DiskWork, Facts};
use crate::instant::{OF_WINDOW, Signs};
use crate::resources::disk::{MAYBE_AMPLIFIED, WINDOWS_PER_FAULT, what_it_does};
use crate::strength::{FAIR, STRONG, WEAK};
use holdup_signals::Disk;

/// Worth (0-1) of a wide window where nothing shows that a disk is waited for.
const ALONE: f64 = 0.5;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let Some(disk) = &facts.disk else { return unseen(facts, signs) };
    let Some((_, work)) = facts.full_disk().filter(|(_, work)| *work != DiskWork::Writes) else { return };
    let Some((window, setting)) = facts.wide_readahead(disk) else { return of_unknown(facts, disk, work, signs) };
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
            parts(facts, disk, signs);
        }
        DiskWork::ReadsWindows => {
            signs.extend(FAIR, facts.page_waiters());
            let text = format!("{}, and a read brought {}", setting.text, bytes(disk.bytes_each()));
            signs.add(facts.of_disk(FAIR), setting.saying("8 to 16 KiB", text));
        }
        DiskWork::ReadsMuch | DiskWork::Writes => {}
    }
}

/// A window of which some pages are there already is read in parts: larger than a page, smaller than the
/// window.
fn parts(facts: &Facts<'_>, disk: &Disk, signs: &mut Signs) {
    let beyond = facts.beyond_pages(disk);
    let text = format!(
        "a read of {} brought {}, which is not the size of a database page",
        disk.device,
        bytes(disk.read.bytes_each())
    );
    let evidence = facts.view.disk_evidence(disk, "a page of 4, 8 or 16 KiB", text).ok();
    signs.extend(facts.of_disk(WEAK * beyond), evidence.filter(|_| beyond > 0.0));
}

/// Linux reads 128 KiB ahead unless it was told otherwise.
fn of_unknown(facts: &Facts<'_>, disk: &Disk, work: DiskWork, signs: &mut Signs) {
    let is_candidate = work == DiskWork::ReadsPages && facts.beyond_pages(disk) > 0.0;
    if facts.readahead(&disk.device).is_some() || !is_candidate {
        return;
    }
    let text = format!(
        "{}; its reads do not have the size of a database page, and its readahead is unknown",
        what_it_does(disk)
    );
    signs.extend(facts.of_disk(WEAK), facts.view.disk_evidence(disk, "reads of whole pages", text).ok());
}

/// Without a disk's figures nothing shows that reads are random. The only device that was looked at is the one
/// that is meant.
fn unseen(facts: &Facts<'_>, signs: &mut Signs) {
    let Some(is_waited_for) = facts.is_disk_waited_for() else { return };
    let Some((window, setting)) = facts.only_wide_readahead() else { return };
    let text = format!("{}: if reads are random, most of {} is not needed", setting.text, bytes(window));
    signs.add(if is_waited_for { WEAK } else { WEAK * ALONE }, setting.saying("8 to 16 KiB", text));
}
