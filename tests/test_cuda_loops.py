"""Loops, scans and branches whose bodies run on the GPU: what comes back in the next iteration stays there. Beside the CPU; the stand-in for
NVIDIA's libraries (tests/cuda) runs them."""
import json
import subprocess

import onnx
import pytest
from onnx import parser

from test_cuda_shapes import environment_of

# Graphs, and of some the tensors that are copied according to the placement.
GRAPHS = {
    "grows": ("""(float[2,3] x) => (float[rows,3] z) {
        y = Loop <body = body (int64 i, bool go, float[k,3] state) => (bool going, float[m,3] next) {
            going = Identity(go)
            more = Exp(x)
            next = Concat<axis=0>(state, more)
        }> (four, , x)
        z = Relu(y)
    }""", {"x", "state", "z"}),
    "is_read_on_the_host_after": ("""(float[2,3] x) => (float[2,3] y, string[2,3] text) {
        y = Loop <body = body (int64 i, bool go, float[2,3] state) => (bool going, float[2,3] next) {
            going = Identity(go)
            next = Tanh(state)
        }> (four, , x)
        text = Cast<to=8>(y)
    }""", None),
    "swaps": ("""(float[3] x, float[3] w) => (float[3] sum) {
        a, b = Loop <body = body (int64 i, bool go, float[3] s, float[3] t) => (bool going, float[3] u, float[3] v) {
            going = Identity(go)
            u = Identity(t)
            v = Add(s, t)
        }> (four, , x, w)
        sum = Mul(a, b)
    }""", None),
    "changes_places": ("""(float[3] x, float[3] w) => (float[3] sum) {
        a, b = Loop <body = body (int64 i, bool go, float[3] s, float[3] t) => (bool going, float[3] t, float[3] s) {
            going = Identity(go)
        }> (five, , x, w)
        sum = Sub(a, b)
    }""", None),
    "is_collected": ("""(float[2,3] x) => (float[2,3] last, float[4,2,3] all) {
        last, all = Loop <body = body (int64 i, bool go, float[2,3] state) => (bool going, float[2,3] next, float[2,3] next) {
            going = Identity(go)
            next = Sin(state)
        }> (four, , x)
    }""", None),
    "goes_out_as_it_came": ("""(float[2,3] x) => (float[2,3] z) {
        y = Loop <body = body (int64 i, bool go, float[2,3] state) => (bool going, float[2,3] next) {
            going = Identity(go)
            next = Neg(state)
        }> (none, , x)
        z = Neg(y)
    }""", None),
    "decides": ("""(float[3] x) => (float[3] z) {
        y = Loop <body = body (int64 i, bool go, float[3] state) => (bool going, float[3] next) {
            next = Add(state, x)
            most = ReduceMax<keepdims=0>(next)
            going = Less(most, limit)
        }> (many, , x)
        z = Neg(y)
    }""", None),
    "is_read_within_on_the_host": ("""(float[3] x) => (float[3] z) {
        y = Loop <body = body (int64 i, bool go, float[3] state) => (bool going, float[3] next) {
            going = Identity(go)
            text = Cast<to=8>(state)
            back = Cast<to=1>(text)
            next = Add(state, back)
        }> (four, , x)
        z = Neg(y)
    }""", None),
    "within_a_loop": ("""(float[2,3] x) => (float[rows,3] z) {
        y = Loop <body = body (int64 i, bool go, float[k,3] state) => (bool going, float[m,3] next) {
            going = Identity(go)
            inner = Loop <body = nested (int64 j, bool go2, float[k2,3] own) => (bool going2, float[m2,3] longer) {
                going2 = Identity(go2)
                more = Exp(x)
                longer = Concat<axis=0>(own, more)
            }> (four, , state)
            next = Tanh(inner)
        }> (four, , x)
        z = Relu(y)
    }""", None),
    "chooses": ("""(float[3] x) => (float[3] z) {
        y = Loop <body = body (int64 i, bool go, float[3] state) => (bool going, float[3] next) {
            going = Identity(go)
            two = Constant<value = int64 {2}>()
            rest = Mod(i, two)
            odd = Cast<to=9>(rest)
            next = If (odd) <then_branch = one () => (float[3] p) { p = Add(state, x) }, else_branch = other () => (float[3] q) { q = Mul(state, x) }>
        }> (five, , x)
        z = Neg(y)
    }""", None),
    "chooses_a_constant": ("""(float[3] x, bool flag) => (float[3] z) {
        y = If (flag) <then_branch = one () => (float[3] p) { p = Exp(x) }, else_branch = other () => (float[3] q) { q = Constant<value = float[3] {1, 2, 3}>() }>
        z = Neg(y)
    }""", None),
    "scans": ("""(float[4,3] x, float[3] start) => (float[3] last, float[4,3] all) {
        end, all = Scan <num_scan_inputs = 1, body = body (float[3] state, float[3] row) => (float[3] next, float[3] out) {
            sum = Add(state, row)
            next = Tanh(sum)
            out = Neg(next)
        }> (start, x)
        last = Neg(end)
    }""", None),
    "scans_to_its_state": ("""(float[4,3] x, float[3] start) => (float[3] last, float[4,3] all) {
        end, all = Scan <num_scan_inputs = 1, body = body (float[3] state, float[3] row) => (float[3] next, float[3] next) {
            sum = Add(state, row)
            next = Tanh(sum)
        }> (start, x)
        last = Neg(end)
    }""", None),
    "sizes_of_its_data": ("""(float[6] x) => (float[rows] z) {
        y = Loop <body = body (int64 i, bool go, float[k] state) => (bool going, float[m] next) {
            going = Identity(go)
            zero = Constant<value = float {0}>()
            larger = Greater(x, zero)
            more = Compress(x, larger)
            next = Concat<axis=0>(state, more)
        }> (four, , x)
        z = Relu(y)
    }""", None),
}
CONSTANTS = "<int64 none = {0}, int64 four = {4}, int64 five = {5}, int64 many = {1000}, float limit = {100}>"


def write_model(path, graph):
    head, _, body = graph.partition("{")
    text = f'<ir_version: 10, opset_import: ["" : 21]> g {head} {CONSTANTS} {{{body}'
    onnx.save(parser.parse_model(text), path)


@pytest.mark.parametrize("level", ["none", "all"])
@pytest.mark.parametrize("name", GRAPHS)
def test_equals_cpu(tenon, tmp_path, name, level):
    graph, copies = GRAPHS[name]
    write_model(tmp_path / "model.onnx", graph)

    def call(command, *arguments):
        run = subprocess.run([tenon, command, tmp_path / "model.onnx", *arguments, "--json"], capture_output=True, text=True,
                             env=environment_of(tenon, tmp_path), timeout=300)
        assert run.returncode == 0, run.stdout + run.stderr
        return json.loads(run.stdout)

    # Who looks at values in between has each node wait for the one before.
    call("compare", "--provider", "cpu,cuda+cpu", "--level", level, *(["--outputs-only"] if level == "all" else []))
    if copies and level == "all":
        placement = call("inspect", "--placement", "--provider", "cuda,cpu", "--level", level)["placement"]
        assert {copy["tensor"] for copy in placement["copies"]["tensors"]} == copies
