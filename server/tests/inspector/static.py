"""Serves the page's files and given traces over HTTP, without louver: for work on the page alone."""

import http.server
import json
import pathlib
import threading

PAGE = pathlib.Path(__file__).parents[2] / "src/inspect/page"
KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
# The policy of server/src/inspect/page.rs; a test of the server compares the two.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)


class Static:
    """An HTTP server on a free port of 127.0.0.1, until `close`."""

    def __init__(self, traces):
        by_id = {trace["id"]: trace for trace in traces}

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                kind, body = "application/json", None
                if self.path == "/inspect":
                    kind, body = "text/html", (PAGE / "index.html").read_bytes()
                elif self.path == "/v1/louver/traces":
                    data = [
                        {"id": t["id"], "created": t["created"], "model": t["request"]["model"], "steps": len(t["steps"]), "finish": t["finish"]}
                        for t in traces
                    ]
                    body = json.dumps({"object": "list", "data": data}).encode()
                elif self.path.startswith("/v1/louver/traces/"):
                    trace = by_id.get(self.path.rsplit("/", 1)[1])
                    body = trace and json.dumps(trace).encode()
                else:
                    file = PAGE / self.path.rsplit("/", 1)[1]
                    if file.is_file():
                        kind, body = KINDS[file.suffix], file.read_bytes()
                self.send_response(200 if body else 404)
                self.send_header("content-type", f"{kind}; charset=utf-8")
                self.send_header("content-security-policy", POLICY)
                self.end_headers()
                self.wfile.write(body or b'{"error": {"message": "no such trace", "param": null}}')

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        """Stops the server."""
        self.server.shutdown()
        self.server.server_close()
