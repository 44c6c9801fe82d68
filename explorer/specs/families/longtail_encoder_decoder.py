"""Encoder-decoders: each decoder layer keeps its own Keys and Values, and those of the encoder's output.

The second part is made once, when the encoder has run, and then read at every step: its size follows from the length of
the input, not from the tokens that are written. A config does not know that length, so it is assumed and said
(`encoder_tokens` in the config sets another). Checked against the caches of transformers 5.24 (EncoderDecoderCache).
"""

from dataclasses import replace

from explorer.errors import InputError
from explorer.specs.fields import Fields
from explorer.specs.layers import Combined, CrossAttention, FullAttention
from explorer.specs.limits import whole
from explorer.specs.model import ModelSpec
from explorer.specs.readers import reader


@reader("t5", "mt5", "umt5", "longt5")
def read_t5(fields: Fields) -> ModelSpec:
    """T5 and its kin: heads of `d_kv`, which times the heads is not always `d_model`; positions are relative."""
    num_layers = fields.count("num_decoder_layers|num_layers", "num_layers")
    num_heads = fields.heads()
    return _decoder(fields, num_layers, num_heads, fields.count("d_kv|head_dim", "head_dim", 64), 512)


@reader("bart", "mbart", "marian", "pegasus", "m2m_100", "blenderbot", "blenderbot-small")
def read_bart(fields: Fields) -> ModelSpec:
    """BART, mBART, Marian, Pegasus, M2M-100 and NLLB, Blenderbot: `d_model / decoder_attention_heads`."""
    num_layers, num_heads, head_dim = _bart_shape(fields)
    positions = fields.count("max_position_embeddings", "max_positions", 1024)
    return _decoder(fields, num_layers, num_heads, head_dim, positions)


@reader("whisper")
def read_whisper(fields: Fields) -> ModelSpec:
    """Whisper's text side: the encoder always gives `max_source_positions` frames, 1,500 for 30 seconds of sound."""
    num_layers, num_heads, head_dim = _bart_shape(fields)
    frames = fields.count("max_source_positions", "encoder_tokens", 1500)
    spec = _with_cross(fields, num_layers, num_heads, head_dim, frames)
    return replace(spec, max_positions=fields.optional("max_target_positions", "max_positions"))


def _bart_shape(fields: Fields) -> tuple[int, int, int]:
    """Decoder layers, heads and head dimension."""
    num_layers = fields.count("decoder_layers", "num_layers")
    num_heads = fields.count("decoder_attention_heads", "num_heads")
    width = fields.count("d_model|hidden_size", "hidden_size")
    if width % num_heads:
        raise InputError(
            f"d_model={width} is not a multiple of decoder_attention_heads={num_heads}",
            f"d_model={width} 不是 decoder_attention_heads={num_heads} 的整数倍",
        )
    return num_layers, num_heads, whole("head_dim", width // num_heads, shown_as="d_model / decoder_attention_heads")


def _decoder(fields: Fields, num_layers: int, num_heads: int, head_dim: int, usual: int) -> ModelSpec:
    """A decoder whose encoder's length is not in the config; `usual` is what is taken if nobody says."""
    length = fields.optional("encoder_tokens")
    if length is None:
        length = usual
        fields.assume(
            f"the encoder's input is taken to be {usual} tokens long; set encoder_tokens in the config for another",
            f"假定编码器输入长 {usual} 个 token；可在配置中用 encoder_tokens 另设",
        )
    return _with_cross(fields, num_layers, num_heads, head_dim, length)


def _with_cross(fields: Fields, num_layers: int, num_heads: int, head_dim: int, encoder_tokens: int) -> ModelSpec:
    fields.assume(
        f"only the decoder keeps a cache: each layer its own Keys and Values, and those of {encoder_tokens} encoder "
        "tokens for cross-attention; the encoder itself keeps none",
        f"只有解码器保留缓存：每层自己的 Key 与 Value，加上 {encoder_tokens} 个编码器 token 的交叉注意力缓存；"
        "编码器自身不留",
    )
    layer = Combined(
        (FullAttention(num_heads, head_dim, head_dim), CrossAttention(num_heads, head_dim, head_dim, encoder_tokens))
    )
    return fields.spec([layer] * num_layers, num_heads=num_heads)
