"""The 99th percentile of two shards' own histograms, added here bucket by bucket, beside what diagnose says.

    python3 bench/runs/2026-11-27-shards/merged.py FOLDER

FOLDER is that of shards.py. An HdrHistogram log is read without holdup's code."""
import base64
import collections
import json
import math
import pathlib
import struct
import sys
import zlib


def counts(text, into):
    data = base64.b64decode(text)
    data = zlib.decompress(data[8:])
    length, _, digits, lowest = struct.unpack(">iiiq", data[4:24])
    half = 1 << (math.ceil(math.log2(2 * 10**digits)) - 1)
    unit, at, index = int(math.log2(lowest)), 40, 0
    while at < 40 + length:
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte if shift == 56 else byte & 0x7F) << shift
            shift += 7
            if shift > 56 or byte < 0x80:
                break
        count = (value >> 1) ^ -(value & 1)
        if count < 0:
            index -= count
            continue
        bucket, sub = index // half - 1, index % half + half
        if bucket < 0:
            bucket, sub = 0, sub - half
        into[((sub + 1) << (bucket + unit)) - 1] += count
        index += 1


def p99(*folders):
    all_ = collections.Counter()
    for folder in folders:
        for line in (folder / "latency.hlog").read_text().splitlines():
            if line.startswith("Tag=/.response,"):
                counts(line.rsplit(",", 1)[1], all_)
    left = math.ceil(0.99 * all_.total())
    for value in sorted(all_):
        left -= all_[value]
        if left <= 0:
            return all_.total(), value / 1e6


folder = pathlib.Path(sys.argv[1])
rounds = json.loads((folder / "raw.json").read_text())["rounds"]
for number, of in enumerate(rounds):
    place = folder / str(number)
    total, merged = p99(place / "one", place / "two")
    said = of["shards"]["response_ms"]["p99"]
    whole = of["whole"]["response_ms"]["p99"]
    print(f"round {number + 1}: {total} responses, p99 of added histograms {merged} ms, diagnose {said} ms, "
          f"one process {whole} ms ({100 * (said / whole - 1):+.1f} %)")
