#!/usr/bin/env python3
"""`holdup digest` beside pt-query-digest, pgBadger and tshark: CPU seconds on one core, in turns, on the same files.

    bench/digest/digest.py [--bin PATH] [--data DIR] [--out DIR] [--rounds 3] [--megabytes 40]

The logs are made by the generators of the shared data folder (`--data`, else beside the project), so that what is true of them is known:
each of holdup's readings is held against it. Peers come from Debian (`percona-toolkit`, `pgbadger`, `tshark`); one that is not there is left out.
Each program is pinned to one core and its CPU time is what counts, user and system together: the machine may be busy. holdup reads
a file ten times the size as well, by one thread and by two; beside it stand two programs of one thread each at once, which is what the
machine has to give. It leaves in DIR a results.json with every reading.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def cost(command, core=0, out=subprocess.DEVNULL):
    """CPU seconds and elapsed seconds of a program on one core (or on any, if `core` is None). Not its memory: what the kernel says
    of a child's most is at least what this program had when it was forked."""
    pin = (lambda: os.sched_setaffinity(0, {core})) if core is not None else None
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, preexec_fn=pin)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command[0]} failed: {said.decode()[-500:]}")
    return {"cpu_s": usage.ru_utime + usage.ru_stime, "elapsed_s": time.monotonic() - begun}


def at_once(command):
    """Elapsed seconds until two of a program, each on a core of its own, have both ended."""
    begun = time.monotonic()
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=lambda core=core: os.sched_setaffinity(0, {core}))
            for core in (0, 1)]
    if any([one.wait() for one in both]):
        raise SystemExit(f"{command[0]} failed")
    return time.monotonic() - begun


def version(command):
    try:
        text = subprocess.run(command, capture_output=True, text=True).stdout
    except OSError:
        return None
    found = re.search(r"\d+(\.\d+)+", text)
    return found and found.group()


def generate(data, folder, name, megabytes):
    """A log and what is true of it."""
    tool = {"slowlog": "gen_slowlog.py", "postgresql": "gen_pglog.py"}[name]
    out = folder / f"{name}-{megabytes}"
    more = ["--flavor", "percona"] if name == "slowlog" else []
    subprocess.run([sys.executable, "-B", data / "generate" / tool, *more, "--bytes", str(megabytes * 1e6), "--seed", "7", "--out", out],
                   check=True, stdout=subprocess.DEVNULL)
    truth = json.loads(pathlib.Path(f"{out}.truth.json").read_text())
    files = {"slowlog": out} if name == "slowlog" else {"postgresql": f"{out}.stderr.log", "csv": f"{out}.csv", "json": f"{out}.json"}
    return {kind: pathlib.Path(file) for kind, file in files.items()}, truth


def shapes(truth):
    """What must come out. Quotes around names make no other statement: what differs in them alone is one."""
    merged = {}
    for shape in truth["shapes"].values():
        one = merged.setdefault(re.sub('[`"]', "", shape["tpl"]).lower(), [0, 0, 1 << 62, 0])
        merged[re.sub('[`"]', "", shape["tpl"]).lower()] = [one[0] + shape["n"], one[1] + shape["sum_us"], min(one[2], shape["min_us"]),
                                                             max(one[3], shape["max_us"])]
    return sorted(map(tuple, merged.values()))


def holdup(args, file, threads, truth, folder):
    out = folder / "report.json"
    command = [args.bin, "digest", file, "--json", "--limit", "0", "--threads", str(threads)]
    with out.open("w") as handle:
        found = cost(command, 0 if threads == 1 else None, handle)
    text = out.read_text()
    queries = json.loads(text)["queries"]
    found["exact"] = sorted((q["calls"], q["total_us"], q["min_us"], q["max_us"]) for q in queries) == shapes(truth)
    found["megabytes"] = file.stat().st_size / 1e6
    return found, text


