"""Who runs the models: {name: function of a path that returns a function from a feed to outputs}."""
import onnxruntime
import tenon


def load_in_onnxruntime(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda feed: session.run(None, feed)


def load_in_tenon(path):
    model = tenon.load(path)
    return lambda feed: list(model.run(feed).values())


RUNTIMES = {"onnxruntime": load_in_onnxruntime, "Tenon": load_in_tenon}
