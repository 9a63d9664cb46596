//! Files of other tools: the first byte says which kind. What comes out is YAML, in time and memory that the input
//! bounds, and the same again.
#![no_main]

use holdup_import::{Options, Source, import};
use libfuzzer_sys::fuzz_target;
use saphyr_parser::Parser;

fuzz_target!(|input: &[u8]| {
    let Some((first, bytes)) = input.split_first() else { return };
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
