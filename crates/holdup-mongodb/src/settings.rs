//! Parameters and options as settings: those that bound work, memory and files. Others may hold names
//! of files with keys, or passwords.

use crate::value::Value;

/// Parameters, by name.
const PARAMETERS: &[&str] = &[
    "cursorTimeoutMillis",
    "enableFlowControl",
    "flowControlTargetLagSeconds",
    "maxIncomingConnections",
    "maxTransactionLockRequestTimeoutMillis",
    "slowConnectionThresholdMillis",
    "storageEngineConcurrencyAdjustmentAlgorithm",
    "storageEngineConcurrentReadTransactions",
    "storageEngineConcurrentWriteTransactions",
    "syncdelay",
    "transactionLifetimeLimitSeconds",
    "ttlMonitorEnabled",
    "ttlMonitorSleepSecs",
    "wiredTigerConcurrentReadTransactions",
    "wiredTigerConcurrentWriteTransactions",
    "wiredTigerCursorCacheSize",
    "wiredTigerEngineRuntimeConfig",
];

/// Options, by what their paths begin with.
const OPTIONS: &[&str] = &[
    "net.maxIncomingConnections",
    "net.port",
    "operationProfiling.",
    "replication.",
    "sharding.clusterRole",
    "storage.",
];

/// Most levels of the options.
const LEVELS_MAX: usize = 8;

/// Bytes of a value that are kept.
const VALUE_BYTES_MAX: usize = 500;

/// The parameters that are kept, of the answer of `getParameter`.
#[must_use]
pub fn parameters(answer: &Value) -> Vec<(String, String)> {
    let known = answer.entries().iter().filter(|(name, _)| PARAMETERS.contains(&name.as_str()));
    known.filter_map(|(name, value)| Some((name.clone(), words(value)?))).collect()
}

/// The options that are kept, by path, of the answer of `getCmdLineOpts`.
#[must_use]
pub fn options(answer: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    if let Some(parsed) = answer.get("parsed") {
        walk("", parsed, 0, &mut found);
    }
    found
}

fn walk(path: &str, value: &Value, level: usize, into: &mut Vec<(String, String)>) {
    if level > LEVELS_MAX {
        return;
    }
    for (name, value) in value.entries() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let is_known = OPTIONS.iter().any(|known| path.starts_with(known));
        let is_secret = ["password", "key"].iter().any(|word| name.to_ascii_lowercase().contains(word));
        match words(value).filter(|_| is_known && !is_secret) {
            Some(words) => into.push((path, words)),
            None => walk(&path, value, level + 1, into),
        }
    }
}

fn words(value: &Value) -> Option<String> {
    match value {
        Value::Bool(is_true) => Some(is_true.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Text(text) if text.len() <= VALUE_BYTES_MAX => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bson::Document;
    use crate::writer::Writer;

    #[test]
    fn limits_are_kept_and_secrets_are_not() {
        let engine = Writer::new().document("engineConfig", Writer::new().double("cacheSizeGB", 1.5));
        let parsed = Writer::new()
            .document("security", Writer::new().text("keyFile", "canary"))
            .document("storage", Writer::new().text("dbPath", "/data").document("wiredTiger", engine))
            .document("net", Writer::new().int("port", 27_017).document("tls", Writer::new().text("x", "canary")));
        let read = |writer: Writer| Document::read(&writer.finish()).unwrap().value().unwrap();
        let found = options(&read(Writer::new().document("parsed", parsed)));
        let expected = [("storage.dbPath", "/data"), ("storage.wiredTiger.engineConfig.cacheSizeGB", "1.5")];
        let expected = expected.into_iter().chain([("net.port", "27017")]);
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<Vec<_>>());
        let answer = Writer::new().int("syncdelay", 60).text("ldapQueryPassword", "canary").int("ok", 1);
        assert_eq!(parameters(&read(answer)), [("syncdelay".to_owned(), "60".to_owned())]);
    }
}
