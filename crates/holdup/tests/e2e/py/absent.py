"""Looks for a word in every value of a recording's tables, which are compressed on disk: absent.py WORD RECORDING"""

import pathlib
import sys

import pandas


def main():
    word, recording = sys.argv[1], pathlib.Path(sys.argv[2])
    tables = sorted(recording.glob("*.parquet"))
    assert tables
    for path in tables:
        for column, values in pandas.read_parquet(path).items():
            assert not values.astype(str).str.contains(word, regex=False).any(), (path.name, column)


main()
