"""Convolutions, pools, and what samples images."""
import numpy as np

from .case import IMAGE, Case, Input, f, given, half, i8, i64, ints, scales, scalar, u8, weights

HALF_PIXEL, CORNERS = {"coordinate_transformation_mode": "half_pixel"}, {"coordinate_transformation_mode": "align_corners"}
NEAREST = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


def quantized(image, filters, **attributes):
    return [image, scalar(0.02), scalar(128, np.uint8), filters, scalar(0.01), scalar(0, np.int8), scalar(0.1), scalar(128, np.uint8)], attributes


def corners_of_windows(channels, size):
    """Where MaxPool may have found its results, one of four in each window of 2x2."""
    channel, row, column = np.indices((channels, size, size))
    corner = (channel + row + column) % 4
    places = (channel * 2 * size + 2 * row + corner // 2) * 2 * size + 2 * column + corner % 2
    return Input(values=places[None], dtype=np.int64)


CASES = [
    Case("Conv", "3x3", [f(*IMAGE), weights(64, 64, 3, 3), weights(64)], {"pads": [1, 1, 1, 1]}),
    Case("Conv", "1x1", [f(1, 256, 28, 28), weights(128, 256, 1, 1)]),
    Case("Conv", "stem", [f(1, 3, 224, 224), weights(64, 3, 7, 7)], {"pads": [3, 3, 3, 3], "strides": [2, 2]}),
    Case("Conv", "depthwise", [f(1, 96, 56, 56), weights(96, 1, 3, 3)], {"pads": [1, 1, 1, 1], "group": 96}),
    Case("Conv", "depthwise stride 2", [f(1, 96, 56, 56), weights(96, 1, 3, 3)], {"pads": [1, 1, 1, 1], "group": 96, "strides": [2, 2]}),
    Case("Conv", "1d", [f(1, 80, 500), weights(256, 80, 3)], {"pads": [1, 1]}),
    Case("Conv", "grouped", [f(1, 64, 28, 28), weights(64, 8, 3, 3)], {"pads": [1, 1, 1, 1], "group": 8}),
    Case("Conv", "float16", [half(*IMAGE), weights(64, 64, 3, 3, dtype=np.float16)], {"pads": [1, 1, 1, 1]}),
    Case("ConvTranspose", "", [f(1, 64, 28, 28), weights(64, 32, 2, 2)], {"strides": [2, 2]}),
    Case("ConvTranspose", "4x4 stride 2", [f(1, 64, 28, 28), weights(64, 32, 4, 4)], {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    Case("ConvInteger", "", [u8(1, 32, 28, 28), u8(32, 32, 3, 3, constant=True)], {"pads": [1, 1, 1, 1]}),
    Case("QLinearConv", "", *quantized(u8(1, 64, 56, 56), i8(64, 64, 3, 3, constant=True), pads=[1, 1, 1, 1])),
    Case("QLinearConv", "depthwise", *quantized(u8(1, 96, 56, 56), i8(96, 1, 3, 3, constant=True), pads=[1, 1, 1, 1], group=96)),
    Case("QLinearConv", "1x1", *quantized(u8(1, 256, 28, 28), i8(128, 256, 1, 1, constant=True))),
    Case("DeformConv", "", [f(1, 32, 28, 28), weights(32, 32, 3, 3), f(1, 18, 28, 28)], {"pads": [1, 1, 1, 1]}, opset=22),
    Case("MaxPool", "3x3 stride 2", [f(1, 64, 112, 112)], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    Case("MaxPool", "2x2", [f(1, 64, 112, 112)], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    Case("MaxPool", "5x5", [f(1, 128, 20, 20)], {"kernel_shape": [5, 5], "pads": [2, 2, 2, 2]}),
    Case("MaxPool", "with indices", [f(1, 64, 56, 56)], {"kernel_shape": [2, 2], "strides": [2, 2]}, outputs=2),
    Case("MaxPool", "uint8", [u8(1, 64, 112, 112)], {"kernel_shape": [2, 2], "strides": [2, 2]}), Case("MaxPool", "1d", [f(1, 128, 2000)], {"kernel_shape": [2], "strides": [2]}),
    Case("AveragePool", "", [f(1, 64, 56, 56)], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}), Case("AveragePool", "2x2", [f(1, 128, 56, 56)], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    Case("LpPool", "", [f(1, 64, 56, 56)], {"kernel_shape": [2, 2], "strides": [2, 2]}), Case("MaxUnpool", "", [f(1, 64, 28, 28), corners_of_windows(64, 28)], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    Case("GlobalAveragePool", "", [f(1, 512, 14, 14)]), Case("GlobalAveragePool", "large", [f(1, 64, 112, 112)]), Case("GlobalMaxPool", "", [f(1, 512, 14, 14)]), Case("GlobalLpPool", "", [f(1, 512, 14, 14)]),
    # sampling
    Case("Resize", "linear", [f(1, 32, 56, 56), None, scales(1, 1, 2, 2)], {"mode": "linear"}),
    Case("Resize", "linear, corners", [f(1, 64, 32, 32), None, scales(1, 1, 4, 4)], {"mode": "linear"} | CORNERS),
    Case("Resize", "linear, down", [f(1, 3, 480, 640), None, None, ints(1, 3, 224, 224)], {"mode": "linear"}),
    Case("Resize", "linear, down, antialias", [f(1, 3, 480, 640), None, None, ints(1, 3, 224, 224)], {"mode": "linear", "antialias": 1}),
    Case("Resize", "linear, segmentation", [f(1, 21, 65, 65), None, None, ints(1, 21, 513, 513)], {"mode": "linear"}),
    Case("Resize", "linear, uint8", [u8(1, 3, 480, 640), None, None, ints(1, 3, 224, 224)], {"mode": "linear"}),
    Case("Resize", "linear, channels last", [f(1, 56, 56, 32), None, scales(1, 2, 2, 1)], {"mode": "linear"}),
    Case("Resize", "linear, 1d", [f(1, 80, 500), None, scales(1, 1, 4)], {"mode": "linear"}),
    Case("Resize", "nearest", [f(1, 64, 40, 40), None, scales(1, 1, 2, 2)], NEAREST), Case("Resize", "nearest, half pixel", [f(1, 128, 20, 20), None, scales(1, 1, 2, 2)], {"mode": "nearest"}),
    Case("Resize", "nearest, uint8", [u8(1, 3, 480, 640), None, None, ints(1, 3, 640, 640)], NEAREST), Case("Resize", "nearest, 1d", [f(1, 256, 400), None, scales(1, 1, 5)], NEAREST),
    Case("Resize", "nearest, down", [f(1, 64, 112, 112), None, scales(1, 1, 0.5, 0.5)], NEAREST),
    Case("Resize", "cubic", [f(1, 3, 112, 112), None, scales(1, 1, 2, 2)], {"mode": "cubic"}), Case("Resize", "cubic, down, antialias", [f(1, 3, 480, 640), None, None, ints(1, 3, 224, 224)], {"mode": "cubic", "antialias": 1}),
    Case("Resize", "cubic, positions", [f(1, 768, 14, 14), None, None, ints(1, 768, 24, 24)], {"mode": "cubic"}),
    Case("Upsample", "", [f(1, 64, 40, 40), scales(1, 1, 2, 2)], {"mode": "nearest"}, opset=9), Case("Upsample", "linear", [f(1, 64, 40, 40), scales(1, 1, 2, 2)], {"mode": "linear"}, opset=9),
    Case("GridSample", "", [f(1, 32, 56, 56), f(1, 56, 56, 2, low=-1, high=1)]), Case("GridSample", "nearest", [f(1, 32, 56, 56), f(1, 56, 56, 2, low=-1, high=1)], {"mode": "nearest"}),
    Case("GridSample", "cubic", [f(1, 32, 56, 56), f(1, 56, 56, 2, low=-1, high=1)], {"mode": "cubic"}), Case("GridSample", "border", [f(1, 32, 56, 56), f(1, 56, 56, 2, low=-1.2, high=1.2)], {"padding_mode": "border"}),
    Case("GridSample", "reflection", [f(1, 32, 56, 56), f(1, 56, 56, 2, low=-1.2, high=1.2)], {"padding_mode": "reflection", "align_corners": 1}),
    Case("GridSample", "deformable attention", [f(8, 32, 40, 40), f(8, 300, 4, 2, low=-1, high=1)]), Case("GridSample", "picture", [f(1, 3, 480, 640), f(1, 480, 640, 2, low=-1, high=1)]),
    Case("GridSample", "3-D", [f(1, 8, 16, 32, 32), f(1, 16, 32, 32, 3, low=-1, high=1)]),
    Case("AffineGrid", "", [f(4, 2, 3), ints(4, 3, 112, 112)], opset=20),
    Case("RoiAlign", "", [f(1, 64, 50, 50), f(100, 4, low=0, high=50), i64(100, high=0)], {"output_height": 7, "output_width": 7, "sampling_ratio": 2}),
    Case("RoiAlign", "detector", [f(1, 256, 50, 68), given(np.stack([np.linspace(0, 20, 200), np.linspace(0, 10, 200), np.linspace(25, 67, 200), np.linspace(15, 49, 200)], 1)), i64(200, high=0)],
         {"output_height": 7, "output_width": 7, "sampling_ratio": 2, "spatial_scale": 1.0}),
    Case("RoiAlign", "max, adaptive", [f(1, 64, 50, 50), given([[1, 2, 20, 30]] * 50), i64(50, high=0)], {"output_height": 7, "output_width": 7, "mode": "max"}),
    Case("MaxRoiPool", "", [f(1, 64, 50, 50), given([[0, 0, 0, 20, 20]] * 50)], {"pooled_shape": [7, 7]}),
]
