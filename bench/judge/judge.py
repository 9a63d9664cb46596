#!/usr/bin/env python3
"""How long `holdup diagnose --json` takes for long recordings, and how much memory.

    bench/judge/judge.py [--bin PATH] [--before PATH] [--grow PATH] [--minutes 10,30,60] [--rounds 3] [--work DIR] [--out DIR]

The recordings are made out of two real ones of a lab by the example `grow` of holdup-diagnose, which says what is in them: 1,000
requests a second, a host, a database in whose queue 1,000 sessions wait while the fault lasts. Both programs are built in release
unless named. Elapsed and CPU seconds and the peak of resident memory are the kernel's (`wait4`); with `--before` an older holdup
judges the same recordings in turns, and its verdict has to be the same, byte for byte. It leaves in DIR a results.json with every reading.
"""

import argparse
import hashlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = [ROOT / "fixtures" / name for name in ("hidden-queue-fixed", "hidden-queue-faulty")]


def judged(program, recording):
    """What judging costs, and the verdict. This program is small, so the kernel's peak of a child is the child's own."""
    begun = time.monotonic()
    process = subprocess.Popen([program, "diagnose", recording, "--json"], stdout=subprocess.PIPE)
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    elapsed = time.monotonic() - begun
    if status:
        raise SystemExit(f"{program} failed for {recording}: {status}")
    verdict = json.loads(said)
    return {
        "elapsed_s": round(elapsed, 3),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 3),
        "peak_mb": round(usage.ru_maxrss / 1024, 1),
        "verdict": verdict["verdict"],
        "culprit": verdict["culprit"],
        "sha256": hashlib.sha256(said).hexdigest(),
    }


def built(arguments):
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    subprocess.run(["cargo", "build", "--release", *arguments], cwd=ROOT, check=True)
    return target / "release"


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--bin", type=pathlib.Path)
    options.add_argument("--before", type=pathlib.Path)
    options.add_argument("--grow", type=pathlib.Path)
    options.add_argument("--minutes", default="10,30,60")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--work", type=pathlib.Path, help="keeps the recordings here, and takes those that are there")
    options.add_argument("--out", type=pathlib.Path)
    options = options.parse_args()
    program = options.bin or built(["-p", "holdup"]) / "holdup"
    grow = options.grow or built(["-p", "holdup-diagnose", "--example", "grow"]) / "examples" / "grow"
    work = options.work or pathlib.Path(tempfile.mkdtemp(prefix="holdup-judge-"))
    results = {"cpus": os.cpu_count(), "kernel": os.uname().release, "rounds": options.rounds, "recordings": []}
    for minutes in map(int, options.minutes.split(",")):
        recording = work / f"{minutes}-minutes"
        if not (recording / "manifest.json").exists():
            shutil.rmtree(recording, ignore_errors=True)
            subprocess.run([grow, *FIXTURES, str(60 * minutes), recording], check=True)
        rows = json.loads((recording / "manifest.json").read_text())["tables"]
        size = sum(file.stat().st_size for file in recording.iterdir())
        result = {"minutes": minutes, "rows": rows, "megabytes": round(size / 1e6, 1), "load_1m": os.getloadavg()[0], "now": [], "before": []}
        judged(program, recording)  # So that the files are in the page cache for all.
        for _ in range(options.rounds):
            for name, of in (("now", program), ("before", options.before)):
                if of:
                    result[name].append(judged(of, recording))
        verdicts = {reading["sha256"] for name in ("now", "before") for reading in result[name]}
        if len(verdicts) != 1:
            print(f"{minutes} minutes: verdicts differ", file=sys.stderr)
        results["recordings"].append(result)
        for name in ("now", "before"):
            if result[name]:
                middle = {key: statistics.median(r[key] for r in result[name]) for key in ("elapsed_s", "cpu_s", "peak_mb")}
                print(f"{minutes} min, {sum(rows.values()):,} rows, {name}: {middle} {result[name][0]['culprit']}")
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    if not options.work:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
