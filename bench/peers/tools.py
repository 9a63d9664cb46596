"""The tools and their servers: how each is had, its command line for a load, and what it says of it. `python3 -m doctest` runs the
examples, which are reports of the tools."""

import json
import os
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEPT = ROOT / "target/bench/tools"
# Requests that nginx is to serve on one connection: no run comes near it.
NGINX = """{user}worker_processes 1;
daemon off;
pid nginx.pid;
error_log error.log warn;
worker_rlimit_nofile 20000;
events {{ worker_connections 16000; }}
http {{
  access_log off;
  client_body_temp_path temporary/body; proxy_temp_path temporary/proxy; fastcgi_temp_path temporary/fastcgi;
  uwsgi_temp_path temporary/uwsgi; scgi_temp_path temporary/scgi;
  keepalive_requests 1000000000;
  keepalive_timeout 300s;
  open_file_cache max=16 inactive=300s;
  server {{
    listen 127.0.0.1:{port}{secure} backlog=4096;
    root www;
{suite}  }}
}}
"""
# One suite for all clients, or they would be measured with different ones.
SUITE = """    ssl_certificate certificate.pem;
    ssl_certificate_key key.pem;
    ssl_protocols TLSv1.3;
    ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
"""
SESSIONS = """target: {url}
load: {{users: {connections}, duration: {seconds}s}}
steps:
  - name: first
    get: /first?item=${{random(1, 5000)}}
    capture: {{token: json /token}}
  - name: second
    get: /second
    headers: {{Authorization: 'Bearer ${{token}}'}}
    check: json /token == 42
"""


class Absent(Exception):
    """A tool that can't be had; a run goes on without it."""


def logged(words, name, **more):
    """Runs it with its output in a log of its name; its last line is the reason if it fails."""
    log = KEPT / f"{name}.log"
    with open(log, "w") as file:
        if subprocess.run(words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd=ROOT, **more).returncode:
            lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()] or ["it said nothing"]
            raise Absent(f"{words[0]} failed: {lines[-1].strip()} (all of it in {log.relative_to(ROOT)})")


def first_line(words):
    done = subprocess.run(words, capture_output=True, text=True)
    return next(iter((done.stdout or done.stderr).splitlines()), "").strip()


def built(name):
    """A C program of this folder."""
    source, program = pathlib.Path(__file__).with_name(f"{name}.c"), KEPT / name
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        logged(["cc", "-O2", "-o", program, source], name)
    return str(program), f"of this checkout, {first_line(['cc', '--version'])} -O2"


def ours(program):
    if not program.exists():
        raise Absent(f"no {program}; build it with: cargo build --release -p holdup")
    commit = first_line(["git", "-C", ROOT, "describe", "--always", "--dirty"])
    return str(program), f"{first_line([program, '--version'])} ({commit})"


def debian(package, program):
    path = os.environ["PATH"] + ":/usr/local/sbin:/usr/sbin:/sbin"
    if not shutil.which(program, path=path):
        # The project's own script: it keeps what is installed from starting as a service, too.
        logged(["sh", "labs/kit/need.sh", package], package)
    found = shutil.which(program, path=path)
    if not found:
        raise Absent(f"{package} has no {program}")
    return found, "Debian " + first_line(["dpkg-query", "-W", "-f", "${Version}\n", package])


def oha():
    program = shutil.which("oha") or str(KEPT / "bin/oha")
    if not os.path.exists(program):
        print("   crates.io: oha (some minutes, once)", flush=True)
        # --locked: with what its author tested, and with what builds on this compiler.
        logged([os.environ.get("CARGO", "cargo"), "install", "--locked", "oha", "--root", KEPT, "--target-dir", KEPT / "build"], "oha")
        # Hundreds of megabytes that nobody needs again.
        shutil.rmtree(KEPT / "build")
    return program, first_line([program, "--version"])


def had(holdup, wanted):
    """Programs and versions of what is wanted and here, and why the others are not."""
    KEPT.mkdir(parents=True, exist_ok=True)
    sources = {"floor": lambda: built("floor"), "responder": lambda: built("responder"), "holdup": lambda: ours(holdup), "oha": oha,
               "wrk": lambda: debian("wrk", "wrk"), "h2load": lambda: debian("nghttp2-client", "h2load"),
               "nginx": lambda: debian("nginx", "nginx")}
    programs, versions, absent = {}, {}, {}
    for name, source in sources.items():
        if name not in wanted:
            continue
        try:
            programs[name], versions[name] = source()
        except (Absent, FileNotFoundError) as error:
            absent[name] = str(error).replace(f"{ROOT}/", "")
            print(f"   {name}: not here: {absent[name]}", flush=True)
    return programs, versions, absent


def arguments(tool, load, url, flags, scratch):
    """Its command line, without the program."""
    connections, seconds, rate = load["connections"], load["seconds"], load["rate"]
    if tool == "floor":
        return [url.split(":")[2].strip("/"), connections, seconds]
    if tool == "wrk":
        return ["-t1", f"-c{connections}", f"-d{seconds}s", *flags, "--latency", url]
    if tool == "h2load":
        return ["-t", 1, "-c", connections, "-D", seconds, *flags, url]
    if tool == "oha":
        paced = ["-q", rate] if rate else []
        return ["-z", f"{seconds}s", "-c", connections, *paced, "--no-tui", "--output-format", "json", *flags, url]
    tail = ["--no-collect", "--json", "-q", "-o", scratch / "recording"]
    if flags == ["@sessions"]:
        (scratch / "sessions.yaml").write_text(SESSIONS.format(url=url.rstrip("/"), connections=connections, seconds=seconds))
        return ["run", scratch / "sessions.yaml", *tail]
    paced = ["--rate", rate] if rate else ["--closed"]
    return ["run", "--url", url, *paced, "--connections", connections, "--duration", f"{seconds}s", *tail, *flags]


