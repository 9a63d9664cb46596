#!/usr/bin/env python3
"""What watching costs a MariaDB that executes 5,000 statements a second, with slow ones looked up as they happen.

    bench/collect/statements.py [--bin PATH] [--out DIR] [--rounds 6] [--seconds 10] [--rate 5000]

Of each round the same load twice, in turns of which comes first: alone, and watched (`--watch host` in both, and `--watch mysql://…` with `--slow`
below what one statement in 500 takes, so that looking closer goes on all the time). Once at that rate, and once as fast as four users
can, which is where throughput would be lost. The statement history is on in both: what holdup reads is there already, and what
that costs is the server's. It leaves in DIR a results.json with every reading. It needs MariaDB. All is on 127.0.0.1 with free
ports and in a folder of its own.
"""

import argparse
import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from collect import KIT, ROOT, Stack, cpu_seconds, free_port, machine  # noqa: E402
from sessions import execute, login  # noqa: E402

SERVER = ["--performance-schema=ON", "--performance-schema-consumer-events-statements-current=ON",
          "--performance-schema-consumer-events-statements-history=ON",
          "--performance-schema-consumer-events-statements-history-long=ON", "--innodb-buffer-pool-size=64M", "--skip-name-resolve",
          "--bind-address=127.0.0.1", "--innodb-flush-log-at-trx-commit=2"]
SCENARIO = """target: mysql://root@127.0.0.1:{port}/shop
load: {load}
operations:
  - {{name: one, weight: 499, query: "SELECT v FROM t WHERE id = ${{random(1, 20000)}}"}}
  - {{name: slow, weight: 1, query: "SELECT SLEEP(0.03)"}}
"""


def server(stack, folder):
    port = free_port()
    subprocess.run([KIT / "mariadb-init.sh", folder / "data"], check=True, stdout=subprocess.DEVNULL)
    process = stack.start([KIT / "mariadbd.sh", "--no-defaults", f"--datadir={folder / 'data'}", f"--port={port}",
                           f"--socket={folder / 'db.sock'}", *SERVER], stdout=subprocess.DEVNULL, stderr=(folder / "log").open("w"))
    for _ in range(300):
        try:
            line = login(("127.0.0.1", port))
            break
        except OSError:
            if process.poll() is not None:
                raise SystemExit((folder / "log").read_text()[-2000:])
            time.sleep(0.2)
    for statement in ["CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY, v VARCHAR(60))",
                      "INSERT INTO shop.t SELECT seq, SHA1(seq) FROM seq_1_to_20000"]:
        execute(line, statement)
    return process.pid, port


def play(args, folder, pid, port, load, is_watched):
    scenario, out = folder / "load.yaml", folder / "recording"
    scenario.write_text(SCENARIO.format(port=port, load=load))
    # The host in both: without any source fewer rows are kept of the load, which would be a difference of its own.
    watch = ["--watch", "host"] + (["--watch", f"mysql://root@127.0.0.1:{port}", "--slow", "20ms"] if is_watched else [])
    before, busy = cpu_seconds(pid), machine()
    done = subprocess.run([args.bin, "run", scenario, *watch, "--interval", "1s", "--json", "-q", "-o", out], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    after, stolen = cpu_seconds(pid), machine()[1] - busy[1]
    manifest = json.loads((out / "manifest.json").read_text())
    load = manifest["load"]
    shutil.rmtree(out)
    count = sum(total["completed"] for total in load["totals"])
    seconds = args.seconds
    sources = {one["source"].split("@")[0]: one.get("cpu_ratio") for one in manifest["coverage"]}
    return {"watched": is_watched, "statements": count, "per_second": count / seconds, "server_cpu_us": (after - before) / count * 1e6,
            "stolen_seconds": stolen, "collectors_cpu_ratio": sources}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=ROOT / "target/release/holdup")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rate", type=int, default=5000)
    args = parser.parse_args()
    loads = {"paced": f"{{rate: {args.rate}, duration: {args.seconds}s, connections: 16}}",
             "as fast as it goes": f"{{users: 4, duration: {args.seconds}s}}"}
    folder, rows = pathlib.Path(tempfile.mkdtemp(prefix="holdup-statements-")), []
    with Stack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        pid, port = server(stack, folder)
        for name, load in loads.items():
            for turn in range(args.rounds + 1):
                for is_watched in [turn % 2 == 0, turn % 2 == 1]:
                    row = {"load": name, "round": turn, **play(args, folder, pid, port, load, is_watched)}
                    print(json.dumps(row), file=sys.stderr, flush=True)
                    # The first warms up.
                    rows += [row] if turn else []
    summary = {}
    for name in loads:
        of = lambda key, is_watched: [row[key] for row in rows if row["load"] == name and row["watched"] == is_watched]
        ratios = lambda key: [after / before for before, after in zip(of(key, False), of(key, True))]
        middle = lambda values: {"median": round(statistics.median(values), 4), "all": [round(value, 4) for value in values]}
        shares = [sum(v or 0 for v in row.values()) for row in of("collectors_cpu_ratio", True)]
        summary[name] = {"statements_per_second": middle(of("per_second", False)), "throughput_ratio": middle(ratios("per_second")),
                         "server_cpu_ratio": middle(ratios("server_cpu_us")), "collectors_cpu_of_a_core": middle(shares)}
    print(json.dumps(summary, indent=1))
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / "results.json").write_text(json.dumps({"summary": summary, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
