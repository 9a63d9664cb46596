#!/usr/bin/env python3
"""What watching costs a PostgreSQL with 10,000 tables and 5,000 statements in its counters.

    bench/collect/postgresql.py [--bin PATH] [--out DIR] [--version system|13|18] [--rounds 6] [--seconds 15] [--rate 2000]

Of each round the same load twice, in turns of which comes first: alone, and watched (`--watch host` in both, and an account with
`pg_monitor` alone). Once at that rate, and once as fast as four users can, which is where throughput would be lost. Besides it asks
the server what the watcher's statements took by its own clock, and the kernel how much CPU the server's process for the watcher had:
on a machine that does something else as well the throughput says little, and that says what there is to lose. It leaves in DIR a results.json with every reading. All is on 127.0.0.1
with free ports and in a folder of its own; root has the server run by nobody.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from collect import KIT, ROOT, Stack, cpu_seconds, free_port, machine  # noqa: E402

TABLES, STATEMENTS = 10_000, 5_000
SERVER = ["fsync=off", "shared_buffers=256MB", "listen_addresses=127.0.0.1", "shared_preload_libraries=pg_stat_statements",
          "pg_stat_statements.max=10000", "pg_stat_statements.track_planning=on", "max_locks_per_transaction=1024"]
SCHEMA = f"""
CREATE EXTENSION pg_stat_statements; CREATE USER watcher; GRANT pg_monitor TO watcher;
CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t SELECT n, md5(n::text) FROM generate_series(1, 20000) AS n;
DO $$ BEGIN FOR i IN 1..{TABLES} LOOP EXECUTE 'CREATE UNLOGGED TABLE many_' || i || ' (id int PRIMARY KEY, note text)';
EXECUTE 'INSERT INTO many_' || i || ' VALUES (1)'; IF i % 500 = 0 THEN COMMIT; END IF; END LOOP; END $$;
VACUUM ANALYZE t;
"""
SCENARIO = """target: postgres://boss@127.0.0.1:{port}/postgres
load: {load}
operations:
  - {{name: one, weight: 9, query: "SELECT v FROM t WHERE id = ${{random(1, 20000)}}"}}
  - {{name: change, weight: 1, query: "UPDATE t SET v = 'x' WHERE id = ${{random(1, 20000)}}"}}
"""
TAKEN = "SELECT coalesce(sum(total_plan_time + total_exec_time), 0) FROM pg_stat_statements WHERE userid = 'watcher'::regrole"


def psql(port, sql):
    words = ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(port), "-U", "boss", "-d", "postgres"]
    done = subprocess.run(words, input=sql, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout.strip()


def server(stack, folder, version):
    port, data = free_port(), folder / "data"
    # Through, not into: who runs the server has to get at its folder.
    folder.chmod(0o711)
    which = "here" if version == "system" else version
    subprocess.run(["sh", KIT / "postgresql.sh", "fetch", which], check=True, stdout=subprocess.DEVNULL)
    kit = lambda word, *words: ["sh", KIT / "postgresql.sh", word, which, *words]
    subprocess.run(kit("init", data), check=True, stderr=subprocess.DEVNULL)
    settings = [word for setting in [*SERVER, f"port={port}", f"unix_socket_directories={data}"] for word in ("-c", setting)]
    process = stack.start(kit("serve", "-D", data, *settings), cwd=data, stdout=subprocess.DEVNULL, stderr=(folder / "log").open("w"))
    for _ in range(300):
        if subprocess.run(["psql", "-h", "127.0.0.1", "-p", str(port), "-U", "boss", "-d", "postgres", "-c", "SELECT 1"],
                          capture_output=True).returncode == 0:
            break
        if process.poll() is not None:
            raise SystemExit((folder / "log").read_text()[-2000:])
        time.sleep(0.2)
    psql(port, SCHEMA)
    psql(port, "\n".join(f"SELECT note FROM many_{number} WHERE id = 1;" for number in range(1, STATEMENTS + 1)))
    return port


def cpu_of_watcher(run, port):
    """CPU seconds of the server's process for the watcher, as last seen before it ended, and over how long."""
    begun, pid, cpu = time.monotonic(), None, (0, 0)
    while run.poll() is None:
        time.sleep(0.2)
        if not pid:
            pid = psql(port, "SELECT pid FROM pg_stat_activity WHERE application_name = 'holdup'").split("\n")[0]
            continue
        try:
            cpu = (cpu_seconds(int(pid)), time.monotonic() - begun)
        except OSError:
            break
    return cpu


