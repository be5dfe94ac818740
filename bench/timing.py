"""The best time of a model in onnxruntime and in `tenon run`, in seconds."""
import json
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def time_onnxruntime(session, feeds, seconds):
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end or best == float("inf"):
        start = time.perf_counter()
        session.run(None, feeds)
        best = min(best, time.perf_counter() - start)
    return best


def time_tenon(binary, path, repeat, *flags, threads=1):
    run = subprocess.run([binary, "run", path, "--json", "--repeat", str(repeat), "--threads", str(threads), *flags],
                         capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(run.stderr.strip() or run.stdout.strip())
    return json.loads(run.stdout)["run_ms"] / 1e3
