"""The bench's second app: an order service with threads, a queue before them, and a connection pool.

It speaks MySQL's and PostgreSQL's protocol by itself, so it needs nothing but Python. Knobs in a JSON file, read
ten times a second, make it slow in one way or another. It knows nothing of holdup.
"""

import argparse
import gc
import json
import os
import queue
import random
import selectors
import socket
import threading
import time

from databases import MysqlConnection, PostgresqlConnection
from knobs import Knobs
from metrics import Metrics


class Pool:
    """Connections to the database: as many as the knob says, first come, first served."""

    def __init__(self, knobs, connect, metrics):
        self.knobs, self.connect, self.metrics = knobs, connect, metrics
        self.idle, self.leaked, self.waiting = [], [], 0
        self.used = self.taken = 0
        self.free = threading.Condition()

    def take(self):
        begun = time.perf_counter()
        if self.knobs["reconnect"]:
            connection = self.connect()
            self.metrics.pool_wait.observe(time.perf_counter() - begun)
            return connection
        with self.free:
            self.waiting += 1
            try:
                if not self.free.wait_for(lambda: self.used < self.knobs["pool"], timeout=10):
                    raise TimeoutError("no database connection became free in time")
            finally:
                self.waiting -= 1
            self.used += 1
            self.taken += 1
            connection = self.idle.pop() if self.idle else None
        self.metrics.pool_wait.observe(time.perf_counter() - begun)
        try:
            return connection or self.connect()
        except Exception:
            with self.free:
                self.used -= 1
                self.free.notify()
            raise

    def give_back(self, connection, is_good):
        if self.knobs["reconnect"]:
            connection.close()
            return
        every = int(self.knobs["leak_every"])
        with self.free:
            if every and self.taken % every == 0 and self.used < self.knobs["pool"] + 1:
                # Never given back: it stays open and counts as used.
                self.leaked.append(connection)
                return
            self.used -= 1
            if is_good:
                self.idle.append(connection)
            else:
                connection.close()
            self.free.notify()

    def mend(self):
        """Takes back what leaked, once nothing leaks any more."""
        with self.free:
            if self.leaked and not self.knobs["leak_every"]:
                self.idle.extend(self.leaked)
                self.used -= len(self.leaked)
                self.leaked.clear()
                self.free.notify_all()


class App:
    """Routes, and what a request does on its way."""

    def __init__(self, options):
        self.knobs = Knobs(options.knobs)
        self.metrics = Metrics()
        host, port = options.database.rsplit(":", 1)
        kind = MysqlConnection if options.protocol == "mysql" else PostgresqlConnection
        self.pool = Pool(self.knobs, lambda: kind(host, int(port), "app", "shop"), self.metrics)
        self.routes = dict(route.split("=", 1) for route in options.route)
        self.downstream = options.downstream.rsplit(":", 1)
        self.local = threading.local()
        self.lock = threading.Lock()
        self.log = open(options.log, "ab", buffering=0)
        self.busy = []

    def handle(self, path, number):
        """Status and body of one request."""
        knobs = self.knobs
        if knobs["cpu_ms"]:
            until = time.thread_time() + knobs["cpu_ms"] / 1e3
            while time.thread_time() < until:
                pass
        if knobs["sleep_ms"]:
            time.sleep(knobs["sleep_ms"] / 1e3)
        if knobs["lock_ms"]:
            with self.lock:
                time.sleep(knobs["lock_ms"] / 1e3)
        if path in ("/order", "/history") and knobs["downstream"]:
            self.ask_downstream()
        rows = self.query(path, number)
        if knobs["log_sync"]:
            self.log.write(b"x" * int(knobs["log_bytes"]))
            os.fsync(self.log.fileno())
        return 200, json.dumps({"id": number, "rows": rows}) + " " * int(knobs["answer_bytes"])

    def query(self, path, number):
        if path == "/item" and random.random() < self.knobs["cached_ratio"]:
            return 1
        released = path == "/history" and self.knobs["released"]
        statements = self.routes["/released" if released else path].replace("{id}", str(number)).split("; ")
        repeats = int(self.knobs["n_plus_one"])
        if path == "/category" and repeats:
            # Each item of the category by a statement of its own.
            statements = [self.routes["/item"].replace("{id}", str(number - 1 + 600 * k)) for k in range(repeats)]
        connection = self.pool.take()
        obtained, is_good = time.perf_counter(), False
        try:
            held_ms = self.knobs["transaction_ms"]
            is_transaction = path == "/order" or held_ms
            for sql in (["BEGIN", *statements, "COMMIT"] if is_transaction else statements):
                if sql == "COMMIT" and held_ms:
                    time.sleep(held_ms / 1e3)
                begun = time.perf_counter()
                rows = connection.query(sql)
                self.metrics.operation.observe(time.perf_counter() - begun)
            if self.knobs["hold_ms"]:
                time.sleep(self.knobs["hold_ms"] / 1e3)
            is_good = True
            return rows
        finally:
            self.metrics.pool_use.observe(time.perf_counter() - obtained)
            self.pool.give_back(connection, is_good)

    def ask_downstream(self):
        begun = time.perf_counter()
        host, port = self.downstream
        stream = getattr(self.local, "downstream", None)
        if stream is None:
            stream = self.local.downstream = socket.create_connection((host, int(port)), timeout=10)
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        answer = b""
        try:
            stream.sendall(b"GET /stock HTTP/1.1\r\nHost: stock\r\n\r\n")
            while not answer.endswith(b"{}"):
                part = stream.recv(4096)
                if not part:
                    raise ConnectionError("the downstream service closed")
                answer += part
        except OSError:
            self.local.downstream = None
            raise
        self.metrics.downstream.observe(time.perf_counter() - begun)

    def tend(self, listener):
        """What goes on beside requests: threads that take the interpreter, collections of garbage, leaks that end."""
        garbage, collected, backlog = [], 0.0, self.knobs["backlog"]
        while True:
            time.sleep(0.02)
            if backlog != self.knobs["backlog"]:
                backlog = self.knobs["backlog"]
                # The kernel takes one more than it is told.
                listener.listen(int(backlog) - 1)
            self.pool.mend()
            while len(self.busy) < self.knobs["busy_threads"]:
                thread = threading.Thread(target=self.spin, args=(len(self.busy),), daemon=True)
                self.busy.append(thread)
                thread.start()
            wanted = int(self.knobs["collect_objects"])
            if wanted != len(garbage):
                garbage = [[None] for _ in range(wanted)]
                for one, other in zip(garbage, garbage[1:]):
                    one[0] = other
            if wanted and time.monotonic() - collected > self.knobs["collect_every_ms"] / 1e3:
                begun = time.perf_counter()
                gc.collect()
                self.metrics.collection.observe(time.perf_counter() - begun)
                collected = time.monotonic()

    def spin(self, number):
        count = 0
        while True:
            if number < self.knobs["busy_threads"]:
                for _ in range(20_000):
                    count += 1
            else:
                time.sleep(0.05)


