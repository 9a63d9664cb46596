#!/usr/bin/env python3
"""Whether holdup itself stays as it was: memory, threads, open files, and the size of its recording, while it watches.

    bench/soak/soak.py [--minutes 20] [--bin PATH] [--out DIR]

`holdup watch` of the host, 200 processes, a MariaDB and a PostgreSQL, each database under 20 operations a second from `holdup run`; every
5 s a session with a statement that there was not before comes and goes. It fails if memory, open files or threads grow, if a holdup ends
early, if a read failed, or if the recording has more bytes or files than docs/recording.md says. DIR gets results.json with every reading.
The first quarter, at most 5 minutes, is left out: caches fill. Ctrl-C ends everything that it started.
"""

import argparse
import json
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "collect"))
import databases  # noqa: E402
from collect import KIT, ROOT, Stack, cpu_seconds  # noqa: E402

PROCESSES = 200
EVERY = 5
MIB = 1 << 20
# Growth in an hour that is let pass, as a share of the mean: below it a day costs no more than twice the memory.
GROWTH_SHARE = 0.04
# By how much a recording may be larger than the documents say.
SIZE_RATIO = 1.25
# Of a table a running recording has at most 64 small segments, which are then merged into one, and those of 12 s. A segment is 1.5 s.
SMALL_SEGMENTS, MERGED_SEGMENTS, SEGMENT_SECONDS, TABLES, OTHER_FILES = 64 + 8, 64, 1.5, 12, 4
# Means of so many blocks make a slope, so that neighbouring readings count as one; Student's t of 97.5 % for their 8 degrees of freedom.
BLOCKS, STUDENT = 10, 2.306
# Prints the ids of processes of which every tenth works for 0.2 ms twenty times a second; all end when standard input does.
WORKERS = """import os, select, signal, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
for number in range(%d):
    pid = os.fork()
    if pid:
        print(pid, flush=True)
        continue
    while not select.select([0], [], [], 0.05 if number %% 10 == 0 else None)[0]:
        begun = time.perf_counter()
        while time.perf_counter() - begun < 2e-4:
            pass
    os._exit(0)
print(flush=True)
select.select([0], [], [])
""" % PROCESSES
LOAD = """target: {target}
load: {{rate: 20, duration: {seconds}s, connections: 10}}
operations:
  - {{name: read, weight: 8, query: 'SELECT stock FROM item WHERE id = ?', params: ['${{random(1, 10000)}}']}}
  - {{name: count, weight: 1, query: 'SELECT COUNT(*) FROM item WHERE stock > ?', params: ['${{random(1, 9)}}']}}
  - name: sell
    weight: 1
    transaction:
      - {{query: 'UPDATE item SET stock = stock + 1 WHERE id = ?', params: ['${{random(1, 10000)}}']}}
"""


