"""The admin interface of a ProxySQL, as far as holdup's collector asks it: MySQL's protocol over tables of SQLite, with the
columns that the version has. `admin` sees everything, `stats` the statistics alone.

usage: proxysql_admin.py VERSION. Prints its port. Each line of the standard input is a statement that changes the tables; the
end of the input ends the program.
"""

import hashlib
import socket
import sqlite3
import struct
import sys
import threading

VERSION = tuple(int(part) for part in sys.argv[1].split("."))
PASSWORDS = {"admin": b"s3cr3t-canary", "stats": b"s3cr3t-canary"}
NONCE = b"abcdefghijklmnopqrst"

POOL = (
    "hostgroup INT, srv_host VARCHAR, srv_port INT, status VARCHAR, ConnUsed INT, ConnFree INT, ConnOK INT, ConnERR INT, "
    "MaxConnUsed INT, Queries INT, Queries_GTID_sync INT, Bytes_data_sent INT, Bytes_data_recv INT, Latency_us INT"
)
PROCESSES = (
    "ThreadID INT, SessionID INTEGER PRIMARY KEY, user VARCHAR, db VARCHAR, cli_host VARCHAR, cli_port INT, hostgroup INT, "
    "l_srv_host VARCHAR, l_srv_port INT, srv_host VARCHAR, srv_port INT, command VARCHAR, time_ms INT NOT NULL, info VARCHAR"
)
DIGESTS = (
    "hostgroup INT, schemaname VARCHAR, username VARCHAR, digest VARCHAR, digest_text VARCHAR, count_star INTEGER, "
    "first_seen INTEGER, last_seen INTEGER, sum_time INTEGER, min_time INTEGER, max_time INTEGER"
)
ERRORS = (
    "hostgroup INT, hostname VARCHAR, port INT, username VARCHAR, client_address VARCHAR, schemaname VARCHAR, errno INT, "
    "count_star INTEGER, first_seen INTEGER, last_seen INTEGER, last_error VARCHAR"
)
SERVERS = (
    "hostgroup_id INT, hostname VARCHAR, port INT, gtid_port INT, status VARCHAR, weight INT, compression INT, "
    "max_connections INT, max_replication_lag INT, use_ssl INT, max_latency_ms INT, comment VARCHAR"
)

lock = threading.Lock()
admin = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
stats = sqlite3.connect("file:stats?mode=memory&cache=shared", uri=True, check_same_thread=False, isolation_level=None)
admin.execute("ATTACH 'file:stats?mode=memory&cache=shared' AS stats")
stats.execute("CREATE TABLE stats_mysql_global (Variable_Name VARCHAR PRIMARY KEY, Variable_Value VARCHAR)")
stats.execute(f"CREATE TABLE stats_mysql_connection_pool ({POOL})")
stats.execute(f"CREATE TABLE stats_mysql_processlist ({PROCESSES})")
stats.execute(f"CREATE TABLE stats_mysql_query_digest ({DIGESTS})")
if VERSION >= (2, 0, 3):
    stats.execute(f"CREATE TABLE stats_mysql_errors ({ERRORS})")
admin.execute(f"CREATE TABLE runtime_mysql_servers ({SERVERS})")
admin.execute("CREATE TABLE runtime_global_variables (variable_name VARCHAR PRIMARY KEY, variable_value VARCHAR)")


def text(value):
    """A text with its length before it."""
    if value is None:
        return b"\xfb"
    value = value if isinstance(value, bytes) else str(value).encode()
    if len(value) < 251:
        return bytes([len(value)]) + value
    return b"\xfc" + struct.pack("<H", len(value)) + value


class Client:
    def __init__(self, line):
        self.line, self.number, self.database = line, 0, None

    def send(self, body):
        self.line.sendall(struct.pack("<I", len(body))[:3] + bytes([self.number]) + body)
        self.number = (self.number + 1) % 256

    def exactly(self, size):
        got = b""
        while len(got) < size:
            more = self.line.recv(size - len(got))
            if not more:
                raise EOFError
            got += more
        return got

    def receive(self):
        head = self.exactly(4)
        self.number = (head[3] + 1) % 256
        return self.exactly(int.from_bytes(head[:3], "little"))

    def fail(self, number, words):
        self.send(b"\xff" + struct.pack("<H", number) + b"#28000" + words.encode())

    def log_in(self):
        low, high = struct.pack("<I", 0x0008_A209)[:2], struct.pack("<I", 0x0008_A209)[2:]
        greeting = b"\x0a8.0.11\0" + struct.pack("<I", 7) + NONCE[:8] + b"\0" + low + b"\x21\x02\0" + high
        self.send(greeting + b"\x15" + b"\0" * 10 + NONCE[8:] + b"\0mysql_native_password\0")
        answer = self.receive()
        user, rest = answer[32:].split(b"\0", 1)
        user, proof = user.decode(), rest[1 : 1 + rest[0]]
        password = PASSWORDS.get(user)
        hashed = hashlib.sha1(password or b"").digest()
        mask = hashlib.sha1(NONCE + hashlib.sha1(hashed).digest()).digest()
        if password is None or proof != bytes(a ^ b for a, b in zip(hashed, mask)):
            self.fail(1045, f"ProxySQL Error: Access denied for user '{user}'@'127.0.0.1' (using password: YES)")
            raise EOFError
        self.database = admin if user == "admin" else stats
        self.send(b"\0\0\0\2\0\0\0")

    def answer(self, sql):
        if sql == "SELECT @@version" and VERSION >= (2, 1, 0):
            names, rows = ["@@version"], [("%d.%d.%d-1-x" % VERSION,)]
        else:
            try:
                with lock:
                    found = self.database.execute(sql)
                    rows, names = found.fetchall(), [column[0] for column in found.description]
            except sqlite3.Error as error:
                return self.fail(1045, f"ProxySQL Admin Error: {error}")
        self.send(bytes([len(names)]))
        for name in names:
            self.send(text("def") + text("") * 3 + text(name) + text("") + b"\x0c\x21\0" + b"\0\4\0\0\xfd" + b"\0" * 5)
        self.send(b"\xfe\0\0\2\0")
        for row in rows:
            self.send(b"".join(text(value) for value in row))
        self.send(b"\xfe\0\0\2\0")

    def serve(self):
        try:
            self.log_in()
            while True:
                command = self.receive()
                if command[:1] != b"\x03":
                    return
                print("asked", command[1:].decode(), file=sys.stderr, flush=True)
                self.answer(command[1:].decode())
        except (EOFError, OSError):
            pass
        finally:
            self.line.close()


def accept(listener):
    while True:
        line, _ = listener.accept()
        threading.Thread(target=Client(line).serve, daemon=True).start()


listener = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=accept, args=[listener], daemon=True).start()
print(listener.getsockname()[1], flush=True)
for statement in sys.stdin:
    with lock:
        admin.execute(statement)
    print("done", flush=True)
