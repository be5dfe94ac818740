"""Lines of text in several fonts, read by rapidocr's recognition model."""
import random

import numpy as np
import onnxruntime
import tenon
from english import sentences
from package_models import unpack
from PIL import Image, ImageDraw, ImageFont
from task import BUILD, Task

OCR, OCR_VERSION = "rapidocr-onnxruntime", "1.4.4"
FONT_PACKAGES = ("font-source-sans-pro", "font-source-serif-pro")
STYLES = ("-Regular.ttf", "-It.ttf", "-Bold.ttf", "-Light.ttf")
HEIGHT, WIDTH = 48, 480
LINE = range(8, 25)  # characters
CALIBRATION, HELD_OUT = 40, 120


def fonts():
    files = [file for package in FONT_PACKAGES for file in unpack(package, "0.0.1", ".ttf", BUILD / "packages").rglob("*.ttf")]
    return sorted(file for file in files if file.name.endswith(STYLES))


def lines(count):
    """Some consecutive words of each sentence. Spaces are left out: the model was made for Chinese."""
    rng, found = random.Random(1), []
    for sentence in sentences(count):
        words = sentence.split()
        start = rng.randrange(len(words) - 3)
        found.append("".join(words[start:start + rng.choice((2, 3))])[:LINE[-1]])
    return found


def draw(text, font, rng):
    """The line in dark on light, blurred a little by scaling, with noise."""
    size = rng.choice((18, 24, 36))
    face = ImageFont.truetype(str(font), size)
    left, top, right, bottom = face.getbbox(text)
    page = Image.new("L", (right - left + size, bottom - top + size // 3), rng.randrange(190, 256))
    ImageDraw.Draw(page).text((size // 2 - left, size // 6 - top), text, fill=rng.randrange(0, 90), font=face)
    width = min(WIDTH, round(page.width * HEIGHT / page.height))
    pixels = np.asarray(page.resize((width, HEIGHT), Image.Resampling.BILINEAR), np.float32)
    pixels += np.random.default_rng(rng.randrange(1 << 30)).normal(0, 8, pixels.shape)
    picture = np.zeros((1, 3, HEIGHT, WIDTH), np.float32)
    picture[..., :width] = pixels.clip(0, 255) / 127.5 - 1
    return picture


def edits(a, b):
    """Insertions, deletions and replacements that make one of the other."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def read(likelihoods, characters):
    """The likeliest class at each place, once where it repeats; class 0 is none."""
    best = likelihoods.argmax(axis=1)
    return "".join(characters[k] for k, before in zip(best, [0, *best]) if k not in (0, before)).replace(" ", "")


def make_model():
    """The model in an opset that has a scale for each channel."""
    path = BUILD / "rapidocr.onnx"
    if not path.exists():
        source = next(unpack(OCR, OCR_VERSION, "rec_infer.onnx", BUILD / "packages").rglob("*.onnx"))
        tenon.convert(source, opset=17).save(path)
    return path


def make():
    path = make_model()
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    characters = ["", *session.get_modelmeta().custom_metadata_map["character"].splitlines(), " "]
    rng, faces, texts = random.Random(2), fonts(), lines(CALIBRATION + HELD_OUT)
    pictures = [draw(text, rng.choice(faces), rng) for text in texts]
    held_out = texts[CALIBRATION:]

    def evaluate(run):
        wrong = sum(edits(text, read(run({"x": picture})[0][0], characters)) for text, picture in zip(held_out, pictures[CALIBRATION:]))
        return 1 - wrong / sum(map(len, held_out))

    return Task("rapidocr", f"share of the {sum(map(len, held_out)):,} characters of {HELD_OUT} lines read rightly", path,
                [{"x": picture} for picture in pictures[:CALIBRATION]], evaluate)
