#!/usr/bin/env python3
"""Whether a captured mix is replayed as it was: calls by digest, and how late statements go out.

    bench/replay/replay.py [--bin PATH] [--out DIR] [--rounds 3] [--seconds 20]

Two MariaDBs and two PostgreSQLs of the system's; the first of each logs all that a load of 2,000 statements a second executes (slow log
with long_query_time=0; log_min_duration_statement=0), `holdup replay --writes --hash` has the second execute it, whose own log is held
against the first's, digest by digest. Beside each replay it says how long the machine kept the generator's loop waiting for a CPU: a lag that comes of that is the
machine's. It leaves in DIR a results.json with every reading. All is on 127.0.0.1 with free ports and in a folder of its own.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "collect"))
import databases  # noqa: E402
from collect import ROOT, Stack, machine  # noqa: E402

# Eleven requests are fourteen statements.
RATE = 2_000 * 11 / 14
SCENARIO = """target: {target}
load: {{rate: {rate}, duration: {seconds}s, connections: 24}}
operations:
  - {{query: 'SELECT id, name FROM item WHERE id = 17', weight: 3}}
  - {{query: "SELECT name FROM item WHERE id IN (1, 2, 3) AND name <> 'it''s'", weight: 2}}
  - {{query: 'SELECT COUNT(*) FROM item WHERE id < 40', weight: 2}}
  - {{name: prepared, query: 'SELECT id, name FROM item WHERE id = ?', params: ['${{random(1, 5000)}}'], weight: 3}}
  - name: sell
    transaction:
      - {{query: 'SELECT stock FROM item WHERE id = 5'}}
      - {{query: 'UPDATE item SET stock = stock - 1 WHERE id = 5'}}
"""
TABLE = "CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(40), stock INT NOT NULL);"


def mariadb(stack, folder):
    log = folder / "slow.log"
    server = databases.mariadb(stack, folder, f"--slow-query-log-file={log}")
    rows = "INSERT INTO item SELECT seq, CONCAT('item ', seq), 1000000 FROM seq_1_to_5000;"
    logs = "SET GLOBAL long_query_time=0; SET GLOBAL slow_query_log=ON"
    server.sql(f"CREATE DATABASE shop; USE shop; CREATE USER app@'%'; GRANT ALL ON shop.* TO app@'%'; {TABLE} {rows} {logs}")
    return f"mysql://app@127.0.0.1:{server.port}/shop", log


def postgresql(stack, folder):
    server = databases.postgresql(stack, folder, "log_min_duration_statement=0", "log_line_prefix=%m [%p] user=%u,db=%d ")
    rows = "INSERT INTO item SELECT n, 'item ' || n, 1000000 FROM generate_series(1, 5000) n;"
    server.sql(f"{TABLE} {rows} CREATE ROLE app LOGIN; GRANT ALL ON item TO app")
    return f"postgres://app@127.0.0.1:{server.port}/postgres", server.log


def calls(binary, log):
    done = subprocess.run([binary, "digest", log, "--json", "--limit", "0", "--filter", "user=app"], check=True, capture_output=True, text=True)
    return {query["fingerprint"]: query["calls"] for query in json.loads(done.stdout)["queries"]
            if not query["fingerprint"].startswith(("administrator", "SET SESSION TRANSACTION"))}


def one(binary, kind, folder, seconds):
    with Stack() as stack:
        sides = []
        for name in "old", "new":
            (folder / name).mkdir(parents=True)
            sides.append(kind(stack, folder / name))
        (old, old_log), (new, new_log) = sides
        (folder / "load.yaml").write_text(SCENARIO.format(target=old, rate=RATE, seconds=seconds))
        subprocess.run([binary, "run", folder / "load.yaml", "--no-collect", "--quiet", "-o", folder / "load"], check=True, capture_output=True)
        before, begun = machine(), time.monotonic()
        replayed = subprocess.run([binary, "replay", old_log, "--to", new, "--writes", "--hash", "--json", "--filter", "user=app", "-o", folder / "out"],
                                  check=True, capture_output=True, text=True)
        took, after = time.monotonic() - begun, machine()
        facts = json.loads((folder / "out" / "replay.json").read_text())
        verdict = json.loads(replayed.stdout)
        was, now = calls(binary, old_log), calls(binary, new_log)
        return {
            "server": kind.__name__,
            "statements": facts["statements"],
            "digests": len(was),
            "calls_differ": {text: [was.get(text), now.get(text)] for text in was.keys() | now.keys() if was.get(text) != now.get(text)},
            "statements_per_second": facts["statements"] / facts["length_s"],
            **facts["played"],
            "machine_busy_ratio": (after[0] - before[0]) / took / 2,
            "seconds_generator_limited": verdict["load"].get("generator_limited_s"),
        }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "target/release/holdup")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=20)
    options = parser.parse_args()
    results = []
    for number in range(options.rounds):
        for kind in mariadb, postgresql:
            with tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder).chmod(0o711)
                results.append(one(options.bin, kind, pathlib.Path(folder) / "round", options.seconds))
            print(number, json.dumps(results[-1]), flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")


main()
