//! `kubernetes:[URL][?namespace=&pod=|selector=&token-file=&ca-file=]`: which API to query, with
//! which account, about which pods. Missing parts come from the pod's service account.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use crate::http::decoded;

/// Where a pod finds its service account.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The example in error messages.
const EXAMPLE: &str = "kubernetes:https://HOST:6443?namespace=shop&token-file=PATH&ca-file=PATH, or through kubectl proxy: \
                       kubernetes:http://127.0.0.1:8001?namespace=shop";

/// How a program knows that it runs in a pod.
#[derive(Clone, Debug)]
pub struct PodEnvironment {
    /// Folder of the service account: `token`, `ca.crt`, `namespace`.
    pub account: PathBuf,
    /// Host and port of the API, if holdup runs in a pod.
    pub api: Option<(String, String)>,
}

/// The parsed address.
#[derive(Clone, Debug)]
pub struct Address {
    /// Scheme, host and port, without a trailing slash.
    pub base: String,
    /// The namespace of the pods.
    pub namespace: String,
    /// Only this pod.
    pub pod: Option<String>,
    /// Only pods with these labels.
    pub selector: Option<String>,
    /// Path of the token; it is read for each request, because it changes.
    pub token_file: Option<PathBuf>,
    /// Certificate of the authority that signed the API's certificate.
    pub ca_file: Option<PathBuf>,
}

impl PodEnvironment {
    /// Reads the environment.
    pub fn from_environment() -> Self {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            account: PathBuf::from(ACCOUNT),
            api: variable("KUBERNETES_SERVICE_HOST").zip(variable("KUBERNETES_SERVICE_PORT")),
        }
    }
}

