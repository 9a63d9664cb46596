//! Parts shared by several rules: none of them judges a case by itself.

pub(crate) mod ceiling;
pub(crate) mod cgroup_limit;
pub(crate) mod clearing;
pub(crate) mod cloud;
pub(crate) mod cpu_work;
pub(crate) mod identifier;
pub(crate) mod one_thread;
pub(super) mod opened;
pub(crate) mod present;
pub(crate) mod slow_device;
pub(crate) mod vacuum_advice;
