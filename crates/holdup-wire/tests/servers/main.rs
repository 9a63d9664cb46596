//! Sessions against a real MariaDB and a real PostgreSQL: private folders, private ports, on loopback, gone with the
//! tests. Where a server is not installed its tests say so and pass, unless `CI` is set.

mod client;
mod mariadb;
mod postgres;
mod server;

/// The password of all accounts; nothing that is told may hold it.
const PASSWORD: &str = "s3cr3t-canary";
