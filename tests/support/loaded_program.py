"""Programs that load their libraries once for many runs: each run is a fork of a process that has them.

Where TRIVELET_LOADED_PROGRAM names the library made of loaded_program.c, as tests/CMakeLists.txt has it; elsewhere, and
of what forks could not do alike, every run is a process of its own."""

import atexit
import os
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

LIBRARY = os.environ.get("TRIVELET_LOADED_PROGRAM", "")
MOST_BYTES = 1 << 15  # of a request; loaded_program.c takes twice as many

loaded: dict[str, "LoadedProgram"] = {}


class LoadedProgram:
    """For the main thread, with whose end it ends at the latest."""

    def __init__(self, path: str) -> None:
        self.requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.environment = dict(os.environ)
        environment = {**self.environment, "LD_PRELOAD": LIBRARY, "TRIVELET_REQUESTS": str(theirs.fileno())}
        module = Path(path).parent / "libtrivelet-ffmpeg.so"
        if module.exists():
            environment["TRIVELET_PRELOADED_MODULE"] = str(module)
        with theirs:
            fds = [theirs.fileno()]
            self.process = subprocess.Popen([path], env=environment, stdin=subprocess.DEVNULL, pass_fds=fds)

    def run(self, words: list, timeout: float) -> subprocess.CompletedProcess:
        """With nothing to read on standard input."""
        ends = [os.pipe() for _ in range(3)]
        os.close(ends[0][1])
        theirs = [ends[0][0], ends[1][1], ends[2][1]]
        ours = [ends[1][0], ends[2][0]]
        request = b"".join(os.fsencode(w) + b"\0" for w in (os.getcwd(), *words))
        socket.send_fds(self.requests, [request], theirs)
        for end in theirs:
            os.close(end)
        child = self.answer()
        outputs = {end: b"" for end in ours}
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as waiting:
            for end in ours:
                waiting.register(end, selectors.EVENT_READ)
            while waiting.get_map():
                ready = waiting.select(max(0, deadline - time.monotonic()))
                if not ready:
                    os.kill(child, signal.SIGKILL)
                    self.answer()
                    raise subprocess.TimeoutExpired(words, timeout)
                for key, _ in ready:
                    data = os.read(key.fd, 1 << 20)
                    outputs[key.fd] += data
                    if not data:
                        waiting.unregister(key.fd)
        status = self.answer()
        for end in ours:
            os.close(end)
        return subprocess.CompletedProcess(words, os.waitstatus_to_exitcode(status), *outputs.values())

    def answer(self) -> int:
        return struct.unpack("i", self.requests.recv(4))[0]

    def end(self) -> None:
        self.requests.close()
        self.process.wait()


def run(path: str, *arguments, stdin: bytes = b"", timeout: float = 120) -> subprocess.CompletedProcess:
    """As subprocess.run() with both outputs captured."""
    words = [path, *map(str, arguments)]
    can = LIBRARY and not stdin and threading.current_thread() is threading.main_thread()
    if can and sum(map(len, words)) < MOST_BYTES:
        if path not in loaded:
            loaded[path] = LoadedProgram(shutil.which(path))
            atexit.register(loaded[path].end)
        if loaded[path].environment == dict(os.environ):
            return loaded[path].run(words, timeout)
    return subprocess.run(words, input=stdin, capture_output=True, timeout=timeout)
