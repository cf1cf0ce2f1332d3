"""Install the wheel in each Python and with each pandas that skyband supports, and use it there: `make environments`.

In each environment: README's and the cookbook's examples, a few test files, `skyband demo`, and what the extras would
replace. `python tests/environments.py 3.12 oldest` checks only these. A Python that is neither here nor can be fetched
is named and left out. Environments are made anew each time, by uv from its cache; what takes time is the compilation of
kernels, where the wheel has none for the Numba that is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from packaging.version import Version

REPOSITORY = Path(__file__).parents[1]
FOLDER = REPOSITORY / "build" / "environments"
UV = str(Path(sys.executable).with_name("uv"))

#: name -> Python, what is installed beside the wheel, further arguments of uv
ENVIRONMENTS: dict[str, tuple[str, list[str], list[str]]] = {
    "3.11": ("3.11", ["pandas>=2.2,<3"], []),
    "3.12": ("3.12", ["pandas>=3,<4"], []),
    "3.13": ("3.13", ["pandas>=3,<4"], []),
    "oldest": ("3.11", ["pandas>=2.2,<3"], ["--resolution", "lowest-direct", "-r", "pyproject.toml"]),
}
TOOLS = ["pytest>=8", "hypothesis>=6.100", "polars>=1", "duckdb>=1"]
EXTRAS = "dashboard,kafka,plot,bench,demo,spark"
CHECKS = [
    "README.md",
    "docs/README.md",
    "docs/cookbook.md",
    "tests/monitor/test_input_kinds.py",
    "tests/monitor/test_public_face.py",
    "tests/query/test_query.py",
    "tests/query/test_sql.py",
]


def run(*command: str | Path, **settings: str) -> str:
    """Run a command; what it printed, or an error with it."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=REPOSITORY,
        env=environment() | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout + done.stderr


def environment() -> dict[str, str]:
    """The variables of this process, with pyenv's Pythons on the PATH, and without what would import this checkout."""
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    root = Path(variables.get("PYENV_ROOT", Path.home() / ".pyenv"))
    places = [str(path) for path in sorted(root.glob("versions/3.*/bin"))]
    return variables | {"PATH": os.pathsep.join([*places, variables.get("PATH", "")])}


def python(version: str) -> str | None:
    """An interpreter of this version, fetched if need be; None: the machine can get none."""
    for fetch in (False, True):
        if fetch and subprocess.run([UV, "python", "install", "-q", version], capture_output=True).returncode:
            return None
        found = subprocess.run(
            [UV, "python", "find", "--system", version], env=environment(), capture_output=True, text=True, check=False
        )
        if found.returncode == 0:
            return found.stdout.strip()
    return None


def wheel() -> Path:
    shutil.rmtree(FOLDER, ignore_errors=True)
    run(UV, "build", "--quiet", "--wheel", "--out-dir", FOLDER / "wheel")
    (built,) = (FOLDER / "wheel").glob("*.whl")
    return built


def check(name: str, interpreter: str, built: Path, beside: Sequence[str], options: Sequence[str]) -> str:
    folder = FOLDER / re.sub(r"\W+", "-", name)
    run(UV, "venv", "--quiet", "--python", interpreter, folder)
    own = folder / "bin" / "python"
    install: list[str | Path] = [UV, "pip", "install", "--quiet", "--python", own]
    run(*install, *options, built, *beside)
    run(*install, built, *beside, *TOOLS)
    place = run(own, "-P", "-c", "import skyband; print(skyband.__file__)").strip()
    version = run(own, "-c", "import platform; print(platform.python_version())").strip()
    assert Path(place).is_relative_to(folder), f"{name} imports {place}, not what was installed"
    run(own, "-m", "pytest", "-q", "-p", "no:cacheprovider", *CHECKS)
    assert "--seconds" in run(folder / "bin" / "skyband", "demo", "--help")
    demo = run(folder / "bin" / "skyband", "demo", "--fast", "--rows", "3000", SKYBAND_DATA="")
    assert demo.count("\n") > 30 and "flights is generated" in demo, demo
    plan = run(UV, "pip", "install", "--dry-run", "--python", own, f"skyband[{EXTRAS}] @ {built.as_uri()}")
    before, after = (dict(re.findall(rf"^ \{sign} (\S+)==(\S+)", plan, re.MULTILINE)) for sign in "-+")
    lower = [one for one in before.keys() & after.keys() if Version(after[one]) < Version(before[one])]
    assert not lower, f"{name}: the extras would downgrade {', '.join(lower)}:\n{plan}"
    listed = run(UV, "pip", "list", "--python", own)
    found = re.findall(r"^(numba|numpy|pandas|pyarrow) +(\S+)", listed, re.MULTILINE)
    return f"Python {version}, {', '.join(map(' '.join, found))}"


def main(names: Sequence[str]) -> None:
    if unknown := set(names) - ENVIRONMENTS.keys():
        sys.exit(f"no such environment: {', '.join(unknown)}. There are: {'; '.join(ENVIRONMENTS)}.")
    built = wheel()
    print(f"{built.name}, {built.stat().st_size / 1e6:.1f} MB", flush=True)
    missing = []
    for name in names or ENVIRONMENTS:
        version, beside, options = ENVIRONMENTS[name]
        interpreter = python(version)
        if interpreter is None:
            missing.append(name)
            continue
        began = time.monotonic()
        print(f"{name}: {check(name, interpreter, built, beside, options)}; "
              f"{time.monotonic() - began:.0f} s", flush=True)  # fmt: skip
    if missing:
        print(f"NOT checked, the machine has no such Python and cannot fetch one: {'; '.join(missing)}")
    if len(missing) == len(names or ENVIRONMENTS):
        sys.exit("no environment could be made")


if __name__ == "__main__":
    main(sys.argv[1:])
