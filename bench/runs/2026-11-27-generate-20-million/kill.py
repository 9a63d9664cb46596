"""Twenty million rows by `holdup generate` into PostgreSQL, killed at 15, 45 and 80 % and resumed, against a run that was left alone.

    kill.py HOLDUP PORT OUT [--rows N]      (a PostgreSQL on loopback, account boss without a password, an empty database)

Writes kill.csv: a line each 5 s with the rows so far and holdup's memory; and prints counts and hashes of both tables.
"""
import csv, os, pathlib, signal, subprocess, sys, time
holdup, port, out = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
rows = int(sys.argv[5]) if len(sys.argv) > 5 else 20_000_000
schema = (out / "orders.yaml").read_text()

def psql(text):
    return subprocess.run(["psql", "-X", "-A", "-t", "-h", "127.0.0.1", "-p", port, "-U", "boss", "-d", "postgres", "-c", text],
                          capture_output=True, text=True, check=True).stdout.strip()

def kib(pid, field):
    return next(int(line.split()[1]) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(field + ":"))

def run(table, writer, kill_at=None):
    file = out / f"{table}.yaml"
    file.write_text(schema.replace("orders", table, 1))
    said = out / f"{table}.txt"
    with open(said, "w") as into:
        own = subprocess.Popen([holdup, "generate", file, "--to", f"postgres://boss@127.0.0.1:{port}/postgres", "--rows", str(rows)],
                               stdout=into, stderr=subprocess.STDOUT)
    begun, told = time.time(), 0
    while own.poll() is None:
        time.sleep(0.2)
        lines = [line for line in said.read_text().splitlines() if " of " in line]
        now = int(lines[-1].split(": ")[1].split(" of ")[0].replace(",", "")) if lines else 0
        if own.poll() is None and time.time() - told > 5:
            told = time.time()
            writer.writerow([table, f"{time.time() - begun:.1f}", now, kib(own.pid, "VmRSS"), kib(own.pid, "VmHWM")])
        if kill_at and now >= kill_at * rows:
            own.send_signal(signal.SIGKILL)
            own.wait()
            print(f"{table}: killed after {now} rows and {time.time() - begun:.0f} s", flush=True)
            return
    print(f"{table}: exit {own.returncode} after {time.time() - begun:.0f} s:", said.read_text().splitlines()[-1], flush=True)

with open(out / "kill.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["table", "seconds", "rows", "rss_kib", "peak_kib"])
    run("whole", writer)
    for share in (0.15, 0.45, 0.8, None):
        run("broken", writer, share)
for table in ("whole", "broken"):
    print(table, psql(f"SELECT count(*), count(DISTINCT id), min(id), max(id), sum(hashtextextended(t::text, 7)::numeric) FROM {table} AS t"), flush=True)
