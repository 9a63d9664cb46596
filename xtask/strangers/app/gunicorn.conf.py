"""gunicorn's configuration of the shop. It reads this again at SIGHUP, and starts new workers by it."""

import os

from knobs import read

knobs = read(os.environ["SHOP_KNOBS"])
bind = os.environ["SHOP_LISTEN"]
worker_class = "gthread"
workers = 2 if knobs["workers"] >= 2 else 1
threads = max(1, int(knobs["workers"]) // workers)
keepalive = 75
control_socket_disable = True


def post_worker_init(worker):
    print("ready", bind, flush=True)
