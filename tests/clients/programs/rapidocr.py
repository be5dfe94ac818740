"""rapidocr-onnxruntime reads a drawn page: three models, with boxes, angles and texts."""
import numpy as np
from PIL import Image, ImageDraw, ImageFont
from rapidocr_onnxruntime import RapidOCR

LINES = ["Invoice 2024-117", "Total amount: 1,284.50 EUR", "Thank you for your order"]


def draw_page(angle):
    page = Image.new("RGB", (640, 320), "white")
    draw = ImageDraw.Draw(page)
    for row, line in enumerate(LINES):
        draw.text((30, 40 + 90 * row), line, fill="black", font=ImageFont.load_default(size=34))
    return np.asarray(page.rotate(angle, expand=True, fillcolor="white"))


def results():
    engine, found = RapidOCR(), {}
    for angle in (0, 180, 5):
        boxes, texts, scores = zip(*engine(draw_page(angle))[0])
        found |= {f"boxes at {angle}": boxes, f"texts at {angle}": texts, f"scores at {angle}": [float(s) for s in scores]}
    assert any("1,284.50" in text for text in found["texts at 0"])
    return found
