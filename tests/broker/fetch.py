"""`make kafka`: the jars of jars.lock, from Maven Central, each checked against its SHA-256.

`broker/`: Apache Kafka and all it needs. `connector/`: Spark's Kafka source and sink. Where the list was made there was
no connector of PySpark 4.3 yet, nor every part of 4.2: it has the newest parts that were there, and the tests show that
they work together. They come through Ivy, which PySpark has with it and which knows where Maven Central is;
SKYBAND_IVY_SETTINGS names a settings file of Ivy's, where there is a mirror instead. `make lakehouse` fetches another
list in the same way, that of tests/lakehouse.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

LOCK = Path(__file__).with_name("jars.lock")
_MODULE = """<ivy-module version="2.0">
<info organisation="skyband" module="tests"/>
<configurations><conf name="default"/></configurations>
<dependencies>
{dependencies}
</dependencies>
</ivy-module>"""
_DEPENDENCY = '<dependency org="{group}" name="{name}" rev="{version}" transitive="false" conf="default->master"/>'


def listed(lock: Path = LOCK) -> list[tuple[str, str, str]]:
    """Checksum, folder and path of every jar."""
    return [(words[0], words[1], words[2]) for words in map(str.split, lock.read_text().splitlines())]


def there(folder: Path, lock: Path = LOCK) -> bool:
    """Whether every jar has been fetched."""
    return all((folder / kind / Path(path).name).is_file() for _, kind, path in listed(lock))


def fetch(folder: Path, lock: Path = LOCK) -> None:
    for kind in dict.fromkeys(kind for _, kind, _ in listed(lock)):
        jars = {Path(path).name: (checksum, path) for checksum, mine, path in listed(lock) if mine == kind}
        with tempfile.TemporaryDirectory() as place:
            _retrieve(Path(place), [path for _, path in jars.values()])
            for name, (checksum, _) in jars.items():
                found = hashlib.sha256((Path(place) / "jars" / name).read_bytes()).hexdigest()
                if found != checksum:
                    raise ValueError(f"{name} has the checksum {found}; jars.lock says {checksum}. Nothing was kept")
            shutil.copytree(Path(place) / "jars", folder / kind, dirs_exist_ok=True)


def _retrieve(place: Path, paths: list[str]) -> None:
    """These jars into place/jars; one module cannot have two versions of a jar, so one call for each folder."""
    told = []
    for path in paths:
        *group, name, version, _ = path.split("/")
        told.append(_DEPENDENCY.format(group=".".join(group), name=name, version=version))
    (place / "ivy.xml").write_text(_MODULE.format(dependencies="\n".join(told)))
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None, "make sets up .venv first"
    (ivy,) = (Path(spec.origin).parent / "jars").glob("ivy-*.jar")
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    settings = os.environ.get("SKYBAND_IVY_SETTINGS")
    command = [str(java), f"-Divy.default.ivy.user.dir={place / 'home'}", "-cp", str(ivy), "org.apache.ivy.Main"]
    command += [] if settings is None else ["-settings", settings]
    command += [
        "-warn",
        "-ivy",
        str(place / "ivy.xml"),
        "-retrieve",
        str(place / "jars" / "[artifact]-[revision].[ext]"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise OSError((done.stdout + done.stderr).strip()[-2000:] or "Ivy failed")


if __name__ == "__main__":
    try:
        fetch(*map(Path, sys.argv[1:]))
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        target = sys.argv[1].strip(".")
        sys.exit(f"make {target}: {error}. Is there a way to Maven Central, or to a mirror (SKYBAND_IVY_SETTINGS)?")
