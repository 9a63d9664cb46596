//! Files of other tools: the first byte says which kind. What comes out is YAML, in time and memory that the input
//! bounds, and the same again. With bit 4 of it they are files that aws printed, parted by zero bytes: what comes out is
//! series of finite numbers in the order of time, one a moment.
#![no_main]

use holdup_import::aws::{Aws, Figures};
use holdup_import::{ImportError, Options, Source, import};
use libfuzzer_sys::fuzz_target;
use saphyr_parser::Parser;

fuzz_target!(|input: &[u8]| {
    let Some((first, bytes)) = input.split_first() else { return };
    if first & 16 != 0 {
        let figures = aws(bytes);
        assert_eq!(figures, aws(bytes));
        return figures.map_or((), |figures| check(&figures));
    }
    let source = match first % 4 {
        0 => Some(Source::Jmx),
        1 => Some(Source::Har),
        2 => Some(Source::OpenApi),
        _ => None,
    };
    let options = Options {
        base_url: (first & 4 != 0).then(|| "http://127.0.0.1:8080".to_owned()),
        static_files: first & 8 != 0,
        ..Options::default()
    };
    let Ok(imported) = import(bytes, "file", source, &options) else { return };
    assert!(imported.requests > 0);
    for event in Parser::new_from_str(&imported.yaml) {
        assert!(event.is_ok(), "{event:?}\n{}", imported.yaml);
    }
    let again = import(bytes, "file", Some(imported.source), &options).map(|again| again.yaml);
    assert_eq!(again, Ok(imported.yaml));
});

fn aws(bytes: &[u8]) -> Result<Figures, ImportError> {
    let mut aws = Aws::default();
    for file in bytes.split(|byte| *byte == 0) {
        aws.read(file, "file")?;
    }
    aws.finish(None)
}

fn check(figures: &Figures) {
    assert!(!figures.series.is_empty() || !figures.settings.is_empty());
    let plain = |name: &str| name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    for series in &figures.series {
        assert!(series.metric.starts_with("aws_") && plain(&series.metric), "{}", series.metric);
        assert!(series.period_ns >= 0 && !series.points.is_empty() && !series.labels.is_empty());
        assert!(series.points.iter().all(|(_, value)| value.is_finite()), "{series:?}");
        assert!(series.points.windows(2).all(|pair| pair[0].0 < pair[1].0), "{series:?}");
    }
    assert!(figures.settings.iter().all(|setting| setting.source.starts_with("aws")));
}
