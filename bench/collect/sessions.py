"""Sessions of a MariaDB server, with nothing but the standard library: enough of the protocol to log in as an account without a
password and to send a statement. Most of them do nothing; some are asked something in turn."""

import socket
import struct
import threading
import time

PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH = 0x200, 0x8000, 0x80000


def packet(line):
    head = b""
    while len(head) < 4:
        more = line.recv(4 - len(head))
        if not more:
            raise ConnectionError("the server has closed the connection")
        head += more
    size = int.from_bytes(head[:3], "little")
    body = b""
    while len(body) < size:
        body += line.recv(size - len(body))
    return head[3], body


def login(path):
    line = socket.create_connection(path)
    number, _ = packet(line)
    flags = PROTOCOL_41 | SECURE_CONNECTION | PLUGIN_AUTH
    body = struct.pack("<IIB23x", flags, 1 << 24, 33) + b"root\0" + b"\0" + b"mysql_native_password\0"
    line.sendall(len(body).to_bytes(3, "little") + bytes([number + 1]) + body)
    number, answer = packet(line)
    if answer[:1] == b"\xfe":
        line.sendall(b"\0\0\0" + bytes([number + 1]))
        _, answer = packet(line)
    if answer[:1] != b"\0":
        raise ConnectionError(f"login refused: {answer[:80]!r}")
    return line


def execute(line, statement):
    body = b"\x03" + statement.encode()
    line.sendall(len(body).to_bytes(3, "little") + b"\0" + body)
    _, answer = packet(line)
    if answer[:1] in (b"\0", b"\xff"):
        return
    # Columns, an end, rows, an end.
    ends = 0
    while ends < 2:
        _, answer = packet(line)
        ends += answer[:1] == b"\xfe" and len(answer) < 9


class Sessions:
    """COUNT sessions, of which RATE statements a second are asked in turn by a thread."""

    def __init__(self, path, count, rate):
        self.lines = [login(path) for _ in range(count)]
        self.rate, self.stopped, self.done = rate, False, 0
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        begun = time.monotonic()
        while not self.stopped:
            execute(self.lines[self.done % len(self.lines)], "SELECT 1 FROM mysql.user LIMIT 1")
            self.done += 1
            time.sleep(max(0.0, begun + self.done / self.rate - time.monotonic()))

    def close(self):
        self.stopped = True
        self.thread.join(10)
        for line in self.lines:
            line.close()
