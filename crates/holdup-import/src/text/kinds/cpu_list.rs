//! `/proc/cpuinfo` and `/proc/interrupts`: the number of CPUs, by the last one's number.

use super::{Kind, Line, number, text};

pub(super) const KIND: Kind = Kind::lines(
    "list of CPUs",
    |lines| last(lines).is_some(),
    |lines, context| {
        if let Some((last, used)) = last(lines) {
            context.out.learn_cpus(last + 1.0);
            return used;
        }
        1
    },
);

/// The number of the last CPU, and the lines read.
fn last(lines: &[Line]) -> Option<(f64, usize)> {
    let first = text(lines, 0);
    let header: Vec<&str> = first.split_whitespace().collect();
    if header.first() == Some(&"CPU0") && header.iter().all(|word| word.starts_with("CPU")) {
        let last = number(header.last()?.strip_prefix("CPU")?)?;
        let rows = lines.iter().skip(1).take_while(|line| line.text.trim_start().contains(':')).count();
        return Some((last, rows + 1));
    }
    of_cpuinfo(first)?;
    // One block a CPU, between empty lines; each line has a colon.
    let used = lines.iter().take_while(|line| line.is_blank() || line.text.contains(':')).count();
    let numbers = lines.iter().take(used).filter_map(|line| of_cpuinfo(&line.text));
    Some((numbers.fold(0.0, f64::max), used))
}

/// `processor\t: 3`
fn of_cpuinfo(line: &str) -> Option<f64> {
    let (name, value) = line.split_once(':')?;
    number(value).filter(|_| name.trim() == "processor")
}
