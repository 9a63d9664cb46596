//! Encodes a remote write request (Prometheus remote write 1.0): a `WriteRequest`, encoded by prost
//! and compressed as one snappy block.

use prost::Message as _;

use super::series::Labels;

/// The name's label; it sorts before all others.
const NAME: &str = "__name__";

/// "This series has ended": a NaN with exactly these bits (Prometheus' staleness marker).
pub const STALE: f64 = f64::from_bits(0x7ff0_0000_0000_0002);

/// One value of one series.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Name of the series.
    pub name: String,
    /// Its labels besides the name.
    pub labels: Labels,
    /// Its value.
    pub value: f64,
}

/// `prometheus.WriteRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WriteRequest {
    /// Its series.
    #[prost(message, repeated, tag = "1")]
    pub timeseries: Vec<TimeSeries>,
}

/// `prometheus.TimeSeries`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TimeSeries {
    /// Its labels, sorted by name.
    #[prost(message, repeated, tag = "1")]
    pub labels: Vec<Label>,
    /// Its values.
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<Point>,
}

/// `prometheus.Label`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, prost::Message)]
pub struct Label {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// `prometheus.Sample`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Point {
    /// The value.
    #[prost(double, tag = "1")]
    pub value: f64,
    /// Milliseconds since the Unix epoch.
    #[prost(int64, tag = "2")]
    pub timestamp: i64,
}

/// The body of a request with `samples` at `at_ms`, milliseconds since the Unix epoch.
///
/// # Errors
/// If it exceeds a snappy block (4 GiB).
pub fn body(samples: &[Sample], at_ms: i64) -> Result<Vec<u8>, snap::Error> {
    snap::raw::Encoder::new().compress_vec(&write_request(samples, at_ms).encode_to_vec())
}

fn write_request(samples: &[Sample], at_ms: i64) -> WriteRequest {
    WriteRequest { timeseries: samples.iter().map(|sample| series(sample, at_ms)).collect() }
}

fn series(sample: &Sample, at_ms: i64) -> TimeSeries {
    let label = |name: &str, value: &str| Label { name: name.to_owned(), value: value.to_owned() };
    // Receivers want sorted labels, and none with an empty value.
    let mut labels: Vec<Label> = sample
        .labels
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| label(name, value))
        .chain([label(NAME, &sample.name)])
        .collect();
    labels.sort_unstable();
    TimeSeries { labels, samples: vec![Point { value: sample.value, timestamp: at_ms }] }
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
        let written = write_request(std::slice::from_ref(&sample), 300).encode_to_vec();
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
    fn the_staleness_marker_keeps_its_bits() {
        let sample = Sample { name: "m".to_owned(), labels: Vec::new(), value: STALE };
        let written = write_request(&[sample], 300).encode_to_vec();
        assert!(written.windows(8).any(|eight| eight == STALE.to_bits().to_le_bytes()), "{written:?}");
    }
}
