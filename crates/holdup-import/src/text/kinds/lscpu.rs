//! `lscpu`: the number of CPUs.

use super::{Kind, number, text, until_blank};

pub(super) const KIND: Kind = Kind::lines(
    "lscpu",
    |lines| text(lines, 0).starts_with("Architecture:") && (1..12).any(|at| cpus(text(lines, at)).is_some()),
    |lines, context| {
        let used = until_blank(lines);
        let count = lines.iter().take(used).find_map(|line| cpus(&line.text));
        context.out.learn_cpus(count.unwrap_or(0.0));
        used
    },
);

/// `CPU(s):              8`
fn cpus(line: &str) -> Option<f64> {
    number(line.strip_prefix("CPU(s):")?)
}
