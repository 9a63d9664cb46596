"""`holdup generate` and pymongo's insert_many, in turn on one server, and then one long run.

    speed.py HOLDUP FERRETDB OUT [--rows N] [--rounds N] [--long SECONDS]

Starts FerretDB in a scratch folder on a free port of loopback. A round is A B B A: pymongo, holdup, holdup, pymongo,
each into an empty collection, the same documents in batches of 1,000 over one connection. pymongo has the documents
in memory before its clock starts; holdup makes them meanwhile. holdup counts all documents at its end, so the same
count is timed behind each run: pymongo's is added for the whole, holdup's is taken off for the inserts alone. The long
run has four connections and is ended by SIGINT. Writes rounds.csv, long.csv and totals.json into OUT.
"""
import argparse, csv, json, os, pathlib, shutil, signal, socket, subprocess, tempfile, time
import pymongo

SCHEMA = """collection: NAME
seed: 7
fields:
  customer: {zipf: {of: 50000, exponent: 1.1}}
  state: {choice: {paid: 90, open: 9, cancelled: 1}}
  total: {uniform: 0.50..499.99}
  at: {date: 2024-01-01..2026-01-01}
  note: {words: 3..12, nulls: 0.3}
  address: {nested: {city: {choice: [Bonn, Ulm]}, zip: {uniform: 10000..99999}}}
  items: {array: {length: 1..5, of: {nested: {sku: {text: 8}, pieces: {uniform: 1..9}}}}}
"""
BATCH = 1_000
PASSWORD = "generate-bench"


def status_kib(pid, field):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    return None


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Bench:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        (folder / "data").mkdir()
        self.server = subprocess.Popen(
            [args.ferretdb, "--handler=sqlite", "--debug-addr=-", "--telemetry=disable", f"--sqlite-url=file:{folder}/data/",
             f"--state-dir={folder}", f"--listen-addr=127.0.0.1:{self.port}", "--test-enable-new-auth", "--log-level=error",
             "--setup-username=holdup", "--setup-database=accounts", f"--setup-password={PASSWORD}"],
            stdout=open(folder / "log", "w"), stderr=subprocess.STDOUT)
        uri = f"mongodb://holdup:{PASSWORD}@127.0.0.1:{self.port}/?authSource=accounts&authMechanism=SCRAM-SHA-256"
        deadline = time.time() + 30
        while True:
            try:
                self.db = pymongo.MongoClient(uri, serverSelectionTimeoutMS=1000, maxPoolSize=1)["speed"]
                self.db.command("ping")
                break
            except pymongo.errors.PyMongoError:
                if time.time() > deadline:
                    raise
                time.sleep(0.2)

    def generate(self, name, rows, connections, said=subprocess.PIPE):
        schema = self.folder / f"{name}.yaml"
        schema.write_text(SCHEMA.replace("NAME", name))
        to = f"mongodb://holdup@127.0.0.1:{self.port}/speed?authSource=accounts"
        return subprocess.Popen(
            [self.args.holdup, "generate", schema, "--to", to, "--rows", str(rows), "--connections", str(connections)],
            env=dict(os.environ, HOLDUP_MONGODB_PASSWORD=PASSWORD), stdout=said, stderr=subprocess.STDOUT, text=True)

    def counted(self, name):
        started = time.time()
        count = self.db.command("count", name)["n"]
        assert count == self.args.rows, (name, count)
        return time.time() - started

    def by_holdup(self, name):
        started = time.time()
        run = self.generate(name, self.args.rows, 1)
        said = run.communicate()[0]
        assert run.returncode == 0, said
        whole = time.time() - started
        return whole - self.counted(name), whole

    def by_pymongo(self, name, documents):
        collection, started = self.db[name], time.time()
        for first in range(0, len(documents), BATCH):
            collection.insert_many(documents[first:first + BATCH], ordered=False)
        inserts = time.time() - started
        return inserts, inserts + self.counted(name)

    def rounds(self, out):
        self.by_holdup("warm")
        documents = list(self.db["warm"].find())
        assert len(documents) == self.args.rows
        self.db["warm"].drop()
        with open(out / "rounds.csv", "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["round", "place", "tool", "documents", "insert_seconds", "whole_seconds", "load_1m"])
            for number in range(1, self.args.rounds + 1):
                for place, tool in enumerate(["pymongo", "holdup", "holdup", "pymongo"], 1):
                    name = f"r{number}p{place}"
                    took = self.by_pymongo(name, documents) if tool == "pymongo" else self.by_holdup(name)
                    rows.writerow([number, place, tool, self.args.rows, *(f"{it:.3f}" for it in took), f"{os.getloadavg()[0]:.2f}"])
                    file.flush()
                    self.db[name].drop()

    def long(self, out):
        said = self.folder / "said"
        with open(said, "w") as into:
            run, started = self.generate("long", 20_000_000, 4, into), time.time()
        with open(out / "long.csv", "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["seconds", "documents", "holdup_rss_kib", "holdup_peak_kib", "holdup_cpu_seconds", "server_rss_kib", "server_cpu_seconds"])
            while time.time() - started < self.args.long and run.poll() is None:
                time.sleep(5)
                if run.poll() is None:
                    own = (status_kib(run.pid, "VmRSS"), status_kib(run.pid, "VmHWM"), f"{cpu_seconds(run.pid):.2f}")
                    server = (status_kib(self.server.pid, "VmRSS"), f"{cpu_seconds(self.server.pid):.2f}")
                    rows.writerow([f"{time.time() - started:.1f}", self.so_far(said), *own, *server])
                    file.flush()
        took, documents = time.time() - started, self.so_far(said)
        run.send_signal(signal.SIGINT)
        run.wait(timeout=120)
        return {"seconds": round(took, 1), "documents": documents, "last_line": said.read_text().strip().splitlines()[-1]}

    @staticmethod
    def so_far(said):
        lines = [line for line in said.read_text().splitlines() if " of " in line]
        return int(lines[-1].split(": ")[1].split(" of ")[0].replace(",", "")) if lines else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("holdup"), parser.add_argument("ferretdb"), parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--long", type=int, default=600)
    args = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="generate-bench-"))
    bench = Bench(args, folder)
    try:
        bench.rounds(args.out)
        totals = bench.long(args.out) if args.long else {}
        totals["pymongo"] = pymongo.version
        (args.out / "totals.json").write_text(json.dumps(totals, indent=1) + "\n")
    finally:
        bench.server.terminate()
        bench.server.wait()
        shutil.rmtree(folder)


main()
