//! In place of the document store where the feature `lmdb` is off: no options, and never a store.

use crate::handler::Answer;
use crate::http::Request;
use crate::metrics::Metrics;
use crate::{Options, ServiceError};

/// No options.
#[derive(clap::Args, Clone, Debug)]
pub struct StoreOptions {}

/// Cannot be made.
pub enum Store {}

impl Store {
    pub fn open(_: &Options) -> Result<Option<Self>, ServiceError> {
        Ok(None)
    }

    pub fn answer(&self, _: &Request, _: &Metrics) -> Option<Answer> {
        match *self {}
    }
}
