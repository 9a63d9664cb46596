//! Amazon's descriptions of instances and volumes as settings. Takes nothing that names people or
//! networks.

use std::collections::BTreeMap;

use serde_json::Value;

use super::element::{Element, figure};
use super::{Aws, MOST_DESCRIBED, Setting, shown};

const MIB: f64 = 1024.0 * 1024.0;
const GIB: f64 = 1024.0 * MIB;

/// Names and values.
type Facts = BTreeMap<&'static str, String>;

/// The described things, by name.
#[derive(Debug, Default)]
pub(super) struct Descriptions {
    instances: BTreeMap<String, Facts>,
    types: BTreeMap<String, Facts>,
    volumes: BTreeMap<String, Facts>,
}

fn keep(all: &mut BTreeMap<String, Facts>, name: &str, facts: Facts) -> Result<(), String> {
    if all.len() >= MOST_DESCRIBED {
        return Err(format!("there are more than {MOST_DESCRIBED} of them; request only those that matter"));
    }
    all.insert(name.chars().take(100).collect(), facts);
    Ok(())
}

/// Facts from fields: our name, the field, and the factor for a number; 0 for a text.
fn facts(of: &Value, fields: &[(&'static str, &str, f64)]) -> Facts {
    let of = |(name, path, factor): &(&'static str, &str, f64)| {
        let value = of.pointer(path)?;
        let text = match figure(value) {
            Some(number) if *factor > 0.0 => (number * factor).to_string(),
            _ => value.as_str()?.chars().take(100).collect(),
        };
        Some((*name, text))
    };
    fields.iter().filter_map(of).collect()
}

fn name_of<'a>(element: &'a Element, key: &str, what: &str) -> Result<&'a str, String> {
    element.text(key).ok_or_else(|| format!("one of {what} has no {key}; save the whole output of aws"))
}

/// One of `DBInstances`.
pub(super) fn db_instance(aws: &mut Aws, element: &Element) -> Result<(), String> {
    let name = name_of(element, "DBInstanceIdentifier", "DBInstances")?;
    if let Some(id) = element.text("DbiResourceId") {
        aws.resource_ids.insert(id.to_owned(), name.to_owned());
    }
    let all = Value::Object(element.facts.clone());
    let fields = [
        ("instance.class", "/DBInstanceClass", 0.0),
        ("instance.created", "/InstanceCreateTime", 0.0),
        ("instance.parameter_group", "/DBParameterGroups/0/DBParameterGroupName", 0.0),
        ("engine", "/Engine", 0.0),
        ("engine_version", "/EngineVersion", 0.0),
        ("volume.type", "/StorageType", 0.0),
        ("volume.iops", "/Iops", 1.0),
        ("volume.size_bytes", "/AllocatedStorage", GIB),
        ("volume.throughput_bytes_per_second", "/StorageThroughput", MIB),
    ];
    let mut facts = facts(&all, &fields);
    // A value that was not provisioned is missing, or 0.
    facts.retain(|_, value| value != "0");
    for (setting, key) in [("instance.multi_az", "MultiAZ"), ("performance_insights", "PerformanceInsightsEnabled")] {
        if let Some(is) = element.facts.get(key).and_then(Value::as_bool) {
            facts.insert(setting, is.to_string());
        }
    }
    keep(&mut aws.described.instances, name, facts)
}

/// One of `InstanceTypes`. A megabyte is 10^6 bytes here: 2,300 Mbit/s are 287.5 MB/s.
pub(super) fn instance_type(aws: &mut Aws, element: &Element) -> Result<(), String> {
    let name = name_of(element, "InstanceType", "InstanceTypes")?;
    let all = Value::Object(element.facts.clone());
    let fields = [
        ("instance.cpus", "/VCpuInfo/DefaultVCpus", 1.0),
        ("instance.memory_bytes", "/MemoryInfo/SizeInMiB", MIB),
        (
            "instance.ebs_baseline_throughput_bytes_per_second",
            "/EbsInfo/EbsOptimizedInfo/BaselineThroughputInMBps",
            1e6,
        ),
        ("instance.ebs_burst_throughput_bytes_per_second", "/EbsInfo/EbsOptimizedInfo/MaximumThroughputInMBps", 1e6),
        ("instance.ebs_baseline_iops", "/EbsInfo/EbsOptimizedInfo/BaselineIops", 1.0),
        ("instance.ebs_burst_iops", "/EbsInfo/EbsOptimizedInfo/MaximumIops", 1.0),
        ("instance.network", "/NetworkInfo/NetworkPerformance", 0.0),
        (
            "instance.network_baseline_bytes_per_second",
            "/NetworkInfo/NetworkCards/0/BaselineBandwidthInGbps",
            1e9 / 8.0,
        ),
    ];
    keep(&mut aws.described.types, name, facts(&all, &fields))
}

