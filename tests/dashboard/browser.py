"""A headless Chromium through its own driver: a few commands of WebDriver over HTTP, no library needed."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHROMIUM, DRIVER = shutil.which("chromium") or shutil.which("chromium-browser"), shutil.which("chromedriver")
MISSING = "no Chromium here: apt-get install chromium chromium-driver"
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


class Browser:
    """Use it as a context: it ends the driver, and with it the browser, that it has started."""

    def __init__(self, folder: Path, width: int = 1200, height: int = 900, *, dark: bool = False) -> None:
        assert CHROMIUM and DRIVER
        self.port = free_port()
        with (folder / "chromedriver.log").open("w") as log:
            self.process = subprocess.Popen([DRIVER, f"--port={self.port}"], stdout=log, stderr=log)
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        arguments += [f"--user-data-dir={folder / 'profile'}", f"--window-size={width},{height}"]
        if dark:
            arguments.append("--blink-settings=preferredColorScheme=0")
        options = {"binary": CHROMIUM, "args": arguments}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self.session = ""
        wait(lambda: self._get("/status")["ready"], 20)
        self.session = self._post("/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._call("DELETE", f"/session/{self.session}")
        finally:
            self.process.terminate()
            self.process.wait(20)

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.read().decode()[:500]}") from None

    def _get(self, path: str) -> Any:
        try:
            return self._call("GET", f"/session/{self.session}{path}" if self.session else path)
        except (OSError, AssertionError):
            if self.session:
                raise
            return {"ready": False}

    def _post(self, path: str, body: Any) -> Any:
        return self._call("POST", f"/session/{self.session}{path}" if self.session else path, body)

    def open(self, url: str) -> None:
        self._post("/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        return self._post("/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script: str, *arguments: Any) -> Any:
        """The script calls its last argument when it is done."""
        return self._post("/execute/async", {"script": script, "args": list(arguments)})

    def find(self, selector: str) -> str:
        found: str = self._post("/element", {"using": "css selector", "value": selector})[_ELEMENT]
        return found

    def click(self, selector: str) -> None:
        self._post(f"/element/{self.find(selector)}/click", {})

    def type(self, selector: str, text: str) -> None:
        self._post(f"/element/{self.find(selector)}/value", {"text": text})

    def press(self, key: str) -> None:
        actions = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self._post("/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def text(self, selector: str) -> str:
        return str(self.run("const n = document.querySelector(arguments[0]); return n ? n.innerText : ''", selector))

    def shown(self, selector: str) -> bool:
        return bool(self.run("return Boolean(document.querySelector(arguments[0]).offsetParent)", selector))

    def resize(self, width: int, height: int) -> None:
        self._post("/window/rect", {"width": width, "height": height})

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._get("/screenshot")))

    def complaints(self) -> list[str]:
        """What the page has written to the console."""
        return [entry["message"] for entry in self._post("/se/log", {"type": "browser"})]


def wait(holds: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Until it holds; what it was."""
    end = time.monotonic() + seconds
    while True:
        if found := holds():
            return found
        assert time.monotonic() < end, f"did not come true within {seconds} s"
        time.sleep(0.05)
