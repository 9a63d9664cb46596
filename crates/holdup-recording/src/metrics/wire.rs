//! Metrics of captured packets, live or from a file.

metrics! {
    "wire", "Captured packets", "wire_";

    Counter PACKETS: Count = "wire_packets_total", "Packets seen";
    Counter BYTES: Bytes = "wire_bytes_total", "Bytes of them on the wire";
    Counter CONNECTIONS: Count = "wire_connections_total", "Connections seen";
    Counter EXCHANGES: Count = "wire_exchanges_total", "Requests with their responses";
    Counter OWN_EXCHANGES: Count = "wire_own_exchanges_total", "Those of holdup's collectors, which are not recorded";
    Counter EXCHANGES_LOST: Count = "wire_exchanges_lost_total", "Exchanges that could not be followed to their end";
    Counter EXCHANGES_LEFT_OUT: Count = "wire_exchanges_left_out_total", "Exchanges that were not recorded for lack of room";
    Counter RETRANSMITTED_SEGMENTS: Count = "wire_retransmitted_segments_total", "Segments that were seen again";
    Counter GAPS: Count = "wire_gaps_total", "Places at which bytes of a connection are missing";
    Counter LOST_BYTES: Bytes = "wire_lost_bytes_total", "Bytes that are missing there";
    Counter PACKETS_DROPPED: Count = "wire_packets_dropped_total", "Packets that the kernel dropped before they were read";
    Counter READER_CPU: Seconds = "wire_reader_cpu_seconds_total", "CPU time of the thread that reads packets";
    Gauge ROUND_TRIP: Seconds = "wire_round_trip_seconds", "Least round trip since the last sample, by `client` and `server`";
}
