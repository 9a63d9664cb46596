"""The views of a store answer as pandas does over the Parquet files: views.py PORT DATABASE FOLDER RECORDING"""

import json
import sys
from urllib.parse import quote
from urllib.request import urlopen

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

port, database, folder, recording = sys.argv[1:]
MINUTE_NS = 60_000_000_000


def ask(sql):
    """The rows of an answer; numbers beyond 2^53 stay exact."""
    url = f"http://127.0.0.1:{port}/?database={database}&output_format_json_quote_64bit_integers=0&query={quote(sql)}"
    return [json.loads(line) for line in urlopen(url + quote(" FORMAT JSONEachRow")).read().splitlines()]


def table(name):
    read = pq.read_table(f"{folder}/{name}.parquet")
    columns = {}
    for column in read.column_names:
        values = read[column]
        values = (values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values).to_pylist()
        # What is absent stays None.
        columns[column] = pd.Series(values, dtype=object if None in values or any(type(v) is str for v in values[:1]) else None)
    return pd.DataFrame(columns)


def at(ordered, level):
    """The value at this share of an ordered list, as quantileExact takes it."""
    return ordered[min(int(level * len(ordered)), len(ordered) - 1)]


def same(what, found, expected):
    close = len(found) == len(expected) and all(
        a.keys() == b.keys()
        and all(abs(a[k] - b[k]) <= 1e-6 * max(1, abs(b[k])) if isinstance(b[k], float) else a[k] == b[k] for k in b)
        for a, b in zip(found, expected)
    )
    if not close:
        print(f"{what}:\n  {found[:5]}\nin place of\n  {expected[:5]}")
        sys.exit(1)


requests, spans, statements, sessions = map(table, ["requests", "spans", "statements", "sessions"])
exchanges = table("exchanges")
here = f"recording = '{recording}'"

# Both accounts of one request by its id: each of its rows, with its length.
requests["response_ns"] = requests.done_at - requests.intended_at
executed = statements[statements.kind == "execution"]
common = set(requests.trace_id) & set(spans.trace_id) & set(executed.trace_id.dropna())
trace = sorted(common)[0]
mine = lambda rows: rows[rows.trace_id == trace]
expected = (
    [("client", t.response_ns, t.operation) for t in mine(requests).itertuples()]
    + [("app", t.duration_ns, t.digest_text or t.name) for t in mine(spans).itertuples()]
    + [("database", t.duration_ns, t.digest_text) for t in mine(executed).itertuples()]
    + [("network", t.done_at - t.request_at, t.digest_text or t.kind) for t in mine(exchanges).itertuples()]
    + [("session", t.age_ns or 0, t.digest_text or t.command) for t in mine(sessions).itertuples()]
)
asked = ask(f"SELECT account, duration_ns, what FROM request_accounts WHERE {here} AND trace_id = '{trace}'")
found = sorted((row["account"], row["duration_ns"], row["what"]) for row in asked)
if found != sorted(expected) or {account for account, _, _ in found} < {"client", "app", "database"}:
    print(f"request_accounts of {trace}: {found} in place of {sorted(expected)}")
    sys.exit(1)

