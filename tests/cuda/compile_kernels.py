#!/usr/bin/env python3
"""Compiles the text of CUDA kernels with NVIDIA's own compiler, NVRTC, which needs no GPU.

usage: compile_kernels.py [--architecture sm_90a] FOLDER

FOLDER holds what TENON_EMULATED_SOURCES=FOLDER made the stand-in for NVIDIA's libraries write. Prints each kernel that does not
compile, and those that keep registers in memory. Exit code 0: all compile; 1: some do not; 3: NVRTC is not there.
"""
import argparse
import ctypes
import re
import sys
from pathlib import Path

LIBRARIES = [f"{folder}libnvrtc.so.{version}" for version in (13, 12) for folder in ("", "/usr/local/cuda/lib64/")]


def open_nvrtc():
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def compile_text(nvrtc, text, architecture):
    """Whether it compiles, and what the compiler says."""
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"kernel.cu", 0, None, None)
    names = [f"--gpu-architecture={architecture}".encode(), b"--std=c++17", b"-default-device", b"--ptxas-options=-v"]
    result = nvrtc.nvrtcCompileProgram(program, len(names), (ctypes.c_char_p * len(names))(*names))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return result == 0, log.value.decode(errors="replace")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--architecture", default="sm_90a")
    options = parser.parse_args()
    nvrtc = open_nvrtc()
    if not nvrtc:
        print(f"NVRTC is not there: none of {', '.join(LIBRARIES)} can be opened")
        return 3
    paths, bad = sorted(options.folder.glob("*.cu")), 0
    for path in paths:
        compiles, log = compile_text(nvrtc, path.read_bytes(), options.architecture)
        if not compiles:
            bad += 1
            print(f"{path}: does not compile\n{log}")
        elif spilled := re.search(r"[1-9][0-9]* bytes spill stores", log):
            print(f"{path}: {spilled[0]}")
    print(f"{len(paths) - bad} of {len(paths)} kernels compile for {options.architecture}")
    return 1 if bad or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
