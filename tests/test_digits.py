"""The example that `make demo` runs."""
import subprocess
import sys

import numpy as np
import onnxruntime
from conftest import ROOT

EXAMPLE = ROOT / "examples" / "digits"
TEXT = [[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]]


def test_tenon_reads_the_picture(tenon, tmp_path):
    run = subprocess.run([tenon, "run", EXAMPLE / "digits.onnx", "--input", f"picture={EXAMPLE / 'picture.pgm'}",
                          "--output-dir", tmp_path], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert np.load(tmp_path / "digits.npy").tolist() == TEXT
    assert np.load(tmp_path / "confidence.npy").min() > 0.9


def test_the_stored_model_and_picture_belong_together():
    header, pixels = (EXAMPLE / "picture.pgm").read_bytes().split(b"\n255\n", 1)
    assert header == b"P5\n80 32"
    session = onnxruntime.InferenceSession(EXAMPLE / "digits.onnx", providers=["CPUExecutionProvider"])
    digits, _ = session.run(None, {"picture": np.frombuffer(pixels, np.uint8).reshape(32, 80)})
    assert digits.tolist() == TEXT


def test_the_picture_can_be_shown_as_text():
    shown = subprocess.run([sys.executable, ROOT / "scripts" / "show_picture", EXAMPLE / "picture.pgm"],
                           capture_output=True, text=True, check=True).stdout
    assert len(shown.splitlines()) == 16
    assert "@" in shown or "%" in shown
