//! Metrics of a PHP-FPM pool, from its status page.

metrics! {
    "php-fpm", "PHP-FPM", "php_fpm_";

    Gauge ACTIVE_PROCESSES: Count = "php_fpm_active_processes", "Children with a request, by `pool`";
    Gauge IDLE_PROCESSES: Count = "php_fpm_idle_processes", "Children without a request, by `pool`";
    Gauge TOTAL_PROCESSES: Count = "php_fpm_total_processes", "Children, by `pool`";
    Gauge MAX_ACTIVE_PROCESSES: Count = "php_fpm_max_active_processes", "Most children with a request since the start, by `pool`";
    Gauge LISTEN_QUEUE: Count = "php_fpm_listen_queue", "Requests waiting to be accepted, by `pool`";
    Gauge LISTEN_QUEUE_LIMIT: Count = "php_fpm_listen_queue_limit", "Most requests that may wait, by `pool`";
    Gauge MAX_LISTEN_QUEUE: Count = "php_fpm_max_listen_queue", "Most requests that have waited since the start, by `pool`";
    Counter MAX_CHILDREN_REACHED: Count = "php_fpm_max_children_reached_total", "Times that the pool had as many children as it may, by `pool`";
    Counter ACCEPTED_CONNECTIONS: Count = "php_fpm_accepted_connections_total", "Requests accepted, by `pool`";
    Counter SLOW_REQUESTS: Count = "php_fpm_slow_requests_total", "Requests over `request_slowlog_timeout`, by `pool`";
}
