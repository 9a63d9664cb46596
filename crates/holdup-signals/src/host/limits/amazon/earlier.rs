//! What instances of some families may do if they have run since before 3 December 2019. Amazon
//! raised the limits of their families then, but only for instances started later: stopping and
//! starting such an instance gives it the present ones.

use super::{Documented, Row, limits_of};

/// Where the figures come from.
const SOURCE: &str = "Amazon EC2 user guide, Amazon EBS-optimized instances, as of early 2019";

/// The first day on which instances were started with the present limits (RFC 3339 dates compare as
/// text).
const RAISED_ON: &str = "2019-12-03";

/// Families that had these figures. Later members of the families have the present ones only.
const FAMILIES: [&str; 4] = ["m5", "m5d", "r5", "r5d"];

/// Sizes: baseline MB/s and operations per second, and the burst.
const TABLE: &[Row] = &[
    ("large", 60.0, 3_600.0, 437.5, 18_750.0),
    ("xlarge", 106.25, 6_000.0, 437.5, 18_750.0),
    ("2xlarge", 212.5, 12_000.0, 437.5, 18_750.0),
    ("4xlarge", 437.5, 18_750.0, 437.5, 18_750.0),
    ("12xlarge", 875.0, 40_000.0, 875.0, 40_000.0),
    ("24xlarge", 1_750.0, 80_000.0, 1_750.0, 80_000.0),
];

/// Whether an instance `created` at that time may have run since before the limits were raised.
pub(crate) fn is_before_the_raise(created: &str) -> bool {
    created < RAISED_ON
}

/// Limits of an instance of this class that was started before they were raised; empty if it has
/// always had the present ones.
pub(crate) fn of_earlier_instance(class: &str) -> Vec<Documented> {
    let Some((family, size)) = class.trim_start_matches("db.").split_once('.') else { return Vec::new() };
    let row = TABLE.iter().find(|row| FAMILIES.contains(&family) && row.0 == size);
    row.map_or_else(Vec::new, |row| limits_of(row, &format!("a {class} started before 3 December 2019"), SOURCE))
}

#[cfg(test)]
mod tests {
    use super::super::of_instance;
    use super::*;

    #[test]
    fn they_are_below_the_present_ones_in_throughput() {
        for family in FAMILIES {
            for row in TABLE {
                let class = format!("db.{family}.{}", row.0);
                assert!(of_earlier_instance(&class)[0].limit < of_instance(&class)[0].limit, "{class}");
            }
        }
        assert_eq!(of_earlier_instance("db.r5b.2xlarge"), []);
        assert!(is_before_the_raise("2019-08-14T09:12:33Z") && !is_before_the_raise("2019-12-03T00:00:00Z"));
    }
}
