"""Not part of Tenon yet: importing it says what to use."""

raise ImportError("Tenon has no onnxruntime.quantization yet: quantize with the package onnxruntime itself, which gives "
                  "`import onnxruntime.quantization` after tenon.onnxruntime.install() too, and run the model that it writes")
