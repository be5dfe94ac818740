"""How near nodes come to what the GPU can do: `gpu.py --shares`.

Every node is measured by itself (`tenon bench --on-device --operators`: repeated in one CUDA graph between two events, so
without the host), and set beside two rates that the same call measures on the same card: a product of 8192 x 8192 matrices by
cublasLt in the type of the model, and a copy of 1 GiB within the GPU's memory. A node is bound by arithmetic if its
operations take longer at the first rate than its bytes at the second, and by memory otherwise. FLOPs and bytes are the
estimates of `tenon`: each tensor read or written once. What fits into the GPU's cache can be faster than its memory: a share
above 1 counts as 1 in the summary.
"""
import collections
import json
import subprocess
import sys

SIZE = 8192
SHORT = 5e-6  # seconds; what is shorter is bound by its start


def run_bench(tenon, path, kind, shapes, seconds=0.3):
    command = [tenon, "bench", path, "--provider", "cuda,cpu", "--on-device", "--operators", "--json", "--seconds", str(seconds), "--warmup", "3"]
    for name, sizes in shapes.items():
        command += ["--shape", f"{name}={'x'.join(map(str, sizes))}"]
    if kind == "tf32":
        command += ["--precision", "fast"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError((result.stderr + result.stdout).strip()[-500:])
    return json.loads(result.stdout)


def product_model(path, kind, size):
    from onnx import TensorProto, helper, save
    element = TensorProto.FLOAT16 if kind == "fp16" else TensorProto.FLOAT
    value = lambda name: helper.make_tensor_value_info(name, element, [size, size])
    graph = helper.make_graph([helper.make_node("MatMul", ["a", "b"], ["y"])], "product", [value("a"), value("b")], [value("y")])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)


def product_rate(tenon, folder, kind, size=SIZE):
    """FLOP/s of cublasLt: the faster of Tenon's and PyTorch's choice."""
    path = folder / f"product_{kind}_{size}.onnx"
    product_model(path, kind, size)
    nodes = run_bench(tenon, path, kind, {})["profile"]["nodes"]
    node = next(node for node in nodes if "device_seconds" in node)  # the others are copies from the host
    best = node["flops"] / node["device_seconds"]
    try:
        import torch
        torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
        a = torch.randn(size, size, device="cuda", dtype=torch.float16 if kind == "fp16" else torch.float32)
        return max(best, 2 * size**3 / seconds_of(lambda: torch.mm(a, a)))
    except (ImportError, AssertionError, RuntimeError) as error:
        print(f"PyTorch's product is not measured: {error}", file=sys.stderr)
        return best


def seconds_of(work, repeats=20):
    import torch
    for _ in range(3):
        work()
    best = float("inf")
    for _ in range(3):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(repeats):
            work()
        end.record()
        end.synchronize()
        best = min(best, begin.elapsed_time(end) * 1e-3 / repeats)
    return best


def copy_rate():
    """Bytes per second that a copy within the GPU's memory reads and writes."""
    import torch
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.nbytes / seconds_of(lambda: target.copy_(source))


class Shares:
    """Nodes of one run, with the two rates."""

    def __init__(self, profile, product, copy):
        self.product, self.copy = product, copy
        self.nodes = [{**node, "time": node["device_seconds"] / profile["runs"], "flops": node["flops"] / profile["runs"],
                       "bytes": node["bytes"] / profile["runs"]} for node in profile["nodes"] if node.get("device_seconds")]
        self.total = sum(node["time"] for node in self.nodes)
        # Nodes on the GPU that cannot be repeated, and those of the host: their time is that of the host.
        self.left_out = [node for node in profile["nodes"] if not node.get("device_seconds") and node["op_type"] != "Copy"]

    def is_arithmetic(self, node):
        return node["flops"] / self.product > node["bytes"] / self.copy

    def share(self, node):
        rate, amount = (self.product, "flops") if self.is_arithmetic(node) else (self.copy, "bytes")
        return node[amount] / rate / node["time"]

    def summary(self, arithmetic):
        """Part of the time, and share of the rate over that time."""
        nodes = [node for node in self.nodes if self.is_arithmetic(node) == arithmetic]
        time = sum(node["time"] for node in nodes)
        if time == 0:
            return 0.0, float("nan")
        return time / self.total, sum(min(self.share(node), 1) * node["time"] for node in nodes) / time

    def rows(self):
        groups = collections.defaultdict(list)
        for node in self.nodes:
            groups[node["op_type"], self.is_arithmetic(node)].append(node)
        for (op, arithmetic), nodes in sorted(groups.items(), key=lambda item: -sum(n["time"] for n in item[1])):
            time = sum(node["time"] for node in nodes)
            flops, moved = sum(node["flops"] for node in nodes) / time, sum(node["bytes"] for node in nodes) / time
            yield (op, len(nodes), time * 1e6, time / self.total, flops / 1e12, flops / self.product, moved / 1e9, moved / self.copy,
                   "arithmetic" if arithmetic else "memory")


