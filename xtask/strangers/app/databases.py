"""As much of MySQL's and PostgreSQL's protocol as a client without a password needs to execute statements as text."""

import socket
import struct


class Refused(Exception):
    """The server refused a statement."""


class Stream:
    """A connection that reads whole pieces."""

    def __init__(self, host, port):
        self.socket = socket.create_connection((host, port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def read(self, count):
        while len(self.buffer) < count:
            part = self.socket.recv(65536)
            if not part:
                raise ConnectionError("the database closed the connection")
            self.buffer += part
        piece, self.buffer = self.buffer[:count], self.buffer[count:]
        return piece

    def close(self):
        self.socket.close()


class MysqlConnection:
    """MySQL and MariaDB."""

    # Long passwords, protocol 4.1, transactions, secure connection, a database by name, authentication plugins.
    CAPABILITIES = 0x1 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x80000

    def __init__(self, host, port, user, database):
        self.stream = Stream(host, port)
        self.number = 0
        greeting = self.receive()
        if greeting[:1] == b"\xff":
            raise Refused(greeting[3:].decode(errors="replace"))
        answer = struct.pack("<IIB23x", self.CAPABILITIES, 1 << 24, 45)
        answer += user.encode() + b"\0\0" + database.encode() + b"\0mysql_native_password\0"
        self.send(answer)
        reply = self.receive()
        if reply[:1] == b"\xfe":
            # Another plugin is asked for: no password is the same in all of them.
            self.send(b"")
            reply = self.receive()
        self.check(reply)

    def send(self, payload):
        self.stream.socket.sendall(struct.pack("<I", len(payload))[:3] + bytes([self.number]) + payload)

    def receive(self):
        head = self.stream.read(4)
        self.number = (head[3] + 1) & 0xFF
        return self.stream.read(int.from_bytes(head[:3], "little"))

    @staticmethod
    def check(reply):
        if reply[:1] == b"\xff":
            raise Refused(reply[3:].decode(errors="replace"))

    def query(self, sql):
        """Executes a statement; the number of rows that came."""
        self.number = 0
        self.send(b"\x03" + sql.encode())
        reply = self.receive()
        self.check(reply)
        if reply[:1] == b"\x00":
            return 0
        # Columns up to the first end, rows up to the second.
        counts = []
        for _ in range(2):
            count = 0
            while True:
                packet = self.receive()
                self.check(packet)
                if packet[:1] == b"\xfe" and len(packet) < 9:
                    break
                count += 1
            counts.append(count)
        return counts[1]

    def close(self):
        self.stream.close()


class PostgresqlConnection:
    """PostgreSQL."""

    def __init__(self, host, port, user, database):
        self.stream = Stream(host, port)
        names = b"user\0" + user.encode() + b"\0database\0" + database.encode() + b"\0\0"
        self.stream.socket.sendall(struct.pack(">II", len(names) + 8, 196608) + names)
        self.finish()

    def finish(self):
        """Reads until the server is ready for the next statement; the number of rows that came."""
        rows, refused = 0, None
        while True:
            head = self.stream.read(5)
            kind, payload = head[:1], self.stream.read(struct.unpack(">I", head[1:])[0] - 4)
            if kind == b"D":
                rows += 1
            elif kind == b"E":
                refused = Refused(payload.replace(b"\0", b" ").decode(errors="replace"))
                if payload.startswith(b"SFATAL"):
                    raise refused
            elif kind == b"R" and payload[:4] != b"\0\0\0\0":
                raise Refused("the server asks for a password")
            elif kind == b"Z":
                if refused:
                    raise refused
                return rows

    def query(self, sql):
        """Executes a statement; the number of rows that came."""
        text = sql.encode() + b"\0"
        self.stream.socket.sendall(b"Q" + struct.pack(">I", len(text) + 4) + text)
        return self.finish()

    def close(self):
        self.stream.close()
