#!/usr/bin/env python3
"""holdup beside its peers: the same load from each, one after another, with what they cost and what they say.

    bench/peers/peers.py [--quick] [--only GROUP,...] [--tools NAME,...] [--rounds 5] [--idle-seconds N] [--bin PATH] [--out DIR]
    bench/peers/peers.py --report DIR        makes report.md of its results.json again

Each run has a server on core 0 and a tool on core 1. A round is one run of every tool, in an order that turns from round to round;
ratios are taken within a round. It leaves results.json with every run, raw/ with what the tools printed, and report.md. All is on
127.0.0.1 with free ports, and ends by its number; Ctrl-C ends it at once and keeps what was measured. ../README.md says how to read it.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True
import tools  # noqa: E402
from figures import arrivals  # noqa: E402
from report import markdown  # noqa: E402

GROUPS = ["closed", "sessions", "open", "freeze", "idle", "cores", "tls", "h2"]
TOOLS = ["floor", "holdup", "wrk", "oha", "h2load"]
# Share of the machine's CPU time that others may take before a run counts as disturbed, and how often it is then repeated.
STOLEN_MOST = 0.1
REPEATED_MOST = 2
# How much longer than its load a tool may take, s.
GRACE = 60
# When memory is looked at for the idle scenario, s.
RESIDENT_AT = 10
# Most bytes of what a tool says that are kept of a run.
RAW_MOST = 1_500


def scenario(name, about, server, entrants, base, seconds, rate=None, connections=64, rounds_most=1_000, stop_seconds=None):
    return {"name": name, "group": name.split("-")[0], "about": about, "server": server, "entrants": entrants, "base": base,
            "seconds": seconds, "rate": rate, "connections": connections, "rounds_most": rounds_most, "stop_seconds": stop_seconds}


def scenarios(quick, idle_seconds):
    """Entrants are a label, a tool, its flags, and the cores of server and tool if they are not 0 and 1."""
    closed = 2 if quick else 6
    same = [(tool, tool, []) for tool in ("floor", "holdup", "wrk", "oha")]
    for server in "responder", "nginx":
        about = f"closed model, 64 keep-alive connections, against {server}: CPU time of the client a request"
        yield scenario(f"closed-{server}", about, server, same, "floor", closed)
    yield scenario("sessions", "closed model, 64 connections, against the responder: CPU time a request of a plain run, and of sessions of "
                   "two steps with templates, one capture and one check", "responder",
                   [("holdup", "holdup", []), ("holdup, sessions", "holdup", ["@sessions"])], "holdup", closed)
    for rate in 20_000, 5_000:
        yield scenario(f"open-{rate}", f"open model, {rate} requests/s on 50 connections, against the responder: CPU time a request, and how "
                       "late and how evenly requests arrive as the server's kernel stamps them", "responder",
                       [("holdup precise", "holdup", ["--pace", "precise"]), ("holdup economy", "holdup", ["--pace", "economy"]),
                        ("oha", "oha", [])], "holdup economy", 4 if quick else 10, rate, 50)
    seconds, stop = (6, 1.0) if quick else (20, 2.0)
    yield scenario("freeze", f"500 requests/s on 50 connections for {seconds} s, a server that is stopped for {stop} s: what each tool says of "
                   "it", "responder", [("holdup", "holdup", []), ("oha", "oha", []),
                                       ("oha --latency-correction", "oha", ["--latency-correction"]), ("wrk (closed)", "wrk", [])],
                   "holdup", seconds, 500, 50, rounds_most=3, stop_seconds=stop)
    connections, seconds = 1_000 if quick else 10_000, idle_seconds or (4 if quick else 20)
    yield scenario("idle", f"{connections} connections at 5000 requests/s for {seconds} s: memory of the client, and the time until all are "
                   "connected (from the first to the last, as the responder accepts them)", "responder",
                   [("holdup", "holdup", ["--open-all"]), ("wrk (closed)", "wrk", []), ("oha", "oha", [])], "holdup", seconds, 5_000,
                   connections, rounds_most=3)
    one, two = "holdup, 1 loop on core 0", "holdup, 2 loops on cores 0 and 1"
    yield scenario("cores", "closed model, 64 connections; client and responder share one core, then each has a thread on both: with nothing "
                   "shared, two cores do twice as much", "responder",
                   [(one, "holdup", ["--cpus", "0"], [0], [0]), (two, "holdup", ["--cpus", "0,1"], [0, 1], [0, 1])], one, closed)
    yield scenario("tls", "closed model, 64 connections, HTTP/1.1 in TLS 1.3 (AES-128-GCM), against nginx", "nginx tls",
                   [("h2load --h1", "h2load", ["--h1"]), ("holdup", "holdup", ["--insecure"])], "h2load --h1", closed)
    for streams in 1, 10:
        yield scenario(f"h2-{streams}", f"closed model, 16 connections with {streams} stream(s) each, HTTP/2 in TLS 1.3 (AES-128-GCM), against "
                       "nginx", "nginx tls", [("h2load", "h2load", ["-m", streams]),
                                              ("holdup", "holdup", ["--insecure", "--http", "2", "--streams", streams])],
                       "h2load", closed, connections=16)


class Process:
    """A program on its cores, with its output in files; leaving the block ends it."""

    def __init__(self, words, cpus, folder, name):
        self.words, self.folder, self.name, self.resident, self.usage = list(map(str, words)), folder, name, [], None
        self.begun = time.monotonic()
        with open(folder / f"{name}.out", "w") as out, open(folder / f"{name}.err", "w") as err:
            self.process = subprocess.Popen(self.words, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
                                            preexec_fn=lambda: os.sched_setaffinity(0, cpus))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.usage is None:
            self.stop()

    def said(self, kind="out"):
        return (self.folder / f"{self.name}.{kind}").read_text(errors="replace")

    def wait(self, within):
        """Its exit code; it and the children that it waited for are measured, and its memory is looked at ten times a second."""
        while True:
            with contextlib.suppress(OSError, TypeError):
                status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
                now, most = (int(re.search(rf"{key}:\s+(\d+)", status)[1]) * 1024 for key in ("VmRSS", "VmHWM"))
                self.resident.append((time.monotonic() - self.begun, now, most))
            deadline = time.monotonic() + 0.1
            while time.monotonic() < deadline:
                pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
                if pid:
                    self.usage, self.process.returncode = usage, os.waitstatus_to_exitcode(status)
                    self.seconds = time.monotonic() - self.begun
                    return self.process.returncode
                time.sleep(0.005)
            if time.monotonic() - self.begun > within:
                self.stop()
                raise RuntimeError(f"it still ran after {within} s and was ended")

    def stop(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        with contextlib.suppress(RuntimeError):
            for _ in range(50):
                pid, _, usage = os.wait4(self.process.pid, os.WNOHANG)
                if pid:
                    self.usage, self.process.returncode = usage, 0
                    return
                time.sleep(0.1)
        os.killpg(self.process.pid, signal.SIGKILL)
        _, _, self.usage = os.wait4(self.process.pid, 0)
        self.process.returncode = -signal.SIGKILL


def wait_for(what, server):
    for _ in range(1_000):
        with contextlib.suppress(OSError):
            if found := what():
                return found
        if server.process.poll() is not None:
            break
        time.sleep(0.01)
    raise RuntimeError(f"the server did not start: {server.said('err').strip()}")


def start_servers(stack, programs, about, cpus, folder):
    """The servers of a run, and where to ask: the responder has a process for each core, on one port."""
    if about["server"] == "responder":
        servers, port = [], 0
        for cpu in cpus:
            stamps = folder / "stamps" if about["group"] in ("open", "idle") else "-"
            words = [programs["responder"], port, cpu, about["connections"], stamps]
            servers.append(stack.enter_context(Process(words, [cpu], folder, f"server{cpu}")))
            port = wait_for(lambda: int(servers[-1].said().split()[1]) if "\n" in servers[-1].said() else 0, servers[-1])
        return servers, f"http://127.0.0.1:{port}/"
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        port = line.getsockname()[1]
    is_secure = about["server"].endswith("tls")
    tools.nginx_folder(folder, port, is_secure)
    server = stack.enter_context(Process([programs["nginx"], "-p", f"{folder}/", "-c", "nginx.conf"], cpus, folder, "server"))
    wait_for(lambda: socket.create_connection(("127.0.0.1", port), 1).close() is None, server)
    return [server], f"{'https' if is_secure else 'http'}://127.0.0.1:{port}/"


def freeze(server, about):
    """Stops the server once, and lets it go on."""
    time.sleep(0.45 * about["seconds"])
    server.process.send_signal(signal.SIGSTOP)
    time.sleep(about["stop_seconds"])
    server.process.send_signal(signal.SIGCONT)


def once(programs, about, entrant, run, folder):
    """One run, into `run`; what the tool printed."""
    _, tool, flags, server_cpus, tool_cpus = (*entrant, [0], [1])[:5]
    with contextlib.ExitStack() as stack:
        servers, url = start_servers(stack, programs, about, server_cpus, folder)
        words = [programs[tool], *tools.arguments(tool, about, url, flags, folder)]
        run["command"] = " ".join(map(str, words)).replace(f"{tools.ROOT}/", "").replace(str(folder), "SCRATCH")
        client = stack.enter_context(Process(words, tool_cpus, folder, "tool"))
        if about["stop_seconds"]:
            threading.Thread(target=freeze, args=(servers[0], about), daemon=True).start()
        code = client.wait(about["seconds"] + GRACE)
        for server in servers:
            server.stop()
        usages = [server.usage for server in servers]
    said, complained = client.said(), client.said("err")
    run.update(wall_seconds=client.seconds, user_seconds=client.usage.ru_utime, system_seconds=client.usage.ru_stime,
               resident_most_bytes=max((most for *_, most in client.resident), default=0),
               resident_10s_bytes=next((now for at, now, _ in client.resident if at >= RESIDENT_AT), None),
               resident_last_bytes=client.resident[-1][1] if client.resident else None,
               server_cpu_seconds=sum(usage.ru_utime + usage.ru_stime for usage in usages))
    try:
        run["reported"] = tools.read(tool, said)
    except (ValueError, KeyError, IndexError, TypeError) as error:
        first = next((line.strip() for line in complained.splitlines() if line.strip()), "it gave no reason")
        run["failed"] = f"it ended with exit code {code}: {first}" if code else f"its report can't be read: {error!r}"
    if "reported" in run:
        # A tool that cannot keep the rate takes longer.
        paced = about["rate"] and tools.keeps_rate(tool)
        run["answers_per_second"] = run["reported"]["completed"] / (client.seconds if paced else about["seconds"])
        if about["server"] == "responder":
            seen = [json.loads(server.said().splitlines()[-1]) for server in servers]
            run["seen"] = {key: sum(each.get(key, 0) for each in seen) for key in ("requests", "connections")}
            run["seen"]["connected_seconds"] = seen[0].get("connected_seconds")
        if about["group"] in ("open", "idle") and tools.keeps_rate(tool):
            stamps = memoryview((folder / "stamps").read_bytes()).cast("Q")
            run["arrivals"] = arrivals(stamps, about["rate"])
    if tool == "holdup" and "reported" in run:
        # The rest is its verdict, which is long.
        said = json.dumps(json.loads(said)["load"])
    return said + (f"\n[stderr]\n{complained}" if complained.strip() else "")


def ticks():
    """All CPU time, and what the hypervisor took of it."""
    fields = [int(field) for field in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(fields), fields[7]


def until_undisturbed(programs, about, entrant, number, place, out, results):
    for attempt in range(1, 2 + REPEATED_MOST):
        run = {"scenario": about["name"], "entrant": entrant[0], "round": number, "place": place, "attempt": attempt}
        # For closed connections to be cleared away.
        time.sleep(0.5)
        before = ticks()
        with tempfile.TemporaryDirectory(prefix="holdup-bench-") as folder:
            os.chmod(folder, 0o755)
            try:
                raw = once(programs, about, entrant, run, pathlib.Path(folder))
            except (RuntimeError, OSError) as error:
                run["failed"] = raw = str(error)
        after = ticks()
        run["stolen_ratio"] = (after[1] - before[1]) / max(1, after[0] - before[0])
        run["disturbed"] = run["stolen_ratio"] > STOLEN_MOST
        name = re.sub(r"[^a-z0-9]+", "-", f"{about['name']}-{entrant[0]}".lower()).strip("-")
        with open(out / "raw" / f"{name}.txt", "a") as file:
            kept = raw if len(raw) <= RAW_MOST else raw[: RAW_MOST // 2] + "\n[…]\n" + raw[-RAW_MOST // 2:]
            file.write(f"--- round {number} attempt {attempt}\n{kept.replace(f'{tools.ROOT}/', '')}\n")
        results["runs"].append(run)
        print(f"   {line(run)}", flush=True)
        if not run["disturbed"]:
            return


def line(run):
    """A run in one line, for whoever waits."""
    if "failed" in run:
        return f"{run['entrant']:<32} failed: {run['failed']}"
    reported, cpu = run["reported"], run["user_seconds"] + run["system_seconds"]
    text = f"{run['entrant']:<32}{reported['completed']:>9} answers {run['answers_per_second']:>8.0f}/s "
    text += f"{1e6 * cpu / max(1, reported['completed']):>7.2f} us each"
    if reported.get("p99_ms") is not None:
        text += f"  p99 {reported['p99_ms']:.2f} ms"
    if run.get("arrivals"):
        text += f"  late p50 {run['arrivals']['late_p50_ms']:.3f} p99 {run['arrivals']['late_p99_ms']:.3f} ms"
    text += f"  {run['resident_most_bytes'] / 1e6:.1f} MB"
    return text + (f"  disturbed: {100 * run['stolen_ratio']:.0f} % stolen" if run["disturbed"] else "")


def host():
    """What one must know of the machine. No names, no addresses."""
    field = lambda file, key: next((line.split(key, 1)[1].strip(' :\t"') for line in open(file) if line.startswith(key)), "")  # noqa: E731
    return {"cpu_model": field("/proc/cpuinfo", "model name"), "cores": len(os.sched_getaffinity(0)),
            "kernel": os.uname().release.split("-")[0], "memory_bytes": int(field("/proc/meminfo", "MemTotal:").split()[0]) * 1024,
            "system": field("/etc/os-release", "PRETTY_NAME=").strip('"\n')}


def write(out, results):
    (out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (out / "report.md").write_text(markdown(results))


def measure(options):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    machine = host()
    if machine["cores"] < 2:
        raise SystemExit("error: server and tool need a core each, and this machine has one")
    about_all = [about for about in scenarios(options.quick, options.idle_seconds) if about["group"] in (options.only or GROUPS)]
    wanted = {"responder", "nginx", *(options.tools or TOOLS)}
    programs, versions, absent = tools.had(options.bin.resolve(), wanted)
    date = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    short = f"{machine['cores']}c-kernel{'.'.join(machine['kernel'].split('.')[:2])}"
    out = options.out or (tools.ROOT / "target/bench/quick" if options.quick else tools.ROOT / f"bench/runs/{date}-{short}")
    if (out / "raw").exists():
        shutil.rmtree(out / "raw")
    (out / "raw").mkdir(parents=True)
    shown = ("name", "group", "about", "base", "seconds", "rate", "connections", "stop_seconds")
    results = {"date": date, "host": machine, "quick": options.quick, "versions": versions, "absent": absent,
               "scenarios": [{key: about[key] for key in shown} for about in about_all], "runs": []}
    try:
        # Scenarios are gone through once a round: a slow hour of the machine then falls on all of them.
        for number in range(1, options.rounds + 1):
            for about in (about for about in about_all if number <= about["rounds_most"] and about["server"].split()[0] in programs):
                print(f"== {about['name']} ({number} of {min(options.rounds, about['rounds_most'])})", flush=True)
                here = [entrant for entrant in about["entrants"] if entrant[1] in programs]
                first = (number - 1) % max(1, len(here))
                for place, entrant in enumerate(here[first:] + here[:first], 1):
                    until_undisturbed(programs, about, entrant, number, place, out, results)
            write(out, results)
    finally:
        write(out, results)
        print(f"{out}/report.md", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="cargo xtask bench", description="Run holdup beside wrk, oha and h2load.")
    parser.add_argument("--quick", action="store_true", help="one short round, to see that it works; its figures mean nothing")
    parser.add_argument("--only", metavar="GROUP,...", type=lambda text: text.split(","), help=f"these groups: {', '.join(GROUPS)}")
    parser.add_argument("--tools", metavar="NAME,...", type=lambda text: text.split(","), help=f"these tools: {', '.join(TOOLS)}")
    parser.add_argument("--rounds", metavar="N", type=int, help="rounds, 5 unless told")
    parser.add_argument("--idle-seconds", metavar="N", type=int, help="length of the idle scenario")
    parser.add_argument("--bin", metavar="PATH", type=pathlib.Path, default=tools.ROOT / "target/release/holdup", help="the holdup to measure")
    parser.add_argument("--out", metavar="DIR", type=pathlib.Path, help="folder of the results")
    parser.add_argument("--report", metavar="DIR", type=pathlib.Path, help="make the report of these results again")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 5)
    unknown = set(options.only or ()) - set(GROUPS)
    if unknown:
        parser.error(f"no group is called {', '.join(sorted(unknown))}; groups are {', '.join(GROUPS)}")
    if options.report:
        (options.report / "report.md").write_text(markdown(json.loads((options.report / "results.json").read_text())))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        measure(options)
    except KeyboardInterrupt:
        raise SystemExit(130) from None


main()
