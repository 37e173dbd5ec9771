#!/usr/bin/env python3
"""Serves a folder to browsers on this machine: byte ranges, and the headers with which pages may have threads.

    samples/serve.py [FOLDER] [--port 8000] [--also PREFIX=FOLDER]... [--plain] [--quiet]

FOLDER (default: build/web/app, which web/build.sh makes) is what / shows; --also serves another folder below /PREFIX/.
--plain leaves out the headers that isolate pages (COOP, COEP), as many servers do: pages then have one thread. Every
answer is printed with its bytes; /counts says as JSON how many requests and bytes of bodies each path has cost, and
/counts?clear also begins again. Nothing but this machine can connect.
"""
import argparse
import http.server
import json
import os
import re
import sys
import threading
from pathlib import Path
from urllib.parse import unquote, urlsplit

TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
    ".wasm": "application/wasm", ".json": "application/json", ".png": "image/png", ".mkv": "video/x-matroska",
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folders = {}  # prefix -> folder
    isolated = True
    quiet = False
    counts = {}
    lock = threading.Lock()

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, with_body):
        url = urlsplit(self.path)
        if url.path == "/counts":
            return self.send_counts(url.query == "clear")
        path = self.file_of(unquote(url.path))
        if path is None:
            return self.send(404, b"there is no such file\n", {"Content-Type": "text/plain"}, with_body)
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            headers = {"Content-Type": TYPES.get(path.suffix, "application/octet-stream"), "Accept-Ranges": "bytes"}
            part = self.part(size)
            if part is None:
                return self.send(416, b"", {"Content-Range": f"bytes */{size}"}, with_body)
            begin, end, status = part
            if status == 206:
                headers["Content-Range"] = f"bytes {begin}-{end - 1}/{size}"
            file.seek(begin)
            self.send(status, file.read(end - begin), headers, with_body)

    def file_of(self, path):
        """The file below the folder of the longest prefix; None where there is none, also for what leads out."""
        for prefix, folder in sorted(self.folders.items(), key=lambda item: -len(item[0])):
            if path.startswith(prefix):
                found = (folder / (path[len(prefix):] or "index.html")).resolve()
                return found if found.is_file() and found.is_relative_to(folder) else None
        return None

    def part(self, size):
        """First byte, end and status of what is asked for: one range, else everything; None if no byte of it exists."""
        said = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", "").strip())
        if not said or not (said[1] or said[2]):
            return 0, size, 200
        if not said[1]:
            begin, end = max(0, size - int(said[2])), size
        else:
            begin, end = int(said[1]), min(size, int(said[2]) + 1 if said[2] else size)
        return (begin, end, 206) if begin < end else None

    def send(self, status, body, headers, with_body):
        with self.lock:
            count = self.counts.setdefault(urlsplit(self.path).path, {"requests": 0, "bytes": 0})
            count["requests"] += 1
            count["bytes"] += len(body) if with_body else 0
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-cache")
        if self.isolated:
            self.send_header("Cross-Origin-Opener-Policy", "same-origin")
            self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
            self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.end_headers()
        if with_body:
            self.wfile.write(body)
        if not self.quiet:
            text = f"{status} {self.path} {self.headers.get('Range', '')} {len(body)} bytes"
            print(text, file=sys.stderr, flush=True)

    def send_counts(self, clear):
        with self.lock:
            body = json.dumps(self.counts).encode()
            if clear:
                self.counts.clear()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=str(Path(__file__).resolve().parents[1] / "build/web/app"))
    parser.add_argument("--port", type=int, default=8000, help="0: any that is free")
    parser.add_argument("--also", action="append", default=[], metavar="PREFIX=FOLDER")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--quiet", action="store_true")
    args = parser.parse_args()
    Handler.folders = {"/": Path(args.folder).resolve()}
    for also in args.also:
        prefix, _, folder = also.partition("=")
        Handler.folders[f"/{prefix.strip('/')}/"] = Path(folder).resolve()
    for folder in Handler.folders.values():
        if not folder.is_dir():
            sys.exit(f"there is no folder {folder}; web/build.sh makes the page")
    Handler.isolated, Handler.quiet = not args.plain, args.quiet
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", args.port), Handler)
    except OSError as error:
        sys.exit(f"port {args.port}: {error.strerror}; choose another one with --port")
    print(f"http://127.0.0.1:{server.server_address[1]}/", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
