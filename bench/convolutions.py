#!/usr/bin/env python3
"""Convolutions that are not plain 2-D ones, beside onnxruntime: grouped, depthwise, dilated, 1-D, 3-D and transposed.

usage: convolutions.py [CASE…] [--rounds N] [--threads N] [--level all] [--binary build/tenon]

A CASE is a part of names of cases. Both take turns; the best round of each counts. At a level below `all` nothing
computes in blocks of channels.
"""
import argparse
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from timing import ROOT, time_onnxruntime, time_tenon


def case(name, x, w, transposed=False, **attributes):
    return name, x, w, transposed, attributes


def dilated(channels, size, dilation):
    return case(f"dilated 3x3 d{dilation} {size}", [1, channels, size, size], [channels, channels, 3, 3],
                pads=[dilation] * 4, dilations=[dilation] * 2)


# Shapes of ResNeXt-50 32x4d, MobileNet v3, DeepLab v3, TCN, wav2vec 2.0, R3D-18, U-Net, DCGAN and HiFi-GAN.
CASES = [
    case("grouped 32x4 3x3 56", [1, 128, 56, 56], [128, 4, 3, 3], pads=[1] * 4, group=32),
    case("grouped 32x8 3x3 28", [1, 256, 28, 28], [256, 8, 3, 3], pads=[1] * 4, group=32),
    case("grouped 32x16 3x3 14", [1, 512, 14, 14], [512, 16, 3, 3], pads=[1] * 4, group=32),
    case("grouped 32x32 3x3 7", [1, 1024, 7, 7], [1024, 32, 3, 3], pads=[1] * 4, group=32),
    case("grouped 32x8 3x3 s2 56", [1, 256, 56, 56], [256, 8, 3, 3], pads=[1] * 4, group=32, strides=[2, 2]),
    case("grouped 4x60 1x1 28", [1, 240, 28, 28], [240, 60, 1, 1], group=4),
    case("depthwise 3x3 14", [1, 576, 14, 14], [576, 1, 3, 3], pads=[1] * 4, group=576),
    case("depthwise 5x5 14", [1, 576, 14, 14], [576, 1, 5, 5], pads=[2] * 4, group=576),
    dilated(256, 28, 2),
    dilated(512, 28, 4),
    dilated(256, 65, 2),
    dilated(128, 65, 4),
    case("1-D k3 512", [1, 512, 1000], [512, 512, 3], strides=[2]),
    case("1-D k3 d4 256", [1, 256, 1000], [256, 256, 3], pads=[4, 4], dilations=[4]),
    case("1-D k10 s5 first", [1, 1, 16000], [512, 1, 10], strides=[5]),
    case("1-D k2 s2 512", [1, 512, 400], [512, 512, 2], strides=[2]),
    case("1-D k7 512", [1, 512, 400], [512, 512, 7], pads=[3, 3]),
    case("1-D k128 g16 768", [1, 768, 50], [768, 48, 128], pads=[64, 64], group=16),
    case("3-D 3x3x3 64", [1, 64, 8, 28, 28], [64, 64, 3, 3, 3], pads=[1] * 6),
    case("3-D 3x7x7 s122 first", [1, 3, 8, 112, 112], [64, 3, 3, 7, 7], pads=[1, 3, 3] * 2, strides=[1, 2, 2]),
    case("3-D 3x3x3 s2 128", [1, 64, 8, 28, 28], [128, 64, 3, 3, 3], pads=[1] * 6, strides=[2, 2, 2]),
    case("3-D 1x1x1 256", [1, 128, 8, 14, 14], [256, 128, 1, 1, 1]),
    case("transposed 2x2 s2 28", [1, 256, 28, 28], [256, 128, 2, 2], True, strides=[2, 2]),
    case("transposed 2x2 s2 112", [1, 64, 112, 112], [64, 32, 2, 2], True, strides=[2, 2]),
    case("transposed 4x4 s2 p1 8", [1, 512, 8, 8], [512, 256, 4, 4], True, strides=[2, 2], pads=[1] * 4),
    case("transposed 4x4 s2 p1 32", [1, 128, 32, 32], [128, 64, 4, 4], True, strides=[2, 2], pads=[1] * 4),
    case("transposed 3x3 s2 56", [1, 64, 56, 56], [64, 64, 3, 3], True, strides=[2, 2], pads=[1] * 4, output_padding=[1, 1]),
    case("transposed 1-D k16 s8", [1, 512, 100], [512, 256, 16], True, strides=[8], pads=[4, 4]),
    case("transposed 1-D k4 s2", [1, 128, 6400], [128, 64, 4], True, strides=[2], pads=[1, 1]),
    case("transposed 3-D 2x2x2 s2", [1, 128, 4, 14, 14], [128, 64, 2, 2, 2], True, strides=[2, 2, 2]),
]


def model(x, w, transposed, attributes):
    rng = np.random.default_rng(1)
    weights = numpy_helper.from_array(rng.standard_normal(w, np.float32), "w")
    bias = numpy_helper.from_array(rng.standard_normal(w[1] if transposed else w[0], np.float32), "b")
    node = helper.make_node("ConvTranspose" if transposed else "Conv", ["x", "w", "b"], ["y"], **attributes)
    graph = helper.make_graph([node], "convolution", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [weights, bias])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--level", default="all")
    parser.add_argument("--binary", default=str(ROOT / "build" / "tenon"))
    options = parser.parse_args()
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    print(f"{'convolution':28}{'tenon':>9}{'onnxruntime':>13}{'GFLOP/s':>9}{'times':>7}  milliseconds")
    with tempfile.TemporaryDirectory() as folder:
        for name, x, w, transposed, attributes in CASES:
            if options.cases and not any(part in name for part in options.cases):
                continue
            path = str(Path(folder) / "convolution.onnx")
            onnx.save(model(x, w, transposed, attributes), path)
            session = onnxruntime.InferenceSession(path, settings)
            feeds = {"x": np.random.default_rng(2).standard_normal(x, np.float32)}
            y = session.run(None, feeds)[0].shape
            positions = np.prod(x[2:] if transposed else y[2:])
            flops = 2.0 * positions * np.prod(w) * (x[0] if transposed else y[0])
            ours = time_tenon(options.binary, path, 3, "--level", options.level, threads=options.threads)
            repeat, theirs = int(0.2 / ours) + 3, float("inf")
            for _ in range(options.rounds):
                ours = min(ours, time_tenon(options.binary, path, repeat, "--level", options.level, threads=options.threads))
                theirs = min(theirs, time_onnxruntime(session, feeds, 0.2))
            print(f"{name:28}{1e3 * ours:9.3f}{1e3 * theirs:13.3f}{1e-9 * flops / ours:9.1f}{theirs / ours:7.2f}", flush=True)


if __name__ == "__main__":
    main()
