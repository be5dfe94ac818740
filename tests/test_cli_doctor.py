"""tenon doctor: what a maintainer would ask for."""
import json
import os
import platform

import pytest


def test_sections(call):
    report = json.loads(call("doctor", "--no-measure", "--json").stdout)
    assert report["Tenon"]["build"] and report["System"]["kernel"] == f"{platform.system()} {platform.release()}"
    assert report["System"]["machine"] == platform.machine()
    assert report["Threads"]["CPUs this process may use"].startswith(f"{len(os.sched_getaffinity(0))} (")
    assert report["Memory"]["page size"] == f"{os.sysconf('SC_PAGESIZE') // 1024} KB"
    assert report["Providers"]["cpu"] == "ready" and "libcuda.so.1" in report["CUDA libraries"]
    assert report["Self-test"] == {"not measured": "as asked"} and "measured" not in report
    assert isinstance(report["warnings"], list)


def test_environment_that_matters(call, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/nowhere")
    monkeypatch.setenv("SECRET_TOKEN", "hush")
    monkeypatch.setenv("TENON_THREADS", "1000")
    text = call("doctor", "--no-measure").stdout
    assert "  OMP_NUM_THREADS           3\n" in text and "/nowhere" in text and "hush" not in text
    assert "warning: TENON_THREADS asks for 1000 threads where this process may use" in text
    monkeypatch.setenv("NVIDIA_DRIVER_CAPABILITIES", "compute " * 100)
    assert "  NVIDIA_DRIVER_CAPABILITIES compute compute" in (text := call("doctor", "--no-measure").stdout)
    assert max(map(len, text.splitlines())) < 300 and "… (800 characters)" in text


def test_self_test(call):
    report = json.loads(call("doctor", "--json").stdout)
    for threads in ("one", "all"):
        rates = report["measured"][threads]
        assert min(rates[name] for name in ("peak_flops", "matmul_flops", "peak_bandwidth", "copy_bandwidth")) > 0
    assert report["measured"]["one"]["threads"] == 1 and "GFLOP/s" in report["Self-test"]["matrix product, 1 thread"]


@pytest.mark.parametrize("value", ["two", "0"])
def test_no_self_test_where_threads_make_no_sense(call, monkeypatch, value):
    monkeypatch.setenv("TENON_THREADS", value)
    assert "the environment variables make no sense" in call("doctor").stdout
