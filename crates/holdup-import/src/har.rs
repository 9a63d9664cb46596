//! stub
use crate::{ImportError, Made, Options};
pub fn read(_: &str, file: &str, _: &Options) -> Result<Made, ImportError> {
    Err(ImportError::new(file, 0, "x"))
}
