"""The rows of recordings in ClickHouse are those of a folder's Parquet files: stored.py PORT DATABASE FOLDER RECORDING...

Names come with %XX for bytes. It reads the files with pyarrow and the server by its own HTTP, without holdup. The first
recording's rows are decoded and compared value by value; those of the others have to be the same bytes.
"""

import hashlib
import struct
import sys
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes
from urllib.request import urlopen

import pyarrow as pa
import pyarrow.parquet as pq

port, database, folder, *recordings = sys.argv[1:]


def ask(sql):
    return urlopen(f"http://127.0.0.1:{port}/?database={database}&wait_end_of_query=1&query={quote(sql)}").read()


def rows_of(table, columns, recording):
    names = ", ".join(f"`{name}`" for name in columns)
    name = unquote_to_bytes(recording).hex()
    return ask(f"SELECT {names} FROM {table} FINAL WHERE recording = unhex('{name}') ORDER BY row FORMAT RowBinary")


def decoder(kind):
    """Reads one value of this type: from bytes and a place to the value and the next place."""
    while kind.startswith("LowCardinality("):
        kind = kind[len("LowCardinality(") : -1]
    if kind.startswith("Nullable("):
        inner = decoder(kind[len("Nullable(") : -1])
        return lambda b, at: (None, at + 1) if b[at] else inner(b, at + 1)
    if kind == "String":
        return text
    layout = {"Int64": "<q", "Int32": "<i", "Float64": "<d", "UInt8": "<?", "Bool": "<?"}.get(kind, "<q")
    assert layout != "<q" or kind == "Int64" or kind.startswith("DateTime64(9"), kind
    one = struct.Struct(layout)
    return lambda b, at: (one.unpack_from(b, at)[0], at + one.size)


def text(b, at):
    length = shift = 0
    while True:
        byte = b[at]
        at += 1
        length |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return b[at : at + length], at + length


def plain(value):
    return value.encode() if isinstance(value, str) else value


def same(a, b):
    return a == b or (a != a and b != b)


wrong = 0
for path in sorted(Path(folder).glob("*.parquet")):
    table = path.stem
    read = pq.read_table(path)
    kinds = dict(line.split(b"\t")[:2] for line in ask(f"DESCRIBE TABLE {table} FORMAT TabSeparated").splitlines())
    columns = read.column_names
    decoders = [decoder(kinds[name.encode()].decode().replace("\\'", "'")) for name in columns]
    values = []
    for column in read.columns:
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        values.append([plain(value) for value in column.to_pylist()])
    expected = list(zip(*values))
    first = rows_of(table, columns, recordings[0])
    found, at = [], 0
    while at < len(first):
        row = []
        for decode in decoders:
            value, at = decode(first, at)
            row.append(value)
        found.append(tuple(row))
    if len(found) != len(expected):
        print(f"{table}: {len(found)} rows in the store, {len(expected)} in the folder")
        wrong += 1
    for number, (a, b) in enumerate(zip(expected, found)):
        if not all(map(same, a, b)):
            print(f"{table}: row {number} is {str(b)[:300]} in the store and {str(a)[:300]} in the folder")
            wrong += 1
            break
    digest = hashlib.sha256(first).hexdigest()
    for recording in recordings[1:]:
        other = rows_of(table, columns, recording)
        if hashlib.sha256(other).hexdigest() != digest:
            print(f"{table}: {recording} has other rows than {recordings[0]}: {len(other)} bytes, not {len(first)}")
            wrong += 1
sys.exit(bool(wrong))
