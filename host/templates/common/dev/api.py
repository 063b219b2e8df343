"""An API to try the plugin against: it shows what it gets, and does not take events that have a key "refuse".

Usage: python3 dev/api.py [PORT]
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        events = json.loads(self.rfile.read(int(self.headers["content-length"])))
        print(f"{len(events)} events, idempotency-key {self.headers['idempotency-key']}:")
        for event in events:
            print("  " + json.dumps(event), flush=True)
        rejected = [{"index": n, "reason": "refused"} for n, event in enumerate(events) if "refuse" in event]
        answer = json.dumps({"rejected": rejected}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


port = int(sys.argv[1]) if len(sys.argv) > 1 else 8080
print(f"listening on http://localhost:{port}", flush=True)
ThreadingHTTPServer(("127.0.0.1", port), Api).serve_forever()
