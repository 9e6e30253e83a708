"""`louver serve --tiny` for as long as a test takes."""

import json
import re
import subprocess
import threading
import time
import urllib.request


class Louver:
    """The server; `url` is where it listens."""

    def __init__(self, binary, *more, seconds=60):
        arguments = [binary, "serve", "--tiny", "--port", "0", *more]
        self.process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.log, self.url = [], None
        threading.Thread(target=self._read, daemon=True).start()
        deadline = time.monotonic() + seconds
        while not self.url or not self._healthy():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise RuntimeError("louver serve does not come up:\n" + "".join(self.log))
            time.sleep(0.05)

    def _read(self):
        for line in self.process.stdout:
            self.log.append(line)
            found = re.search(r"http://[0-9.]+:[1-9][0-9]*|(?<![0-9.])127\.0\.0\.1:[1-9][0-9]*", line)
            if found and not self.url:
                self.url = found[0] if found[0].startswith("http") else f"http://{found[0]}"

    def _healthy(self):
        try:
            return self.get("/healthz") is not None
        except OSError:
            return False

    def get(self, path):
        """The JSON of a route."""
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return json.load(answer)

    def post(self, path, body):
        """The JSON of a route's answer; that of all events if it is a stream."""
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            if answer.headers["content-type"].startswith("text/event-stream"):
                data = [line[6:] for line in answer.read().decode().splitlines() if line.startswith("data: ")]
                assert data.pop() == "[DONE]"
                return [json.loads(line) for line in data]
            return json.load(answer)

    def headers(self, path):
        """The headers of a route's answer."""
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return answer.headers

    def close(self):
        """Tells it to stop."""
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
