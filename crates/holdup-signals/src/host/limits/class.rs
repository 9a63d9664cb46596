//! What Amazon's instance classes have: CPUs, memory and network, by the rules of their names, and
//! the number of connections that follows from the memory.

use super::GIB;
use crate::View;

/// A family's letter, and its memory for each CPU, GiB (Amazon EC2 instance types, 2026).
const MEMORY: [(&str, f64); 8] =
    [("c", 2.0), ("m", 4.0), ("r", 8.0), ("z", 8.0), ("x1e", 32.0), ("x2iedn", 32.0), ("x2g", 16.0), ("x1", 16.0)];

/// Sizes of burstable classes (t2, t3, t4g): CPUs, memory in GiB, and the share (0-1) of the CPUs that
/// they sustain without credits.
const BURSTABLE: [(&str, f64, f64, f64); 6] = [
    ("micro", 2.0, 1.0, 0.1),
    ("small", 2.0, 2.0, 0.2),
    ("medium", 2.0, 4.0, 0.2),
    ("large", 2.0, 8.0, 0.3),
    ("xlarge", 4.0, 16.0, 0.4),
    ("2xlarge", 8.0, 32.0, 0.4),
];

/// Bandwidth that sizes sustain, Gbit/s, by generation (Amazon EC2, network specifications). Larger
/// sizes are left out: they differ between families.
const NETWORK: [(&str, [&str; 4], [f64; 4]); 6] = [
    ("5", SIZES, [0.75, 1.25, 2.5, 5.0]),
    ("6g", SIZES, [0.75, 1.25, 2.5, 5.0]),
    ("6i", SIZES, [0.781, 1.562, 3.125, 6.25]),
    ("7g", SIZES, [0.937, 1.876, 3.75, 7.5]),
    ("7i", SIZES, [0.781, 1.562, 3.125, 6.25]),
    ("8g", SIZES, [0.937, 1.876, 3.75, 7.5]),
];
const SIZES: [&str; 4] = ["large", "xlarge", "2xlarge", "4xlarge"];

/// What an instance has. Each part is absent if neither a description nor its class's name says it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct InstanceSize {
    /// CPUs.
    pub cpus: Option<f64>,
    /// Memory, bytes.
    pub memory: Option<f64>,
    /// Bytes per second that its network sustains, each way.
    pub network: Option<f64>,
    /// Share (0-1) of the CPUs that a burstable class sustains without credits.
    pub sustained_cpu: Option<f64>,
}

/// By the name of a class, with or without `db.`.
fn of_class(class: &str) -> InstanceSize {
    let Some((family, size)) = class.trim_start_matches("db.").split_once('.') else { return InstanceSize::default() };
    if family.starts_with('t') {
        let of = BURSTABLE.iter().find(|(name, ..)| *name == size);
        return of.map_or_else(InstanceSize::default, |(_, cpus, memory, sustained)| InstanceSize {
            cpus: Some(*cpus),
            memory: Some(memory * GIB),
            network: None,
            sustained_cpu: Some(*sustained),
        });
    }
    let cpus = match size {
        "medium" => Some(1.0),
        "large" => Some(2.0),
        "xlarge" => Some(4.0),
        _ => size.strip_suffix("xlarge").and_then(|n| n.parse::<f64>().ok()).map(|n| 4.0 * n),
    };
    let each = MEMORY.iter().rev().find(|(of, _)| family.starts_with(of)).map(|(_, gib)| gib * GIB);
    let generation = family.get(1..).unwrap_or_default();
    let network = NETWORK.iter().find(|(of, ..)| generation == *of || generation == format!("{of}d")).and_then(
        |(_, sizes, gbit)| sizes.iter().zip(gbit).find(|(of, _)| **of == size).map(|(_, gbit)| gbit * 1e9 / 8.0),
    );
    InstanceSize { cpus, memory: cpus.zip(each).map(|(cpus, each)| cpus * each), network, sustained_cpu: None }
}

/// The number of connections that a formula gives for `memory` bytes: `{DBInstanceClassMemory/N}`
/// within `LEAST(…)` or `GREATEST(…)`, as parameter groups have it; a plain number is itself.
fn by_formula(formula: &str, memory: Option<f64>) -> Option<f64> {
    let text = formula.trim();
    if let Some(inner) = text.strip_prefix("LEAST(").and_then(|rest| rest.strip_suffix(')')) {
        return inner.split(',').map(|part| by_formula(part, memory)).reduce(|a, b| Some(a?.min(b?)))?;
    }
    if let Some(inner) = text.strip_prefix("GREATEST(").and_then(|rest| rest.strip_suffix(')')) {
        return inner.split(',').map(|part| by_formula(part, memory)).reduce(|a, b| Some(a?.max(b?)))?;
    }
    let Some(inner) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
        return text.parse().ok().filter(|n: &f64| *n > 0.0);
    };
    let memory = memory?;
    let (inner, times) = match inner.split_once(")*") {
        Some((log, factor)) => (log.strip_prefix("log(")?, Some(factor.parse::<f64>().ok()?)),
        None => (inner, None),
    };
    let divisor: f64 = inner.strip_prefix("DBInstanceClassMemory/")?.parse().ok()?;
    let value = memory / divisor;
    let value = times.map_or(value, |factor| value.log2() * factor);
    (value.is_finite() && value > 0.0).then_some(value)
}

