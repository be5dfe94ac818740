"""The layer check: on the project itself, and on small trees that break a rule."""
import subprocess
import sys

import pytest
from conftest import ROOT


def check(*arguments):
    run = subprocess.run([sys.executable, ROOT / "scripts" / "check_layers", *arguments], capture_output=True, text=True)
    return run.returncode, run.stdout


def test_the_project_keeps_its_layers():
    status, output = check()
    assert status == 0, output


def test_architecture_shows_the_table():
    _, table = check("--table")
    assert table in (ROOT / "ARCHITECTURE.md").read_text(), (
        "ARCHITECTURE.md and scripts/check_layers disagree; paste the output of `scripts/check_layers --table`")


# file, what it includes, what the check says ("" = nothing)
RULES = [
    ("src/tensor/shape.h", "base/error.h", ""),
    ("src/base/error.h", "tensor/shape.h", "is of layer tensor; base may include only: base"),
    ("src/kernels/gemm/gemm.cc", "base/threads.h", ""),
    ("src/kernels/gemm/gemm.cc", "tensor/shape.h", "kernels may include only: base, kernels"),
    ("src/ir/graph.cc", "onnx/reader.h", "is of layer onnx"),
    ("src/ops/softmax/softmax.cc", "ir/node.h", ""),
    ("src/ops/softmax/softmax.cc", "kernels/softmax/softmax.h", "is of layer kernels"),
    ("src/ops/softmax/softmax.cc", "provider/provider.h", "is of layer provider"),
    ("src/ops/softmax/cpu.cc", "kernels/softmax/softmax.h", ""),
    ("src/ops/softmax/cpu_rows.cc", "provider/provider.h", ""),
    ("src/ops/softmax/cpu.cc", "cuda/stream.h", "is of layer cuda"),
    ("src/ops/softmax/cuda.cc", "cuda/stream.h", ""),
    ("src/ops/softmax/cuda.cc", "kernels/softmax/softmax.h", "is of layer kernels"),
    ("src/ops/softmax/softmax.cc", "ops/softmax/cpu.h", "is of layer ops/*/cpu*"),
    ("src/ops/softmax/test.cc", "session/session.h", ""),
    ("src/ops/softmax/test.cc", "tools/check.h", "tests may include everything up to session"),
    ("src/passes/fold.cc", "ops/schema.h", ""),
    ("src/passes/fold.cc", "ops/softmax/cpu.h", "is of layer ops/*/cpu*"),
    ("src/providers/cpu/cpu.cc", "kernels/gemm/gemm.h", ""),
    ("src/providers/cuda/cuda.cc", "kernels/gemm/gemm.h", "is of layer kernels"),
    ("src/session/session.cc", "providers/cpu/cpu.h", ""),
    ("src/session/session.cc", "tools/check.h", "is of layer tools"),
    ("src/tools/check.cc", "session/session.h", ""),
    ("src/base/error.cc", "tenon/error.h", ""),
    ("src/base/error.cc", "tenon/tensor.h", "is of layer tensor"),
    ("src/ir/graph.cc", "tenon/session.h", "is of layer session"),
    ("include/tenon/session.h", "tenon/tensor.h", ""),
    ("include/tenon/error.h", "tenon/tensor.h", "is of layer tensor"),
    ("include/tenon/session.h", "session/session.h", "a public header may include public headers only"),
    ("apps/cli/main.cc", "tenon/tools/check.h", ""),
    ("apps/cli/main.cc", "session/session.h", "apps may include only include/tenon"),
    ("src/base/error.cc", "fmt/core.h", "write <…> for other libraries"),
    ("src/misc/x.cc", "base/error.h", "a folder that the layer table does not know: misc"),
]


@pytest.mark.parametrize("file, includes, says", RULES)
def test_rule(tmp_path, file, includes, says):
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(f'// a comment\n#include "{includes}"\n#include <vector>\n')
    status, output = check("--root", tmp_path)
    assert status == (1 if says else 0), output
    if says:
        assert f'{file}:2: "{includes}"' in output
        assert says in output


def test_a_path_with_dots_is_followed(tmp_path):
    for file, text in (("src/base/error.cc", '#include "../ir/graph.h"\n'), ("src/ir/graph.h", "")):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(text)
    status, output = check("--root", tmp_path)
    assert status == 1
    assert 'src/base/error.cc:1: "../ir/graph.h" is of layer ir' in output
