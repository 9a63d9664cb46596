"""A MariaDB and a PostgreSQL of the system's for a measurement: on loopback, on a free port, in a folder of its own, started by the
scripts of the labs and ended with the `Stack`."""

import dataclasses
import pathlib
import subprocess
import time

from collect import KIT, free_port


@dataclasses.dataclass
class Server:
    port: int
    # Where it logs.
    log: pathlib.Path
    # What executes the statements behind it.
    client: list

    def sql(self, statements):
        subprocess.run([*self.client, statements], check=True, capture_output=True, text=True)

    def until_it_answers(self):
        for _ in range(600):
            if subprocess.run([*self.client, "SELECT 1"], capture_output=True).returncode == 0:
                return self
            time.sleep(0.2)
        raise SystemExit(f"the server does not answer:\n{self.log.read_text()[-2_000:]}")


def mariadb(stack, folder, *flags):
    port, socket, log = free_port(), folder / "socket", folder / "error.log"
    subprocess.run(["sh", KIT / "mariadb-init.sh", folder / "data"], check=True, stdout=subprocess.DEVNULL)
    stack.start(["sh", KIT / "mariadbd.sh", "--no-defaults", f"--datadir={folder / 'data'}", f"--port={port}", "--bind-address=127.0.0.1",
                 f"--socket={socket}", "--innodb-buffer-pool-size=64M", *flags], stdout=subprocess.DEVNULL, stderr=open(log, "w"))
    return Server(port, log, ["mariadb", "--no-defaults", "-u", "root", f"--socket={socket}", "-e"]).until_it_answers()


def postgresql(stack, folder, *settings):
    port, log = free_port(), folder / "server.log"
    # It does not run as root, and has to get through to its data.
    folder.chmod(0o711)
    subprocess.run(["sh", KIT / "postgresql.sh", "init", "here", folder / "data"], check=True, capture_output=True)
    settings = ["listen_addresses=127.0.0.1", f"unix_socket_directories={folder / 'data'}", *settings]
    stack.start(["sh", KIT / "postgresql.sh", "serve", "here", "-D", folder / "data", "-p", str(port), *(w for s in settings for w in ("-c", s))],
                cwd=folder / "data", stdout=subprocess.DEVNULL, stderr=open(log, "w"))
    client = ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(port), "-U", "boss", "-d", "postgres", "-c"]
    return Server(port, log, client).until_it_answers()
