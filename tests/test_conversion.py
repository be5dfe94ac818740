"""The node cases of the ONNX suite in other opsets, and how they are compared with the lists."""
import os
import subprocess
import sys

import conversion
import pytest

import tenon as package

PAIRS = 2000


def test_cases_in_other_opsets(tenon):
    pairs = conversion.all_pairs(conversion.write_suite())
    if not os.environ.get("TENON_ALL"):
        pairs = conversion.choose(pairs, PAIRS, seed=0)
    results = conversion.run(tenon, pairs)
    blockers = conversion.read_list(conversion.LISTS / "blockers.txt")
    problems = results.problems(blockers, conversion.read_list(conversion.LISTS / "checker.txt"))
    theirs = conversion.count_with_onnx(tenon, pairs)
    print(results.report(blockers))
    print(f"onnx.version_converter: {theirs} of {len(pairs)} pairs converted and passing; Tenon: {len(results.fine)}")
    assert not problems, "\n" + "\n".join(problems)
    assert len(results.fine) > theirs


def test_listed_cases_are_in_the_suite():
    cases = {folder.name for folder in (conversion.write_suite() / "node").iterdir()}
    for name in ("blockers.txt", "checker.txt"):
        assert not {case for case, _ in conversion.read_list(conversion.LISTS / name)} - cases, name


# What the list may have below each opset: strings, images, sequences, Fourier transforms and types that the opset does
# not have. Nothing else may be in the way of opset 13 and newer ones, but for what is named here.
MAY_BLOCK = ("does not have the type", "do not have the type", "does not take tensor(string)", "does not take seq(",
             "does not take optional(", "DFT", "STFT", "ImageDecoder", "StringConcat", "StringSplit", "RegexFullMatch",
             "Optional", "BitCast", "older operators do not know its")


def test_little_is_in_the_way_of_opset_13():
    blockers = conversion.read_list(conversion.LISTS / "blockers.txt")
    others = {(case, opset, why) for (case, opset), why in blockers.items()
              if opset >= 13 and not any(text in why for text in MAY_BLOCK)}
    assert not others


# What older versions of ai.onnx.ml cannot say.
ML_BLOCKERS = {
    "test_ai_onnx_ml_label_encoder_tensor_mapping": "before version 4 it mapped strings, int64 and float32 only",
    "test_ai_onnx_ml_label_encoder_tensor_value_only_mapping": "before version 4 it mapped strings, int64 and float32 only",
    "test_ai_onnx_ml_tree_ensemble_single_tree": "gives float32 only",
}


def test_ml_cases_in_older_versions(tenon):
    suite = conversion.write_suite()
    written, blocked = [], {}
    for folder in sorted((suite / "node").glob("test_ai_onnx_ml_*")):
        own = conversion.opset_of(folder / "model.onnx", ["ai.onnx.ml"])
        for version in range(1, own):
            target = conversion.prepare_folder(suite, folder.name, f"ml-{version}")
            try:
                package.convert(folder / "model.onnx", opsets={"ai.onnx.ml": version}).save(target / "model.onnx")
            except package.Error as error:
                blocked.setdefault(folder.name, {})[version] = str(error)
                continue
            assert not conversion.checker_says(target / "model.onnx")
            written.append(f"ml-{version}/{folder.name}")
    failed = {name: why for name, (result, why) in conversion.run_cases(str(tenon), conversion.FOLDER, written).items()
              if result != "passed"}
    assert not failed and written
    for name, versions in blocked.items():
        for version, text in versions.items():
            assert name in ML_BLOCKERS and (ML_BLOCKERS[name] in text or "does not take" in text), (name, version, text)


@pytest.mark.parametrize("text, numbers", [("7", {7}), ("7-9", {7, 8, 9}), ("7-8,10", {7, 8, 10})])
def test_ranges(text, numbers):
    assert conversion.numbers_of(text) == numbers
    assert conversion.text_of(numbers) == text


def test_lists_are_written_as_they_are_read(tmp_path):
    file = tmp_path / "blockers.txt"
    file.write_text("# kept\n")
    pairs = {("a", 7): "one reason", ("a", 8): "one reason", ("b", 7): "another: of two"}
    conversion.write_list(file, pairs)
    assert file.read_text() == "# kept\n\nanother: of two\n  b 7\n\none reason\n  a 7-8\n"
    assert conversion.read_list(file) == pairs


def outcome(**pairs):
    results = conversion.Results()
    for kind, names in pairs.items():
        setattr(results, kind, {(name, 13) for name in names} if kind == "fine" else {(name, 13): "why" for name in names})
    return results


@pytest.mark.parametrize("results, problems", [
    (outcome(fine="a"), []),
    (outcome(blocked="b"), []),
    (outcome(blocked="a"), ["a to opset 13 is blocked, and not listed: why"]),
    (outcome(invalid="c"), []),
    (outcome(invalid="b"), ["b to opset 13 is not valid: why"]),
    (outcome(wrong="b"), ["b to opset 13 is wrong: why"]),
])
def test_problems(results, problems):
    assert results.problems({("b", 13): "listed"}, {("c", 13): "listed"}) == problems


def test_what_is_listed_and_converts_is_reported():
    assert "1 pairs are listed as blocked and convert: b to 13" in outcome(fine="ab").report({("b", 13): "why"})


def test_types_of_versions_are_those_of_the_onnx_package():
    subprocess.run([sys.executable, conversion.ROOT / "scripts" / "make_type_history", "--check"], check=True)
