//! Metrics of TCP that `host` and `server:` read: for the whole network namespace, for a port, and
//! for connections to a port.

metrics! {
    "tcp", "TCP, read by `host` and `server:`", "tcp_";

    Counter RETRANSMITTED_SEGMENTS: Count = "tcp_retransmitted_segments_total", "Segments sent again";
    Counter SENT_SEGMENTS: Count = "tcp_sent_segments_total", "Segments sent, those sent again not counted";
    Counter RECEIVED_SEGMENTS: Count = "tcp_received_segments_total", "Segments received";
    Counter ACTIVE_OPENS: Count = "tcp_active_opens_total", "Connections opened from here";
    Counter PASSIVE_OPENS: Count = "tcp_passive_opens_total", "Connections opened to here";
    Counter LISTEN_OVERFLOWS: Count = "tcp_listen_overflows_total", "Connections refused because an accept queue was full";
    Counter LISTEN_DROPS: Count = "tcp_listen_drops_total", "Connections refused by a listening socket for any reason";
    Counter RETRANSMISSION_TIMEOUTS: Count = "tcp_retransmission_timeouts_total", "Times that the retransmission timer ran out";
    Counter SYN_RETRANSMITS: Count = "tcp_syn_retransmits_total", "Handshakes' segments sent again";
    Counter LOST_RETRANSMITS: Count = "tcp_lost_retransmits_total", "Segments sent again that were lost too";
    Counter FAST_RETRANSMITS: Count = "tcp_fast_retransmits_total", "Segments sent again without waiting for the timer";
    Counter LOSS_PROBES: Count = "tcp_loss_probes_total", "Probes sent because the end of what was sent was not acknowledged";
    Gauge SOCKETS: Count = "tcp_sockets", "Sockets by `state`, as `ss` names it; pasted outputs have it";
    Counter BACKLOG_DROPS: Count = "tcp_backlog_drops_total", "Segments dropped because their socket's backlog was full";

    Gauge ACCEPT_QUEUE_LENGTH: Count = "tcp_accept_queue_length", "Connections waiting to be accepted, by `port`";
    Gauge ACCEPT_QUEUE_LIMIT: Count = "tcp_accept_queue_limit", "Most connections that may wait to be accepted, by `port`";
    Gauge SERVER_CONNECTIONS: Count = "tcp_server_connections", "Established connections to a listening `port`, accepted or not";
    Gauge SERVER_UNREAD_CONNECTIONS: Count = "tcp_server_unread_connections", "Of them, those with bytes that the server has not read";
    Gauge SERVER_UNREAD_BYTES: Bytes = "tcp_server_unread_bytes", "Bytes received on a listening `port` that the server has not read";
    Gauge SERVER_CLOSE_WAIT_CONNECTIONS: Count = "tcp_server_close_wait_connections", "Connections that the client has closed and the server has not, by `port`";

    Gauge CONNECTIONS: Count = "tcp_connections", "Established connections, by `port` of the server and our `side`";
    Gauge CONNECTIONS_UNREAD: Count = "tcp_connections_unread", "Of them, those with bytes not read yet";
    Gauge UNREAD_BYTES: Bytes = "tcp_unread_bytes", "Bytes received and not read yet, by `port` and `side`";
    Gauge UNACKED_SEGMENTS: Count = "tcp_unacked_segments", "Segments sent and not acknowledged, by `port` and `side`";
    Gauge CONNECTIONS_RETRANSMITS: Count = "tcp_connections_retransmits", "Segments that the open connections have sent again, by `port` and `side`";
    Gauge CONGESTION_WINDOW_SEGMENTS: Count = "tcp_congestion_window_segments", "Segments that a connection may have in flight, by `port`, `side` and `stat` (min, mean, max); pasted outputs have it";
    Gauge ROUND_TRIP: Seconds = "tcp_round_trip_seconds", "The kernel's estimate of the round trip, by `port`, `side` and `stat` (min, mean, max)";
}