/// Default formulas of `max_connections` by how the engine's name begins (Amazon RDS user guide,
/// Quotas; Aurora user guide, Managing performance).
const DEFAULTS: [(&str, &str); 5] = [
    (
        "aurora-mysql",
        "GREATEST({log(DBInstanceClassMemory/805306368)*45},{log(DBInstanceClassMemory/8187281408)*1000})",
    ),
    ("aurora-postgresql", "LEAST({DBInstanceClassMemory/9531392},5000)"),
    ("postgres", "LEAST({DBInstanceClassMemory/9531392},5000)"),
    ("mysql", "{DBInstanceClassMemory/12582880}"),
    ("mariadb", "LEAST({DBInstanceClassMemory/25165760},12000)"),
];

/// A limit on connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MostConnections {
    /// The number; as a formula gives it for all of the memory.
    pub most: f64,
    /// Whether a parameter or the server says it; otherwise it follows from the memory, of which
    /// Amazon's own processes take an unknown part.
    pub is_exact: bool,
}

impl View<'_> {
    /// What the instance that an import from AWS describes has.
    pub fn instance_size(&self) -> InstanceSize {
        let of_class = self.aws_setting("instance.class").map_or_else(InstanceSize::default, |class| of_class(&class));
        let number = |name: &str| self.aws_setting(name).and_then(|v| v.parse::<f64>().ok()).filter(|v| *v > 0.0);
        InstanceSize {
            cpus: number("instance.cpus").or(of_class.cpus),
            memory: number("instance.memory_bytes").or(of_class.memory),
            network: number("instance.network_baseline_bytes_per_second").or(of_class.network),
            ..of_class
        }
    }

    /// How many connections that instance accepts: by its parameter group, else by the default of its
    /// engine.
    pub fn most_connections(&self) -> Option<MostConnections> {
        let memory = self.instance_size().memory;
        let parameter = self.aws_setting("max_connections");
        let exact = parameter.as_ref().and_then(|value| value.parse::<f64>().ok()).filter(|n| *n > 0.0);
        if let Some(most) = exact {
            return Some(MostConnections { most, is_exact: true });
        }
        let engine = self.aws_setting("engine").unwrap_or_default();
        let default =
            || DEFAULTS.iter().find(|(of, _)| engine.starts_with(of)).map(|(_, formula)| (*formula).to_owned());
        let most = by_formula(&parameter.or_else(default)?, memory)?;
        Some(MostConnections { most: most.floor(), is_exact: false })
    }

    fn aws_setting(&self, name: &str) -> Option<String> {
        let settings = self.recording.tables.settings.with_columns(&["source", "name", "value"]).ok()?;
        settings.iter().rev().find(|s| s.source == "aws" && s.name == name).map(|s| s.value.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SyntheticRecording;

    #[test]
    fn a_class_has_what_its_name_says() {
        for (class, cpus, gib, mbit) in [
            ("db.r5.2xlarge", 8.0, 64.0, 2500.0),
            ("db.m6g.large", 2.0, 8.0, 750.0),
            ("db.r7g.4xlarge", 16.0, 128.0, 7500.0),
            ("db.r6id.xlarge", 4.0, 32.0, 1562.0),
            ("db.t3.medium", 2.0, 4.0, 0.0),
            ("db.x2g.large", 2.0, 32.0, 0.0),
        ] {
            let size = of_class(class);
            assert_eq!((size.cpus, size.memory), (Some(cpus), Some(gib * GIB)), "{class}");
            let network = size.network.map_or(0.0, |bytes| bytes * 8.0 / 1e6);
            assert!((network - mbit).abs() < 1.0, "{class}: {network}");
        }
        assert_eq!(of_class("db.unheard.of"), InstanceSize::default());
    }

    #[test]
    fn connections_follow_from_a_parameter_or_from_memory() {
        let most = |name: &str, value: &str, engine: &str| {
            let made = SyntheticRecording::new(3).setting("aws", "instance.class", "db.m5.large");
            made.setting("aws", "engine", engine).setting("aws", name, value).seen(|view| view.most_connections())
        };
        assert_eq!(most("max_connections", "400", "postgres").map(|m| (m.most, m.is_exact)), Some((400.0, true)));
        let formula = most("max_connections", "LEAST({DBInstanceClassMemory/9531392},5000)", "postgres").unwrap();
        assert_eq!((formula.most, formula.is_exact), (901.0, false));
        assert_eq!(most("x", "", "mysql").unwrap().most, 682.0);
        assert_eq!(most("max_connections", "{DBInstanceClassMemory/7}{", "postgres"), None);
        assert_eq!(by_formula("LEAST(100,{DBInstanceClassMemory/1000})", Some(50_000.0)), Some(50.0));
        assert_eq!(by_formula("GREATEST({log(DBInstanceClassMemory/8)*10},1)", Some(64.0)), Some(30.0));
    }
}