def slope(points, block_value=statistics.fmean):
    """Growth in an hour and half the width of its interval of 95 %, by least squares over blocks.

    >>> leak = [(5 * i, 1000 + 0.5 * i + 20 * (i % 7 - 3)) for i in range(200)]
    >>> up, error = slope(leak)
    >>> abs(up - 360) < error < 360, grows(leak), grows([(5 * i, 1000 + 5 * i % 96) for i in range(200)]), grows([(5 * i, 12) for i in range(200)])
    (True, True, False, False)

    What is taken by the way, such as for a merge, does not stay:
    >>> merges = [(5 * i, 100 + (80 if i > 140 and i % 12 < 2 else 0)) for i in range(240)]
    >>> grows(merges), grows(merges, min), grows([(5 * i, 1) for i in range(4)])
    (True, False, False)
    """
    if len(points) < 2 * BLOCKS:
        return 0.0, float("inf")
    blocks = [points[n * len(points) // BLOCKS: (n + 1) * len(points) // BLOCKS] for n in range(BLOCKS)]
    x = [statistics.fmean(at for at, _ in block) for block in blocks]
    y = [block_value([value for _, value in block]) for block in blocks]
    up, start = statistics.linear_regression(x, y)
    middle = statistics.fmean(x)
    rest = sum((value - start - up * at) ** 2 for at, value in zip(x, y))
    error = STUDENT * (rest / (BLOCKS - 2) / sum((at - middle) ** 2 for at in x)) ** 0.5
    return 3600 * up, 3600 * error


def grows(points, block_value=statistics.fmean):
    up, error = slope(points, block_value)
    return up > error and up > GROWTH_SHARE * statistics.fmean(value for _, value in points)


def uses(pid):
    """What a process takes, as the kernel says."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    number = lambda key: int(re.search(rf"{key}:\s+(\d+)", status)[1])  # noqa: E731
    return {"memory": number("VmRSS") * 1024, "open files": len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir())),
            "threads": number("Threads"), "cpu": cpu_seconds(pid)}


def recorded(folder):
    """Bytes and files of a recording; what is merged away meanwhile is left out, and so is what does not belong to it."""
    sizes = []
    for path in folder.rglob("*") if folder.exists() else []:
        try:
            if path.is_file() and path.name not in (".reserve", "report.html"):
                sizes.append(path.stat().st_size)
        except FileNotFoundError:
            pass
    return sum(sizes), len(sizes)


def promised():
    """Bytes a second that the documents say."""
    text = (ROOT / "docs/recording.md").read_text().partition("\n## How large it gets\n")[2].partition("\n## ")[0]
    figure = lambda source: float(re.search(rf"\| `{re.escape(source)}`[^|]*\| *([\d,]+)", text)[1].replace(",", ""))  # noqa: E731
    return figure("host") + PROCESSES * figure("pid:N") + figure("mysql:") + figure("postgresql:")


def start_servers(stack, folder):
    """Both databases with the table of the load: address and server."""
    table = "CREATE TABLE item (id INT PRIMARY KEY, stock INT NOT NULL); INSERT INTO item SELECT"
    for name in "mariadb", "postgresql":
        (folder / name).mkdir()
    mariadb = databases.mariadb(stack, folder / "mariadb", "--performance-schema=ON")
    mariadb.sql(f"CREATE DATABASE soak; CREATE USER app@'%'; GRANT ALL ON *.* TO app@'%'; USE soak; {table} seq, 0 FROM seq_1_to_10000")
    mariadb.client[-1:] = ["-D", "soak", "-e"]
    postgresql = databases.postgresql(stack, folder / "postgresql", "shared_preload_libraries=pg_stat_statements")
    postgresql.sql(f"CREATE EXTENSION pg_stat_statements; {table} n, 0 FROM generate_series(1, 10000) n")
    return {f"mysql://app@127.0.0.1:{mariadb.port}/soak": mariadb, f"postgresql://boss@127.0.0.1:{postgresql.port}/postgres": postgresql}


def start_holdups(stack, binary, folder, servers, seconds):
    """Two loads, which outlast the watch, and the watch: by name."""
    def holdup(name, *words):
        log = open(folder / f"{name}.log", "w")
        return stack.start([binary, *words, "--quiet", "--output", folder / name], stdout=log, stderr=log, cwd=folder)

    holdups = {}
    for target in servers:
        name = "run " + target.partition(":")[0]
        (folder / f"{name}.yaml").write_text(LOAD.format(target=target, seconds=seconds + 300))
        holdups[name] = holdup(name, "run", folder / f"{name}.yaml", "--no-collect")
    workers = stack.start([sys.executable, "-c", WORKERS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    pids = list(iter(workers.stdout.readline, "\n"))
    watched = ["host", *(f"pid:{pid.strip()}" for pid in pids), *servers]
    holdups["watch"] = holdup("watch", "watch", "--interval=1s", f"--for={seconds}s", *(f"--watch={what}" for what in watched))
    return holdups


def look(holdups, servers, folder, seconds):
    """A reading every 5 s, while sessions and statements come and go."""
    begun, readings = time.monotonic(), []
    while (now := time.monotonic() - begun) < seconds - EVERY:
        for name, process in holdups.items():
            if process.poll() is not None:
                raise SystemExit(f"holdup ended early: {name}: {(folder / f'{name}.log').read_text()[-2_000:]}")
        readings.append({"seconds": now, "recording": recorded(folder / "watch"), **{name: uses(p.pid) for name, p in holdups.items()}})
        for server in servers.values():
            server.sql(f"SELECT COUNT(*) AS visit_{len(readings)} FROM item WHERE stock < 0")
        time.sleep(max(0.0, begun + EVERY * len(readings) - time.monotonic()))
    return readings


def judge(readings, holdups):
    """What is said of the readings, and what is not as it should be."""
    lines, troubles, length = [], [], readings[-1]["seconds"]
    warm = [reading for reading in readings if reading["seconds"] >= min(300, length / 4)]
    for name in holdups:
        for what, unit in ("memory", MIB), ("open files", 1), ("threads", 1):
            points = [(reading["seconds"], reading[name][what] / unit) for reading in warm]
            # A merge takes memory for a while, and gives it back.
            block_value = min if what == "memory" else statistics.fmean
            up, error = slope(points, block_value)
            lines.append(f"{name}: {what} {points[0][1]:.1f} -> {points[-1][1]:.1f}, {up:+.2f} ± {error:.2f} an hour")
            if grows(points, block_value):
                troubles.append(f"grows: {lines[-1]}")
        lines.append(f"{name}: {100 * (warm[-1][name]['cpu'] - warm[0][name]['cpu']) / (warm[-1]['seconds'] - warm[0]['seconds']):.2f} % of a core")
    # Small segments are larger than merged ones, so the slope of the whole counts.
    bytes_per_second = slope([(reading["seconds"], reading["recording"][0]) for reading in readings])[0] / 3600
    most_files = max(reading["recording"][1] for reading in readings)
    files = TABLES * (SMALL_SEGMENTS + 1 + int(length / SEGMENT_SECONDS) // MERGED_SEGMENTS) + OTHER_FILES
    size = f"recording: {bytes_per_second:.0f} bytes a second (documents: {promised():.0f}), at most {most_files} files (documents: {files})"
    if bytes_per_second > SIZE_RATIO * promised() or most_files > files:
        troubles.append(size)
    return [*lines, size], troubles


def end(watch, folder):
    """How the watch ended: its code, its gaps and rows, and the most memory that it had."""
    peak, begun = 0, time.monotonic()
    while watch.poll() is None and time.monotonic() - begun < 900:
        try:
            peak = max(peak, int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{watch.pid}/status").read_text())[1]) / 1024)
        except (TypeError, OSError):
            pass
        time.sleep(0.1)
    manifest = json.loads((folder / "watch/manifest.json").read_text())
    reads, gaps = (sum(part.get(key, 0) for part in manifest["coverage"]) for key in ("reads_total", "gaps_total"))
    rows, (size, files) = sum(manifest["tables"].values()), recorded(folder / "watch")
    line = (f"end: code {watch.returncode}, {time.monotonic() - begun:.1f} s, peak {peak:.0f} MiB; recording {size / MIB:.1f} MiB in {files} "
            f"files, {rows} rows; {gaps} gaps in {reads + gaps} reads")
    return line, [] if watch.returncode == 0 and reads and rows and not gaps else [line]


def main():
    parser = argparse.ArgumentParser(prog="cargo xtask bench soak")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "target/release/holdup")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "target/soak")
    options = parser.parse_args()
    seconds = int(60 * options.minutes)
    if seconds < 600:
        parser.error("--minutes takes at least 10: in less caches still fill, and that looks like growth")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    subprocess.run(["sh", KIT / "need.sh", "mariadb-server", "postgresql"], check=True)
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="holdup-soak-") as name, Stack() as stack:
        folder = pathlib.Path(name)
        folder.chmod(0o711)
        servers = start_servers(stack, folder)
        holdups = start_holdups(stack, options.bin.resolve(), folder, servers, seconds)
        readings = look(holdups, servers, folder, seconds)
        lines, troubles = judge(readings, holdups)
        line, more = end(holdups["watch"], folder)
    print("\n".join([*lines, line]))
    (options.out / "results.json").write_text(json.dumps({"troubles": troubles + more, "lines": [*lines, line], "readings": readings}, indent=1))
    if troubles + more:
        raise SystemExit("NOT as it should be:\n  " + "\n  ".join(troubles + more))
    print("as it should be")


if __name__ == "__main__":
    main()
