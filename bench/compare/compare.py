#!/usr/bin/env python3
"""Compares recordings whose difference is known, and counts how often `holdup compare` says what is true.

    bench/compare/compare.py [--bin PATH] [--out DIR] [--rounds 45] [--seconds 3] [--keep DIR]

One service (a handler that waits 20 ms and a statement that burns CPU) is measured round after round, in a drawn order, each
time as a new process: A, the same again (A2), with 22 ms (T), and with a statement that is a tenth longer (C). Then compared are

  single    A with A2, one recording of each: "no difference" is true
  repeats   five rounds of A with A2 likewise; of A with T, whose p95 is a tenth greater; of A with C, whose CPU time for a request is

In DIR it leaves README.md and results.json with all figures. Recordings are in a temporary folder, kept with --keep DIR. Only the
standard library of Python is needed. Ctrl-C judges what is there.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPEATS = 5
RATE = 150
WAIT_MS = {"A": 20, "A2": 20, "T": 22, "C": 20}
# Reading the request and answering costs CPU as well, about as much as 2,000 steps: an eighth more steps are a tenth more of all.
STEPS = {"A": 8000, "A2": 8000, "T": 8000, "C": 9000}
BURN = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<{}) SELECT count(*) FROM c"


def measure(holdup, kind, place, scratch, seconds):
    service = subprocess.Popen(
        [holdup, "service", "--listen", "127.0.0.1:0", "--stop-on-stdin-eof", "--database", f"sqlite:{scratch}/bench.sqlite",
         "--rows", "10", "--pool", "8", "--work-ms", str(WAIT_MS[kind]), "--route", "/burn=" + BURN.format(STEPS[kind])],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        address = next(w.removeprefix("listen=") for w in service.stdout.readline().split() if w.startswith("listen="))
        done = subprocess.run(
            [holdup, "run", "--url", f"http://{address}/burn", "--rate", str(RATE), "--duration", f"{seconds}s", "--watch",
             f"pid:{service.pid}", "--watch", "host", "--interval", "500ms", "--quiet", "--json", "-o", str(place)],
            capture_output=True, text=True, timeout=120)
        if not done.stdout.startswith("{"):
            raise SystemExit(f"holdup run ended with {done.returncode}: {done.stderr}")
    finally:
        service.kill()
        service.wait()


def play(holdup, folder, rounds, seconds):
    draw = random.Random(8)
    begun = time.monotonic()
    whole = 0
    try:
        for number in range(1, rounds + 1):
            order = list(WAIT_MS)
            draw.shuffle(order)
            for kind in order:
                place = folder / f"{kind}-{number}"
                if not (place / "manifest.json").exists():
                    measure(holdup, kind, place, folder, seconds)
            whole = number
            print(f"\rround {number} of {rounds}, {time.monotonic() - begun:.0f} s", end="", file=sys.stderr)
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
    print(file=sys.stderr)
    return whole


def compare(holdup, folder, other, rounds):
    """A against `other` in these rounds: as single recordings where it is one, else as interleaved repeats."""
    if len(rounds) == 1:
        what = [f"A={folder}/A-{rounds[0]}", f"B={folder}/{other}-{rounds[0]}"]
    else:
        place = folder / "interleaved"
        place.mkdir(exist_ok=True)
        order = [{"name": name, "round": n, "path": str(folder / f"{kind}-{n}")} for n in rounds for name, kind in (("A", "A"), ("B", other))]
        (place / "interleave.json").write_text(json.dumps({"order": order}))
        what = [str(place)]
    return json.loads(subprocess.run([holdup, "compare", *what, "--json"], capture_output=True, text=True, check=True).stdout)


def row(comparison, part):
    return next(r for r in comparison["rows"] if r["is_headline"] and part in r["indicator"])


def told(comparison, part):
    return row(comparison, part)["cells"][1]["against"]


def spread(values):
    return statistics.stdev(values) if len(values) > 1 else float("nan")


def judge(holdup, folder, rounds):
    numbers = list(range(1, rounds + 1))
    single = [compare(holdup, folder, "A2", [n]) for n in numbers]
    fives = [numbers[i:i + REPEATS] for i in range(0, rounds - REPEATS + 1, REPEATS)]
    sliding = [numbers[i:i + REPEATS] for i in range(0, rounds - REPEATS + 1)]
    count = lambda made, test: {"of": len(made), "true": sum(map(test, made))}
    is_none = lambda c: c["columns"][1]["verdict"] == "no_difference"
    worse = lambda part: lambda c: told(c, part)["verdict"] == "worse"
    comparable = [c for c in single if c["columns"][1]["verdict"] != "not_comparable"]
    results = {"single_same": count(comparable, is_none), "single_not_comparable": len(single) - len(comparable)}
    results["single_same_not"] = [c["columns"][1]["headline"] for c in comparable if not is_none(c)]
    for name, groups in (("disjoint", fives), ("sliding", sliding)):
        same, slow, dear = ([compare(holdup, folder, kind, five) for five in groups] for kind in ("A2", "T", "C"))
        results[name] = {
            "same": count(same, is_none),
            "same_not": [c["columns"][1]["headline"] for c in same if not is_none(c)],
            "p95_found": count(slow, worse("p95")),
            "cpu_found": count(dear, worse("CPU")),
            "p95_not": [c["columns"][1]["headline"] for c in slow if not worse("p95")(c)],
            "cpu_not": [c["columns"][1]["headline"] for c in dear if not worse("CPU")(c)],
        }
    figures = {}
    print("judged; the figures", file=sys.stderr)
    for part, name in (("p50", "p50_ms"), ("p95", "p95_ms"), ("CPU", "cpu_s_per_1000")):
        values = {kind: [] for kind in WAIT_MS}
        for n in numbers:
            for kind in ("A2", "T", "C"):
                cells = row(compare(holdup, folder, kind, [n]), part)["cells"]
                values[kind].append(cells[1]["value"])
            values["A"].append(cells[0]["value"])
        log = {kind: [math.log(v) for v in list_] for kind, list_ in values.items()}
        figures[name] = {
            "median": {kind: round(statistics.median(v), 4) for kind, v in values.items()},
            "spread_run_to_run": round(spread(log["A"] + log["A2"]), 4),
            "spread_within_rounds": round(spread([a - b for a, b in zip(log["A"], log["A2"])]) / math.sqrt(2), 4),
            "values": {kind: [round(x, 4) for x in v] for kind, v in values.items()},
        }
    results["figures"] = figures
    return results


def report(results, about):
    def share(c):
        return f"{c['true']} of {c['of']}"
    lines = ["# Comparisons of what is known to be the same, and to differ by a tenth", "", about, "",
             "Made by `bench/compare/compare.py`. All figures are in results.json.", "",
             "| compared | says what is true |", "|---|---|",
             f"| A with A again, one recording of each: \"no difference\" | {share(results['single_same'])}; "
             f"{results['single_not_comparable']} were refused, as the generator was kept from its CPU |"]
    for name, words in (("disjoint", "five rounds, each round used once"), ("sliding", "five rounds in a row, from every round on")):
        r = results[name]
        lines += [f"| A with A again, {words}: \"no difference\" | {share(r['same'])} |",
                  f"| 10 % more waiting in the handler, {words}: p95 worse | {share(r['p95_found'])} |",
                  f"| 10 % longer statement, {words}: CPU per 1,000 requests worse | {share(r['cpu_found'])} |"]
    lines += ["", "How much runs of the same thing differed (standard deviation of the logarithm):", "",
              "| figure | A | T | C | run to run | within rounds |", "|---|---|---|---|---|---|"]
    for name, f in results["figures"].items():
        m = f["median"]
        lines.append(f"| {name} | {m['A']:.4g} | {m['T']:.4g} ({100 * (m['T'] / m['A'] - 1):+.1f} %) | {m['C']:.4g} ({100 * (m['C'] / m['A'] - 1):+.1f} %) | "
                     f"{100 * f['spread_run_to_run']:.1f} % | {100 * f['spread_within_rounds']:.1f} % |")
    wrong = [("one recording of each, the same", results["single_same_not"])]
    wrong += [(f"{name}: {what}", results[name][key]) for name in ("disjoint", "sliding")
              for key, what in (("same_not", "the same"), ("p95_not", "p95"), ("cpu_not", "CPU"))]
    for title, headlines in wrong:
        if headlines:
            lines += ["", f"Not so, {title}:", "", *[f"- {h}" for h in headlines]]
    return "\n".join(lines) + "\n"


def main():
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("--bin", default=str(ROOT / "target/release/holdup"))
    parse.add_argument("--runs-by", help="another holdup that makes the runs, e.g. a release build of an older one [default: --bin]")
    parse.add_argument("--out", type=pathlib.Path, default=ROOT / f"bench/runs/{datetime.date.today()}-compare")
    parse.add_argument("--rounds", type=int, default=45)
    parse.add_argument("--seconds", type=int, default=3)
    parse.add_argument("--keep", type=pathlib.Path, help="folder for the recordings; those that are there are taken as they are")
    parse.add_argument("--wait-ms", type=int, default=20, help="what the handler waits; a tenth more in T")
    args = parse.parse_args()
    WAIT_MS.update({kind: args.wait_ms for kind in WAIT_MS}, T=round(args.wait_ms * 1.1))
    holdup = os.path.abspath(args.bin)
    folder = (args.keep or pathlib.Path(tempfile.mkdtemp(prefix="holdup-compare-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0]
    begun = time.monotonic()
    try:
        rounds = play(os.path.abspath(args.runs_by or args.bin), folder, args.rounds, args.seconds)
        results = judge(holdup, folder, rounds)
    finally:
        if not args.keep:
            shutil.rmtree(folder)
    about = (f"{datetime.date.today()}: {rounds} rounds of four runs of {args.seconds} s at {RATE}/s (handler waits {args.wait_ms} ms), {os.cpu_count()} CPUs, Linux {platform.release()}; "
             f"load average {load:.1f} before and {os.getloadavg()[0]:.1f} after; {time.monotonic() - begun:.0f} s in all.")
    results["about"] = about
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (args.out / "README.md").write_text(report(results, about))
    print(report(results, about))


if __name__ == "__main__":
    main()
