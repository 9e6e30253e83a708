"""`louver serve` with the embedded model, on ports of its own."""

import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

KEY = "sk-louver-test"
START = 120


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """One process."""

    def __init__(self, folder, name, arguments):
        self.log = folder / f"{name}.log"
        self.root = f"http://127.0.0.1:{(port := free_port())}"
        self.url = f"{self.root}/v1"
        command = [os.environ["LOUVER"], "serve", "--tiny", "--port", str(port), *arguments]
        environment = os.environ | {"XDG_CACHE_HOME": str(folder)}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        self._wait()

    def _wait(self):
        end = time.monotonic() + START
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}:\n{self.log.read_text()}")
            try:
                if self.get("/healthz")[0] == 200:
                    return
            except OSError:
                time.sleep(0.05)
        self.process.kill()
        raise RuntimeError(f"the server does not answer:\n{self.log.read_text()}")

    def get(self, path):
        """Status and text of a route beside the API."""
        request = urllib.request.Request(self.root + path, headers={"Authorization": f"Bearer {KEY}"})
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, response.read().decode()

    def metric(self, name):
        """The sum of a metric's samples."""
        lines = [line.split() for line in self.get("/metrics")[1].splitlines() if not line.startswith("#")]
        return sum(float(line[-1]) for line in lines if line and line[0].split("{")[0] == name)

    def stop(self):
        """Asks it to stop; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Servers:
    """The server of most cases, and a narrow one that is started when it is first asked for."""

    def __enter__(self):
        self._scratch = tempfile.TemporaryDirectory(prefix="louver-openai-")
        self._folder = pathlib.Path(self._scratch.name)
        self._narrow = None
        self.main = Server(self._folder, "main", ["--api-key", KEY])
        self.client = self.of(self.main)
        self.model = self.client.models.list().data[0].id
        return self

    def __exit__(self, *_):
        self.client.close()
        codes = [server.stop() for server in (self.main, self._narrow) if server]
        self._scratch.cleanup()
        print(f"the servers ended with {codes}")

    @staticmethod
    def of(server, **more):
        from openai import OpenAI

        options = {"api_key": KEY, "base_url": server.url, "max_retries": 0, "timeout": 120} | more
        return OpenAI(**options)

    def asynchronous(self, **more):
        from openai import AsyncOpenAI

        options = {"api_key": KEY, "base_url": self.main.url, "max_retries": 0, "timeout": 120} | more
        return AsyncOpenAI(**options)

    @property
    def narrow(self):
        """One request at a time, none waits; short bodies, few choices and tokens."""
        if self._narrow is None:
            limits = self._folder / "limits.toml"
            limits.write_text(
                "[http]\nbody_bytes = 20000\n"
                "[requests]\nconcurrent = 1\nqueue = 0\nn = 1\nmax_tokens = 3000\ntools = 3\n"
            )
            self._narrow = Server(self._folder, "narrow", ["--api-key", KEY, "--limits", str(limits)])
        return self._narrow

    def alive(self):
        return all(server.process.poll() is None for server in (self.main, self._narrow) if server)

    def log_tail(self):
        return "\n".join(self.main.log.read_text(errors="replace").splitlines()[-30:])
