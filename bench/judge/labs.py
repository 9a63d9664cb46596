#!/usr/bin/env python3
"""Plays labs again and again, and judges each recording whole and with any one source or table gone.

    bench/judge/labs.py [LAB[:VARIANT]...] [--overload] [--rounds 3] [--bin PATH] [--without PATH] [--minutes N] [--work DIR] [--out DIR]

A verdict is wrong if it is surer than 0.5 of another culprit than the lab's, of any where nothing is broken, or if it says healthy where
something is (`tests/removal/honest.rs` of holdup-diagnose). Of each recording as a whole it keeps what share of the slowest hundredth's
time the ledger owns. With `--overload` only the healthy variants are played, with their rate for half of the time and then many times as
much: nothing is broken, so that only the load and what it uses up may be named. Variants come in turns, so that a machine's bad minute
meets all of them; after `--minutes` no further one is begun. It leaves in DIR a results.json with every verdict; recordings are kept
only of what was wrong, or not as the lab expects.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCIDENTS = ["hidden-queue", "readahead", "worker-capacity", "throughput-ceiling", "uninterruptible"]

# Rates a second, as usual and more than a lab carries; how many connections the load may have for it; and what it may be put down to
# beside the load: what it uses up there.
OVERLOAD = {
    "hidden-queue": (100, 12000, 1500, "cpu_saturated connection_pool_exhausted"),
    "readahead": (180, 8000, 900, "disk_saturated iops_ceiling throughput_ceiling working_set_exceeds_memory cpu_saturated"),
    "worker-capacity": (30, 1500, 1500, "cpu_saturated worker_pool_exhausted connection_pool_exhausted"),
    "throughput-ceiling": (160, 1600, 40, "disk_saturated iops_ceiling throughput_ceiling cpu_saturated connection_limit"),
    "uninterruptible": (30, 500, 1500, "cpu_saturated connection_pool_exhausted table_cache_small"),
    "accounts": (14, 2400, 9000, "cpu_saturated connection_pool_exhausted lock_contention"),
    "limits": (60, 1100, 4000, "cpu_saturated connection_pool_exhausted"),
}
LOAD = ["workload_spike", "load_generator_limit"]


def overloaded(labs):
    """Writes the labs anew: each scenario at its usual rate for 10 s, and for 10 s at one that nothing there carries.

    What is asked stands back behind who asks: of a load that could not be put on nothing follows.
    """
    shutil.copytree(ROOT / "labs", labs)
    for lab, (usual, more, connections, _) in OVERLOAD.items():
        text = (labs / lab / "lab.yaml").read_text()
        text = re.sub(r"^    run:\n", "    run:\n      - nice\n      - -n15\n", text, flags=re.M)
        (labs / lab / "lab.yaml").write_text(re.sub(r"^    run: \[", "    run: [nice, -n15, ", text, flags=re.M))
        for scenario in (labs / lab).glob("*.yaml"):
            if scenario.name == "lab.yaml":
                continue
            text = re.sub(r"^  (rate|duration|steps|search|arrivals): .*\n", "", scenario.read_text(), flags=re.M)
            text = re.sub(r"^  connections: .*$", f"  connections: {connections}", text, flags=re.M)
            steps = f"load:\n  steps: {{from: {usual}, to: {more}, step: {more - usual}, every: 10s}}\n"
            scenario.write_text(text.replace("load:\n", steps, 1))


def variants(lab):
    """The variants of a lab, with the culprit that each expects: `null` for none."""
    found, variant = {}, None
    for line in (ROOT / "labs" / lab / "lab.yaml").read_text().partition("\nvariants:\n")[2].splitlines():
        if heading := re.fullmatch(r"  (\w+):", line):
            variant = heading.group(1)
        elif culprit := re.fullmatch(r"      culprit: (.+)", line):
            found.setdefault(variant, culprit.group(1))
    return found


def wanted(names, overload):
    """`LAB` or `LAB:VARIANT`, as (lab, variant, culprit)."""
    for name in names:
        lab, _, only = name.partition(":")
        for variant, culprit in variants(lab).items():
            if only in ("", variant) and not overload:
                yield lab, variant, culprit
            elif only in ("", variant) and culprit == "null" and lab in OVERLOAD:
                yield lab, variant, culprit


def played(args, work, lab, variant, culprit):
    """What is said of one run: by the lab, and of its recording with and without each of its parts."""
    folder = work / f"{lab}-{variant}"
    begun = time.monotonic()
    run = subprocess.run([args.bin, "lab", lab, "--variant", variant, "--labs", args.labs_folder, "-o", folder, "-q"], cwd=ROOT, capture_output=True, text=True)
    result = {"lab": lab, "variant": variant, "expected": culprit, "seconds": round(time.monotonic() - begun, 1), "exit": run.returncode,
              "load": os.getloadavg()[0], "said": run.stderr.strip().splitlines()[-3:]}
    recordings = [manifest.parent for manifest in sorted(folder.rglob("manifest.json"))]
    judged = subprocess.run([args.without, culprit, *recordings], capture_output=True, text=True)
    result["verdicts"] = [json.loads(line) for line in judged.stdout.splitlines()]
    for verdict in result["verdicts"]:
        verdict["recording"] = os.path.relpath(verdict["recording"], folder)
        if args.overload:
            allowed = [None, *LOAD, *OVERLOAD[lab][-1].split()]
            verdict["wrong"] = verdict["culprit"] not in allowed and verdict["confidence"] > 0.5
    if not result["verdicts"]:
        result["said"].append(judged.stderr.strip()[-300:])
    whole = [verdict for verdict in result["verdicts"] if verdict["without"] is None]
    result["as_expected"] = bool(whole) and (whole[-1]["culprit"] or "null") in culprit.split(" or ")
    if not any(verdict["wrong"] for verdict in result["verdicts"]) and (args.overload or result["as_expected"]):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        folder.rename(work / f"kept-{lab}-{variant}-{int(time.time())}")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labs", nargs="*", default=INCIDENTS)
    parser.add_argument("--overload", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "target/release/holdup")
    parser.add_argument("--without", type=pathlib.Path, default=ROOT / "target/release/examples/without")
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()
    work = args.work or pathlib.Path(tempfile.mkdtemp(prefix="labs-"))
    work.mkdir(parents=True, exist_ok=True)
    args.labs_folder = work / "labs" if args.overload else ROOT / "labs"
    if args.overload:
        overloaded(args.labs_folder)
    out = args.out or ROOT / "bench/runs" / time.strftime("%Y-%m-%d-labs")
    out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * args.minutes
    results = []
    for round_ in range(args.rounds):
        for lab, variant, culprit in wanted(args.labs, args.overload):
            if time.monotonic() > end:
                break
            result = {"round": round_, **played(args, work, lab, variant, culprit)}
            results.append(result)
            (out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
            whole = [verdict for verdict in result["verdicts"] if verdict["without"] is None]
            wrong = [verdict for verdict in result["verdicts"] if verdict["wrong"]]
            print(f"{round_} {lab} {variant}: {[(v['verdict'], v['culprit'], v['confidence'], v['owned']) for v in whole]}, {len(result['verdicts'])} verdicts, {len(wrong)} wrong",
                  *[f"{v['without']}: {v['culprit']} {v['confidence']}" for v in wrong], sep="\n    " if wrong else "", flush=True)
    counts = collections.Counter()
    for result in results:
        for verdict in result["verdicts"]:
            kind = "whole" if verdict["without"] is None else "less"
            counts[kind] += 1
            counts[f"{kind}, wrong"] += verdict["wrong"]
            counts[f"{kind}, no culprit"] += verdict["culprit"] is None
            counts["ledger"] += verdict["owned"] is not None
            counts["ledger, 95 % owned"] += (verdict["owned"] or 0) >= 0.95
            counts[f"{kind}, as expected"] += (verdict["culprit"] or "null") in result["expected"].split(" or ")
        counts["runs"] += 1
    print(dict(counts))


if __name__ == "__main__":
    main()
