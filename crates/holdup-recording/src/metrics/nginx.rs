//! Metrics of nginx, from its `stub_status` page.

metrics! {
    "nginx", "nginx", "nginx_";

    Gauge ACTIVE_CONNECTIONS: Count = "nginx_active_connections", "Connections of clients, idle ones included";
    Gauge READING_CONNECTIONS: Count = "nginx_reading_connections", "Connections whose request's head it reads";
    Gauge WRITING_CONNECTIONS: Count = "nginx_writing_connections", "Connections whose request it handles or waits to have handled";
    Gauge WAITING_CONNECTIONS: Count = "nginx_waiting_connections", "Idle connections: they wait for the client's next request";
    Counter ACCEPTED_CONNECTIONS: Count = "nginx_accepted_connections_total", "Connections accepted";
    Counter HANDLED_CONNECTIONS: Count = "nginx_handled_connections_total", "Connections accepted and not dropped for a limit such as `worker_connections`";
    Counter REQUESTS: Count = "nginx_requests_total", "Requests";
}
