"""Runs the suites of the clients against `louver serve` with the embedded model.

Each suite is a program that prints a line for each case. Two run at a time, each against servers
of its own. Arguments: parts of the names of the cases to run, such as `langchain` or `streamed`.
"""

import os
import pathlib
import queue
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "openai" / "suite"))

from server import KEY, Server

PYTHON, PYTHON_2 = sys.executable, os.environ["PYTHON_2"]
# The folder with node_modules and a copy of the suites; absent without Node.
MODULES = os.environ.get("MODULES")
NODE = os.environ.get("NODE")

# Each suite and what runs it, the slowest ones first.
SUITES = {
    "vercel": NODE,
    "openai_agents": PYTHON,
    "langchain": PYTHON,
    "openai": NODE,
    "pydantic_ai": PYTHON,
    "langgraph": PYTHON,
    "instructor": PYTHON_2,
    "litellm": PYTHON,
    "smolagents": PYTHON,
    "http": PYTHON,
    "guide": PYTHON,
}
CONFIG = 'strict_tools = "all"\ncors_origins = ["https://app.example"]\n'
WORKERS = 2
# Of a suite, in seconds.
TIMEOUT = 1800


class Worker:
    """Two servers: one as it is, and one on which every tool is strict."""

    def __init__(self, folder):
        folder.mkdir()
        config = folder / "louver.toml"
        config.write_text(CONFIG)
        self.servers = [
            Server(folder, "main", ["--api-key", KEY]),
            Server(folder, "strict", ["--api-key", KEY, "--config", str(config)]),
        ]
        plain, strict = self.servers
        self.environment = os.environ | {
            "LOUVER_URL": plain.url,
            "LOUVER_STRICT_URL": strict.url,
            "LOUVER_KEY": KEY,
            "LOUVER_MODEL": "tiny",
        }

    def run(self, suite, parts):
        """Runs a suite; whether it passed, and what it printed."""
        program = SUITES[suite]
        if program == NODE:
            command, folder = [program, f"suites/{suite}.mjs", *parts], MODULES
        else:
            command, folder = [program, "-B", "-m", f"suites.{suite}", *parts], HERE
        ran = subprocess.run(
            command, cwd=folder, env=self.environment, text=True, timeout=TIMEOUT,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        alive = all(server.process.poll() is None for server in self.servers)
        log = "" if alive else f"a server died: {[s.log.read_text()[-3000:] for s in self.servers]}"
        return ran.returncode == 0 and alive, ran.stdout + log

    def stop(self):
        for server in self.servers:
            server.stop()


def work(folder, suites, parts, results):
    worker = Worker(folder)
    try:
        while True:
            suite = suites.get_nowait()
            begun = time.monotonic()
            passed, text = worker.run(suite, parts)
            cases = len(re.findall(r"^(?:ok|FAILED) ", text, re.M))
            results[suite] = (passed, cases, time.monotonic() - begun)
            print(text, end="", flush=True)
    except queue.Empty:
        pass
    finally:
        worker.stop()


def main(parts):
    suites = queue.Queue()
    for suite, program in SUITES.items():
        if program:
            suites.put(suite)
    count, results = suites.qsize(), {}
    with tempfile.TemporaryDirectory(prefix="louver-clients-") as scratch:
        arguments = lambda i: (pathlib.Path(scratch) / str(i), suites, parts, results)
        workers = [threading.Thread(target=work, args=arguments(i)) for i in range(WORKERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    print()
    for suite, (passed, cases, seconds) in results.items():
        if cases or not passed:
            print(f"{'passed' if passed else 'FAILED'}   {suite}: {cases} cases in {seconds:.0f} s")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{used.ru_utime + used.ru_stime:.0f} s of processor time")
    if not NODE:
        print("skipped  vercel, openai: Node is not installed")
    total = sum(cases for _, cases, _ in results.values())
    passed = len(results) == count and all(passed for passed, *_ in results.values())
    return 0 if passed and total else 1


sys.exit(main(sys.argv[1:]))
