"""Not part of Tenon: importing it says what to use."""

raise ImportError("Tenon has no onnxruntime.transformers: its fusions are part of loading a model (level 'all'), and "
                  "tenon.optimize writes the optimised model")
