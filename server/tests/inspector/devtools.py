"""Controls a browser through its DevTools pipe, with the standard library only."""

import json
import os
import select
import shutil
import subprocess
import tempfile
import time

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class BrowserError(Exception):
    """The browser reported an error, or did not answer in time."""


def find():
    """The path of an installed browser, or None."""
    return next((path for path in map(shutil.which, BROWSERS) if path), None)


class Page:
    """One page of one headless browser; records console messages and requested URLs."""

    def __init__(self, browser, width=1280, height=900):
        self.profile = tempfile.TemporaryDirectory(prefix="louver-inspector-")
        to_browser, self.out = os.pipe()
        self.inp, from_browser = os.pipe()
        arguments = [
            browser,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--no-first-run",
            "--hide-scrollbars",
            f"--user-data-dir={self.profile.name}",
            "--remote-debugging-pipe",
        ]
        # The browser reads commands from descriptor 3 and writes answers to 4.
        shell = ["sh", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "sh", *arguments]
        self.process = subprocess.Popen(shell, pass_fds=(to_browser, from_browser), stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.number = 0
        self.buffer = b""
        self.complaints = []
        self.session = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.size(width, height)

    def close(self):
        """Closes the browser."""
        self.session = None
        try:
            self.ask("Browser.close", timeout=5)
        except (BrowserError, OSError):
            self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.inp)
        os.close(self.out)
        self.profile.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _message(self, deadline):
        while b"\0" not in self.buffer:
            if not select.select([self.inp], [], [], max(0, deadline - time.monotonic()))[0]:
                raise BrowserError("the browser does not answer")
            more = os.read(self.inp, 1 << 16)
            if not more:
                raise BrowserError("the browser has ended")
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def _note(self, message):
        kind, params = message.get("method"), message.get("params", {})
        if kind == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details.get("text")))
        elif kind == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(params["args"]))
        elif kind == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        elif kind == "Network.requestWillBeSent":
            self.requested.append(params["request"]["url"])

    requested = []

    def ask(self, method, timeout=60, **params):
        """Sends a command and returns its result."""
        self.number += 1
        command = {"id": self.number, "method": method, "params": params}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.out, json.dumps(command).encode() + b"\0")
        deadline = time.monotonic() + timeout
        while True:
            message = self._message(deadline)
            if message.get("id") == self.number:
                if "error" in message:
                    raise BrowserError(f"{method}: {message['error']}")
                return message["result"]
            self._note(message)

    def size(self, width, height):
        """Sets the size of the window, in pixels."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def dark(self, dark):
        """Sets the preferred colour scheme."""
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", features=features)

    def open(self, url):
        """Opens a URL; waits for the document and its scripts."""
        self.requested = []
        failed = self.ask("Page.navigate", url=url).get("errorText")
        if failed:
            raise BrowserError(f"{url}: {failed}")
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script):
        """Evaluates an expression and returns its value."""
        result = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise BrowserError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, script, seconds=30):
        """Waits until an expression is true."""
        deadline = time.monotonic() + seconds
        while not self.run(script):
            if time.monotonic() > deadline:
                raise BrowserError(f"never true: {script}")
            time.sleep(0.05)

    def key(self, key, text=None):
        """Presses a key."""
        extra = {"text": text} if text else {}
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, **extra)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key)

    def screenshot(self):
        """The contents of the window as PNG bytes."""
        import base64

        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])
