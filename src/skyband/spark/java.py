"""Spark needs Java: say so before it does, and say what to install."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from skyband.errors import RunError

_INSTALL = """Install one:
  Debian, Ubuntu  apt install openjdk-17-jre-headless
  macOS           brew install openjdk@17
  Windows         winget install EclipseAdoptium.Temurin.17.JRE"""
_LEAST = 17


def require_java() -> None:
    """Raise a RunError that says what to install unless Spark will find a Java of version 17 or later."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    if found is None:
        why = f"JAVA_HOME is {home}, which holds no bin/java" if home else "there is no java on the PATH"
        raise RunError(f"Spark needs Java {_LEAST} or later, and {why}. {_INSTALL}")
    try:
        asked = [found, "-version"]
        told = subprocess.run(asked, capture_output=True, text=True, timeout=30, check=True).stderr  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        raise RunError(f"Spark needs Java {_LEAST} or later, and {found} does not run. {_INSTALL}") from None
    version = re.search(r'version "(?:1\.)?([0-9]+)', told)
    if version is not None and int(version[1]) < _LEAST:
        raise RunError(f"Spark needs Java {_LEAST} or later, and {found} is Java {version[1]}. {_INSTALL}")
