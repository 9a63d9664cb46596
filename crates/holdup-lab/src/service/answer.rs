//! What a route answers.

use serde_json::Value;

use crate::service::http::Status;

/// A response, and the route under which it is counted.
pub struct Answer {
    /// Its status.
    pub status: Status,
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
    pub fn empty(status: Status) -> Self {
        let (fields, body, route) = (String::new(), String::new(), String::new());
        Self { status, content_type: "application/json", fields, body, route }
    }

    /// A response with a JSON body.
    pub fn json(status: Status, body: &Value, route: String) -> Self {
        Self { body: body.to_string(), route, ..Self::empty(status) }
    }
}
