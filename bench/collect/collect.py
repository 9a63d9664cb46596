#!/usr/bin/env python3
"""What watching costs: holdup, node_exporter, pidstat and top side by side on the same threads and sessions.

    bench/collect/collect.py [--bin PATH] [--out DIR] [--only SCENARIO,...] [--seconds 60] [--warm-up 15]

All tools run at the same time, once a second each, and are measured by the kernel's count of their CPU time (user and system,
/proc/PID/stat) over the same stretch, begun after a warm-up. It leaves in DIR a README.md and results.json, in which every
second's reading stands. It needs a C compiler, and prometheus-node-exporter, sysstat and procps, which root gets by apt-get;
a tool that can't be had is left out and named. Scenarios with a database need MariaDB. Everything is on 127.0.0.1 with free
ports and in a folder of its own, and is ended by its number. Ctrl-C ends it at once.
"""

import argparse
import collections
import contextlib
import datetime
import json
import os
import pathlib
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

# Nothing is left beside the sources.
sys.dont_write_bytecode = True
from sessions import Sessions  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
KIT = ROOT / "labs/kit"
TICKS = os.sysconf("SC_CLK_TCK")
# Threads of the process, those of them that wake ten times a second, sessions, statements a second, and what `pid:` is.
SCENARIOS = {
    "threads": {"threads": 2_000, "active": 100, "sessions": 0, "rate": 0, "pid": "threads",
                "is": "2,000 threads in one process, 100 of them wake ten times a second; `--watch host --watch pid:N`"},
    "busy": {"threads": 2_000, "active": 2_000, "sessions": 0, "rate": 0, "pid": "threads",
             "is": "the same, and all 2,000 wake ten times a second"},
    "database": {"threads": 1_000, "active": 100, "sessions": 1_000, "rate": 200, "pid": "database",
                 "is": "2,000 threads: 1,000 in one process, and a MariaDB with 1,000 sessions, a thread each, and 200 statements a "
                       "second; `--watch host --watch pid:MARIADB --watch mysql://…`"},
    "both": {"threads": 2_000, "active": 100, "sessions": 1_000, "rate": 200, "pid": "threads",
             "is": "3,000 threads: 2,000 in one process, and that MariaDB; `--watch host --watch pid:N --watch mysql://…`"},
}
BUDGET = 0.02


def free_port():
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        return line.getsockname()[1]


class Stack(contextlib.ExitStack):
    """Processes that end with the run."""

    def start(self, words, **more):
        process = subprocess.Popen(words, start_new_session=True, **more)
        self.callback(self.end, process)
        return process

    @staticmethod
    def end(process):
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdin:
            process.stdin.close()


