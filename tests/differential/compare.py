#!/usr/bin/env python3
"""Compares Tenon with onnxruntime on random nodes of every operator version that has a recipe and that onnxruntime runs.

usage: compare.py [--cases N] [--seed N] [--binary build/tenon] [--operator NAME …] [--all]

A recipe (recipes.py lists the files that hold them) draws inputs and attributes that suit the operator's schema; the version decides
which of them are inputs and which are attributes; gaps.py finds what no recipe draws, kernels.py what onnxruntime has.
onnxruntime runs the node without optimisation, in a process of its own since some nodes crash it, and its outputs become a test case
for `tenon test`. A case that fails is drawn again with smaller sizes until it is as small as it gets, and stays in
build/differential/failed. disagreements.py lists where onnxruntime does not do what ONNX says; such
cases are counted apart; --all says how often each entry was needed.
"""
import argparse
import collections
import ctypes
import functools
import json
import multiprocessing
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).resolve().parent))
import disagreements  # noqa: E402
import kernels  # noqa: E402
from recipes import make, versions  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
WORK = ROOT / "build" / "differential"
PER_CALL = 100


def run_by_bytes(session, feeds):
    """Tensors of types that numpy does not have go in and come out as bytes."""
    from onnxruntime import OrtValue

    def enter(value):
        if value.dtype.kind != "V" and value.dtype.names is None and value.dtype in (np.dtype(t) for t in "?bBhHiIqQefd"):
            return OrtValue.ortvalue_from_numpy(value)
        raw = np.ascontiguousarray(value).reshape(value.shape).view(f"u{value.dtype.itemsize}")
        return OrtValue.ortvalue_from_numpy_with_onnx_type(raw, onnx.helper.np_dtype_to_tensor_dtype(value.dtype))

    def leave(value):
        tensor = onnx.TensorProto(data_type=value.element_type(), dims=value.shape())
        bits = {onnx.TensorProto.INT4: 4, onnx.TensorProto.UINT4: 4, onnx.TensorProto.FLOAT4E2M1: 4, onnx.TensorProto.INT2: 2,
                onnx.TensorProto.UINT2: 2}.get(tensor.data_type)
        bits = bits or onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize * 8
        count = (int(np.prod(value.shape())) * bits + 7) // 8
        tensor.raw_data = ctypes.string_at(value.data_ptr(), count) if count else b""
        return onnx.numpy_helper.to_array(tensor).reshape(value.shape())

    entered = {name: enter(value) for name, value in feeds.items()}
    return [leave(value) for value in session.run_with_ort_values(None, entered)]


