"""The command line, and peers on this machine."""

from __future__ import annotations

import json
import socket
import subprocess
import sys


def command(*args: str, fails: bool = False) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, "-m", "lopa", *args], capture_output=True, text=True)
    assert fails or done.returncode == 0, f"{args}\n{done.stdout}\n{done.stderr}"
    return done


def as_peers(file: str, names: list[str]) -> list[list[str]]:
    """Runs an experiment with a process for each name; returns the digests that each found."""
    for name in names:
        key = command("key", "new", f"{name}.key").stdout.strip()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        command("roster", "add", "roster.toml", name, key, address)
    nodes = []
    for name in names:
        args = ["node", file, "--roster", "roster.toml", "--name", name, "--key", f"{name}.key"]
        more = ["--deadline", "60", "--format", "json", "--out", name]
        whole = [sys.executable, "-m", "lopa", *args, *more]
        nodes.append(subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    found = []
    for node in nodes:
        out, said = node.communicate(timeout=200)
        assert node.returncode == 0, said
        found.append([result["digest"] for result in json.loads(out)])
    return found
