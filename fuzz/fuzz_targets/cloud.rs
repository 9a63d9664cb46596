//! Figures of clouds: what `az`, `gcloud` and `aws` print, files parted by zero bytes. What comes out is series of finite
//! numbers in the order of time, one a moment, and the same again.
#![no_main]

use holdup_import::aws::{Aws, Figures};
use holdup_import::cloud;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    for file in input.split(|byte| *byte == 0) {
        cloud::is_one(&String::from_utf8_lossy(file));
        let figures = cloud::read(file, "file");
        assert_eq!(figures, cloud::read(file, "file"));
        if let Ok(figures) = figures {
            check(&figures);
        }
    }
    let mut aws = Aws::default();
    let all_read = input.split(|byte| *byte == 0).all(|file| aws.read(file, "file").is_ok());
    if let (true, Ok(figures)) = (all_read, aws.finish(Some("db"))) {
        check(&figures);
    }
});

fn check(figures: &Figures) {
    assert!(!figures.series.is_empty() || !figures.settings.is_empty());
    for series in &figures.series {
        assert!(series.metric.starts_with("aws_") && series.period_ns >= 0, "{series:?}");
        assert!(!series.points.is_empty() && !series.labels.is_empty(), "{series:?}");
        assert!(series.points.iter().all(|(_, value)| value.is_finite()), "{series:?}");
        assert!(series.points.windows(2).all(|pair| pair[0].0 <= pair[1].0), "{series:?}");
    }
    for setting in &figures.settings {
        assert!(setting.source.starts_with("aws") && !setting.value.contains("inf"), "{setting:?}");
    }
}
