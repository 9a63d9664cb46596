"""An ordinary shop: Flask and SQLAlchemy on PostgreSQL, served by gunicorn's threads, without metrics and traces.

It answers what the bench's other apps answer. Knobs make it slow in one way or another. It knows nothing of holdup.
"""

import json
import os
import random
import threading
import time

import requests
from flask import Flask, jsonify, request
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from knobs import Knobs

knobs = Knobs(os.environ["SHOP_KNOBS"])
routes = {name: [text(sql.replace("{id}", ":id")) for sql in statements]
          for name, statements in json.loads(os.environ["SHOP_ROUTES"]).items()}
third_party = requests.Session()
third_party.mount("http://", requests.adapters.HTTPAdapter(pool_maxsize=64))
lock = threading.Lock()  # of a part of the handler
books = threading.Lock()  # of the two names below
taken = 0
leaked = []
app = Flask(__name__)


# The pool is the process's own: what the knob allows is shared out among two of them.
database = "postgresql+psycopg://" + os.environ["SHOP_DATABASE"]
engine = create_engine(database, pool_size=max(1, int(knobs["pool"]) // 2), max_overflow=0, pool_timeout=10)
unpooled = create_engine(database, poolclass=NullPool)


def work():
    """What a release may have added to every request."""
    if knobs["cpu_ms"]:
        until = time.thread_time() + knobs["cpu_ms"] / 1e3
        while time.thread_time() < until:
            pass
    if knobs["sleep_ms"]:
        time.sleep(knobs["sleep_ms"] / 1e3)
    if knobs["lock_ms"]:
        with lock:
            time.sleep(knobs["lock_ms"] / 1e3)


def give_back(connection):
    """Back to the pool. Now and then one stays out, if the knob says so."""
    global taken
    every = int(knobs["leak_every"])
    with books:
        taken += 1
        if every and taken % every == 0:
            leaked.append(connection)
            return
        found = [connection] if every else [connection, *leaked]
        if not every:
            leaked.clear()
    for one in found:
        one.close()


def steps(name, number):
    """The statements of one request, each with its number."""
    repeats = int(knobs["n_plus_one"])
    if name == "category" and repeats:
        return [(routes["item"][0], number - 1 + 600 * row) for row in range(repeats)]
    route = "released" if name == "history" and knobs["released"] else name
    return [(statement, number) for statement in routes[route]]


def query(name, number):
    if name == "item" and random.random() < knobs["cached_ratio"]:
        return 1
    rows = 0
    connection = (unpooled if knobs["reconnect"] else engine).connect()
    try:
        for statement, value in steps(name, number):
            result = connection.execute(statement, {"id": value})
            rows += len(result.all()) if result.returns_rows else result.rowcount
        if knobs["transaction_ms"]:
            time.sleep(knobs["transaction_ms"] / 1e3)
        connection.commit()
        if knobs["hold_ms"]:
            time.sleep(knobs["hold_ms"] / 1e3)
        return rows
    finally:
        give_back(connection)


@app.get("/<name>")
def answer(name):
    if name not in routes:
        return jsonify(error="not found"), 404
    number = request.args.get("id", 1, int)
    work()
    if name in ("order", "history") and knobs["downstream"]:
        third_party.get(os.environ["SHOP_DOWNSTREAM"], timeout=10).raise_for_status()
    rows = query(name, number)
    return jsonify(id=number, rows=rows, filler=" " * int(knobs["answer_bytes"]))
