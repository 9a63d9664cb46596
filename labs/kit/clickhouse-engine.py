"""Answers ClickHouse's HTTP with the engine of PyPI's chdb-core-lite:
clickhouse-engine.py DIR PORT [--grants FILE] [--account USER:PASSWORD]

It stands in for a server of 2026, which no registry has. ClickHouse's own engine parses and runs every statement, fills in its
parameters, drops repeated blocks by their token, and checks grants and read-only settings. This script only carries: it is not
ClickHouse's HTTP server. It checks passwords itself, in ClickHouse's words. One process has one account, whose grants are the
statements of FILE, a line each; without it the account may do everything. Data stay in DIR; one process at a time has them.
"""

import argparse
import base64
import gzip
import os
import re
import sys
import tempfile
import threading
import xml.sax.saxutils
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from chdb import _chdb

# What the HTTP interface itself understands; everything else in a URL is a setting of the engine.
OWN = {"query", "database", "default_format", "wait_end_of_query", "enable_http_compression"}
INSERT = re.compile(r"^(INSERT\s+INTO\s.*?)\s+FORMAT\s+(\w+)\s*$", re.IGNORECASE | re.DOTALL)
CODE = re.compile(r"Code: (\d+)\.")

# The engine takes one statement at a time.
one_at_a_time = threading.Lock()


def configuration(folder, grants):
    """The path of a configuration in which the only account has these grants."""
    users = os.path.join(folder, "users.xml")
    lines = [line.strip() for line in open(grants, encoding="utf-8") if line.strip()] if grants else ["GRANT ALL ON *.*"]
    queries = "".join(f"<query>{xml.sax.saxutils.escape(line)}</query>" for line in lines)
    with open(users, "w", encoding="utf-8") as file:
        file.write(
            "<clickhouse><profiles><default/></profiles><quotas><default/></quotas><users><default><password></password>"
            "<networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota>"
            f"<grants>{queries}</grants></default></users></clickhouse>"
        )
    path = os.path.join(folder, "config.xml")
    with open(path, "w", encoding="utf-8") as file:
        quoted = xml.sax.saxutils.escape(users)
        file.write(f"<clickhouse><logger><level>none</level></logger><users_config>{quoted}</users_config></clickhouse>")
    return path


class Refused(Exception):
    """The answer is an error, in ClickHouse's words."""


def literal(value):
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def run(address, asked, is_read, body, is_packed, folder):
    """What the engine answers to one request."""
    with one_at_a_time:
        # A connection of its own has settings and a database of its own.
        connection = _chdb.connect(address)
        try:
            if asked.get("database"):
                connection.query("USE " + "`" + asked["database"].replace("`", "\\`") + "`", "TSV", params={})
            for name, value in asked.items():
                if name not in OWN and not name.startswith("param_"):
                    connection.query(f"SET {name} = {literal(value)}", "TSV", params={})
            if is_read:
                connection.query("SET readonly = 2", "TSV", params={})
            parameters = {name[6:]: value for name, value in asked.items() if name.startswith("param_")}
            sql, insert = asked.get("query", ""), INSERT.match(asked.get("query", ""))
            if not insert:
                sql += body.decode()
            else:
                # The rows go in as ClickHouse's own client takes them from a file, packed as they came.
                with tempfile.NamedTemporaryFile(dir=folder, delete=False) as rows:
                    rows.write(body)
                packing = " COMPRESSION 'gzip'" if is_packed else ""
                sql = f"{insert[1]} FROM INFILE {literal(rows.name)}{packing} FORMAT {insert[2]}"
            try:
                return connection.query(sql, asked.get("default_format", "TabSeparated"), params=parameters).bytes()
            finally:
                if insert:
                    os.unlink(rows.name)
        except RuntimeError as error:
            raise Refused(str(error)) from None
        finally:
            connection.close()


def handler(address, account, folder):
    expected = account and "Basic " + base64.b64encode(account.encode()).decode()
    user = (account or "default").split(":")[0]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.answer(True)

        def do_POST(self):
            self.answer(False)

        def answer(self, is_read):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
            status, headers = 200, {}
            if self.path == "/ping":
                answer = b"Ok.\n"
            else:
                try:
                    self.check_password()
                    is_packed = self.headers.get("Content-Encoding") == "gzip"
                    answer = run(address, asked, is_read, body, is_packed, folder)
                except Refused as refused:
                    code = CODE.search(str(refused))
                    status, headers = 500, {"X-ClickHouse-Exception-Code": code[1]} if code else {}
                    answer = str(refused).encode()
            if asked.get("enable_http_compression") == "1" and "gzip" in self.headers.get("Accept-Encoding", ""):
                answer, headers["Content-Encoding"] = gzip.compress(answer, 1), "gzip"
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def check_password(self):
            if expected and self.headers.get("Authorization") != expected:
                raise Refused(
                    f"Code: 516. DB::Exception: {user}: Authentication failed: password is incorrect, or there is no user with "
                    "such name. (AUTHENTICATION_FAILED)"
                )

        def log_message(self, *_):
            pass

    return Handler


def main():
    options = argparse.ArgumentParser()
    options.add_argument("dir")
    options.add_argument("port", type=int)
    options.add_argument("--grants")
    options.add_argument("--account")
    options = options.parse_args()
    os.makedirs(options.dir, exist_ok=True)
    folder = os.path.abspath(options.dir)
    address = f"{folder}/data?config-file={configuration(folder, options.grants)}"
    # While one connection is open, the engine stays.
    keep = _chdb.connect(address)
    server = ThreadingHTTPServer(("127.0.0.1", options.port), handler(address, options.account, folder))
    server.daemon_threads = True
    try:
        server.serve_forever()
    finally:
        keep.close()


if __name__ == "__main__":
    sys.exit(main())
