"""Runs `louver serve --tiny` during a test."""

import json
import re
import subprocess
import threading
import time
import urllib.request


class Louver:
    """The server process; `url` is its base URL."""

    def __init__(self, binary, *more, seconds=60):
        arguments = [binary, "serve", "--tiny", "--port", "0", *more]
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.log, self.url = [], None
        threading.Thread(target=self._read, daemon=True).start()
        deadline = time.monotonic() + seconds
        while not self.url or not self._healthy():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise RuntimeError("louver serve does not start:\n" + "".join(self.log))
            time.sleep(0.05)

    def _read(self):
        for line in self.process.stdout:
            self.log.append(line)
            address = re.search(r"http://[0-9.]+:[1-9][0-9]*|(?<![0-9.])127\.0\.0\.1:[1-9][0-9]*", line)
            if address and not self.url:
                self.url = address[0] if address[0].startswith("http") else f"http://{address[0]}"

    def _healthy(self):
        try:
            return self.get("/healthz") is not None
        except OSError:
            return False

    def get(self, path):
        """The JSON response to a GET request."""
        with urllib.request.urlopen(self.url + path, timeout=30) as response:
            return json.load(response)

    def post(self, path, body):
        """The JSON response to a POST request; a list of all events if it is a stream."""
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as response:
            if response.headers["content-type"].startswith("text/event-stream"):
                data = [line[6:] for line in response.read().decode().splitlines() if line.startswith("data: ")]
                assert data.pop() == "[DONE]"
                return [json.loads(line) for line in data]
            return json.load(response)

    def headers(self, path):
        """The response headers of a GET request."""
        with urllib.request.urlopen(self.url + path, timeout=30) as response:
            return response.headers

    def close(self):
        """Stops the server with SIGTERM, after 20 seconds with SIGKILL."""
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