def serve_onnxruntime(pipe):
    """Runs models that come through the pipe: sends back outputs, or a text that says why there are none."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    onnxruntime.set_default_logger_severity(4)
    while True:
        try:
            model, values = pipe.recv()
        except EOFError:  # all is done
            return
        try:
            session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            feeds = {i.name: v for i, v in zip(session.get_inputs(), values)}
            types = [i.type for i in [*session.get_inputs(), *session.get_outputs()]]
            if any(part in type_ for type_ in types for part in ("bfloat16", "float8", "float4", "int4", "int2")):
                pipe.send(run_by_bytes(session, feeds))
            else:
                pipe.send(session.run(None, feeds))
        except Exception as error:  # noqa: BLE001: every reason not to run it is one
            pipe.send(str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__)


def serve_reference(pipe):
    """The same with the reference implementation of the onnx package, which has every type."""
    from onnx.reference import ReferenceEvaluator
    while True:
        try:
            model, values = pipe.recv()
        except EOFError:
            return
        try:
            evaluator = ReferenceEvaluator(onnx.load_from_string(model))
            outputs = evaluator.run(None, dict(zip(evaluator.input_names, values)))
            for output in outputs:
                proto(output)  # some are no tensors that ONNX has
            pipe.send(outputs)
        except Exception as error:  # noqa: BLE001
            pipe.send(f"{type(error).__name__}: {error}")


class Oracle:
    """What is compared with, in a process of its own, started again when a model crashes it."""

    def __init__(self, serve):
        self.process, self.serve = None, serve

    def run(self, model, values):
        if self.process is None or not self.process.is_alive():
            context = multiprocessing.get_context("spawn")
            self.pipe, theirs = context.Pipe()
            self.process = context.Process(target=self.serve, args=(theirs,), daemon=True)
            self.process.start()
            theirs.close()
        try:
            self.pipe.send((model.SerializeToString(), values))
            if not self.pipe.poll(60):
                self.process.kill()
                return "it hangs"
            return self.pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            self.process.join()
            self.process = None
            return "it crashes"


def tolerance(case, outputs):
    """For tolerance.json: by the least exact type in the case."""
    kinds = set(case.types.values()) | {str(o.dtype) for o in outputs if isinstance(o, np.ndarray)}
    bound = 2e-2 if "bfloat16" in kinds else 4e-3 if "float16" in kinds else 1e-4
    bound *= 10 if case.wide else 1
    return {"rtol": bound, "atol": max(case.absolute, bound if bound > 2e-3 else bound / 10)}


def proto(value, kind=None):
    """The message that a file of a test case holds. The type is needed for optionals and for maps of doubles."""
    if kind is not None and kind.HasField("optional_type"):
        message = onnx.OptionalProto
        if value is None:
            return message()
        if isinstance(value, list):
            return message(elem_type=message.SEQUENCE, sequence_value=proto(value))
        return message(elem_type=message.TENSOR, tensor_value=proto(value))
    if isinstance(value, dict):
        return map_proto(value, kind)
    if isinstance(value, list):
        maps = [map_proto(item) for item in value if isinstance(item, dict)]
        if maps:
            return onnx.SequenceProto(elem_type=onnx.SequenceProto.MAP, map_values=maps)
        return onnx.SequenceProto(elem_type=onnx.SequenceProto.TENSOR, tensor_values=[proto(item) for item in value])
    return onnx.numpy_helper.from_array(np.asarray(value))


def map_proto(value, kind=None):
    number = kind.map_type.value_type.tensor_type.elem_type if kind is not None else onnx.TensorProto.FLOAT
    items = [proto(np.array(item, dtype=onnx.helper.tensor_dtype_to_np_dtype(number))) for item in value.values()]
    values = onnx.SequenceProto(elem_type=onnx.SequenceProto.TENSOR, tensor_values=items)
    if isinstance(next(iter(value)), str):
        return onnx.MapProto(key_type=onnx.TensorProto.STRING, string_keys=[key.encode() for key in value], values=values)
    return onnx.MapProto(key_type=onnx.TensorProto.INT64, keys=list(value), values=values)


def write(folder, case, model, values, outputs):
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    (folder / "tolerance.json").write_text(json.dumps(tolerance(case, outputs)))
    result = onnx.helper.make_optional_type_proto(onnx.TypeProto()) if case.optional else None
    messages = {f"input_{i}": proto(value, model.graph.input[i].type) for i, value in enumerate(values)}
    # None where onnxruntime leaves an optional output out.
    messages |= {f"output_{i}": proto(value, result) for i, value in enumerate(outputs) if value is not None or case.optional}
    for name, message in messages.items():
        (data / f"{name}.pb").write_bytes(message.SerializeToString())


def run_tenon(binary, folders):
    """{folder: what is wrong, "" for nothing}."""
    result = {}
    for at in range(0, len(folders), PER_CALL):
        part = folders[at:at + PER_CALL]
        try:
            run = subprocess.run([binary, "test", "--json", *part], capture_output=True, text=True, timeout=60)
            for entry in json.loads(run.stdout)["cases"]:
                result[entry["name"]] = "" if entry["result"] == "passed" else entry.get("reason", entry["result"])
        except (json.JSONDecodeError, KeyError, subprocess.TimeoutExpired) as error:
            if len(part) == 1:
                hangs = isinstance(error, subprocess.TimeoutExpired)
                result[str(part[0])] = "tenon hangs" if hangs else f"tenon ended with {run.returncode}: {run.stderr[-300:]}"
            else:
                for folder in part:
                    result.update(run_tenon(binary, [folder]))
    return result


def explained(case):
    """The entry of disagreements.py that this case is one of, or None."""
    return next((e for e in disagreements.LIST if e.operator == case.schema.name and e.applies(case)), None)


def shrink(oracle, binary, draw, schema, seed, problem):
    """The smallest failing case of many drawn with ever smaller sizes, in its folder."""
    best, target = None, WORK / "failed" / f"{schema.name}-{schema.since_version}-{seed}"
    for attempt in range(80):
        made = draw(seed if attempt == 0 else seed * 1000 + attempt, 5 if attempt == 0 else 1 + attempt % 4)
        if made is None:
            continue
        case, model, values = made
        size = sum(v.size for v in case.inputs.values() if isinstance(v, np.ndarray)) + 3 * len(case.attributes)
        if (best is not None and size >= best) or explained(case):
            continue
        outputs = oracle.run(model, values)
        if isinstance(outputs, str):
            continue
        folder = WORK / "shrink"
        shutil.rmtree(folder, ignore_errors=True)
        write(folder, case, model, values, outputs)
        now = run_tenon(binary, [str(folder)])[str(folder)]
        if now and (now.split(":")[0] == problem.split(":")[0]):
            best = size
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(folder, target)
            found = now
    return (target, found) if best is not None else (None, problem)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--binary", default=str(ROOT / "build" / "tenon"))
    parser.add_argument("--operator", action="append", help="only this one; may be given again")
    parser.add_argument("--all", action="store_true", help="also report what was not compared, and how often each entry of disagreements.py was needed")
    parser.add_argument("--reference", action="store_true", help="compare with the onnx package's reference implementation instead")
    parser.add_argument("--no-shrink", action="store_true")
    options = parser.parse_args()

    shutil.rmtree(WORK, ignore_errors=True)
    schemas = versions(options.operator)
    accepted = functools.cache(lambda schema: None if options.reference else kernels.types(schema))
    if not options.reference:
        schemas = [(schema, last) for schema, last in schemas if kernels.accepts(schema)]
    order = np.random.default_rng(options.seed)
    oracle = Oracle(serve_reference if options.reference else serve_onnxruntime)
    cases, refused, compared = {}, collections.Counter(), collections.Counter()
    pending, attempts = [], collections.Counter()
    for seed in range(options.seed * 1_000_000, options.seed * 1_000_000 + 20 * options.cases):
        if len(cases) == options.cases:
            break
        if not pending:
            pending = [schemas[k] for k in order.permutation(len(schemas))]
        schema, last = pending.pop()
        key = schema.domain, schema.name, schema.since_version
        if attempts[key] >= 40 and not compared[key]:
            continue  # a version that onnxruntime does not run after all
        attempts[key] += 1
        made = make(schema, last, seed, accepted=accepted(schema))
        outputs = "nothing was drawn" if made is None else oracle.run(*made[1:])
        if isinstance(outputs, str):
            refused[schema.name, outputs[:90]] += 1
            continue
        folder = WORK / "cases" / f"{schema.name}-{schema.since_version}-{seed}"
        write(folder, *made, outputs)
        cases[str(folder)] = (schema, last, seed)
        compared[key] += 1

    needed, failures = collections.Counter(), collections.defaultdict(list)
    for folder, problem in run_tenon(options.binary, list(cases)).items():
        if not problem:
            continue
        schema, last, seed = cases[folder]
        if entry := explained(make(schema, last, seed, accepted=accepted(schema))[0]):
            needed[entry] += 1
        else:
            failures[schema.name, schema.since_version].append((cases[folder], problem))
    for (name, version), list_ in sorted(failures.items()):
        (schema, last, seed), problem = list_[0]
        target, text = (None, problem) if options.no_shrink else shrink(
            oracle, options.binary, lambda *how: make(schema, last, *how, accepted(schema)), schema, seed, problem)
        print(f"{name} (version {version}), {len(list_)} cases: {text}\n    {target or f'seed {seed}'}")
    if options.all:
        for entry in disagreements.LIST:
            print(f"disagreements.py: {needed[entry]} cases: {entry.operator}: {entry.reason}")
    never = sorted({f"{s.name}-{s.since_version}" for s, _ in schemas} - {f"{n}-{v}" for _, n, v in compared})
    print(f"{len(cases)} cases of {len(compared)} operator versions compared; {sum(map(len, failures.values()))} differ, "
          f"{sum(needed.values())} in ways that disagreements.py explains; onnxruntime did not run {sum(refused.values())}")
    if options.all:
        print(f"never compared: {' '.join(never)}")
        for (name, why), count in refused.most_common(60):
            print(f"  {name} {count}: {why}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
