//! What the tests of templates, conditions and captures share.

pub(crate) mod world;
