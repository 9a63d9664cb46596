//! The bytes of a remote write request (Prometheus remote write 1.0): a `WriteRequest` of `TimeSeries` of `Label` and
//! `Sample`, as protocol buffers encode them, compressed as one snappy block. Four small messages that never change
//! need no generator.

use super::series::Labels;

/// The name's label; it sorts before all others.
const NAME: &str = "__name__";

/// "This series has ended": a NaN of just these bits (Prometheus' staleness marker).
pub const STALE: f64 = f64::from_bits(0x7ff0_0000_0000_0002);

/// One value of one series.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Name of the series.
    pub name: String,
    /// Its labels beside the name.
    pub labels: Labels,
    /// Its value.
    pub value: f64,
}

/// Field numbers of `WriteRequest`, `TimeSeries`, `Label` and `Sample`.
mod field {
    pub const REQUEST_SERIES: u8 = 1;
    pub const SERIES_LABEL: u8 = 1;
    pub const SERIES_SAMPLE: u8 = 2;
    pub const LABEL_NAME: u8 = 1;
    pub const LABEL_VALUE: u8 = 2;
    pub const SAMPLE_VALUE: u8 = 1;
    pub const SAMPLE_TIMESTAMP: u8 = 2;
}

/// Wire types of protocol buffers.
const VARINT: u8 = 0;
const FIXED_64: u8 = 1;
const LENGTH_DELIMITED: u8 = 2;

/// The body of a request with `samples` of the moment `at_ms`, milliseconds since the Unix epoch.
///
/// # Errors
/// If it does not fit into a snappy block (4 GiB).
pub fn body(samples: &[Sample], at_ms: i64) -> Result<Vec<u8>, snap::Error> {
    snap::raw::Encoder::new().compress_vec(&write_request(samples, at_ms))
}

fn write_request(samples: &[Sample], at_ms: i64) -> Vec<u8> {
    let mut request = Vec::new();
    for sample in samples {
        let mut labels: Vec<(&str, &str)> = sample.labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
        labels.push((NAME, &sample.name));
        // Receivers want them sorted, and none without a value.
        labels.sort_unstable();
        let mut series = Vec::new();
        for (name, value) in labels.into_iter().filter(|(_, value)| !value.is_empty()) {
            let mut label = Vec::new();
            bytes(&mut label, field::LABEL_NAME, name.as_bytes());
            bytes(&mut label, field::LABEL_VALUE, value.as_bytes());
            bytes(&mut series, field::SERIES_LABEL, &label);
        }
        let mut point = Vec::new();
        key(&mut point, field::SAMPLE_VALUE, FIXED_64);
        point.extend(sample.value.to_bits().to_le_bytes());
        key(&mut point, field::SAMPLE_TIMESTAMP, VARINT);
        varint(&mut point, at_ms as u64);
        bytes(&mut series, field::SERIES_SAMPLE, &point);
        bytes(&mut request, field::REQUEST_SERIES, &series);
    }
    request
}

fn bytes(out: &mut Vec<u8>, field: u8, content: &[u8]) {
    key(out, field, LENGTH_DELIMITED);
    varint(out, content.len() as u64);
    out.extend(content);
}

fn key(out: &mut Vec<u8>, field: u8, wire_type: u8) {
    out.push(field << 3 | wire_type);
}

/// Seven bits a byte, the lowest first; the eighth says that more follow.
fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_as_the_specification_has_them() {
        let sample = Sample {
            name: "m".to_owned(),
            labels: vec![("b", "2".to_owned()), ("empty", String::new()), ("a", "1".to_owned())],
            value: 1.5,
        };
        let expected = [
            &[0x0a, 44][..],
            &[0x0a, 13, 0x0a, 8],
            b"__name__",
            &[0x12, 1, b'm'],
            &[0x0a, 6, 0x0a, 1, b'a', 0x12, 1, b'1'],
            &[0x0a, 6, 0x0a, 1, b'b', 0x12, 1, b'2'],
            &[0x12, 11, 0x09, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f, 0x10, 0xac],
        ];
        let written = write_request(std::slice::from_ref(&sample), 300);
        let mut expected = expected.concat();
        // 300 is 0xac 0x02.
        expected.push(2);
        expected[1] = (expected.len() - 2) as u8;
        let at = expected.len() - 13;
        expected[at] = 12;
        assert_eq!(written, expected);
        let unpacked = snap::raw::Decoder::new().decompress_vec(&body(&[sample], 300).unwrap()).unwrap();
        assert_eq!(unpacked, expected);
    }

    #[test]
    fn numbers_of_any_size() {
        for (value, expected) in [(0, &[0][..]), (127, &[0x7f]), (128, &[0x80, 1]), (300, &[0xac, 2])] {
            let mut out = Vec::new();
            varint(&mut out, value);
            assert_eq!(out, expected);
        }
        assert!(STALE.is_nan());
    }
}
