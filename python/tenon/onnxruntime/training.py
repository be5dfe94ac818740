"""Not part of Tenon: importing it says what to use."""

raise ImportError("Tenon has no onnxruntime.training: it runs models, so train with another framework and export the model")
