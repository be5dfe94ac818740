"""openwakeword listens for wake words in a stream: spectrogram, embedding, voice detection and six small models."""
import numpy as np
from openwakeword.model import Model

RATE, FRAME = 16000, 1280


def results():
    rng = np.random.default_rng(0)
    t = np.arange(3 * RATE) / RATE
    sound = 6000 * np.sin(2 * np.pi * (300 + 200 * np.sin(2 * np.pi * 0.7 * t)) * t) * (np.sin(2 * np.pi * 3 * t) > 0)
    sound = (sound + 200 * rng.standard_normal(t.shape)).astype(np.int16)
    model, scores = Model(inference_framework="onnx", vad_threshold=0.01), {}
    for start in range(0, len(sound), FRAME):
        for word, score in model.predict(sound[start:start + FRAME]).items():
            scores.setdefault(word, []).append(float(score))
    return {"scores": scores, "features": model.preprocessor.get_features(16), "spectrogram": model.preprocessor.melspectrogram_buffer[-40:],
            "voice": [float(v) for v in model.vad.prediction_buffer]}
