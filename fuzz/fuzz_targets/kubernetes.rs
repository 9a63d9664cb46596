//! What Kubernetes' API answers and `kubectl` prints: rows with finite numbers and bounded texts, and of the same objects read again
//! nothing new.

#![no_main]

use holdup_collect::kubernetes::objects::{ObjectTracker, ReadTime, latest, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(document) = read(input) else { return };
    let documents = [document];
    let at = latest(&documents).unwrap_or(0);
    for mut tracker in [ObjectTracker::for_everything(), ObjectTracker::since(0, true)] {
        let first = tracker.take(&documents, ReadTime { at, window_ns: 1 });
        assert!(first.samples.iter().all(|sample| sample.value.is_finite()));
        assert!(first.events.iter().all(|event| event.text.chars().count() < 2_000));
        let again = tracker.take(&documents, ReadTime { at, window_ns: 1 });
        // Two objects of one name take turns; alone it says nothing new.
        if documents[0].pods() == 0 && documents[0].events() == 1 {
            assert!(again.events.is_empty());
        }
        if documents[0].pods() == 1 {
            assert!(again.settings.is_empty());
        }
    }
});
