//! What an imported access log says beside the response times, which are the metrics of [`super::app`].

metrics! {
    "access_log", "Access logs (`holdup import`)", "access_log_";

    Counter REQUESTS: Count = "access_log_requests_total", "Requests in the log, with a response time or without, by `http_response_status_code`";
    Counter FAILED_REQUESTS: Count = "access_log_failed_requests_total", "Failed requests by `error_type`: client_gave_up, gateway_timeout, upstream_unreachable, unavailable, too_many_requests, request_timeout, server_error";
    Histogram CONNECT: Seconds = "access_log_connect_seconds", "Time in which a proxy connected to the server behind it, by `server_address`";
    Histogram QUEUE: Seconds = "access_log_queue_seconds", "Time for which a request waited in the proxy's own queue";
}
