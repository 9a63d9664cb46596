"""Opens every table of finished recordings with DuckDB and pandas: tables.py RECORDING..."""

import json
import pathlib
import sys

import duckdb
import pandas
import pyarrow.parquet

TABLES = {"requests", "samples", "threads", "sessions", "statements", "stages", "spans", "exchanges", "plans", "executions", "settings", "events"}


def look(recording):
    manifest = json.loads((recording / "manifest.json").read_text())
    assert set(manifest["tables"]) == TABLES, manifest["tables"]
    assert manifest["tables"]["requests"] > 0
    for table, rows in manifest["tables"].items():
        path = str(recording / f"{table}.parquet")
        by_duckdb = duckdb.sql(f"select * from read_parquet('{path}')")
        assert len(by_duckdb.fetchall()) == rows, (table, "duckdb", rows)
        frame = pandas.read_parquet(path)
        assert len(frame) == rows, (table, "pandas", len(frame), rows)
        assert list(frame.columns) == by_duckdb.columns, table
        # Every time is in UTC and keeps its nanoseconds, whatever the reader.
        for column in [name for name in frame.columns if name.endswith("_at")]:
            field = pyarrow.parquet.read_schema(path).field(column).type
            assert str(field) == "timestamp[ns, tz=UTC]", (table, column, field)
            assert str(frame[column].dtype) == "datetime64[ns, UTC]", (table, column, frame[column].dtype)
            kind = str(by_duckdb.types[by_duckdb.columns.index(column)])
            assert kind.startswith("TIMESTAMP"), (table, column, kind)
            if kind.endswith("_NS") and rows:  # DuckDB 2; before it, times with a zone end at microseconds
                sum_of = f'select sum(epoch_ns("{column}")::hugeint) from read_parquet(?)'
                known = [int(value) for value in frame[column].dropna().astype("int64")]
                assert (duckdb.execute(sum_of, [path]).fetchall()[0][0] or 0) == sum(known), (table, column)
    requests = pandas.read_parquet(recording / "requests.parquet")
    nanoseconds = requests["intended_at"].astype("int64")
    assert (nanoseconds % 1000 != 0).any(), "the times are finer than microseconds"
    assert (nanoseconds >= manifest["started_at"]).all()
    assert (requests["done_at"] >= requests["intended_at"]).all()


def main():
    for recording in sys.argv[1:]:
        look(pathlib.Path(recording))


main()
