"""scikit-learn's pipelines, converted by skl2onnx: labels, probabilities and numbers."""
import numpy as np
import onnxruntime
import skl2onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import (
    GradientBoostingClassifier, GradientBoostingRegressor, IsolationForest, RandomForestClassifier, RandomForestRegressor)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC, SVR

CLASSIFIERS = {
    "scaler and logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
    "random forest": RandomForestClassifier(30, max_depth=6, random_state=0),
    "gradient boosting": GradientBoostingClassifier(n_estimators=20, random_state=0),
    "support vectors": make_pipeline(MinMaxScaler(), SVC(probability=True, random_state=0)),
    "neighbours": KNeighborsClassifier(5),
    "naive Bayes": GaussianNB(),
    "neural network": make_pipeline(StandardScaler(), MLPClassifier((16,), max_iter=300, random_state=0)),
}
REGRESSORS = {
    "random forest, numbers": RandomForestRegressor(30, max_depth=6, random_state=0),
    "gradient boosting, numbers": GradientBoostingRegressor(n_estimators=20, random_state=0),
    "support vectors, numbers": make_pipeline(StandardScaler(), SVR()),
    "polynomials and ridge": make_pipeline(PolynomialFeatures(2), Ridge()),
    "isolation forest": IsolationForest(n_estimators=20, random_state=0),
}


def run(model, inputs):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))


def run_with_numbers(estimator, x):
    # isolation forests convert to no newer version of ai.onnx.ml than 3
    model = skl2onnx.to_onnx(estimator, x[:1], target_opset={"": 18, "ai.onnx.ml": 3})
    return run(model, {"X": x})


def run_with_mixed_columns():
    kinds, sizes = np.array([["red"], ["blue"], ["red"], ["green"]]), np.array([[1.0], [2.0], [3.0], [4.0]], np.float32)
    columns = ColumnTransformer([("kind", OneHotEncoder(handle_unknown="ignore"), [0]), ("size", StandardScaler(), [1])])
    pipeline = make_pipeline(columns, LogisticRegression())
    pipeline.fit(np.array([[k[0], s[0]] for k, s in zip(kinds, sizes)], object), [0, 1, 0, 1])
    types = [("kind", StringTensorType([None, 1])), ("size", FloatTensorType([None, 1]))]
    return run(skl2onnx.convert_sklearn(pipeline, initial_types=types), {"kind": kinds, "size": sizes})


def results():
    flowers, species = load_iris(return_X_y=True)
    patients, progress = load_diabetes(return_X_y=True)
    flowers, patients = flowers.astype(np.float32), patients.astype(np.float32)
    found = {name: run_with_numbers(e.fit(flowers, species), flowers) for name, e in CLASSIFIERS.items()}
    found |= {name: run_with_numbers(e.fit(patients, progress), patients) for name, e in REGRESSORS.items()}
    return found | {"columns of two types": run_with_mixed_columns()}