def keeps_rate(tool):
    return tool in ("holdup", "oha")


def milliseconds(text):
    """`1.71ms`, `990.00us`, `2.0s`."""
    match = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text or "")
    return float(match[1]) * {"us": 1e-3, "ms": 1, "s": 1e3, "m": 6e4}[match[2]] if match else None


def number(pattern, text):
    match = re.search(pattern, text)
    return int(match[1]) if match else 0


def read(tool, text):
    """What it says of its load, in one form.

    >>> wrk = '''    Latency     1.02ms  300.00us   21.50ms   87.10%
    ...   Latency Distribution
    ...      50%  990.00us
    ...      99%    1.71ms
    ...   371000 requests in 6.00s, 40.00MB read
    ...   Socket errors: connect 0, read 3, write 0, timeout 4
    ... '''
    >>> read("wrk", wrk)
    {'completed': 371000, 'errors': 7, 'p50_ms': 0.99, 'p99_ms': 1.71, 'max_ms': 21.5}
    >>> h2load = '''requests: 62001 total, 62065 started, 62001 done, 62000 succeeded, 1 failed, 1 errored, 0 timeout
    ... time for request:      150us     12.50ms       1.02ms       300us    80.00%'''
    >>> read("h2load", h2load)
    {'completed': 62000, 'errors': 1, 'max_ms': 12.5}
    >>> read("oha", '''{"summary": {"slowest": 2.0}, "latencyPercentiles": {"p50": 0.0011, "p99": 1.8, "p99.9": 1.98},
    ... "statusCodeDistribution": {"200": 9990}, "errorDistribution": {"aborted due to deadline": 8, "reset": 1}}''')
    {'completed': 9990, 'errors': 1, 'p50_ms': 1.1, 'p99_ms': 1800.0, 'p999_ms': 1980.0, 'max_ms': 2000.0}
    >>> holdup = read("holdup", '''{"load": {"operations": [{"completed": 97, "errors": {"timeout": 2, "reset": 1},
    ... "response_ms": {"p50": 1.2, "p99": 1800.5, "p999": 1980, "max": 2000.1}, "send_lag_ms": {"p99": 0.11}}]}}''')
    >>> holdup["completed"], holdup["errors"], holdup["p99_ms"], holdup["send_lag_p99_ms"]
    (97, 3, 1800.5, 0.11)
    """
    if tool == "floor":
        return json.loads(text)
    if tool == "wrk":
        spread = text.partition("Latency Distribution")[2]
        latency = re.search(r"Latency +\S+ +\S+ +(\S+)", text)
        socket_errors = re.search(r"Socket errors: (.*)", text)
        return {
            "completed": number(r"(\d+) requests in ", text),
            "errors": sum(map(int, re.findall(r"\d+", socket_errors[1]))) if socket_errors else 0,
            **{f"p{at}_ms": milliseconds(m[1]) for at in (50, 99) if (m := re.search(rf"{at}% +(\S+)", spread))},
            "max_ms": milliseconds(latency and latency[1]),
        }
    if tool == "h2load":
        times = re.search(r"time for request: +\S+ +(\S+)", text)
        return {"completed": number(r"(\d+) succeeded", text), "errors": number(r"(\d+) failed", text),
                "max_ms": milliseconds(times and times[1])}
    said = json.loads(text)
    if tool == "oha":
        errors, ms = said["errorDistribution"], lambda seconds: None if seconds is None else seconds * 1e3
        return {
            "completed": said["statusCodeDistribution"]["200"],
            # What was under way when the time was over is no failure.
            "errors": sum(count for why, count in errors.items() if why != "aborted due to deadline"),
            "p50_ms": ms(said["latencyPercentiles"]["p50"]),
            "p99_ms": ms(said["latencyPercentiles"]["p99"]),
            "p999_ms": ms(said["latencyPercentiles"]["p99.9"]),
            "max_ms": ms(said["summary"]["slowest"]),
        }
    operations = said["load"]["operations"]
    count = lambda errors: sum(errors.values()) if isinstance(errors, dict) else errors or 0  # noqa: E731
    response = operations[-1]["response_ms"]
    return {
        "completed": sum(operation["completed"] for operation in operations),
        "errors": sum(count(operation["errors"]) for operation in operations),
        **{f"{at}_ms": response.get(at) for at in ("p50", "p99", "p999", "max")},
        "send_lag_p99_ms": operations[-1].get("send_lag_ms", {}).get("p99"),
    }


def nginx_folder(folder, port, is_secure):
    """Its configuration, what it serves, and a certificate of its own for a day if it needs one."""
    for name in "www", "temporary":
        (folder / name).mkdir()
    (folder / "www/index.html").write_text("Hello, world\n")
    if is_secure:
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
                        "-keyout", "key.pem", "-out", "certificate.pem"], cwd=folder, check=True, capture_output=True)
    # A worker of root's nginx would give root up and then not find its files.
    user = "user root;\n" if os.geteuid() == 0 else ""
    secure = " ssl http2" if is_secure else ""
    (folder / "nginx.conf").write_text(NGINX.format(user=user, port=port, secure=secure, suite=SUITE if is_secure else ""))
