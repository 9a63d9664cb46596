//! holdup-service
