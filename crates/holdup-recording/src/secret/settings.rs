//! Settings whose values may be secrets, by their names: variables of MySQL and MariaDB, settings of
//! PostgreSQL, options of mounts. Collectors and the import of pasted text leave the same ones out.

use super::HIDDEN;

/// Parts of a variable's name that mark a secret.
const MYSQL: [&str; 10] = [
    "password",
    "passwd",
    "secret",
    "token",
    "filekey",
    "key_management",
    "sst_auth",
    "private_key",
    "provider_options",
    "credential",
];

/// Variables that contain the user's SQL, with literals.
const SQL_TEXT: [&str; 3] = ["init_connect", "init_slave", "init_replica"];

/// Parts of a setting's name that mark a secret, or a command that may contain one.
const POSTGRESQL: [&str; 8] =
    ["password", "passphrase", "secret", "token", "conninfo", "_command", "private_key", "access_key"];

/// Extensions whose dotted settings are kept; other dotted settings can be arbitrary data of an
/// application. The last three show which cloud runs the server.
const EXTENSIONS: [&str; 7] =
    ["auto_explain.", "pg_stat_statements.", "pg_prewarm.", "plpgsql.", "rds.", "cloudsql.", "azure."];

/// Words in an option's name that mark its value as a secret.
const MOUNT: [&str; 5] = ["pass", "secret", "key", "token", "cred"];

/// Whether the value of this variable of MySQL or MariaDB may be a secret.
pub fn is_secret_in_mysql(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    MYSQL.iter().any(|part| name.contains(part)) || SQL_TEXT.contains(&name.as_str())
}

/// Whether the value of this setting of PostgreSQL may be a secret.
pub fn is_secret_in_postgresql(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_foreign = name.contains('.') && !EXTENSIONS.iter().any(|prefix| name.starts_with(prefix));
    is_foreign || name != "password_encryption" && POSTGRESQL.iter().any(|part| name.contains(part))
}

/// An option of a mount, its value replaced if it may be a secret.
pub fn mount_option(option: &str) -> String {
    let is_secret = |name: &str| MOUNT.iter().any(|word| name.to_ascii_lowercase().contains(word));
    match option.split_once('=') {
        Some((name, _)) if is_secret(name) => format!("{name}={HIDDEN}"),
        _ => option.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_mysql_are_left_out_and_the_rest_is_not() {
        for name in [
            "report_password",
            "wsrep_sst_auth",
            "file_key_management_filekey",
            "init_connect",
            "hashicorp_key_management_token",
        ] {
            assert!(is_secret_in_mysql(name), "{name}");
        }
        for name in ["thread_pool_size", "key_buffer_size", "foreign_key_checks", "innodb_buffer_pool_size", "datadir"]
        {
            assert!(!is_secret_in_mysql(name), "{name}");
        }
    }

    #[test]
    fn secrets_of_postgresql_are_left_out_and_the_rest_is_not() {
        for name in [
            "primary_conninfo",
            "ssl_passphrase_command",
            "archive_command",
            "app.jwt",
            "my.setting",
            "x.token",
            "rds.restrict_password_commands",
        ] {
            assert!(is_secret_in_postgresql(name), "{name}");
        }
        for name in [
            "shared_buffers",
            "password_encryption",
            "auto_explain.log_min_duration",
            "log_line_prefix",
            "rds.extensions",
        ] {
            assert!(!is_secret_in_postgresql(name), "{name}");
        }
    }

    #[test]
    fn secrets_of_mounts_are_replaced() {
        for (option, shown) in [
            ("secret=AQ==", "secret=***"),
            ("password2=hush", "password2=***"),
            ("credentials=/etc/share", "credentials=***"),
            ("uid=1000", "uid=1000"),
            ("noatime", "noatime"),
        ] {
            assert_eq!(mount_option(option), shown);
        }
    }
}
