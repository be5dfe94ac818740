"""optimum exports small untrained models of transformers and runs them in its pipelines' classes: encoders, and text that is
generated with a cache."""
import tempfile

import numpy as np
import torch
from optimum.exporters.onnx import onnx_export_from_model
from optimum.onnxruntime import (
    ORTModelForCausalLM, ORTModelForFeatureExtraction, ORTModelForSeq2SeqLM, ORTModelForSequenceClassification)
from transformers import (
    BertConfig, BertForSequenceClassification, BertModel, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM,
    T5Config, T5ForConditionalGeneration)

IDS = torch.tensor([[5, 17, 42, 3, 9, 11], [8, 2, 77, 30, 1, 1]])
MASK = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
BERT = BertConfig(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, num_labels=3)


def export(model, task, kind):
    folder = tempfile.mkdtemp()
    onnx_export_from_model(model.eval(), folder, task=task, do_validation=False)
    return kind.from_pretrained(folder)


def results():
    torch.manual_seed(0)
    found = {}
    encoder = export(BertModel(BERT), "feature-extraction", ORTModelForFeatureExtraction)
    found["features"] = encoder(input_ids=IDS, attention_mask=MASK, token_type_ids=torch.zeros_like(IDS)).last_hidden_state.numpy()
    classifier = export(BertForSequenceClassification(BERT), "text-classification", ORTModelForSequenceClassification)
    arrays = {"input_ids": IDS.numpy(), "attention_mask": MASK.numpy(), "token_type_ids": np.zeros_like(IDS.numpy())}
    found["classes"] = classifier(**arrays).logits

    for name, model in {
        "gpt2": GPT2LMHeadModel(GPT2Config(vocab_size=100, n_embd=64, n_layer=2, n_head=4, n_positions=64)),
        "llama": LlamaForCausalLM(LlamaConfig(vocab_size=100, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                                              num_key_value_heads=2, intermediate_size=96, max_position_embeddings=64)),
    }.items():
        decoder = export(model, "text-generation-with-past", ORTModelForCausalLM)
        found[f"{name}, greedy"] = decoder.generate(IDS, max_new_tokens=12, do_sample=False, pad_token_id=0).numpy()
        found[f"{name}, beams"] = decoder.generate(IDS, max_new_tokens=8, num_beams=3, pad_token_id=0).numpy()
        found[f"{name}, logits"] = decoder(input_ids=IDS, attention_mask=MASK).logits.numpy()
    t5 = T5Config(vocab_size=100, d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4, decoder_start_token_id=0)
    translator = export(T5ForConditionalGeneration(t5), "text2text-generation-with-past", ORTModelForSeq2SeqLM)
    found["t5, greedy"] = translator.generate(IDS, max_new_tokens=8).numpy()
    return found
