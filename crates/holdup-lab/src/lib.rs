//! What labs and the demo put in front of holdup: the service, the neighbour that takes a resource away from it, and a disk that
//! is as slow as it is told to be. Of the product only the service is a part, for the demo.

#[cfg(feature = "labs")]
pub mod disk;
pub mod ports;
pub mod service;
