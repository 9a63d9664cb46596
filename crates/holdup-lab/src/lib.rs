//! Targets for labs and the demo: the service, the noisy neighbour that takes a resource away from
//! it, and a disk as slow as its options say. The product contains only the service, for the demo.

#[cfg(feature = "labs")]
pub mod disk;
pub mod ports;
pub mod service;
