"""Names that onnxruntime has and this package has not, with the reason."""

from __future__ import annotations

_INTERNAL = "it is a detail of how onnxruntime is imported"
_PLUGINS = "onnxruntime's plug-in execution providers call onnxruntime; Tenon's devices come with it"
_COMPILE = "models are not compiled into EPContext nodes: they load fast as they are"
_LORA = "LoRA adapters in onnxruntime's file format are not read: merge them, or use SessionOptions.add_initializer"

REASONS: dict[str, str] = {
    "contextlib": _INTERNAL,
    "import_capi_exception": _INTERNAL,
    "onnxruntime_validation": _INTERNAL,
    "AdapterFormat": _LORA,
    "LoraAdapter": _LORA,
    "ModelCompiler": _COMPILE,
    "OrtCompileApiFlags": _COMPILE,
    "OrtEpContextData": _COMPILE,
    "OrtEpContextDataBuffer": _COMPILE,
    "OrtExternalInitializerInfo": _COMPILE,
    "OrtEpDevice": _PLUGINS,
    "OrtExecutionProviderDevicePolicy": _PLUGINS,
    "OrtHardwareDevice": _PLUGINS,
    "OrtHardwareDeviceType": _PLUGINS,
    "OrtSyncStream": _PLUGINS,
    "get_ep_devices": _PLUGINS,
    "register_execution_provider_library": _PLUGINS,
    "unregister_execution_provider_library": _PLUGINS,
    "SparseTensor": "sparse inputs are given to tenon.Model as tenon.SparseTensor",
}
