"""speechmos says how good speech sounds: after noise suppression, after echo cancellation, and after packet loss."""
import numpy as np
from speechmos import aecmos, dnsmos, plcmos

RATE = 16000


def results():
    rng = np.random.default_rng(0)
    t = np.arange(4 * RATE) / RATE
    pitch = 2 * np.pi * np.cumsum(140 + 20 * np.sin(2 * np.pi * 2 * t)) / RATE
    voice = sum(np.sin(n * pitch) / n for n in range(1, 12)) * np.clip(np.sin(2 * np.pi * 3 * t), 0, 1)
    clean = (0.1 * voice).astype(np.float32)
    noisy = (clean + 0.02 * rng.standard_normal(t.shape)).astype(np.float32)
    echo = {"lpb": clean, "mic": noisy, "enh": (0.9 * clean).astype(np.float32)}
    return {
        "noise": {name: dnsmos.run(sound, RATE) for name, sound in {"clean": clean, "noisy": noisy}.items()},
        "noise, one speaker": dnsmos.run(noisy, RATE, model_type="dnsmos_personalized"),
        "echo": aecmos.run(echo, RATE), "echo, both talk": aecmos.run(echo, RATE, talk_type="dt"),
        "loss": {name: plcmos.run(sound, RATE) for name, sound in {"clean": clean, "noisy": noisy}.items()},
    }
