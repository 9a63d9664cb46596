"""A shop with two pages and a database: nothing in here knows of tracing."""

import os
import threading
from urllib.parse import urlsplit

from flask import Flask, jsonify

app = Flask(__name__)
_local = threading.local()


def connection():
    """One connection for each thread, as a pool would give it."""
    if not hasattr(_local, "connection"):
        url = urlsplit(os.environ["DATABASE_URL"])
        place = {"host": url.hostname, "port": url.port, "user": url.username, "password": url.password or ""}
        if url.scheme == "mysql":
            import pymysql

            _local.connection = pymysql.connect(**place, database=url.path[1:], autocommit=True)
        else:
            import psycopg2

            _local.connection = psycopg2.connect(**place, dbname=url.path[1:])
            _local.connection.autocommit = True
    return _local.connection


@app.get("/items/<int:item>")
def item(item):
    with connection().cursor() as cursor:
        cursor.execute("SELECT id, name FROM item WHERE id = %s", (item,))
        found = cursor.fetchone()
        cursor.execute("SELECT COUNT(*) FROM review WHERE item_id = %s", (item,))
        (reviews,) = cursor.fetchone()
    if found is None:
        return jsonify(error="no such item"), 404
    return jsonify(id=found[0], name=found[1], reviews=reviews)


@app.get("/healthz")
def healthz():
    return "ok"
