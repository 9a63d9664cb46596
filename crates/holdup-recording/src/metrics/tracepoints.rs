//! Metrics of the kernel's trace points.

metrics! {
    "tracepoints", "The kernel's trace points", "traced_";

    Counter RECORDS_LOST: Count = "traced_records_lost_total", "Records that the kernel dropped before they were read, by `tracepoint`";
    Counter DISK_REQUESTS: Count = "traced_disk_requests_total", "Requests issued, by `device` and `direction`";
    Counter DISK_REQUEST_BYTES: Bytes = "traced_disk_request_bytes_total", "Bytes of them";
    Counter DISK_SEQUENTIAL_REQUESTS: Count = "traced_disk_sequential_requests_total", "Of them, those that began where the one before had ended";
    Counter DISK_REQUESTS_BY_SIZE: Count = "traced_disk_requests_by_size_total", "Requests by `device`, `direction` and `size_max_bytes`";
    Counter CALLS: Count = "traced_calls_total", "System calls on files, by `process` and `call`";
    Counter CALL_TIME: Seconds = "traced_call_time_seconds_total", "Time in them";
}