class Server:
    """One thread waits for requests on all connections; workers read and answer them."""

    def __init__(self, app, address):
        self.app = app
        host, port = address.rsplit(":", 1)
        self.listener = socket.create_server((host, int(port)), backlog=256)
        self.listener.setblocking(False)
        self.ready = queue.SimpleQueue()
        self.back = queue.SimpleQueue()
        self.wake, self.woken = socket.socketpair()
        self.selector = selectors.DefaultSelector()
        for number in range(64):
            threading.Thread(target=self.work, args=(number,), daemon=True).start()

    def serve(self):
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.selector.register(self.woken, selectors.EVENT_READ)
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is self.listener:
                    try:
                        stream, _ = self.listener.accept()
                    except OSError:
                        # Out of file descriptors, perhaps: what waits stays in the kernel's queue.
                        time.sleep(0.01)
                        continue
                    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    stream.setblocking(True)
                    self.selector.register(stream, selectors.EVENT_READ)
                elif key.fileobj is self.woken:
                    self.woken.recv(4096)
                    while not self.back.empty():
                        self.selector.register(self.back.get(), selectors.EVENT_READ)
                else:
                    self.selector.unregister(key.fileobj)
                    self.ready.put(key.fileobj)

    def work(self, number):
        while True:
            if number >= self.app.knobs["workers"]:
                time.sleep(0.05)
                continue
            try:
                stream = self.ready.get(timeout=0.2)
            except queue.Empty:
                continue
            if self.answer(stream):
                self.back.put(stream)
                self.wake.send(b"x")
            else:
                stream.close()

    def answer(self, stream):
        """Reads one request and answers it; whether the connection goes on."""
        head = b""
        try:
            while b"\r\n\r\n" not in head:
                part = stream.recv(8192)
                if not part:
                    return False
                head += part
        except OSError:
            return False
        begun = time.perf_counter()
        path, _, asked = head.split(b" ", 2)[1].decode().partition("?id=")
        try:
            status, body = self.app.handle(path, int(asked or 1))
        except Exception as error:
            print(f"{path}: {error!r}", flush=True)
            status, body = 500, '{"error": "failed"}'
        self.app.metrics.request.observe(time.perf_counter() - begun)
        text = f"HTTP/1.1 {status} x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        try:
            stream.sendall(text.encode())
        except OSError:
            return False
        return True


def main():
    parser = argparse.ArgumentParser()
    for flag in ("listen", "admin", "protocol", "database", "knobs", "downstream", "log"):
        parser.add_argument(f"--{flag}", required=True)
    parser.add_argument("--route", action="append", default=[])
    options = parser.parse_args()
    gc.disable()
    app = App(options)
    server = Server(app, options.listen)
    app.metrics.serve(options.admin, app)
    threading.Thread(target=app.tend, args=(server.listener,), daemon=True).start()
    print("ready", options.listen, flush=True)
    server.serve()


main()
