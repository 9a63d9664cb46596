#!/usr/bin/env python3
"""Searches for the knee of services whose knee is known, and writes what was found beside what is true.

    bench/knee/knee.py [--bin PATH] [--out DIR] [--only NAME,...] [--within 3m]

It starts `holdup service` (a queue before servers of exact service times) and `holdup run --search` against it, one pair
after the other, and leaves in DIR a README.md with a table, results.json, and the steps of each search as they were measured
(NAME.search.json). Only the standard library of Python is needed. Ctrl-C keeps what is done; a second start with --only adds
to it. Exit 1 if a search of the first group is off by more than 10 %, or took longer than it may.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOLERANCE = 0.10
SLACK_S = 5.0


def even(servers, ms):
    """Even arrivals and constant service: nobody waits before all servers are busy, so knee and capacity are one."""
    rate = servers / ms * 1e3
    return {"name": f"even-{servers}x{ms}ms", "group": "even", "service": [f"--servers={servers}", f"--service-time={ms}ms"],
            "run": [], "knee": rate, "capacity": rate}


# Share of the capacity at which the elasticity of mean response time is 1 for M/D/c: u/((1-u)(2-u)) = 1 for one server, so
# 2 - sqrt(2); for more from the stationary distribution of the number in the system at multiples of the service time (C. D.
# Crommelin, "Delay probability formulae when the holding times are constant", 1932).
POISSON = {1: 2 - math.sqrt(2), 4: 0.737, 8: 0.801}


def poisson(servers, ms):
    rate = servers / ms * 1e3
    return {"name": f"poisson-{servers}x{ms}ms", "group": "poisson",
            "service": [f"--servers={servers}", f"--service-time={ms}ms"], "run": ["--poisson"],
            "knee": POISSON[servers] * rate, "capacity": rate}


def usl(contention, coherency, ms):
    """The law itself: N requests in the service take 1 + a (N - 1) + b N (N - 1) times as long."""
    stretch = lambda n: 1 + contention * (n - 1) + coherency * n * (n - 1)
    throughput = lambda n: n / stretch(n) / ms * 1e3
    peak = math.sqrt((1 - contention) / coherency)
    # Response time grows as fast as throughput where d ln R / d ln N is one half.
    low, high = 1.0, peak
    for _ in range(60):
        n = (low + high) / 2
        elasticity = n * (contention + coherency * (2 * n - 1)) / stretch(n)
        low, high = (n, high) if elasticity < 0.5 else (low, n)
    return {"name": f"usl-{contention}-{coherency}-{ms}ms", "group": "usl",
            "service": ["--servers=2000", f"--service-time={ms}ms", f"--contention={contention}", f"--coherency={coherency}"],
            "run": [], "knee": throughput(n), "capacity": throughput(peak),
            "law": {"gamma": 1e3 / ms, "alpha": contention, "beta": coherency, "peak_concurrency": peak, "peak_rate": throughput(peak)}}


CASES = [
    even(1, 5), even(1, 100), even(2, 20), even(2, 5), even(4, 20), even(4, 100), even(8, 20), even(8, 100), even(16, 20), even(32, 100),
    poisson(1, 10), poisson(4, 20), poisson(8, 40),
    usl(0.05, 0.001, 10),
]


def play(case, holdup, within, keep):
    service = subprocess.Popen([holdup, "service", "--listen", "127.0.0.1:0", "--stop-on-stdin-eof", *case["service"]],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        words = service.stdout.readline().split()
        address = next(word.removeprefix("listen=") for word in words if word.startswith("listen="))
        with tempfile.TemporaryDirectory() as folder:
            recording = pathlib.Path(folder) / "run"
            load_before, begun = os.getloadavg()[0], time.monotonic()
            command = [holdup, "run", "--url", f"http://{address}/", "--search", "5:5000", "--within", within,
                       "--connections", "500", "--no-collect", "--json", "--quiet", "-o", str(recording), *case["run"]]
            done = subprocess.run(command, capture_output=True, text=True, timeout=600)
            took = time.monotonic() - begun
            verdict = json.loads(done.stdout)
            shutil.copy(recording / "search.json", keep / f"{case['name']}.search.json")
    finally:
        service.kill()
        service.wait()
    search = verdict["search"]
    points = search.pop("points")
    search.pop("curve")
    if search["usl"]:
        search["usl"].pop("curve")
    truth = {key: case[key] for key in ("knee", "capacity", "law") if key in case}
    return {"name": case["name"], "group": case["group"], "truth": truth, "took_s": round(took, 1), "exit": done.returncode,
            "load_before": round(load_before, 2), "disturbed": verdict["load"]["disturbed"], "headline": verdict["headline"],
            "steps": len(points), "search": search}


def off(result):
    """By how much the named knee is off, as a share; none without a knee."""
    knee = result["search"]["knee"]
    return None if knee is None else knee["value"] / result["truth"]["knee"] - 1


def interval(figure):
    return "none" if figure is None else f"{figure['value']:.1f} ({figure['low']:.1f} to {figure['high']:.1f})"


def row(result):
    search, truth, share = result["search"], result["truth"], off(result)
    inside = search["knee"] and search["knee"]["low"] <= truth["knee"] <= search["knee"]["high"]
    breaking = search["breaking_point"] and search["breaking_point"]["rate"]
    cells = [result["name"], f"{truth['knee']:.1f}", interval(search["knee"]), "none" if share is None else f"{100 * share:+.1f} %",
             "yes" if inside else "no", f"{truth['capacity']:.1f}", interval(breaking), f"{result['took_s']:.0f}",
             str(result["steps"]), "yes" if search["stable"] else "no"]
    return "| " + " | ".join(cells) + " |"


HEAD = """| run | true knee /s | named knee /s | off by | interval holds it | true capacity /s | breaking point /s | seconds | steps | stable |
|---|---|---|---|---|---|---|---|---|---|"""


def report(results, about):
    of = lambda group: [result for result in results if result["group"] == group]
    even_runs = of("even")
    good = [r for r in even_runs if off(r) is not None and abs(off(r)) <= TOLERANCE]
    lines = ["# The knee of services whose knee is known", "", f"{about}", ""]
    lines += [f"Made by `bench/knee/knee.py`. Each run's steps as measured are in NAME.search.json, all figures in results.json.", ""]
    if even_runs:
        worst = max((abs(off(r)) for r in even_runs if off(r) is not None), default=float("nan"))
        longest = max(r["took_s"] for r in even_runs)
        lines += ["## Even arrivals, constant service times", "",
                  f"**{len(good)} of {len(even_runs)} within 10 %**; the worst is off by {100 * worst:.1f} %, the longest took {longest:.0f} s.",
                  "With c servers of T seconds knee and capacity are both c / T.", "", HEAD, *map(row, even_runs), ""]
    if of("poisson"):
        lines += ["## Poisson arrivals, constant service times", "",
                  "Requests wait for each other long before the service is full. True is where the elasticity of the mean response time is 1.",
                  "", HEAD, *map(row, of("poisson")), ""]
    for result in of("usl"):
        law, found = result["truth"]["law"], result["search"]["usl"]
        lines += ["## A service that follows the Universal Scalability Law", "", HEAD, row(result), "",
                  "| parameter | true | fitted |", "|---|---|---|"]
        for key in law:
            figure = found and found[key]
            shown = "none" if not figure else f"{figure['value']:.4g} ({figure['low']:.4g} to {figure['high']:.4g})"
            lines.append(f"| {key} | {law[key]:.4g} | {shown} |")
        lines += ["", "The law is " + ("determined" if found and found["determined"] else f"not determined: {found and found['why_not']}") + ".", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default=str(ROOT / "target/release/holdup"))
    parser.add_argument("--out", default=str(ROOT / f"bench/runs/{datetime.date.today()}-knee"))
    parser.add_argument("--only", default="", help="names of runs, or of groups: even, poisson, usl")
    parser.add_argument("--within", default="3m")
    parser.add_argument("--commit", help="what --bin was built from, if that is not HEAD")
    args = parser.parse_args()
    keep = pathlib.Path(args.out)
    keep.mkdir(parents=True, exist_ok=True)
    wanted = [name for name in args.only.split(",") if name]
    cases = [case for case in CASES if not wanted or case["name"] in wanted or case["group"] in wanted]
    kept = keep / "results.json"
    results = json.loads(kept.read_text()) if kept.exists() else []
    version = subprocess.run([args.bin, "--version"], capture_output=True, text=True).stdout.strip()
    commit = args.commit or subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=ROOT).stdout.strip()
    build = "debug" if "/debug/" in args.bin else "release"
    about = (f"{version} ({commit}, {build} build), {datetime.date.today()}, {os.cpu_count()} cores, Linux {platform.release()}, "
             f"`--search 5:5000 --within {args.within} --connections 500`, generator and service on the same machine.")
    for case in cases:
        result = play(case, args.bin, args.within, keep)
        results = [one for one in results if one["name"] != case["name"]] + [result]
        names = [one["name"] for one in CASES]
        results.sort(key=lambda one: names.index(one["name"]))
        kept.write_text(json.dumps(results, indent=1) + "\n")
        print(row(result), flush=True)
    (keep / "README.md").write_text(report(results, about))
    budget = {"s": 1, "m": 60}[args.within[-1]] * float(args.within[:-1])
    bad = [r["name"] for r in results if r["group"] == "even" and (off(r) is None or abs(off(r)) > TOLERANCE or r["took_s"] > budget + SLACK_S)]
    if bad:
        sys.exit("off: " + ", ".join(bad))


if __name__ == "__main__":
    main()