# The slowest 1 % by resource. Each of these rows stands for one request.
assert set(requests.weight) <= {0, 1} if "weight" in requests else True
expected = []
for operation, group in requests.groupby("operation"):
    ordered = sorted(group.response_ns)
    limit = ordered[-(-99 * len(ordered) // 100) - 1]
    slow = group[group.response_ns >= limit]
    rows = [("response", len(slow), slow.response_ns.sum())]
    waits = spans[spans.trace_id.isin(slow.trace_id)].groupby("resource")
    rows += [(resource, part.trace_id.nunique(), part.duration_ns.sum()) for resource, part in waits]
    expected += [
        {"operation": operation, "resource": resource, "slow_requests": int(count), "mean_ms": float(total / count / 1e6)}
        for resource, count, total in sorted(rows)
    ]
columns = "operation, resource, slow_requests, mean_ms"
same("slowest_by_resource", ask(f"SELECT {columns} FROM slowest_by_resource WHERE {here} ORDER BY operation, resource"), expected)

# The wait for the database by endpoint, in points of 10 minutes.
traces = []
for _, group in spans.groupby("trace_id"):
    whole = group[group.resource == "request"].sort_values("started_at")
    if len(whole):
        wait = group[group.resource.isin(["database", "pool"])].duration_ns.sum()
        traces.append((whole["name"].iloc[0], group.started_at.min() // (10 * MINUTE_NS), int(wait)))
expected = []
for (endpoint, point), group in pd.DataFrame(traces, columns=["endpoint", "point", "wait"]).groupby(["endpoint", "point"]):
    ordered = sorted(group.wait)
    figures = {"p50_ms": at(ordered, 0.5), "p95_ms": at(ordered, 0.95), "p99_ms": at(ordered, 0.99), "max_ms": ordered[-1]}
    expected.append(
        {"endpoint": endpoint, "seconds": int(point) * 600, "requests": len(ordered)} | {k: v / 1e6 for k, v in figures.items()}
    )
columns = "endpoint, toUInt32(point) AS seconds, requests, p50_ms, p95_ms, p99_ms, max_ms"
same("database_wait", ask(f"SELECT {columns} FROM database_wait WHERE {here} ORDER BY endpoint, point"), expected)

# Statements by the hour: single executions, and the growth of the server's counters within an hour.
HOUR_NS = 3_600_000_000_000
statements["hour"] = statements.observed_at // HOUR_NS
expected = []
for (digest, hour), group in statements[statements.kind == "execution"].groupby(["digest", "hour"]):
    total, most = int(group.duration_ns.sum()), int(group.duration_ns.max())
    expected.append((digest, "executions", int(hour), len(group), total, most))
growth = {}
counters = statements[statements.kind == "digest_total"].groupby(["digest", "hour", "source", "database"], dropna=False)
for (digest, hour, _, _), group in counters:
    calls, total = growth.get((digest, hour), (0, 0))
    grown = lambda column: int(column.max() - column.min())
    growth[digest, hour] = calls + grown(group.calls), total + grown(group.duration_ns)
expected += [(digest, "counters", int(hour), calls, total, 0) for (digest, hour), (calls, total) in growth.items() if calls]
names = ["digest", "account", "seconds", "executions", "total_ms", "mean_ms", "max_ms"]
expected = [
    dict(zip(names, [digest, account, hour * 3600, calls, total / 1e6, total / calls / 1e6, most / 1e6]))
    for digest, account, hour, calls, total, most in expected
]
expected.sort(key=lambda row: (row["digest"], row["account"], row["seconds"]))
columns = "digest, account, toUInt32(hour) AS seconds, executions, total_ms, mean_ms, max_ms"
same("digest_hours", ask(f"SELECT {columns} FROM digest_hours WHERE {here} ORDER BY digest, account, seconds"), expected)

# The response times of each operation.
expected = []
for operation, group in requests.groupby("operation"):
    ordered = sorted(group.response_ns)
    level = lambda q: ordered[-(-q * len(ordered) // 100) - 1] / 1e6
    figures = {"p50_ms": level(50), "p95_ms": level(95), "p99_ms": level(99), "max_ms": ordered[-1] / 1e6}
    began, failed = int(group.intended_at.min()) // 10**9, int((group.outcome != "ok").sum())
    expected.append({"operation": operation, "seconds": began, "offered": len(ordered), "failed": failed} | figures)
columns = "operation, toUInt32(began) AS seconds, offered, failed, p50_ms, p95_ms, p99_ms, max_ms"
same("operation_times", ask(f"SELECT {columns} FROM operation_times WHERE {here} ORDER BY operation"), expected)
