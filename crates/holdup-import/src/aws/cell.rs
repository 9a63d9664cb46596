//! A cell of a dashboard's table: a number, perhaps with a unit, or a time.

use serde_json::Value;

use super::element::moment;

/// The earliest time that a cell may mean, nanoseconds: 1 January 2000.
const EARLIEST: i64 = 946_684_800_000_000_000;

/// A number in CloudWatch's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cell {
    /// Not a number where the cell is empty.
    pub value: f64,
    /// CloudWatch's name of the unit; empty if the cell has none.
    pub unit: &'static str,
}

const KIB: f64 = 1024.0;

/// Units as dashboards print them, CloudWatch's name and the factor for it.
const UNITS: [(&str, &str, f64); 25] = [
    ("%", "Percent", 1.0),
    ("B", "Bytes", 1.0),
    ("KiB", "Bytes", KIB),
    ("MiB", "Bytes", KIB * KIB),
    ("GiB", "Bytes", KIB * KIB * KIB),
    ("TiB", "Bytes", KIB * KIB * KIB * KIB),
    ("kB", "Bytes", 1e3),
    ("KB", "Bytes", 1e3),
    ("MB", "Bytes", 1e6),
    ("GB", "Bytes", 1e9),
    ("TB", "Bytes", 1e12),
    ("ns", "Seconds", 1e-9),
    ("µs", "Seconds", 1e-6),
    ("us", "Seconds", 1e-6),
    ("ms", "Seconds", 1e-3),
    ("s", "Seconds", 1.0),
    ("min", "Seconds", 60.0),
    ("mins", "Seconds", 60.0),
    ("hour", "Seconds", 3600.0),
    ("hours", "Seconds", 3600.0),
    ("K", "", 1e3),
    ("k", "", 1e3),
    ("Mil", "", 1e6),
    ("M", "", 1e6),
    ("Bil", "", 1e9),
];

/// Grafana's ids of units in data frames, CloudWatch's name and the factor.
const IDS: [(&str, &str, f64); 14] = [
    ("percent", "Percent", 1.0),
    ("percentunit", "Percent", 100.0),
    ("bytes", "Bytes", 1.0),
    ("decbytes", "Bytes", 1.0),
    ("kbytes", "Bytes", KIB),
    ("mbytes", "Bytes", KIB * KIB),
    ("gbytes", "Bytes", KIB * KIB * KIB),
    ("Bps", "Bytes/Second", 1.0),
    ("binBps", "Bytes/Second", 1.0),
    ("KBs", "Bytes/Second", 1e3),
    ("MBs", "Bytes/Second", 1e6),
    ("s", "Seconds", 1.0),
    ("ms", "Seconds", 1e-3),
    ("µs", "Seconds", 1e-6),
];

/// CloudWatch's name of a unit that a data frame has, and the factor for it.
pub(super) fn unit_factor(id: &str) -> (&'static str, f64) {
    IDS.iter().find(|(known, ..)| *known == id).map_or(("", 1.0), |(_, unit, factor)| (*unit, *factor))
}

impl Cell {
    /// An empty cell.
    pub const GAP: Self = Self { value: f64::NAN, unit: "" };

    /// Reads a cell; none if it is neither a number nor empty.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        if matches!(text, "" | "null" | "undefined" | "NaN" | "-" | "N/A" | "No data") {
            return Some(Self::GAP);
        }
        if let Some(value) = number(text) {
            return Some(Self { value, unit: "" });
        }
        let end = text.rfind(|c: char| c.is_ascii_digit() || c == '.')? + 1;
        let (digits, unit) = (text.get(..end)?, text.get(end..)?.trim());
        let value = number(digits)?;
        let plain = unit.strip_suffix("/s").or_else(|| unit.strip_suffix("/sec")).unwrap_or(unit);
        let is_rate = plain.len() < unit.len();
        // Anything counted a second has no unit: io/s, ops/s, req/s.
        let known = UNITS.iter().find(|(known, ..)| *known == plain);
        let (unit, factor) = match known {
            Some((_, "Bytes", factor)) if is_rate => ("Bytes/Second", *factor),
            Some((_, unit, factor)) => (*unit, *factor),
            None if is_rate || matches!(unit, "iops" | "ops") => ("", 1.0),
            None => return None,
        };
        Some(Self { value: value * factor, unit })
    }
}

fn number(text: &str) -> Option<f64> {
    let is_grouped = text.contains(',') && text.contains('.') || text.matches(',').count() > 1;
    let text = if is_grouped { text.replace(',', "") } else { text.to_owned() };
    text.trim().parse().ok().filter(|value: &f64| value.is_finite())
}

/// A time in nanoseconds since the Unix epoch, and whether its time zone is known.
pub(super) fn instant(text: &str) -> Option<(i64, bool)> {
    let text = text.trim();
    // A date has separators; anything else must be seconds or milliseconds since 1970.
    let is_number = text.parse::<f64>().is_ok();
    let text = if is_number { text.to_owned() } else { text.replace('/', "-").trim_end_matches(" UTC").to_owned() };
    let at = moment(&Value::String(text.clone())).ok().filter(|at| *at >= EARLIEST)?;
    let time = text.get(10..).unwrap_or_default();
    Some((at, is_number || time.contains(['Z', '+', '-'])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_with_units_are_in_cloudwatchs_unit() {
        for (text, value, unit) in [
            ("25.3%", 25.3, "Percent"),
            ("25.3 %", 25.3, "Percent"),
            ("1.5 GiB", 1.5 * 1024.0 * 1024.0 * 1024.0, "Bytes"),
            ("12.5 MB/s", 12.5e6, "Bytes/Second"),
            ("3 ms", 0.003, "Seconds"),
            ("1.2 K", 1200.0, ""),
            ("820 io/s", 820.0, ""),
            ("1,234.5", 1234.5, ""),
            ("4.2e-3", 0.0042, ""),
        ] {
            let read = Cell::read(text).unwrap();
            assert!((read.value - value).abs() < 1e-9 * value && read.unit == unit, "{text}: {read:?}");
        }
        assert!(Cell::read("").unwrap().value.is_nan() && Cell::read("null").unwrap().value.is_nan());
        assert_eq!((Cell::read("orders"), Cell::read("GET /"), Cell::read("12 apples")), (None, None, None));
    }

    #[test]
    fn times_of_dashboards() {
        let ten = 1_795_341_600_000_000_000;
        for (text, has_zone) in [
            ("2026-11-22T10:00:00Z", true),
            ("2026-11-22 10:00:00", false),
            ("2026/11/22 10:00:00", false),
            ("1795341600000", true),
            ("1795341600", true),
        ] {
            assert_eq!(instant(text), Some((ten, has_zone)), "{text}");
        }
        assert_eq!((instant("12"), instant("Time"), instant("")), (None, None, None));
    }
}
