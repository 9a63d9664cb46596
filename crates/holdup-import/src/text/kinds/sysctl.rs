//! `sysctl`: kernel settings, `name = value`.

use holdup_recording::secret::is_secret_name;

use super::{Kind, text};

pub(super) const KIND: Kind = Kind::lines(
    "sysctl",
    |lines| entry(text(lines, 0)).is_some(),
    |lines, context| {
        let at = context.instant();
        let entries: Vec<(&str, &str)> = lines.iter().map_while(|line| entry(&line.text)).collect();
        // `sysctl -a` of root prints keys of the network stack.
        for (name, value) in entries.iter().filter(|(name, _)| !is_secret_name(name)) {
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
            context.kernel_setting(at, name, &value);
        }
        entries.len()
    },
);

fn entry(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    let is_known = ["vm.", "net.", "fs.", "kernel."].iter().any(|prefix| name.starts_with(prefix));
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte));
    (is_known && is_name).then_some((name, value.trim()))
}
