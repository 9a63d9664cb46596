"""Knobs of the bench's apps: a JSON file that is read ten times a second, so that a fault moves them while an app serves."""

import json
import os
import threading
import time

# What holds where the file says nothing.
USUAL = {
    "workers": 24, "pool": 16, "leak_every": 0, "hold_ms": 0, "cpu_ms": 0, "sleep_ms": 0, "busy_threads": 0,
    "collect_objects": 0, "collect_every_ms": 1000, "log_sync": 0, "log_bytes": 4096, "n_plus_one": 0,
    "lock_ms": 0, "transaction_ms": 0, "reconnect": 0, "cached_ratio": 0, "downstream": 1, "answer_bytes": 0,
    "released": 0, "backlog": 256,
}


def read(path):
    """All knobs, by name."""
    with open(path) as file:
        return {**USUAL, **json.load(file)}


class Knobs:
    """The knobs as they are now."""

    def __init__(self, path):
        self.path = path
        self.stamp = None
        self.values = dict(USUAL)
        self.look()
        threading.Thread(target=self.follow, daemon=True).start()

    def __getitem__(self, name):
        return self.values[name]

    def look(self):
        stamp = os.stat(self.path).st_mtime_ns
        if stamp != self.stamp:
            self.values = read(self.path)
            self.stamp = stamp

    def follow(self):
        while True:
            time.sleep(0.1)
            try:
                self.look()
            except (OSError, ValueError):
                pass  # It is replaced at this moment: the next look finds it.