/// One of `Volumes`.
pub(super) fn volume(aws: &mut Aws, element: &Element) -> Result<(), String> {
    let name = name_of(element, "VolumeId", "Volumes")?;
    let all = Value::Object(element.facts.clone());
    let fields = [
        ("volume.type", "/VolumeType", 0.0),
        ("volume.iops", "/Iops", 1.0),
        ("volume.size_bytes", "/Size", GIB),
        ("volume.throughput_bytes_per_second", "/Throughput", MIB),
    ];
    keep(&mut aws.described.volumes, name, facts(&all, &fields))
}

impl Descriptions {
    /// The only described instance, if there is exactly one.
    pub fn only(&self) -> Option<&str> {
        only(&self.instances)
    }

    /// All descriptions as settings. The instance that the import's series measure (`is_measured`),
    /// or the only described one, is `aws`; others are `aws:NAME`.
    pub fn settings(self, is_measured: &dyn Fn(&str) -> bool, notes: &mut Vec<String>) -> Vec<Setting> {
        let Self { mut instances, types, volumes } = self;
        let measured: Vec<&String> = instances.keys().filter(|name| is_measured(name)).collect();
        let main = match measured.as_slice() {
            [one] => Some((*one).clone()),
            _ => only(&instances).map(str::to_owned),
        };
        let mut left_out = 0;
        let only_type = only(&types).filter(|_| instances.is_empty()).map(str::to_owned);
        for (name, facts) in &types {
            let of = |class: &String| class == name || class.strip_prefix("db.") == Some(name);
            let mut is_used = false;
            for instance in instances.values_mut().filter(|i| i.get("instance.class").is_some_and(of)) {
                instance.extend(facts.iter().map(|(name, value)| (*name, value.clone())));
                is_used = true;
            }
            left_out += usize::from(!is_used && only_type.as_ref() != Some(name));
        }
        if left_out > 0 {
            notes.push(format!(
                "{left_out} instance types are left out, because no described instance has them; aws rds describe-db-instances prints an instance's type"
            ));
        }
        let mut settings = Vec::new();
        let mut put = |source: String, facts: Facts| {
            settings.extend(facts.into_iter().map(|(name, value)| (source.clone(), name.to_owned(), value)));
        };
        let has_instances = !instances.is_empty();
        for (name, facts) in instances {
            let is_main = main.as_ref() == Some(&name);
            if is_main {
                put("aws".to_owned(), Facts::from([("instance.name", name.clone())]));
            }
            put(if is_main { "aws".to_owned() } else { format!("aws:{}", shown(&name)) }, facts);
        }
        if let Some(name) = only_type {
            let facts = types.get(&name).cloned().unwrap_or_default();
            put("aws".to_owned(), facts);
            put("aws".to_owned(), Facts::from([("instance.class", name)]));
        }
        // A database service's volumes do not belong to the account. So a described volume belongs
        // to another service then.
        let only_volume = only(&volumes).filter(|_| !has_instances).map(str::to_owned);
        for (name, facts) in volumes {
            let is_main = only_volume.as_ref() == Some(&name);
            put(if is_main { "aws".to_owned() } else { format!("aws:{}", shown(&name)) }, facts);
        }
        settings.sort();
        settings.into_iter().map(|(source, name, value)| Setting { source, name, value }).collect()
    }
}

fn only(all: &BTreeMap<String, Facts>) -> Option<&str> {
    let mut names = all.keys();
    names.next().filter(|_| names.next().is_none()).map(String::as_str)
}
