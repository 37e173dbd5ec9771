"""A headless Chromium, driven by the DevTools protocol over two pipes: pages, values of expressions, screenshots."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

# Drawn by a processor, whatever GPU there is: the same pixels everywhere.
OPTIONS = ["--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-extensions", "--disable-sync",
           "--disable-background-networking", "--disable-component-update", "--use-angle=swiftshader",
           "--enable-unsafe-swiftshader", "--autoplay-policy=no-user-gesture-required", "--mute-audio",
           "--hide-scrollbars", "--force-device-scale-factor=1"]


def find():
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


class Chromium:
    def __init__(self, width=1280, height=800):
        self.profile = tempfile.mkdtemp(prefix="chromium_test.")
        to_read, self.write_end = os.pipe()
        self.read_end, to_write = os.pipe()
        # Commands come by descriptor 3, answers go by 4. Without a user of its own there is no sandbox.
        options = OPTIONS + [f"--user-data-dir={self.profile}", f"--window-size={width},{height}", "about:blank"]
        if os.geteuid() == 0:
            options.insert(0, "--no-sandbox")
        shell = f'exec 3<&{to_read} 4>&{to_write}; exec "$0" "$@"'
        self.process = subprocess.Popen(["bash", "-c", shell, find(), *options], pass_fds=(to_read, to_write),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.number, self.waiting, self.events, self.log = 0, b"", [], []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, until):
        while b"\0" not in self.waiting:
            if not select.select([self.read_end], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError(f"Chromium does not answer; its console said {self.log}")
            data = os.read(self.read_end, 1 << 20)
            if not data:
                raise RuntimeError(f"Chromium ended with {self.process.wait()}")
            self.waiting += data
        message, _, self.waiting = self.waiting.partition(b"\0")
        return json.loads(message)

    def send(self, method, timeout=120, **params):
        self.number += 1
        command = {"id": self.number, "method": method, "params": params}
        if hasattr(self, "session"):
            command["sessionId"] = self.session
        data = json.dumps(command).encode() + b"\0"
        while data:
            data = data[os.write(self.write_end, data):]
        until = time.monotonic() + timeout
        while True:
            message = self.receive(until)
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.note(message)

    def note(self, message):
        if message.get("method") == "Runtime.exceptionThrown":
            details = message["params"]["exceptionDetails"]
            self.log.append(details.get("exception", {}).get("description", details["text"]))
        elif message.get("method") == "Runtime.consoleAPICalled":
            shown = (str(arg.get("value", arg.get("description"))) for arg in message["params"]["args"])
            self.log.append(" ".join(shown))
        elif message.get("method") == "Log.entryAdded":
            self.log.append(message["params"]["entry"]["text"])
        self.events.append(message.get("method"))

    def open(self, url, timeout=120):
        self.events.clear()
        self.log.clear()
        self.send("Page.navigate", url=url)
        until = time.monotonic() + timeout
        while "Page.loadEventFired" not in self.events:
            self.note(self.receive(until))

    def value(self, expression, timeout=120):
        """What an expression, or the promise that it is, becomes."""
        result = self.send("Runtime.evaluate", timeout, expression=expression, awaitPromise=True, returnByValue=True,
                           userGesture=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def bytes(self, expression, timeout=120):
        """A Uint8Array."""
        code = f"""(async () => {{ const bytes = await ({expression}), parts = [];
          for (let i = 0; i < bytes.length; i += 32768)
            parts.push(String.fromCharCode(...bytes.subarray(i, i + 32768)));
          return btoa(parts.join('')); }})()"""
        return base64.b64decode(self.value(code, timeout))

    def screenshot(self, path, kind="png", **options):
        data = self.send("Page.captureScreenshot", format=kind, **options)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def choose_file(self, selector, path):
        """As a user does in the dialogue of an <input type=file>."""
        root = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.send("DOM.setFileInputFiles", nodeId=node, files=[str(path)])
