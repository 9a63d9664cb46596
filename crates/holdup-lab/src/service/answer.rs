//! What a route answers.

use hyper::StatusCode;
use serde_json::Value;

/// A response, and the route under which it is counted.
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Content type of its body.
    pub content_type: &'static str,
    /// Further lines of its head, each with its line end.
    pub fields: String,
    /// Its body.
    pub body: String,
    /// The route's path; empty for a request that matches none.
    pub route: String,
}

impl Answer {
    /// A response without a body.
    pub fn empty(status: StatusCode) -> Self {
        let (fields, body, route) = (String::new(), String::new(), String::new());
        Self { status, content_type: "application/json", fields, body, route }
    }

    /// A response with a JSON body.
    pub fn json(status: StatusCode, body: &Value, route: String) -> Self {
        Self { body: body.to_string(), route, ..Self::empty(status) }
    }
}
