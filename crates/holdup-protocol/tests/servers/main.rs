//! Sessions against a real MariaDB and a real PostgreSQL.

mod mariadb;
mod postgres;
