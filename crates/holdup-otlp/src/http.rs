//! OTLP/HTTP: one request with a body yields one answer. The intake parses bodies. gRPC requests
//! arrive here, too, and are answered in `grpc`.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{ACCEPT_ENCODING, ALLOW, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode, Version};

use crate::body::{Piece, is_gzip, receive};
use crate::connections::{Guard, Shared};
use crate::refusal::{RETRY_AFTER_SECONDS, Refusal};
use crate::{Encoding, Signal, grpc};

const PROTOBUF: &str = "application/x-protobuf";
const JSON: &str = "application/json";

/// Answers one request.
pub async fn answer(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Response<Piece>, Infallible> {
    let _guard = Guard::new(&shared);
    let content_type = content_type(request.headers());
    let is_grpc = content_type == "application/grpc" || content_type == "application/grpc+proto";
    if is_grpc && request.version() == Version::HTTP_2 {
        let taken = grpc::take(request, &shared).await;
        if let Err(refusal) = taken {
            shared.intake.count_refused(refusal);
        }
        return Ok(grpc::response(taken));
    }
    let encoding = match content_type.as_str() {
        PROTOBUF => Some(Encoding::Protobuf),
        JSON => Some(Encoding::Json),
        _ => None,
    };
    let answer = take(request, encoding, &shared).await;
    // A client whose format is unknown gets JSON, which people can read.
    let encoding = encoding.unwrap_or(Encoding::Json);
    Ok(match answer {
        Ok(body) => response(200, encoding, body),
        Err(refusal) => {
            shared.intake.count_refused(refusal);
            let mut response = response(refusal.http_status(), encoding, refusal.body(encoding));
            let fields = response.headers_mut();
            match refusal {
                Refusal::NoRoom => drop(fields.insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS))),
                Refusal::NotPost => drop(fields.insert(ALLOW, HeaderValue::from_static("POST"))),
                Refusal::Coding => drop(fields.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"))),
                _ => {}
            }
            response
        }
    })
}

async fn take(request: Request<Incoming>, encoding: Option<Encoding>, shared: &Shared) -> Result<Vec<u8>, Refusal> {
    if request.method() != Method::POST {
        return Err(Refusal::NotPost);
    }
    let signal = match request.uri().path() {
        "/v1/traces" => Signal::Traces,
        "/v1/metrics" => Signal::Metrics,
        "/v1/logs" | "/v1development/profiles" => return Err(Refusal::OtherSignal),
        _ => return Err(Refusal::NoSuchPath),
    };
    let encoding = encoding.ok_or(Refusal::ContentType)?;
    let is_gzip = is_gzip(request.headers().get(CONTENT_ENCODING))?;
    let received = receive(request, shared).await?;
    let taken = shared.intake.take(signal, encoding, is_gzip, &received.bytes)?;
    Ok(taken.body(signal, encoding))
}

fn response(status: u16, encoding: Encoding, body: Vec<u8>) -> Response<Piece> {
    let mut response = Response::new(Piece { data: (!body.is_empty()).then(|| body.into()), trailers: None });
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let content_type = if encoding == Encoding::Json { JSON } else { PROTOBUF };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// The content type without parameters, in lower case.
fn content_type(fields: &HeaderMap) -> String {
    let value = fields.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