def percent(part):
    return "-" if part != part else f"{part:.1%}"


def print_shares(title, shares, latency, slowest):
    print(f"\n### {title}\n\n| operator | nodes | µs | part | TFLOP/s | of product | GB/s | of copy | bound by |\n|---|---|---|---|---|---|---|---|---|")
    for op, nodes, time, part, flops, of_product, moved, of_copy, bound in shares.rows():
        print(f"| {op} | {nodes} | {time:.1f} | {part:.1%} | {flops:.1f} | {of_product:.1%} | {moved:.0f} | {of_copy:.1%} | {bound} |")
    (arithmetic, of_product), (memory, of_copy) = shares.summary(True), shares.summary(False)
    short = sum(node["time"] for node in shares.nodes if node["time"] < SHORT) / shares.total
    print(f"\nbound by arithmetic: {arithmetic:.1%} of the time, at {percent(of_product)} of the product's rate; by memory: {memory:.1%}, at "
          f"{percent(of_copy)} of the copy's; nodes shorter than {SHORT * 1e6:.0f} µs: {short:.1%} of the time. All nodes: {shares.total * 1e6:.1f} µs, a run: "
          f"{latency * 1e6:.1f} µs")
    if shares.left_out:
        print(f"not measured: {', '.join(sorted({node['op_type'] for node in shares.left_out}))}")
    for node in sorted(shares.nodes, key=lambda node: node["time"] * (min(shares.share(node), 1) - 1))[:slowest]:
        print(f"  loses most: {node['time'] * 1e6:.1f} µs at {shares.share(node):.1%}: {node['op_type']} {', '.join(node['inputs'])} -> "
              f"{', '.join(node['outputs'])}")


def measure(options, file_of, shapes_of, folder):
    """Prints tables and the summary of each model; `file_of` and `shapes_of` are gpu.py's."""
    folder.mkdir(parents=True, exist_ok=True)
    copy = copy_rate()
    print(f"copy within the GPU's memory: {copy / 1e9:.0f} GB/s")
    lines = []
    for kind in options.types:
        product = product_rate(options.tenon, folder, kind)
        print(f"product of {SIZE} x {SIZE}, {kind}: {product / 1e12:.1f} TFLOP/s", flush=True)
        for name in options.models:
            for batch in options.batches:
                path = file_of(options.tenon, name, kind)
                try:
                    result = run_bench(options.tenon, path, kind, shapes_of(name, path, batch), options.seconds)
                except RuntimeError as error:
                    print(f"{name} {kind} {batch}: {error}", file=sys.stderr)
                    continue
                shares = Shares(result["profile"], product, copy)
                print_shares(f"{name}, {kind}, batch {batch}", shares, result["latency_seconds"]["min"], options.slowest)
                lines.append((name, kind, batch, *shares.summary(True), *shares.summary(False)))
                sys.stdout.flush()
    print("\n| model | type | batch | time in arithmetic | of the product's rate | time in memory | of the copy's rate |\n|---|---|---|---|---|---|---|")
    for name, kind, batch, arithmetic, of_product, memory, of_copy in lines:
        print(f"| {name} | {kind} | {batch} | {arithmetic:.1%} | {percent(of_product)} | {memory:.1%} | {percent(of_copy)} |")
