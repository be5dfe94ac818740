"""Releases of a package: which there are, installing them side by side, and running cases in each."""
import hashlib
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORK = HERE.parent.parent / "build" / "probe"


def version_key(version):
    return [int(part) for part in version.split(".")]


def releases(package, oldest):
    """Those on PyPI that have a wheel for this machine, oldest first."""
    output = subprocess.run([sys.executable, "-m", "pip", "index", "versions", package, "--disable-pip-version-check"],
                            capture_output=True, text=True, check=True).stdout
    line = next(line for line in output.splitlines() if line.startswith("Available versions:"))
    found = [v for v in line.split(":")[1].replace(" ", "").split(",") if all(p.isdigit() for p in v.split("."))]
    return sorted((v for v in found if version_key(v) >= version_key(oldest)), key=version_key)


def install(package, version, *options):
    """Into a folder of its own, which is returned."""
    folder = WORK / f"{package}-{version}"
    if not folder.exists():
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore",
                        "--target", folder, f"{package}=={version}", *options], check=True)
    return folder


def python(folders, *arguments, libraries=None, **options):
    """Runs Python with packages from these folders and no others, and with shared libraries from another folder."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders)), "PYTHONNOUSERSITE": "1"}
    if libraries:
        environment["LD_LIBRARY_PATH"] = str(libraries)
    return subprocess.run([sys.executable, "-S", *map(str, arguments)], env=environment, **options)


def key_of(line):
    """By which the verdict on a case is kept."""
    return hashlib.sha256(line.strip().encode()).hexdigest()[:20]


def read_verdicts(store):
    if not store.exists():
        return {}
    return {key: verdict for key, verdict, _ in (line.split("\t") for line in open(store))}


def run_pending(folders, worker, lines, store):
    """A case that ends the process is a verdict too, and the next ones go on in a new process."""
    pending, results = store.with_suffix(".pending"), store.with_suffix(".results")
    pending.write_text("".join(lines))
    results.write_text("")
    while (done := sum(1 for _ in open(results))) < len(lines):
        ended = python(folders, HERE / worker, pending, results, done, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        after = sum(1 for _ in open(results))
        if after == 0 and ended.returncode == 1:
            raise SystemExit(f"{worker} does not start with {folders}")
        if after < len(lines):
            with open(results, "a") as file:
                file.write(f"{after}\tcrash\tends with {ended.returncode}\n")
    with open(store, "a") as file:
        for line, result in zip(lines, open(results)):
            file.write(f"{key_of(line)}\t{result.split(chr(9), 1)[1]}")


def run_cases(folders, worker, cases, store):
    """The verdicts on the cases, in order. Those that `store` has from an earlier run are not run again."""
    lines = open(cases).readlines()
    known = read_verdicts(store)
    if new := [line for line in lines if key_of(line) not in known]:
        run_pending(folders, worker, new, store)
        known = read_verdicts(store)
    return [known[key_of(line)] for line in lines]
