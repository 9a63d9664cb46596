"""Two shards at half the rate beside one load at the full rate, in turns, on a responder on loopback.

    target/py/bin/python bench/runs/2026-11-27-shards/shards.py HOLDUP HOLDUP-BENCH FOLDER [RATE [SECONDS [ROUNDS]]]

FOLDER gets the recordings and raw.json. It needs pandas and pyarrow, which target/py has."""
import datetime
import json
import pathlib
import subprocess
import sys

import pandas

holdup, bench, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
rate, seconds, rounds = (int(word) for word in (sys.argv[4:] + ["20000", "8", "3"][len(sys.argv) - 4 :])[:3])


def start(port, out, more=()):
    words = ["run", "--url", f"http://127.0.0.1:{port}/", "--rate", str(rate), "--duration", f"{seconds}s"]
    words += ["--connections", "200", "--no-collect", "--warm-up=none", "-q", "-o", str(out), *more]
    return subprocess.Popen([holdup, *words], stdout=subprocess.DEVNULL)


def due(out):
    """When each recorded request was due, in steps of the whole schedule."""
    start_at = json.loads((out / "manifest.json").read_text())["phases"][0]["from"]
    rows = pandas.read_parquet(out / "requests.parquet", columns=["intended_at"])
    since = rows["intended_at"].astype("int64") - start_at
    step = 1_000_000_000 // rate
    return {"rows": len(since), "off_step": int((since % step != 0).sum()), "odd": int(((since // step) % 2).sum())}


def judged(*outs):
    done = subprocess.run([holdup, "diagnose", "--json", *map(str, outs)], capture_output=True, text=True, check=True)
    load = json.loads(done.stdout)["load"]
    one = load["operations"][0]
    valid = load["validity"]
    return {"due": one["due"], "completed": one["completed"], "response_ms": one["response_ms"],
            "valid_s": valid["valid_s"], "generator_limited_s": valid.get("generator_limited_s")}


responder = subprocess.Popen([bench, "responder", "--cpus", "0", "--service-ms", "2"], stdout=subprocess.PIPE, text=True)
results = []
try:
    port = int(responder.stdout.readline().rsplit(":", 1)[1])
    for number in range(rounds):
        place = folder / str(number)
        whole, one, two = place / "whole", place / "one", place / "two"
        assert start(port, whole).wait() == 0
        at = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=2)
        at = at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        both = [start(port, out, ["--shard", shard, "--start-at", at]) for out, shard in ((one, "1/2"), (two, "2/2"))]
        assert [run.wait() for run in both] == [0, 0]
        results.append({
            "whole": judged(whole) | {"schedule": due(whole)},
            "shards": judged(one, two) | {"schedule": [due(one), due(two)]},
            "one": judged(one), "two": judged(two),
        })
        print(json.dumps(results[-1]), flush=True)
finally:
    responder.kill()
    responder.wait()
(folder / "raw.json").write_text(json.dumps({"rate": rate, "seconds": seconds, "rounds": results}, indent=1) + "\n")
