"""Twenty million documents by `holdup generate` into one FerretDB, with the memory of both every ten seconds.

    long.py HOLDUP FERRETDB FOLDER OUT [--rows N]

FOLDER keeps the server's data (about 10 GB); nothing is removed at the end. Writes long.csv, said.txt.
"""
import argparse, csv, os, pathlib, socket, subprocess, time

PASSWORD = "generate-bench"
parser = argparse.ArgumentParser()
parser.add_argument("holdup"), parser.add_argument("ferretdb")
parser.add_argument("folder", type=pathlib.Path), parser.add_argument("out", type=pathlib.Path)
parser.add_argument("--rows", type=int, default=20_000_000)
args = parser.parse_args()


def status_kib(pid, field):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def so_far(said):
    lines = [line for line in said.read_text().splitlines() if " of " in line]
    return int(lines[-1].split(": ")[1].split(" of ")[0].replace(",", "")) if lines else 0


with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
(args.folder / "data").mkdir(parents=True, exist_ok=True)
server = subprocess.Popen(
    [args.ferretdb, "--handler=sqlite", "--debug-addr=-", "--telemetry=disable", f"--sqlite-url=file:{args.folder}/data/",
     f"--state-dir={args.folder}", f"--listen-addr=127.0.0.1:{port}", "--test-enable-new-auth", "--log-level=error",
     "--setup-username=holdup", "--setup-database=accounts", f"--setup-password={PASSWORD}"],
    stdout=open(args.folder / "log", "w"), stderr=subprocess.STDOUT)
try:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.2)
    said = args.out / "said.txt"
    run = subprocess.Popen(
        [args.holdup, "generate", args.folder / "orders.yaml", "--to", f"mongodb://holdup@127.0.0.1:{port}/speed?authSource=accounts",
         "--rows", str(args.rows), "--connections", "4"],
        env=dict(os.environ, HOLDUP_MONGODB_PASSWORD=PASSWORD), stdout=open(said, "w"), stderr=subprocess.STDOUT, text=True)
    started = time.time()
    with open(args.out / "long.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["seconds", "documents", "holdup_rss_kib", "holdup_peak_kib", "holdup_cpu_seconds", "server_rss_kib", "server_cpu_seconds", "load_1m"])
        while run.poll() is None:
            time.sleep(10)
            if run.poll() is None:
                own = (status_kib(run.pid, "VmRSS"), status_kib(run.pid, "VmHWM"), f"{cpu_seconds(run.pid):.2f}")
                rows.writerow([f"{time.time() - started:.1f}", so_far(said), *own, status_kib(server.pid, "VmRSS"),
                               f"{cpu_seconds(server.pid):.2f}", f"{os.getloadavg()[0]:.2f}"])
                file.flush()
    print("exit", run.returncode, "after", round(time.time() - started), "s")
finally:
    server.terminate()
    server.wait()
