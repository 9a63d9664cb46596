//! What the MySQL collector sees in depth, on a real MariaDB and on MySQL 5.6: own datadir, own ports, on loopback. Where a server
//! is not to be had the test says so and passes, unless `CI` is set.

mod changes;
mod client;
mod depth;
mod gate;
mod large;
mod lexer;
mod logins;
mod mariadb;
mod old;
mod proxysql;
mod raw;
mod server;
mod sick;
mod slow_log;
