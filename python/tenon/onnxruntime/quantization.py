"""Not part of Tenon yet: importing it says what to use."""

raise ImportError("Tenon has no onnxruntime.quantization yet: quantize with the package onnxruntime itself, in a process "
                  "where tenon.onnxruntime.install() was not called, and run the model that it writes with Tenon")
