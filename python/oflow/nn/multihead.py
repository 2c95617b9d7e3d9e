"""Attention with several heads as a function, and its parts that the module shares."""

import math

import oflow


def attention_weights(query, key, mask, dropout_p, causal):
    """The weights of attention, of which dropout sets some to 0."""
    scores = (query * query.shape[-1] ** -0.5) @ key.transpose(-2, -1)
    if causal:
        seen = (scores.detach() * 0 + 1).tril(0) != 0
        scores = scores.masked_fill(seen.logical_not(), -math.inf)
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), -math.inf) if mask.dtype == oflow.bool else scores + mask
    if causal or mask is not None:
        # Queries that see nothing: their softmax would be NaN.
        blind = scores.detach().amax(-1, keepdim=True) == -math.inf
        weights = oflow.softmax(scores.masked_fill(blind, 0.0), dim=-1).masked_fill(blind, 0.0)
    else:
        weights = oflow.softmax(scores, dim=-1)
    return oflow.dropout(weights, dropout_p) if dropout_p > 0.0 else weights


def projected(query, key, value, packed, bias, separate):
    """Queries, keys and values after their projections: of one ``packed`` weight, or of three ``separate`` ones."""
    if packed is not None and key is query and value is query:
        return oflow.linear(query, packed, bias).chunk(3, -1)
    weights = packed.chunk(3, 0) if packed is not None else separate
    biases = bias.chunk(3, 0) if bias is not None else (None,) * 3
    return [oflow.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases)]


def _masks(attn_mask, key_padding_mask, shape, seen, dtype):
    """Both masks as one that attention takes: True where a query sees a key, or floats that are added. ``shape`` is that of the scores
    before ``seen`` more keys were added, which every query sees."""
    b, heads, tq, tk = shape

    def kept(mask):
        return oflow.pad(mask, [0, seen]) if seen else mask

    masks = []
    if attn_mask is not None:
        masks.append(kept(attn_mask.reshape([b, heads, tq, tk] if attn_mask.ndim == 3 else [1, 1, tq, tk])))
    if key_padding_mask is not None:
        masks.append(kept(key_padding_mask.reshape([b, 1, 1, tk])))
    if not masks:
        return None
    if all(m.dtype == oflow.bool for m in masks):
        hidden = masks[0] if len(masks) == 1 else masks[0].logical_or(masks[1])
        return hidden.logical_not()
    added = [(m.cast(dtype) * 0).masked_fill(m, -math.inf) if m.dtype == oflow.bool else m for m in masks]
    return added[0] if len(added) == 1 else added[0] + added[1]


def attended(
    q, k, v, heads, attn_mask, key_padding_mask, need_weights, causal, dropout, bias_k, bias_v, zero_attn, static_k=None, static_v=None
):
    """Attention of the heads of projected ``[B, T, width]``: the result, and the weights ``[B, heads, Tq, Tk]`` or None."""
    b, tq = q.shape[0], q.shape[1]

    def cut(x):
        return x.reshape([b, x.shape[1], heads, -1]).permute([0, 2, 1, 3])

    def statics(x):
        return x.reshape([b, heads, x.shape[1], x.shape[2]])

    tk = k.shape[1] if static_k is None else static_k.shape[1]
    seen = 0
    if bias_k is not None:
        if static_k is not None or static_v is not None:
            raise ValueError("static keys and values have no bias added")
        # One more key and value, the same for the whole batch.
        k, v = (oflow.cat([x, bias.expand([b, 1, x.shape[2]])], 1) for x, bias in ((k, bias_k), (v, bias_v)))
        seen += 1
    q = cut(q)
    k, v = cut(k) if static_k is None else statics(static_k), cut(v) if static_v is None else statics(static_v)
    if zero_attn:
        k, v = (oflow.pad(x, [0, 0, 0, 1]) for x in (k, v))
        seen += 1
    mask = _masks(attn_mask, key_padding_mask, (b, heads, tq, tk), seen, q.dtype)
    if not need_weights and not (causal and mask is not None):
        y, weights = oflow.scaled_dot_product_attention(q, k, v, mask, dropout, causal), None
    else:
        weights = attention_weights(q, k, mask, dropout, causal)
        y = weights @ v
    return y.permute([0, 2, 1, 3]).reshape([b, tq, -1]), weights


def multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
):
    """What ``nn.MultiheadAttention`` computes, of ``[T, B, width]`` or ``[T, width]``, with the weights as arguments. Gives the result, and
    the weights of attention or None."""
    if query.shape[-1] != embed_dim_to_check or embed_dim_to_check % num_heads:
        raise ValueError(f"queries {list(query.shape)} do not have {embed_dim_to_check} elements, a multiple of {num_heads} heads")
    batched = query.ndim == 3

    def turned(x):
        return x.transpose(0, 1) if batched else x.unsqueeze(0)

    same = key is query and value is query
    query = turned(query)
    key, value = (query, query) if same else (turned(key), turned(value))
    packed = None if use_separate_proj_weight else in_proj_weight
    separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    q, k, v = projected(query, key, value, packed, in_proj_bias, separate)
    y, weights = attended(
        q,
        k,
        v,
        num_heads,
        attn_mask,
        key_padding_mask,
        need_weights,
        is_causal and attn_mask is None,
        dropout_p if training else 0.0,
        bias_k,
        bias_v,
        add_zero_attn,
        static_k,
        static_v,
    )
    y = oflow.linear(y, out_proj_weight, out_proj_bias)
    y = y.transpose(0, 1) if batched else y.squeeze(0)
    return y, reported(weights, batched, need_weights, average_attn_weights)


def reported(weights, batched, wanted, averaged):
    """The weights as the caller asked for them."""
    if weights is None or not wanted:
        return None
    weights = weights.mean(1) if averaged else weights
    return weights if batched else weights.squeeze(0)
