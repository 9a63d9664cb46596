"""A service on Python with its collector's pauses, and its CPU time as Prometheus' client names it.

/pause?seconds=N: for N seconds a thread collects many live objects. How long that stops the others is counted by a
thread that sleeps a millisecond at a time, and wakes up late. /hold?seconds=N: for N seconds three threads compute and
hand the interpreter's lock to each other; their own CPU time is counted.
"""

import gc
import http.server
import os
import sys
import threading
import time
import urllib.parse

collected = {"sum": 0.0, "count": 0, "begun": 0.0}
own = {"stopped": 0.0, "held": 0.0}


def watch_collector(phase, _):
    if phase == "start":
        collected["begun"] = time.perf_counter()
    else:
        collected["sum"] += time.perf_counter() - collected["begun"]
        collected["count"] += 1


def watch():
    while True:
        begun = time.perf_counter()
        time.sleep(0.001)
        late = time.perf_counter() - begun - 0.001
        # Less is a turn of another thread.
        if late > 0.02:
            own["stopped"] += late


def collect(until):
    live = [[i] for i in range(1_000_000)]
    while time.monotonic() < until:
        gc.collect()
        time.sleep(0.1)
    live.clear()


def hold(until):
    count = 0
    while time.monotonic() < until:
        count += 1
    own["held"] += time.thread_time()


def start(work, seconds):
    threading.Thread(target=work, args=(time.monotonic() + seconds,), daemon=True).start()


def metrics():
    times = os.times()
    return (
        f"python_gc_pause_seconds_sum {collected['sum']}\npython_gc_pause_seconds_count {collected['count']}\n"
        f"process_cpu_seconds_total {times.user + times.system}\n"
        f"own_stopped_seconds_total {own['stopped']}\nown_held_seconds_total {own['held']}\n"
    )


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path, _, query = self.path.partition("?")
        seconds = float(urllib.parse.parse_qs(query).get("seconds", ["0"])[0])
        if path == "/pause":
            start(collect, seconds)
        if path == "/hold":
            for _ in range(3):
                start(hold, seconds)
        body = (metrics() if path == "/metrics" else "done\n").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


gc.callbacks.append(watch_collector)
threading.Thread(target=watch, daemon=True).start()
http.server.ThreadingHTTPServer.request_queue_size = 128
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
