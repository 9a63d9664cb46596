//! Metrics of a server on a TCP port, as seen from outside: its processes and their connections.

metrics! {
    "server", "A server on a port (`server:PORT`)", "server_";

    Gauge PROCESSES: Count = "server_processes", "Processes that hold the `port`";
    Gauge ACCEPTED_CONNECTIONS: Count = "server_accepted_connections", "Clients' connections that a process has accepted, by `pid` and `role`";
    Gauge ANSWERING_CONNECTIONS: Count = "server_answering_connections", "Of them, those on which the client waits for a response";
    Gauge UNDECIDED_CONNECTIONS: Count = "server_undecided_connections", "Of them, those of which it is not known whose turn it is";
    Gauge REQUESTS_SINCE_LAST: Count = "server_requests_since_last", "Requests since the sample before, at most, by segments with data; only where connections stay open";
    Gauge OUTGOING_CONNECTIONS: Count = "server_outgoing_connections", "Connections from its processes to a `peer` and `peer_port`";
    Gauge OUTGOING_PENDING_CONNECTIONS: Count = "server_outgoing_pending_connections", "Of them, those on which the server waits for a response";
    Gauge OUTGOING_UNDECIDED_CONNECTIONS: Count = "server_outgoing_undecided_connections", "Of them, those of which it is not known whose turn it is";
    Gauge OPEN_FILE_DESCRIPTORS: Count = "server_open_file_descriptors", "Open file descriptors, by `pid` and `role`";
    Gauge SOCKETS: Count = "server_sockets", "Of them, sockets";
    Counter THREAD_CPU_TIME: Seconds = "server_thread_cpu_time_seconds_total", "CPU time, by `pid`, `role` and `cpu_mode`";
    Gauge MEMORY_USAGE_BYTES: Bytes = "server_memory_usage_bytes", "Resident memory, by `pid` and `role`";
    Gauge THREADS: Count = "server_threads", "Threads by `pid`, `role` and `state`, the letter of `/proc/PID/stat`";
    Gauge WORKER_THREADS: Count = "server_worker_threads", "Threads that take requests, by `pid` and `role`: of servers that name theirs so (Tomcat, Undertow, Puma)";
    Counter RUN_QUEUE_WAIT: Seconds = "server_run_queue_wait_seconds_total", "Time its threads were runnable and waited for a CPU, by `pid` and `role`";
}
