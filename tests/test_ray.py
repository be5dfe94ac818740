"""tenon.ray on a cluster of two nodes. With TENON_ALL=1, in an environment that has Ray (`make test-ray`)."""
import os
import signal
import socket
import sys
import time

import numpy as np
import pytest
from conftest import ROOT

pytestmark = pytest.mark.skipif(os.environ.get("TENON_ALL") != "1", reason="needs Ray; make test-ray runs it")

ROWS, FILES, BATCH = 2000, 8, 64
COLUMNS = {"x": ["a", "b", "c"]}


@pytest.fixture(scope="module")
def small_models():
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    import small_models
    return small_models


@pytest.fixture(scope="module")
def model(small_models, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "linear.onnx"
    path.write_bytes(small_models.linear())
    return path


@pytest.fixture(scope="module")
def cluster():
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # nothing is sent anywhere
    import ray
    from ray.cluster_utils import Cluster
    size = {"num_cpus": 2, "object_store_memory": 100 * 2**20}
    cluster = Cluster(initialize_head=True, head_node_args=size)
    cluster.add_node(**size)
    ray.init(address=cluster.address)
    ray.data.DataContext.get_current().wait_for_min_actors_s = 120
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    """A folder of files, and the rows in them."""
    import pyarrow
    import pyarrow.parquet
    folder = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(0)
    rows = {"id": np.arange(ROWS)} | {name: rng.standard_normal(ROWS).astype(np.float32) for name in "abc"}
    for number, part in enumerate(np.split(np.arange(ROWS), FILES)):
        table = pyarrow.table({name: column[part] for name, column in rows.items()})
        pyarrow.parquet.write_table(table, folder / f"{number}.parquet")
    return folder, rows


def score(parquet, scorer, model, **options):
    """The dataset's columns in order of `id`, scored by three workers: one node has CPUs for two."""
    import ray
    rows = ray.data.read_parquet(str(parquet)).repartition(FILES)  # small files are read as one block
    scored = rows.map_batches(scorer, fn_constructor_args=(model,), fn_constructor_kwargs={"inputs": COLUMNS}, batch_size=BATCH,
                              num_cpus=1, concurrency=3, **options).to_pandas().sort_values("id")
    return {name: np.stack(scored[name]) for name in scored}


def score_here(rows, model):
    """What one session gives for all rows at once."""
    import tenon
    outputs = tenon.load(model).run(x=np.stack([rows[name] for name in "abc"], axis=1))
    return {"id": rows["id"], "y": outputs["y"], "z": outputs["z"]}


def assert_same_rows(scored, expected):
    for name, values in expected.items():
        np.testing.assert_array_equal(scored[name], values, err_msg=name)


def test_both_nodes_score_a_dataset(cluster, parquet, model):
    import tenon.ray

    class Traced(tenon.ray.Scorer):
        def __call__(self, batch):
            import ray
            time.sleep(0.05)  # long enough for every worker to get a batch
            node = ray.get_runtime_context().get_node_id()
            return {**super().__call__(batch), "node": np.full(len(batch["id"]), node)}

    folder, rows = parquet
    scored = score(folder, Traced, model)
    assert_same_rows(scored, score_here(rows, model))
    assert len(set(scored["node"])) == 2


def test_a_dataset_is_scored_although_a_worker_is_killed(cluster, parquet, model, tmp_path):
    import tenon.ray
    killed = tmp_path / "killed"

    class Killed(tenon.ray.Scorer):
        """One worker's process gets SIGKILL in its second batch."""
        batches = 0

        def __call__(self, batch):
            self.batches += 1
            if self.batches == 2:
                try:
                    killed.touch(exist_ok=False)
                    os.kill(os.getpid(), signal.SIGKILL)
                except FileExistsError:
                    pass
            return super().__call__(batch)

    folder, rows = parquet
    scored = score(folder, Killed, model, max_restarts=-1, max_task_retries=-1)
    assert killed.exists()
    assert_same_rows(scored, score_here(rows, model))


def test_columns_become_inputs_and_outputs_columns(model):
    import tenon
    import tenon.ray
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    expected = tenon.load(model).run(x=x)
    batch = {"id": np.arange(4), "x": x}

    scored = tenon.ray.Scorer(model)(batch)
    assert list(scored) == ["id", "x", "y", "z"]
    np.testing.assert_array_equal(scored["z"], expected["z"])

    scored = tenon.ray.Scorer(model, inputs={"x": "features"}, outputs={"z": "score"}, keep=["id"])({"id": np.arange(4), "features": x})
    assert list(scored) == ["id", "score"]
    np.testing.assert_array_equal(scored["score"], expected["z"])

    lists = np.empty(4, object)
    lists[:] = list(x.astype(np.float64))
    scored = tenon.ray.Scorer(model, outputs=["y"], cast=True)({"x": lists})
    np.testing.assert_array_equal(scored["y"], expected["y"])

    scored = tenon.ray.Scorer(model, inputs=lambda batch: {"x": batch["x"] * 2}, outputs=["y"])(batch)
    np.testing.assert_array_equal(scored["y"], tenon.load(model).run(x=x * 2)["y"])


def test_batches_that_do_not_fit_are_errors(model, small_models):
    import tenon
    import tenon.ray
    scorer = tenon.ray.Scorer(model)
    with pytest.raises(tenon.InputError, match="no column 'x'; it has 'a', 'b'"):
        scorer({"a": np.zeros(2), "b": np.zeros(2)})
    with pytest.raises(tenon.InputError, match="float"):
        scorer({"x": np.zeros((2, 3))})
    with pytest.raises(tenon.ArgumentError, match="'y' has shape .* for 3 rows"):
        tenon.ray.Scorer(model, inputs=lambda batch: {"x": np.zeros((1, 3), np.float32)})({"x": np.zeros(3)})


def test_a_deployment_answers_in_batches(cluster, model, small_models):
    import requests
    import tenon.ray
    from ray import serve
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": port})
    url = f"http://127.0.0.1:{port}/linear"
    handle = serve.run(tenon.ray.deployment(model, max_batch_size=8, batch_wait_timeout_s=0.2,
                                            deployment_options={"num_replicas": 2}), route_prefix="/linear")
    try:
        rows = np.random.default_rng(1).standard_normal((50, 3)).astype(np.float32)
        expected, _ = small_models.linear_reference(rows)
        wrong = handle.remote({"x": np.zeros(4, np.float32)})
        for answer, y in zip([handle.remote({"x": row}) for row in rows], expected):
            np.testing.assert_allclose(answer.result(timeout_s=120)["y"], y, rtol=1e-5, atol=1e-5)
        with pytest.raises(Exception, match="shape-mismatch"):
            wrong.result(timeout_s=120)

        answer = requests.post(url, json={"x": [1, 2, 3]}, timeout=120)
        assert answer.status_code == 200 and answer.json() == {"y": [17.0, 21.0], "z": [-17.0, -21.0]}
        answer = requests.post(url, json={"x": [1, 2]}, timeout=120)
        assert answer.status_code == 400 and "shape-mismatch" in answer.json()["error"]
    finally:
        serve.shutdown()


def test_requests_that_wait_together_run_together(model):
    import tenon.ray

    class Counting:
        """A model that remembers how many rows its runs had."""
        def __init__(self):
            self.model, self.runs = tenon.load(model), []

        def run(self, feeds):
            self.runs.append(len(next(iter(feeds.values()))))
            return self.model.run(feeds)

    counting = Counting()
    rows = [{"x": np.full(3, n, np.float32)} for n in range(5)]
    results = tenon.ray._run_rows(counting, [*rows[:2], {"x": np.zeros(2, np.float32)}, *rows[2:], {"w": np.zeros(3)},
                                              {"x": np.array([None] * 3)}])
    assert counting.runs == [5, 1, 1, 1]
    assert all(isinstance(results[n], tenon.InputError) for n in (2, 6, 7))
    np.testing.assert_array_equal([results[n]["y"] for n in (0, 1, 3, 4, 5)], counting.model.run(x=np.stack([r["x"] for r in rows]))["y"])
