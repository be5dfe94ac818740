"""What bench/operators.py times: nodes of each operator, with sizes as real models have them."""
from . import classical, elementwise, images, layout, others, products, quantized, rows

KINDS = {
    "elementwise": elementwise.CASES,
    "rows and sorting": rows.CASES,
    "moving elements": layout.CASES,
    "images": images.CASES,
    "products and recurrent": products.CASES,
    "signals, text, sequences": others.CASES,
    "ai.onnx.ml": classical.CASES,
    "com.microsoft, quantized": quantized.CASES,
}
CASES = [case for cases in KINDS.values() for case in cases]

# Operators that both have and that no case times, with the reason.
NOT_TIMED = {
    "CastMap": "its input is a map, which only Python's dictionaries can bring: making them takes longer than the node",
    "DictVectorizer": "its input is a map, which only Python's dictionaries can bring: making them takes longer than the node",
}
