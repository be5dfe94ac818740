"""silero-vad finds the parts of a recording in which somebody speaks."""
import numpy as np
import torch
from silero_vad import get_speech_timestamps, load_silero_vad

RATES = (16000, 8000)


def hum(seconds, rate, rng):
    """Something like a voice: harmonics of a wavering pitch, shaped by formants that move, in syllables."""
    t = np.arange(int(seconds * rate)) / rate
    pitch = 2 * np.pi * np.cumsum(120 + 15 * np.sin(2 * np.pi * 2.3 * t)) / rate
    sound = np.zeros_like(t)
    for harmonic in range(1, 28):
        frequency = 120 * harmonic
        for formant in (600 + 250 * np.sin(2 * np.pi * 1.7 * t), 1400 + 500 * np.sin(2 * np.pi * 1.1 * t), 2600 + 0 * t):
            sound += np.exp(-((frequency - formant) / 160) ** 2) * np.sin(harmonic * pitch)
    syllables = np.clip(np.sin(2 * np.pi * 3.5 * t), 0, 1) ** 0.5
    return (0.1 * sound * syllables + 0.002 * rng.standard_normal(t.shape)).astype(np.float32)


def results():
    model, found = load_silero_vad(onnx=True), {}
    for rate in RATES:
        rng = np.random.default_rng(0)
        silence = (0.002 * rng.standard_normal(rate)).astype(np.float32)
        sound = torch.from_numpy(np.concatenate([silence, hum(2.5, rate, rng), silence, hum(1.5, rate, rng)]))
        found[f"parts at {rate}"] = get_speech_timestamps(sound, model, sampling_rate=rate)
        model.reset_states()
        found[f"probabilities at {rate}"] = model.audio_forward(sound, sr=rate).numpy()
    assert found["parts at 16000"]
    return found
