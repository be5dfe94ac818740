"""Where onnxruntime defines the classes that it offers."""

from .._binding import IOBinding
from .._enums import OrtDeviceVendorId
from .._session import InferenceSession
from .._session import InferenceSession as Session
from .._values import OrtDevice, OrtValue, copy_tensors

__all__ = ["IOBinding", "InferenceSession", "OrtDevice", "OrtDeviceVendorId", "OrtValue", "Session", "copy_tensors"]
