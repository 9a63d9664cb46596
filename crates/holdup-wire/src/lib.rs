//! MySQL, MariaDB and PostgreSQL as a client speaks them, without I/O: bytes in, events out.