def packets(folder, megabytes):
    """A capture of 200 connections of MySQL that were open already: a query with a value, three rows, an acknowledgement. And what is
    true of it: executions."""
    path = folder / "mysql.pcap"
    eof, row = b"\x05\0\0%c\xfe\0\0\x02\0", b"\x06" + b"12345".rjust(6, b"0") + b"\x0cA nice thing\x0519.99"
    column = b"\x03def\x04shop\x08products\x08products\x04name\x04name\x0c\x2d\0\xff\0\0\0\xfd\x01\x10\0\0\0"
    parts = [b"\x03", column, column, column, None, row, row, row, None]
    answer = b"".join(eof % (n + 1) if part is None else struct.pack("<I", len(part))[:3] + bytes([n + 1]) + part for n, part in enumerate(parts))
    lines, calls, at = {}, 0, 1_700_000_000_000_000
    with path.open("wb") as out:
        out.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        while out.tell() < megabytes * 1e6:
            line = calls % 200
            sent, received = lines.get(line, (1, 1))
            sql = f"SELECT id, name, price FROM products{'abcdefghij'[calls % 10]} WHERE id = {calls} AND shop = 'north'".encode()
            query = struct.pack("<I", len(sql) + 1)[:3] + b"\0\x03" + sql
            for client, payload in ((True, query), (False, answer), (True, b"")):
                at += 7
                ports, numbers = ((20000 + line, 3306), (sent, received)) if client else ((3306, 20000 + line), (received, sent))
                hosts = (b"\x0a\0\0\x01", b"\x0a\0\0\x02") if client else (b"\x0a\0\0\x02", b"\x0a\0\0\x01")
                size = 54 + len(payload)
                out.write(struct.pack("<IIII", at // 1_000_000, at % 1_000_000, size, size) + bytes(12) + b"\x08\0"
                          + struct.pack(">BBHHHBBH", 0x45, 0, size - 14, 0, 0x4000, 64, 6, 0) + b"".join(hosts)
                          + struct.pack(">HHIIBBHHH", *ports, *(n & 0xFFFFFFFF for n in numbers), 0x50, 0x18, 501, 0, 0) + payload)
                if client:
                    sent += len(payload)
                else:
                    received += len(payload)
            lines[line] = (sent, received)
            calls += 1
    return path, calls


def two_threads(results, log):
    """How much sooner two threads are done than one, and how much sooner two programs would be with as much."""
    large = [one for one in results["readings"] if one["log"] == log and one.get("large")]
    one, two = ([reading for reading in large if reading["threads"] == threads] for threads in (1, 2))
    gains = [a["elapsed_s"] / b["elapsed_s"] for a, b in zip(one, two)]
    most = [2 * a["elapsed_s"] / b["two_programs_s"] for a, b in zip(one, two)]
    return f"two threads {statistics.median(gains):.2f} times one, two programs {statistics.median(most):.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=ROOT / "target/release/holdup")
    parser.add_argument("--data", default=os.environ.get("HOLDUP_DATA", ROOT.parent / "shared/data"), type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=40)
    args = parser.parse_args()
    data = args.data / "statements"
    if not data.is_dir():
        raise SystemExit(f"{data} is not there; name the shared data folder with --data")
    results = {"rounds": args.rounds, "peers": {"pt-query-digest": version(["pt-query-digest", "--version"]), "pgbadger": version(["pgbadger", "--version"]),
                                                   "tshark": version(["tshark", "--version"])},
               "readings": []}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        small = {name: generate(data, folder, name, args.megabytes) for name in ("slowlog", "postgresql")}
        peers = {"slowlog": ["pt-query-digest", "--no-version-check", "--limit", "100%"], "postgresql": ["pgbadger", "-q", "-o", str(folder / "out.html")]}
        for round_ in range(args.rounds):
            for name, (files, truth) in small.items():
                turn = ["holdup", "peer"] if round_ % 2 == 0 else ["peer", "holdup"]
                for who in turn:
                    if who == "holdup":
                        for kind, file in files.items():
                            found, _ = holdup(args, file, 1, truth, folder)
                            results["readings"].append({"round": round_, "tool": "holdup", "log": kind, **found})
                    elif results["peers"][peers[name][0]]:
                        found = cost([*peers[name], files[name]])
                        results["readings"].append({"round": round_, "tool": peers[name][0], "log": name, "megabytes": files[name].stat().st_size / 1e6, **found})
        for files, _ in small.values():
            for file in files.values():
                file.unlink()
        capture, calls = packets(folder, args.megabytes)
        for round_ in range(args.rounds):
            for who in ("holdup", "peer") if round_ % 2 == 0 else ("peer", "holdup"):
                megabytes = capture.stat().st_size / 1e6
                if who == "holdup":
                    out = folder / "report.json"
                    with out.open("w") as handle:
                        found = cost([args.bin, "digest", capture, "--json", "--limit", "0"], 0, handle)
                    report = json.loads(out.read_text())
                    found["exact"] = (report["calls"], report["distinct"]) == (calls, 10)
                    results["readings"].append({"round": round_, "tool": "holdup", "log": "pcap", "megabytes": megabytes, **found})
                elif results["peers"]["tshark"]:
                    found = cost(["tshark", "-n", "-r", capture, "-T", "fields", "-e", "frame.time_epoch", "-e", "tcp.stream", "-e", "mysql.query"])
                    results["readings"].append({"round": round_, "tool": "tshark", "log": "pcap", "megabytes": megabytes, **found})
        capture.unlink()
        for name in ("slowlog", "postgresql"):
            files, truth = generate(data, folder, name, args.megabytes * 10)
            for round_ in range(args.rounds):
                for kind, file in files.items():
                    texts = []
                    for threads in (1, 2):
                        found, text = holdup(args, file, threads, truth, folder)
                        texts.append(text)
                        results["readings"].append({"round": round_, "tool": "holdup", "log": kind, "large": True, "threads": threads, **found})
                    results["readings"][-1]["same_as_one_thread"] = texts[0] == texts[1]
                    results["readings"][-1]["two_programs_s"] = at_once([args.bin, "digest", file, "--json", "--limit", "0", "--threads", "1"])
            for file in files.values():
                file.unlink()
    out = args.out or ROOT / "bench/runs" / time.strftime("%Y-%m-%d-digest")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / "results.json").write_text(json.dumps(results, indent=1) + "\n")

    def rates(**wanted):
        return [one["megabytes"] / one["cpu_s"] for one in results["readings"] if all(one.get(key) == value for key, value in wanted.items())]

    for log in ("slowlog", "postgresql", "csv", "json"):
        small_rates, large = rates(tool="holdup", log=log, large=None), rates(tool="holdup", log=log, large=True, threads=1)
        print(f"{log}: {statistics.median(small_rates):.0f} MB a CPU second, of the large file {statistics.median(large):.0f}; {two_threads(results, log)}")
    captures = rates(tool="holdup", log="pcap")
    print(f"pcap: {statistics.median(captures):.0f} MB a CPU second")
    for log, peer in (("slowlog", "pt-query-digest"), ("postgresql", "pgbadger"), ("pcap", "tshark")):
        ours, theirs = rates(tool="holdup", log=log, large=None), rates(tool=peer, log=log)
        if theirs:
            print(f"{log}: {statistics.median(a / b for a, b in zip(ours, theirs)):.0f} times {peer} ({statistics.median(theirs):.1f} MB a CPU second)")
    print("all exact:", all(one.get("exact", True) for one in results["readings"]), "| two threads the same:",
          all(one.get("same_as_one_thread", True) for one in results["readings"]))


if __name__ == "__main__":
    main()