def cpu_seconds(pid):
    text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    fields = text.rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def threads_of(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


def machine():
    """Busy and stolen seconds of all CPUs."""
    fields = [int(field) for field in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    idle, steal = fields[3] + fields[4], fields[7]
    return (sum(fields[:8]) - idle) / TICKS, steal / TICKS


def database(stack, folder, sessions, rate):
    data, port = folder / "data", free_port()
    subprocess.run([KIT / "mariadb-init.sh", data], check=True, stdout=subprocess.DEVNULL)
    server = stack.start([KIT / "mariadbd.sh", "--no-defaults", f"--datadir={data}", f"--port={port}", "--bind-address=127.0.0.1",
                          f"--socket={folder / 'db.sock'}", f"--max-connections={sessions + 50}", "--skip-name-resolve",
                          "--innodb-buffer-pool-size=64M", "--open-files-limit=8000"],
                         stdout=subprocess.DEVNULL, stderr=(folder / "mariadb.log").open("w"))
    for _ in range(300):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        if server.poll() is not None:
            raise SystemExit((folder / "mariadb.log").read_text()[-2000:])
        time.sleep(0.2)
    held = Sessions(("127.0.0.1", port), sessions, rate)
    stack.callback(held.close)
    return server.pid, f"mysql://root@127.0.0.1:{port}"


def missing_tools():
    programs = {"prometheus-node-exporter": "prometheus-node-exporter", "pidstat": "sysstat", "top": "procps"}
    absent = lambda: {name: package for name, package in programs.items() if not shutil.which(name)}
    if absent():
        # It says itself what can't be had; what counts is what is there then.
        subprocess.run([KIT / "need.sh", *absent().values()], stdout=subprocess.DEVNULL)
    return absent()


def scrape(port, stopped, seen):
    due = time.monotonic()
    while not stopped.is_set():
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                seen.append(len(answer.read()))
        due += 1
        stopped.wait(max(0.0, due - time.monotonic()))


def play(name, args, absent):
    scenario = SCENARIOS[name]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="holdup-collect-"))
    with Stack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        program = folder / "threads"
        subprocess.run(["cc", "-O2", "-pthread", "-o", program, ROOT / "bench/collect/threads.c"], check=True)
        threads = stack.start([program, str(scenario["threads"]), str(scenario["active"])], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        pid = int(threads.stdout.readline())
        watch = ["--watch", "host"]
        if scenario["sessions"]:
            server, address = database(stack, folder, scenario["sessions"], scenario["rate"])
            watch += ["--watch", address]
            pid = server if scenario["pid"] == "database" else pid
        watch += ["--watch", f"pid:{pid}"]
        tools, scraped = {}, collections.defaultdict(list)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        recording = folder / "recording"
        log = (folder / "holdup.log").open("w")
        tools["holdup"] = stack.start([args.bin, "watch", *watch, "--interval", "1s", "-o", recording, "-q"], stdout=log, stderr=log)
        stopped = threading.Event()
        stack.callback(stopped.set)
        if "prometheus-node-exporter" not in absent:
            for tool, more in [("node_exporter", []), ("node_exporter --collector.processes", ["--collector.processes"])]:
                port = free_port()
                tools[tool] = stack.start(["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{port}", *more], **quiet)
                threading.Thread(target=scrape, args=(port, stopped, scraped[tool]), daemon=True).start()
        # As a person would: into a file.
        if "pidstat" not in absent:
            tools["pidstat -t 1"] = stack.start(["pidstat", "-t", "1"], stdout=(folder / "pidstat").open("w"), stderr=subprocess.DEVNULL)
        if "top" not in absent:
            tools["top -H -b -d 1"] = stack.start(["top", "-H", "-b", "-d", "1"], stdout=(folder / "top").open("w"),
                                                  stderr=subprocess.DEVNULL, env={**os.environ, "TERM": "dumb"})
        time.sleep(args.warm_up)
        readings, busy = [], []
        begun = time.monotonic()
        for second in range(args.seconds + 1):
            time.sleep(max(0.0, begun + second - time.monotonic()))
            if tools["holdup"].poll() is not None:
                raise SystemExit("holdup has ended: " + (folder / "holdup.log").read_text()[-2000:])
            readings.append({tool: cpu_seconds(process.pid) for tool, process in tools.items()})
            busy.append(machine())
        took = time.monotonic() - begun
        count = sum(threads_of(entry) for entry in os.listdir("/proc") if entry.isdigit())
        Stack.end(tools["holdup"])
        manifest = json.loads((recording / "manifest.json").read_text())
        text = json.dumps(manifest["coverage"]).replace(f"pid:{pid}", "pid:N")
        coverage = [{key: one.get(key) for key in ("source", "state", "cpu_ratio", "reads_total", "gaps_total")} for one in json.loads(text)]
        for one in coverage:
            one["source"] = "mysql://…" if one["source"].startswith("mysql:") else one["source"]
        size = sum(path.stat().st_size for path in recording.rglob("*") if path.is_file())
    seconds = {tool: [round(after[tool] - before[tool], 3) for before, after in zip(readings, readings[1:])] for tool in tools}
    return {
        "name": name, "threads_of_host": count, "took_s": round(took, 2),
        "cpu_ratio": {tool: round((readings[-1][tool] - readings[0][tool]) / took, 5) for tool in tools},
        "machine_busy_cores": round((busy[-1][0] - busy[0][0]) / took, 3), "stolen_cores": round((busy[-1][1] - busy[0][1]) / took, 3),
        "load_average_1m": os.getloadavg()[0], "cpu_seconds_each_second": seconds, "holdup_sources": coverage,
        "recording_bytes": size, "bytes_a_scrape": {tool: max(sizes) for tool, sizes in scraped.items() if sizes},
    }


def table(result):
    ratio = result["cpu_ratio"]
    lines = [f"## {result['name']}", "", SCENARIOS[result["name"]]["is"] + f". Threads on the whole machine: {result['threads_of_host']}.", "",
             "| tool | CPU, % of one core | least and most of a second | to holdup |", "|---|---:|---:|---:|"]
    for tool, share in sorted(ratio.items(), key=lambda item: item[1]):
        each = result["cpu_seconds_each_second"][tool]
        lines.append(f"| {'**holdup**' if tool == 'holdup' else f'`{tool}`'} | {100 * share:.2f} | {100 * min(each):.0f} to {100 * max(each):.0f} "
                     f"| {share / ratio['holdup']:.1f} x |")
    parts = [f"{one['source']} {100 * one['cpu_ratio']:.2f} %" for one in result["holdup_sources"] if one["cpu_ratio"] is not None]
    gaps = sum(one["gaps_total"] or 0 for one in result["holdup_sources"])
    lines += ["", f"Of holdup: {', '.join(parts)} (its own count over the whole run, start and end included); the rest is writing. "
              f"Gaps: {gaps}. The machine: {result['machine_busy_cores']:.2f} cores busy, {result['stolen_cores']:.2f} stolen.", ""]
    return lines


def version(words):
    run = subprocess.run(words, capture_output=True, text=True)
    return (run.stdout + run.stderr).strip().split("\n")[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=str(ROOT / "target/release/holdup"))
    parser.add_argument("--out", default=str(ROOT / f"bench/runs/{datetime.date.today()}-collect"))
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--warm-up", type=int, default=15)
    parser.add_argument("--commit", help="what --bin was built from, if that is not HEAD")
    args = parser.parse_args()
    # Who is told to end ends what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if not shutil.which("cc"):
        sys.exit("no C compiler: install gcc")
    absent = missing_tools()
    keep = pathlib.Path(args.out)
    keep.mkdir(parents=True, exist_ok=True)
    kept = keep / "results.json"
    results = json.loads(kept.read_text()) if kept.exists() else []
    for name in [name for name in args.only.split(",") if name] or SCENARIOS:
        print(f"{name}: {SCENARIOS[name]['is']}", file=sys.stderr)
        result = play(name, args, absent)
        results = [one for one in results if one["name"] != name] + [result]
        results.sort(key=lambda one: list(SCENARIOS).index(one["name"]))
        kept.write_text(json.dumps(results, indent=1) + "\n")
        print("\n".join(table(result)), flush=True)
    commit = args.commit or subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT).stdout.strip()
    versions = [f"{version([args.bin, '--version'])} ({commit}, {'debug' if '/debug/' in args.bin else 'release'} build)"]
    versions += [version(words) for tool, words in [("prometheus-node-exporter", ["prometheus-node-exporter", "--version"]),
                                                    ("pidstat", ["pidstat", "-V"]), ("top", ["top", "-V"])] if tool not in absent]
    lines = ["# What watching costs", "", f"{datetime.date.today()}, {os.cpu_count()} cores, Linux {platform.release()}, as {'root' if os.geteuid() == 0 else 'a user'}; "
             f"{'; '.join(versions)}.", "",
             f"Made by `bench/collect/collect.py`: all tools at the same time, once a second each, {args.seconds} s after {args.warm_up} s of warm-up, CPU time as the "
             "kernel counts it. Every second's reading is in results.json. What each covers is in [bench/README.md](../../README.md#what-watching-costs).", ""]
    if absent:
        lines += ["Not here: " + ", ".join(f"{name} (package {package})" for name, package in absent.items()) + ".", ""]
    for result in results:
        lines += table(result)
    (keep / "README.md").write_text("\n".join(lines))
    over = [one["name"] for one in results if one["name"] != "both" and one["cpu_ratio"]["holdup"] > BUDGET]
    if over:
        sys.exit("over 2 % of a core: " + ", ".join(over))


if __name__ == "__main__":
    main()
