"""skyband on a cluster: an archive of it with its compiled kernels, and the settings by which executors find both.

    archive = pack("skyband.zip")
    spark = sbs.session("spark://host:7077", **ship(archive))

The archive also goes with `--py-files` or `SparkContext.addPyFile`: it need not be unpacked. Executors compile nothing
if it holds kernels that were compiled ahead (`skyband compile`, or a wheel with kernels) and their Numba is the one
that these are for. The executors' Python (PYSPARK_PYTHON) needs what skyband needs, `pip install numpy numba pyarrow
sqlglot pandas protobuf`, in the same versions as the driver.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import skyband
from skyband.kernels import shipped

_CODE = (".py", ".typed", ".json", ".html", ".js", ".css")
_KEPT = (".nbi", ".nbc")
_HOME = Path(skyband.__file__).parent


def pack(path: str | Path, *, kernels: bool = True) -> Path:
    """Write the archive.

    Parameters
    ----------
    path
        The archive to write, such as "skyband.zip".
    kernels
        With compiled kernels: those that were compiled ahead; if there are none, those that this machine has compiled
        and kept beside the package, so run a query like yours before.

    """
    ahead = shipped.place().is_file()
    wanted = (*_CODE, *((shipped.place().suffix,) if ahead else _KEPT)) if kernels else _CODE
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
