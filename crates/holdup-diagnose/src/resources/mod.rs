//! What requests take turns at, one file each: who used it, who waited for it, its limit. Each is measured once; what is not
//! recorded is `Missing`, with what would bring it. No cause is known here.

pub mod volume;