def play(args, folder, port, load, is_watched):
    scenario, out = folder / "load.yaml", folder / "recording"
    scenario.write_text(SCENARIO.format(port=port, load=load))
    # The host in both: without any source fewer rows are kept of the load, which would be a difference of its own.
    watch = ["--watch", "host"] + (["--watch", f"postgresql://watcher@127.0.0.1:{port}/postgres"] if is_watched else [])
    before, stolen = float(psql(port, TAKEN)), machine()[1]
    words = [args.bin, "run", scenario, *watch, "--interval", "1s", "--json", "-q", "-o", out]
    with (folder / "errors").open("w") as errors, subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=errors) as run:
        cpu = cpu_of_watcher(run, port) if is_watched else None
    if run.returncode not in (0, 1):
        raise SystemExit((folder / "errors").read_text())
    taken, stolen = float(psql(port, TAKEN)) - before, machine()[1] - stolen
    manifest = json.loads((out / "manifest.json").read_text())
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    shutil.rmtree(out)
    count = sum(total["completed"] for total in manifest["load"]["totals"])
    sources = {one["source"].split("@")[0]: one.get("cpu_ratio") for one in manifest["coverage"] if one.get("cpu_ratio")}
    gaps = {one["source"]: one["gaps_total"] for one in manifest["coverage"] if one.get("gaps_total")}
    return {"watched": is_watched, "statements": count, "per_second": count / args.seconds, "stolen_seconds": stolen,
            "watcher_ms_of_server_a_second": taken / args.seconds, "watcher_cpu_of_a_core": cpu[0] / cpu[1] if cpu else None,
            "collectors_cpu_ratio": sources, "gaps": gaps, "recording_bytes": size,
            "samples": manifest.get("rows", {}).get("samples")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=ROOT / "target/release/holdup")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--version", default="system")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--rate", type=int, default=2000, help="0: only as fast as it goes")
    args = parser.parse_args()
    for programs in pathlib.Path("/usr/lib/postgresql").glob("*/bin"):
        os.environ["PATH"] += f":{programs}"
    loads = {"paced": f"{{rate: {args.rate}, duration: {args.seconds}s, connections: 16}}",
             "as fast as it goes": f"{{users: 4, duration: {args.seconds}s}}"}
    if not args.rate:
        del loads["paced"]
    folder, rows = pathlib.Path(tempfile.mkdtemp(prefix="holdup-postgresql-")), []
    with Stack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        port = server(stack, folder, args.version)
        version = psql(port, "SHOW server_version")
        for name, load in loads.items():
            for turn in range(args.rounds + 1):
                for is_watched in [turn % 2 == 0, turn % 2 == 1]:
                    row = {"load": name, "round": turn, **play(args, folder, port, load, is_watched)}
                    print(json.dumps(row), file=sys.stderr, flush=True)
                    # The first warms up.
                    rows += [row] if turn else []
    summary = {"version": version}
    for name in loads:
        of = lambda key, is_watched: [row[key] for row in rows if row["load"] == name and row["watched"] == is_watched]
        middle = lambda values: {"median": round(statistics.median(values), 4), "all": [round(value, 4) for value in values]}
        ratios = [after / before for before, after in zip(of("per_second", False), of("per_second", True))]
        watcher = [next((v for k, v in row.items() if k.startswith("postgresql")), None) for row in of("collectors_cpu_ratio", True)]
        summary[name] = {"statements_per_second": middle(of("per_second", False)), "throughput_ratio": middle(ratios),
                         "watcher_ms_of_server_a_second": middle(of("watcher_ms_of_server_a_second", True)),
                         "watcher_cpu_of_a_core": middle(of("watcher_cpu_of_a_core", True)),
                         "collector_cpu_of_a_core": middle([share or 0 for share in watcher])}
    print(json.dumps(summary, indent=1))
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / f"results-{version.split('.')[0]}.json").write_text(json.dumps({"summary": summary, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
