"""skyband on a cluster: an archive of it with its compiled kernels, and the settings by which executors find both.

    archive = pack("skyband.zip")
    spark = sbs.session("spark://host:7077", **ship(archive))

Executors unpack the archive, so that Numba finds compiled code beside the kernels and writes what is missing there,
once for an executor. (Inside a wheel, as `--py-files` leaves it, Numba can keep nothing, and every Python worker would
compile for itself; skyband refuses that.) Compiled code is for one kind of processor and one version of Numba: where
executors have others it is compiled again, once each. The executors' Python (PYSPARK_PYTHON) needs what skyband needs,
`pip install numpy numba pyarrow sqlglot pandas protobuf`, in the same versions as the driver.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import skyband

_CODE = (".py", ".typed", ".json", ".html", ".js", ".css")
_COMPILED = (".nbi", ".nbc")
_HOME = Path(skyband.__file__).parent


def pack(path: str | Path, *, kernels: bool = True) -> Path:
    """Write the archive. `kernels`: with the compiled code that this machine has, so run a query like yours before."""
    wanted = (*_CODE, *_COMPILED) if kernels else _CODE
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(_HOME.rglob("*")):
            if file.suffix in wanted and file.is_file():
                archive.write(file, file.relative_to(_HOME.parent))
    return Path(path)


def ship(archive: str | Path) -> dict[str, str]:
    """Spark's settings that bring the archive to every executor; with `spark.archives` of your own, join them.

    To be called before the session starts: Spark runs a Python worker beside the driver, too, with the executors'
    Python and this process's PYTHONPATH, so that is where this skyband goes.
    """
    before = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if str(_HOME.parent) not in before:
        os.environ["PYTHONPATH"] = os.pathsep.join([*before, str(_HOME.parent)])
    return {"spark.archives": f"{archive}#skyband-home", "spark.executorEnv.PYTHONPATH": "./skyband-home"}