impl Address {
    /// Parses the text after `kubernetes:`.
    ///
    /// # Errors
    /// What is wrong, and which forms are accepted.
    pub fn parse(text: &str, environment: &PodEnvironment) -> Result<Self, String> {
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let in_pod = base.is_empty();
        let base = match (&environment.api, in_pod) {
            (_, false) => base.trim_end_matches('/').to_owned(),
            (Some((host, port)), true) if host.contains(':') => format!("https://[{host}]:{port}"),
            (Some((host, port)), true) => format!("https://{host}:{port}"),
            (None, true) => {
                return Err(format!(
                    "not running in a pod (KUBERNETES_SERVICE_HOST is not set); give the API's URL: {EXAMPLE}"
                ));
            }
        };
        let (scheme, host) = base.split_once("://").unwrap_or(("", ""));
        if !matches!(scheme, "http" | "https") || host.is_empty() || host.contains(['@', ' ']) {
            return Err(format!("an http:// or https:// URL without an account is needed, e.g. {EXAMPLE}"));
        }
        let of_account = |file: &str| in_pod.then(|| environment.account.join(file));
        let mut found = Self {
            namespace: String::new(),
            pod: None,
            selector: None,
            token_file: of_account("token"),
            ca_file: of_account("ca.crt"),
            base: base.clone(),
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(value).ok().filter(|value| !value.is_empty());
            let value = value.ok_or_else(|| format!("{name} needs a value, with % written as %25 and & as %26"))?;
            match name {
                "namespace" => found.namespace = value,
                "pod" => found.pod = Some(value),
                "selector" => found.selector = Some(value),
                "token-file" => found.token_file = Some(PathBuf::from(value)),
                "ca-file" => found.ca_file = Some(PathBuf::from(value)),
                _ => {
                    let known = "namespace, pod, selector, token-file, ca-file";
                    return Err(format!("\"{name}\" is unknown; supported: {known}"));
                }
            }
        }
        if found.namespace.is_empty() {
            found.namespace = of_account("namespace")
                .map_or_else(|| Err("namespace=NAME is missing".to_owned()), |file| word(&file))?;
        }
        for name in std::iter::once(&found.namespace).chain(&found.pod) {
            if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte)) {
                return Err(format!("\"{name}\" is not a valid name: use lower-case letters, digits, - and ."));
            }
        }
        if found.pod.is_some() && found.selector.is_some() {
            return Err("pod and selector exclude each other; keep one".to_owned());
        }
        if scheme == "http" && found.token_file.is_some() && !is_loopback(host) {
            return Err("a token is sent over https:// only".to_owned());
        }
        Ok(found)
    }

    /// Whether the address selects pods.
    pub fn selects_pods(&self) -> bool {
        self.pod.is_some() || self.selector.is_some()
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.split('/').next().unwrap_or(host);
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.split(':').next().unwrap_or(host),
    };
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Content of a short file, without surrounding white space.
///
/// # Errors
/// If the file cannot be read or is empty; the error does not repeat the content.
pub(super) fn word(path: &Path) -> Result<String, String> {
    let text = holdup_recording::files::read_text(path, holdup_recording::files::SMALL_BYTES)
        .map_err(|e| format!("{}: {e}", path.display()))?;
    let text = text.trim();
    if text.is_empty() { Err(format!("{}: the file is empty", path.display())) } else { Ok(text.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outside() -> PodEnvironment {
        PodEnvironment { account: PathBuf::from("/nowhere"), api: None }
    }

    #[test]
    fn where_to_ask_is_said() {
        let text =
            "https://10.0.0.1:6443/?namespace=shop&selector=app%3Dorders,tier%21%3Ddb&token-file=/t%20x&ca-file=/ca";
        let address = Address::parse(text, &outside()).unwrap();
        assert_eq!((address.base.as_str(), address.namespace.as_str()), ("https://10.0.0.1:6443", "shop"));
        assert_eq!(address.selector.as_deref(), Some("app=orders,tier!=db"));
        assert_eq!((address.token_file, address.ca_file), (Some("/t x".into()), Some("/ca".into())));
        let proxy = Address::parse("http://127.0.0.1:8001?namespace=shop&pod=orders-1", &outside()).unwrap();
        assert!(proxy.token_file.is_none() && proxy.selects_pods());
        assert!(Address::parse("http://[::1]:8001?namespace=n&token-file=/t", &outside()).is_ok());
    }

    #[test]
    fn a_pod_has_an_account() {
        let account = tempfile::tempdir().unwrap();
        std::fs::write(account.path().join("namespace"), "shop\n").unwrap();
        let inside = PodEnvironment { account: account.path().to_owned(), api: Some(("fd00::1".into(), "443".into())) };
        let address = Address::parse("", &inside).unwrap();
        assert_eq!((address.base.as_str(), address.namespace.as_str()), ("https://[fd00::1]:443", "shop"));
        assert_eq!(address.token_file, Some(account.path().join("token")));
        assert_eq!(Address::parse("?namespace=other&pod=p", &inside).unwrap().namespace, "other");
        // Elsewhere its account is not used.
        assert!(Address::parse("https://h?namespace=n", &inside).unwrap().token_file.is_none());
    }

    #[test]
    fn invalid_addresses_are_refused_with_a_hint() {
        for (text, hint) in [
            ("", "not running in a pod"),
            ("https://h:6443", "namespace=NAME is missing"),
            ("10.0.0.1:6443?namespace=n", "https:// URL"),
            ("https://u:secret@h?namespace=n", "without an account"),
            ("https://h?namespace=Shop", "is not a valid name"),
            ("https://h?namespace=n/../m", "is not a valid name"),
            ("https://h?namespace=n&pod=a&selector=b", "exclude each other"),
            ("https://h?namespace=n&token=secret", "\"token\" is unknown"),
            ("https://h?namespace=n&selector=%zz", "selector needs a value"),
            ("http://h?namespace=n&token-file=/t", "https:// only"),
        ] {
            let why = Address::parse(text, &outside()).unwrap_err();
            assert!(why.contains(hint) && !why.contains("secret"), "{text}: {why}");
        }
    }
}
