"""Opens every closed segment of a recording that was cut off; prints how many requests they hold: segments.py RECORDING"""

import pathlib
import sys

import duckdb
import pandas


def main():
    requests = 0
    files = sorted(pathlib.Path(sys.argv[1], "segments").glob("*.parquet"))
    assert files, "no closed segments"
    for path in files:
        rows = duckdb.execute("select count(*) from read_parquet(?)", [str(path)]).fetchone()[0]
        assert rows == len(pandas.read_parquet(path)) > 0, path
        requests += rows if path.name.startswith("requests-") else 0
    print(requests)


main()
