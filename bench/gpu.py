#!/usr/bin/env python3
"""Tenon on the GPU beside PyTorch: milliseconds per run, inputs and outputs in the GPU's memory.

usage: gpu.py [--models NAME…] [--batches 1 8 32] [--types fp16 tf32 fp32 int8] [--ways eager graph compiled] [--rounds 2]
       gpu.py --shares [--models NAME…] [--batches 32] [--types fp16 tf32 fp32] [--slowest 5]

PyTorch runs each network as it is, as a CUDA graph, and compiled (torch.compile, reduce-overhead); images are
channels_last. Tenon runs the same network from tests/models, converted to float16 for fp16 and with `--precision fast` for
tf32. For int8 it runs what `tenon quantize` makes of it, ranges by random numbers, beside its own fp16 and PyTorch's. All take turns; the
best of the rounds counts. Prints a table, and the ratio to the fastest of PyTorch's three.

With --shares: how near every node comes to what the card can do (gpu_shares.py).
"""
import argparse
import json
import math
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODELS = ROOT / "build" / "models"


def model_file(tenon, name, kind):
    path = MODELS / f"{name}.onnx"
    if not path.exists():
        MODELS.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, ROOT / "tests/models/make_models.py", MODELS, name], check=True, cwd=ROOT)
    if kind == "int8":
        return int8_file(tenon, name, path)
    if kind != "fp16":
        return path
    half = MODELS / f"{name}_fp16.onnx"
    if not half.exists():
        without_tiny_numbers(path, MODELS / f"{name}_rounded.onnx")
        subprocess.run([tenon, "convert", MODELS / f"{name}_rounded.onnx", "--dtype", "fp16", "--no-overflow-check", "-o", half], check=True,
                       stdout=subprocess.DEVNULL)
    return half


def int8_file(tenon, name, path):
    """All that can be quantized is, whatever it costs in accuracy: weights and images are random anyway."""
    result = MODELS / f"{name}_int8.onnx"
    if not result.exists():
        import onnx
        graph = onnx.load(path, load_external_data=False).graph
        names = {d.dim_param for value in graph.input for d in value.type.tensor_type.shape.dim if d.dim_param}
        sizes = [text for dim in sorted(names) for text in ("--dim", f"{dim}=1")]
        subprocess.run([tenon, "quantize", path, "-o", result, "--method", "minmax", "--max-loss", "none", "--no-measure", *sizes], check=True,
                       stdout=subprocess.DEVNULL)
    return result


def without_tiny_numbers(path, rounded):
    """Random networks have biases that float16 cannot hold, and `tenon convert` would leave the nodes in float for them."""
    import numpy as np
    import onnx
    model = onnx.load(path)
    for weight in model.graph.initializer:
        values = onnx.numpy_helper.to_array(weight)
        if values.dtype == np.float32 and (np.abs(values) < 1e-7).any():
            weight.CopyFrom(onnx.numpy_helper.from_array(np.where(np.abs(values) < 1e-7, np.float32(0), values), weight.name))
    onnx.save(model, rounded)


def shapes_of(name, path, batch):
    import onnx
    shapes = {}
    for value in onnx.load(path, load_external_data=False).graph.input:
        dims = [d.dim_value for d in value.type.tensor_type.shape.dim]
        shapes[value.name] = [batch] + ([128] if name == "bert_base" else dims[1:])
    return shapes


def tenon_times(tenon, name, kind, batch, seconds):
    path = model_file(tenon, name, kind)
    command = [tenon, "bench", path, "--provider", "cuda,cpu", "--on-device", "--json", "--seconds", str(seconds), "--warmup", "5"]
    for value, sizes in shapes_of(name, path, batch).items():
        command += ["--shape", f"{value}={'x'.join(map(str, sizes))}"]
    if kind == "tf32":
        command += ["--precision", "fast"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        return math.nan, result.stderr.strip()[-300:]
    return json.loads(result.stdout)["latency_seconds"]["min"] * 1e3, ""


def torch_times(name, kind, batch, seconds, ways):
    import torch

    import gpu_networks
    dtype = torch.float16 if kind in ("fp16", "int8") else torch.float32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = kind == "tf32"
    torch.backends.cudnn.benchmark = True
    network = gpu_networks.make(name).cuda().to(dtype)
    inputs = gpu_networks.inputs_of(name, batch, dtype, "cuda")
    if name != "bert_base" and name != "vit_b_16":
        network = network.to(memory_format=torch.channels_last)
        inputs = tuple(x.to(memory_format=torch.channels_last) for x in inputs)

    def best(run):
        with torch.inference_mode():
            for _ in range(5):
                run()
            torch.cuda.synchronize()
            times, end = [], time.monotonic() + seconds
            while time.monotonic() < end or len(times) < 10:
                begin, done = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record()
                run()
                done.record()
                done.synchronize()
                times.append(begin.elapsed_time(done))
        return min(times)

    def captured():
        with torch.inference_mode():
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                for _ in range(3):
                    network(*inputs)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                network(*inputs)
        return graph.replay

    def compiled():
        network_compiled = torch.compile(network, mode="reduce-overhead")
        return lambda: network_compiled(*inputs)

    makers = {"eager": lambda: lambda: network(*inputs), "graph": captured, "compiled": compiled}
    times = {}
    for way in ways:
        try:
            times[way] = best(makers[way]())
        except Exception as error:  # the compiler needs tools that a machine may not have
            print(f"{name}, {way}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["resnet50", "mobilenet_v3_large", "vit_b_16", "bert_base"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8, 32])
    parser.add_argument("--types", nargs="+", default=["fp16", "tf32"])
    parser.add_argument("--tenon", default=str(ROOT / "build" / "tenon"))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--ways", nargs="+", default=["eager", "graph", "compiled"], help="how PyTorch runs")
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--shares", action="store_true", help="how near every node comes to what the card can do; without PyTorch's networks")
    parser.add_argument("--slowest", type=int, default=5, help="with --shares: how many nodes that lose most time to show")
    options = parser.parse_args()
    if options.shares:
        import gpu_shares
        gpu_shares.measure(options, model_file, shapes_of, MODELS)
        return
    print("| model | type | batch | Tenon | Tenon fp16 | eager | graph | compiled | times as fast |\n|---|---|---|---|---|---|---|---|---|")
    ratios = []
    for name in options.models:
        for kind in options.types:
            for batch in options.batches:
                ours, half, theirs, problem = math.inf, math.inf, {}, ""
                for _ in range(options.rounds):
                    one, problem = tenon_times(options.tenon, name, kind, batch, options.seconds)
                    ours = min(ours, one)
                    if kind == "int8":
                        half = min(half, tenon_times(options.tenon, name, "fp16", batch, options.seconds)[0])
                    for way, milliseconds in torch_times(name, kind, batch, options.seconds, options.ways).items():
                        theirs[way] = min(theirs.get(way, math.inf), milliseconds)
                ratio = min(theirs.values()) / ours
                if not math.isnan(ratio) and not math.isinf(ours):
                    ratios.append(ratio)
                cells = [f"{theirs[way]:.3f}" if way in theirs else "-" for way in ("eager", "graph", "compiled")]
                cells.insert(0, f"{half:.3f}" if kind == "int8" else "-")
                print(f"| {name} | {kind} | {batch} | {ours:.3f} | {' | '.join(cells)} | {ratio:.2f} |", flush=True)
                if problem:
                    print(f"{name} {kind} {batch}: {problem}", file=sys.stderr)
    if ratios:
        print(f"\ngeometric mean {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
