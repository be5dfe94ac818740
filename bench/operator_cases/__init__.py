"""What bench/operators.py times: nodes of each operator, with sizes as real models have them."""
from . import classical, elementwise, images, layout, others, products, rows

CASES = [case for module in [elementwise, rows, layout, images, products, others, classical] for case in module.CASES]

# Operators that both have and that no case times, with the reason.
NOT_TIMED = {
    "CastMap": "its input is a map, which only Python's dictionaries can bring: making them takes longer than the node",
    "DictVectorizer": "its input is a map, which only Python's dictionaries can bring: making them takes longer than the node",
}
