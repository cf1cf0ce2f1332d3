"""Puts compiled kernels into the wheel where `make pack` has left them, and names the machine that they are for.

With SKYBAND_WHEEL=plain: the wheel without them, for any machine.
"""

import os
import platform
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACK = "src/skyband/kernels/shipped.pack"


class Kernels(BuildHookInterface):  # type: ignore[type-arg, misc, unused-ignore]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        shipped = Path(self.root, PACK).is_file() and os.environ.get("SKYBAND_WHEEL") != "plain"
        if shipped and version == "standard" and platform.system() == "Linux":
            build_data["artifacts"].append(PACK)
            build_data["pure_python"] = False
            build_data["tag"] = (
                f"py3-none-manylinux2014_{platform.machine()}"  # calls nothing of the system's libraries
            )
