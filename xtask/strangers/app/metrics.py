"""The app's own metrics: OpenTelemetry's names, in Prometheus' text."""

import http.server
import os
import threading

BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Histogram:
    """Counts of times up to bounds."""

    def __init__(self, name, labels=""):
        self.name, self.labels = name, labels
        self.counts, self.sum, self.lock = [0] * (len(BOUNDS) + 1), 0.0, threading.Lock()

    def observe(self, seconds):
        place = sum(seconds > bound for bound in BOUNDS)
        with self.lock:
            self.counts[place] += 1
            self.sum += seconds

    def text(self):
        with self.lock:
            counts, total = list(self.counts), self.sum
        lines, count = [f"# TYPE {self.name} histogram"], 0
        for bound, more in zip((*BOUNDS, "+Inf"), counts):
            count += more
            labels = ",".join(filter(None, (self.labels, f'le="{bound}"')))
            lines.append(f"{self.name}_bucket{{{labels}}} {count}")
        braces = f"{{{self.labels}}}" if self.labels else ""
        lines += [f"{self.name}_sum{braces} {total}", f"{self.name}_count{braces} {count}"]
        return "\n".join(lines)


class Metrics:
    """All of them."""

    def __init__(self):
        pool = 'db_client_connection_pool_name="shop"'
        self.request = Histogram("http_server_request_duration_seconds", 'http_route="/"')
        self.operation = Histogram("db_client_operation_duration_seconds")
        self.downstream = Histogram("http_client_request_duration_seconds", 'server_address="stock"')
        self.pool_wait = Histogram("db_client_connection_wait_time_seconds", pool)
        self.pool_use = Histogram("db_client_connection_use_time_seconds", pool)
        self.collection = Histogram("python_gc_pause_seconds")

    def text(self, app):
        histograms = (self.request, self.operation, self.downstream, self.pool_wait, self.pool_use, self.collection)
        pool, name = app.pool, 'db_client_connection_pool_name="shop"'
        times = os.times()
        used = min(pool.used, int(app.knobs["pool"]))
        lines = [histogram.text() for histogram in histograms]
        lines += [
            "# TYPE db_client_connection_pending_requests gauge",
            f"db_client_connection_pending_requests{{{name}}} {pool.waiting}",
            "# TYPE db_client_connection_count gauge",
            f'db_client_connection_count{{{name},db_client_connection_state="used"}} {used}',
            f'db_client_connection_count{{{name},db_client_connection_state="idle"}} {len(pool.idle)}',
            "# TYPE db_client_connection_max gauge",
            f"db_client_connection_max{{{name}}} {int(app.knobs['pool'])}",
            "# TYPE process_cpu_seconds_total counter",
            f"process_cpu_seconds_total {times.user + times.system}",
        ]
        return "\n".join(lines) + "\n"

    def serve(self, address, app):
        metrics = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = metrics.text(app).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass

        host, port = address.rsplit(":", 1)
        server = http.server.ThreadingHTTPServer((host, int(port)), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
