"""`tenon report`: what is in the page, that nothing of a model can act in it, and how it behaves in a browser."""
import html.parser
import json
import os
import re
import shutil
import subprocess

import numpy as np
import onnx
import pytest
from conftest import BAD_USAGE, BROKEN, MISSING, ROOT
from onnx import TensorProto, helper, numpy_helper

HOSTILE = [
    "</script><script>alert(1)</script>", "<!--<script>", "\"'`${x}", "a\u2028b\u2029c", "\u202etxt.exe\u202c\u200f",
    "<img src=x onerror=alert(2)>", "\\u003c/script>", "/* DATA */ /* SCRIPT */ /* NONCE */", "n" * 10000, "line\nbreak\ttab\x01",
    "__proto__", "constructor", "]]>", "😀 ünïcödé",
]


def save(path, nodes, inputs, outputs, weights=(), **graph):
    made = helper.make_graph(nodes, graph.pop("name", "g"), inputs, outputs, list(weights), **graph)
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


@pytest.fixture
def small(tmp_path):
    """y = relu(x @ w), and the places in it that are not 0."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], "product"), helper.make_node("Relu", ["h"], ["y"], "positive"),
             helper.make_node("NonZero", ["y"], ["places"], "find")]
    return save(tmp_path / "small.onnx", nodes, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 4])],
                [helper.make_tensor_value_info("y", TensorProto.FLOAT, None),
                 helper.make_tensor_value_info("places", TensorProto.INT64, None)],
                [numpy_helper.from_array(np.ones((4, 8), np.float32), "w")])


@pytest.fixture
def hostile(tmp_path):
    """A chain of nodes whose names, tensors, weights and descriptions try to get out of the page."""
    nodes, weights, last = [], [], "x"
    for i, name in enumerate(HOSTILE):
        weights.append(numpy_helper.from_array(np.full((3,), i + 1, np.float32), f"weight {name}"))
        nodes.append(helper.make_node("Add", [last, f"weight {name}"], [f"sum {name}"], name=name, doc_string=name))
        nodes.append(helper.make_node("Tanh", [f"sum {name}"], [name], name=f"/{name}/{name}"))
        last = name
    path = save(tmp_path / "<b>hostile&.onnx", nodes, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])],
                [helper.make_tensor_value_info(last, TensorProto.FLOAT, [3])], weights, name=HOSTILE[0], doc_string=HOSTILE[5])
    model = onnx.load(path)
    model.doc_string = HOSTILE[0]
    model.producer_name = HOSTILE[5]
    model.metadata_props.add(key=HOSTILE[0], value=HOSTILE[5])
    onnx.save(model, path)
    return path


@pytest.fixture
def looped(tmp_path):
    """A Loop whose body has nodes of its own."""
    body = helper.make_graph(
        [helper.make_node("Add", ["state", "one"], ["more"], "grow"), helper.make_node("Identity", ["go"], ["go_on"])], "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("state", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("go_on", TensorProto.BOOL, []), helper.make_tensor_value_info("more", TensorProto.FLOAT, [2])])
    nodes = [helper.make_node("Abs", ["x"], ["start"]), helper.make_node("Loop", ["times", "", "start"], ["y"], "again", body=body)]
    return save(tmp_path / "looped.onnx", nodes, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]),
                                                 helper.make_tensor_value_info("times", TensorProto.INT64, [])],
                [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
                [numpy_helper.from_array(np.ones(2, np.float32), "one")])


class Page(html.parser.HTMLParser):
    """The tags of a page, its scripts, and its document."""
    def __init__(self, path):
        super().__init__()
        self.tags, self.scripts, self.inside = [], [], False
        self.feed(path.read_text(encoding="utf-8"))
        self.data = json.loads(self.scripts[0])

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data


def make_page(call, model, tmp_path, *options):
    page = tmp_path / "report.html"
    call("report", model, "-o", page, "--runs", 2, "--warmup", 1, *options)
    return Page(page)


def check_document(data):
    """What holds for every report."""
    nodes, tensors, blocks = data["nodes"], data["tensors"], data["blocks"]
    for node in nodes:
        assert all(0 <= t < len(tensors) for t in node["inputs"] + node["outputs"])
    drawn = []
    for number, block in enumerate(blocks):
        assert block["parent"] < number
        assert len(block["children"]) <= 28 or number == 0
        drawn += [child["node"] for child in block["children"] if "node" in child]
        drawn += [block["node"]] if "node" in block else []
        for child in block["children"]:
            x, y, width, height = child["box"]
            assert width / 2 - 1 <= x <= block["width"] - width / 2 + 1 and height / 2 - 1 <= y <= block["height"] - height / 2 + 1
        for arrow in block["arrows"]:
            assert len(arrow["points"]) % 6 == 2 or not arrow["points"]
    assert sorted(drawn) == [i for i, node in enumerate(nodes) if not node.get("idle")]
    for block in data["memory"]["blocks"]:
        assert 0 <= block.get("offset", 0) + block["bytes"] <= max(data["memory"]["arena_bytes"], block["bytes"])


def test_page_has_everything(call, small, tmp_path):
    page = make_page(call, small, tmp_path, "--dim", "rows=100", "--level", "basic")
    data = page.data
    check_document(data)
    assert [node["op"] for node in data["nodes"]] == ["MatMul", "Relu", "NonZero"]
    assert data["nodes"][0]["flops"] == 2 * 100 * 4 * 8 and data["nodes"][0]["seconds"] > 0
    tensors = {tensor["name"]: tensor for tensor in data["tensors"]}
    assert tensors["h"] == {"name": "h", "type": "float [100, 8]", "bytes": 3200, "kind": "computed", "producer": 0}
    assert tensors["w"]["kind"] == "weight" and tensors["w"]["bytes"] == 128 and tensors["x"]["kind"] == "input"
    # How many places there are only a run tells.
    count = int(re.fullmatch(r"int64 \[2, (\d+)\]", tensors["places"]["type"])[1])
    assert tensors["places"]["bytes"] == 2 * count * 8
    assert len(data["runs"]) == 2 and len(data["timeline"]["steps"]) == 3
    assert data["machine"]["peaks"]["gflops"] > 0 and data["machine"]["peaks"]["memory_gbs"] > 0
    assert "inputs that were not given are random (seed 0)" in data["notes"]


def test_page_is_self_contained(call, small, tmp_path):
    page = make_page(call, small, tmp_path, "--no-peaks")
    assert {tag for tag, _ in page.tags}.isdisjoint({"link", "img", "iframe", "object", "embed", "base", "form"})
    assert not [attributes for _, attributes in page.tags if "src" in attributes or any(key.startswith("on") for key in attributes)]
    policy = next(attributes["content"] for tag, attributes in page.tags if attributes.get("http-equiv") == "Content-Security-Policy")
    nonce = re.search(r"script-src 'nonce-([0-9a-f]{24})'", policy)[1]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    assert [attributes for tag, attributes in page.tags if tag == "script"] == [{"id": "data", "type": "application/json"}, {"nonce": nonce}]
    text = (tmp_path / "report.html").read_text()
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "") and "https://" not in text
    assert "innerHTML" not in text and "/* DATA */" not in text


def test_hostile_names(call, hostile, tmp_path):
    page = make_page(call, hostile, tmp_path, "--level", "none", "--no-peaks")
    check_document(page.data)
    assert [tag for tag, _ in page.tags].count("script") == 2
    assert {tag for tag, _ in page.tags}.isdisjoint({"img", "b"})
    # Nothing was lost either.
    assert [node["name"] for node in page.data["nodes"] if node["op"] == "Add"] == HOSTILE
    assert page.data["nodes"][0]["doc"] == HOSTILE[0] and page.data["model"]["doc"] == HOSTILE[0]
    assert len((tmp_path / "report.html").read_text()) < 2_000_000


def test_json_is_the_same_document(call, small):
    data = json.loads(call("report", small, "--json", "--runs", 1, "--no-peaks").stdout)
    check_document(data)
    assert data["format"] == 1 and data["model"]["file"] == "small.onnx"


def test_without_running(call, small, tmp_path):
    run = call("report", small, "-o", tmp_path / "r.html", "--no-run", "--dim", "rows=7", "--level", "basic")
    data = Page(tmp_path / "r.html").data
    check_document(data)
    assert "the model was not run, so there are no times" in run.stderr
    assert data["runs"] == [] and "timeline" not in data and "seconds" not in data["nodes"][0]
    assert data["nodes"][0]["flops"] == 2 * 7 * 4 * 8 and data["memory"]["blocks"]


def test_own_layout_says_so(call, small, tmp_path):
    page = make_page(call, small, tmp_path, "--own-layout", "--no-peaks")
    check_document(page.data)
    assert any("simple rows" in note for note in page.data["notes"])


def test_without_graphviz(tenon, small, tmp_path):
    run = subprocess.run([tenon, "report", small, "-o", tmp_path / "r.html", "--runs", "1", "--no-peaks"], capture_output=True,
                         text=True, env={**os.environ, "PATH": str(tmp_path)})
    assert run.returncode == 0 and "Graphviz's program 'dot' was not found" in run.stderr
    check_document(Page(tmp_path / "r.html").data)


def test_bodies_of_loops(call, looped, tmp_path):
    times = tmp_path / "times.npy"
    np.save(times, np.array(3))
    data = make_page(call, looped, tmp_path, "--input", f"times={times}", "--level", "none", "--no-peaks").data
    check_document(data)
    grow = next(node for node in data["nodes"] if node["name"] == "grow")
    assert data["nodes"][grow["owner"]]["op"] == "Loop" and grow["calls"] == 3


def test_errors_of_compare(call, small, tmp_path):
    compared = tmp_path / "compare.json"
    statistics = {"max_absolute": 0.5, "largest": 2.0, "nans": 0}
    compared.write_text(json.dumps({"tensors": [{"name": "h", "actual_name": "h", "ok": False, "statistics": statistics}]}))
    data = make_page(call, small, tmp_path, "--errors", compared, "--no-peaks").data
    assert data["errors"] == {"h": {**statistics, "error": 0.25, "ok": False}}
    compared.write_text("[]")
    assert "tenon compare --json" in call("report", small, "--errors", compared, "-o", tmp_path / "e.html", code=BAD_USAGE).stderr
    call("report", small, "--errors", tmp_path / "none", "-o", tmp_path / "e.html", code=MISSING)


def test_overwrites_only_pages(call, small, tmp_path):
    before = small.read_bytes()
    assert "is no HTML page" in call("report", small, "-o", small, code=BAD_USAGE).stderr
    assert small.read_bytes() == before
    for _ in range(2):
        make_page(call, small, tmp_path, "--no-peaks")
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    call("report", small, "-o", other, "--force", "--runs", 1, "--no-peaks")
    call("report", small, "-o", tmp_path / "no" / "folder.html", "--runs", 1, "--no-peaks", code=MISSING)
    (tmp_path / "broken.onnx").write_bytes(b"\x08")
    call("report", tmp_path / "broken.onnx", "-o", tmp_path / "b.html", code=BROKEN)


# ---- in a browser

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
in_browser = pytest.mark.skipif(not (os.environ.get("TENON_ALL") and BROWSER), reason="make test-report runs it in Chromium")


def open_page(path, *options, hash="selftest"):
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--enable-logging=stderr",
               "--window-size=1280,900", *options, f"{path.as_uri()}#{hash}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def check_in_browser(path):
    run = open_page(path, "--dump-dom")
    found = re.search(r'<pre id="selftest">(.*?)</pre>', run.stdout, re.S)
    assert found, run.stderr[-3000:]
    lines = found[1].splitlines()
    assert len(lines) >= 9 and all(line.startswith("ok ") for line in lines), found[1]
    # What a script that got in would have done, and what the page's own got wrong.
    assert "CONSOLE" not in run.stderr, run.stderr
    return run.stdout


@in_browser
def test_hostile_names_in_browser(call, hostile, tmp_path):
    make_page(call, hostile, tmp_path, "--level", "none")
    dom = check_in_browser(tmp_path / "report.html")
    assert "<img" not in dom and dom.count("<script") == 2


# Scopes in names, blocks that repeat without them, branches that join, and 3,500 nodes.
@in_browser
@pytest.mark.parametrize("name, sizes", [("resnet50", []), ("bert_base", ["--dim", "seq=128"]), ("swin_t", []), ("swin_t_dynamo", []),
                                         ("yolov8n_like", []), ("ssdlite320_mobilenet_v3_large", [])])
def test_models_in_browser(call, tmp_path, name, sizes):
    from model_cases import make
    page = make_page(call, make(name), tmp_path, *sizes)
    check_document(page.data)
    check_in_browser(tmp_path / "report.html")
    for theme in ("light", "dark"):
        picture = ROOT / "build" / "reports" / f"{name}-{theme}.png"
        picture.parent.mkdir(exist_ok=True)
        open_page(tmp_path / "report.html", f"--screenshot={picture}", "--window-size=1280,5600", hash=theme)
        assert picture.stat().st_size > 50_000
