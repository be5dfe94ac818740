"""onnxruntime's session config keys: which mean something here, and which are accepted because they cannot."""

from __future__ import annotations

import difflib
import warnings
from typing import Iterable, Mapping

from .._tenon import config_keys, optimization_passes

#: The folder of external data of a model that is given as bytes.
FOLDER = "session.model_external_initializers_file_folder_path"
DISABLED_PASSES = "optimization.disable_specified_optimizers"
NO_INTEGERS = "session.disable_quant_qdq"
TRUST_SIZE_NAMES = "tenon.trust_size_names"
RECORD_ASSIGNMENT = "session.record_ep_graph_assignment_info"
#: A run's: gives memory back after it.
SHRINK = "memory.enable_memory_arena_shrinkage"
#: A run's: it may return before the GPU is done, in a session with a stream of the caller's.
NO_WAIT = "disable_synchronize_execution_providers"

#: Keys without a meaning here, with the reason.
WITHOUT_MEANING: dict[str, str] = {
    key: reason for reason, keys in {
        "weights are always packed for the kernels that read them": (
            "session.disable_prepacking", "session.prepack.enable_parallel",
            "session.save_external_prepacked_constant_initializers"),
        "memory is planned and pooled per session": (
            "session.use_env_allocators", "session.use_device_allocator_for_initializers",
            "session.collect_node_memory_stats_to_file", "session.strict_workspace_verification",
            "session.max_shape_override"),
        "only ONNX's own format is read and written": (
            "session.load_model_format", "session.save_model_format", "session.use_ort_model_bytes_directly",
            "session.use_ort_model_bytes_for_initializers", "session.use_memory_mapped_ort_model",
            "session.enable_saved_runtime_optimizations", "optimization.minimal_build_optimizations"),
        "the optimiser decides what pays; single passes can be disabled": (
            "session.disable_double_qdq_remover", "session.enable_quant_qdq_cleanup",
            "session.disable_qdq_constant_folding", "session.qdqisint8allowed", "session.x64quantprecision",
            "session.enable_dq_matmulnbits_fusion", "session.qdq_matmulnbits_accuracy_level",
            "session.qdq_matmulnbits_block_size", "session.disable_aot_function_inlining",
            "session.function_expansion_byte_limit", "session.function_expansion_node_limit",
            "session.graph_optimizations_loop_level", "session.debug_layout_transformation",
            "optimization.enable_gelu_approximation", "optimization.enable_cast_chain_elimination",
            "optimization.constant_folding_max_output_size_in_bytes", "optimization.memory_optimizer_config",
            "optimization.enable_memory_probe_recompute_config"),
        "types and shapes are always checked": (
            "session.strict_shape_type_inference", "session.allow_released_opsets_only"),
        "one pool of threads computes, and it sleeps when there is nothing to do": (
            "session.inter_op.allow_spinning", "session.inter_op.spin_duration_us", "session.inter_op.spin_backoff_max",
            "session.intra_op.spin_backoff_max", "session.force_spinning_stop", "session.intra_op_thread_affinities",
            "session.dynamic_block_base"),
        "external weights go into one file beside the optimised model": (
            "session.optimized_model_external_initializers_file_name",
            "session.optimized_model_external_initializers_min_size_in_bytes",
            "session.use_external_initializer_file_buffers_directly"),
        "kernels are chosen by the processor": (
            "mlas.disable_kleidiai", "mlas.use_lut_gemm", "mlas.qnbit.force_fp32", "mlas.nchwc_depthwise_sliding",
            "mlas.kleidiai.conv_igemm_max_work", "mlas.nchwc_pointwise_conv_max_input_channel_batch"),
        "placement is not compiled into models": (
            "ep.context_enable", "ep.context_file_path", "ep.context_embed_mode", "ep.context_node_name_prefix",
            "ep.context_model_external_initializers_file_name", "ep.context_source_model_path", "ep.share_ep_contexts",
            "ep.stop_share_ep_contexts", "ep.enable_weightless_ep_context_nodes", "ep.nnapi.partitioning_stop_ops",
            "session.disable_model_compile", "session.compile_only", "session.fail_on_suboptimal_compiled_model",
            "session.node_partition_config_file", "session.resource_cuda_partitioning_settings",
            "session.layer_assignment_settings", "session.name_based_layer_assignment"),
    }.items() for key in keys
}


def known_keys() -> list[str]:
    return [*config_keys(), FOLDER, NO_INTEGERS, RECORD_ASSIGNMENT, *WITHOUT_MEANING]


def check_key(key: str, stacklevel: int) -> None:
    """Warns about a key that neither Tenon nor onnxruntime has."""
    known = known_keys()
    if key in known:
        return
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    warnings.warn(f"there is no session config key '{key}', it is ignored{hint}", UserWarning, stacklevel + 1)


def options_of(config: Mapping[str, str], disabled: Iterable[str], stacklevel: int) -> dict[str, str]:
    """What the library takes of the entries. Passes that Tenon has not are left out, with a warning."""
    taken = config_keys()
    options = {key: value for key, value in config.items() if key in taken}
    names = [name for name in options.pop(DISABLED_PASSES, "").replace(",", ";").split(";") if name] + list(disabled)
    if config.get(NO_INTEGERS) == "1":
        names.append("qdq")
    passes = [one.name for one in optimization_passes()]
    for name in names:
        if name not in passes:
            warnings.warn(f"there is no optimisation pass '{name}' to disable; tenon.optimization_passes() lists them",
                          UserWarning, stacklevel + 1)
    if kept := [name for name in names if name in passes]:
        options[DISABLED_PASSES] = ";".join(kept)
    return options
