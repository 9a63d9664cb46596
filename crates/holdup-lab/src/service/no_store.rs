//! Replaces the document store where the feature `labs` is off: no options, and never a store.

use crate::service::answer::Answer;
use crate::service::http::Request;
use crate::service::metrics::Metrics;
use crate::service::{Options, ServiceError};

/// No options.
#[derive(clap::Args, Clone, Debug)]
pub struct StoreOptions {}

/// Cannot be constructed.
pub enum Store {}

impl Store {
    pub fn open(_: &Options) -> Result<Option<Self>, ServiceError> {
        Ok(None)
    }

    pub fn answer(&self, _: &Request, _: &Metrics) -> Option<Answer> {
        match *self {}
    }
}
