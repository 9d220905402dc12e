"""Transformers and what took their place."""
import numpy as np
import tensorflow as tf

from models.common import L, conv, dense, layer_norm


def embedding(x, vocab, width):
    return L.Embedding(vocab, width, embeddings_initializer=tf.keras.initializers.RandomNormal(0, 0.5))(x)


def split_heads(x, heads):
    _, n, width = x.shape
    return tf.transpose(tf.reshape(x, [-1, n, heads, width // heads]), [0, 2, 1, 3])


def attend(q, k, v, bias=None, scale=True):
    """Heads of q, k and v; rows of all heads side by side again."""
    scores = tf.matmul(q, k, transpose_b=True)
    if scale:
        scores = scores * (1 / np.sqrt(q.shape[-1]))
    y = tf.matmul(tf.nn.softmax(scores if bias is None else scores + bias), v)
    _, heads, n, depth = y.shape
    return tf.reshape(tf.transpose(y, [0, 2, 1, 3]), [-1, n, heads * depth])


def attention(x, heads, bias=None, use_bias=True, scale=True):
    q, k, v = (split_heads(dense(x, x.shape[-1], bias=use_bias), heads) for _ in range(3))
    return dense(attend(q, k, v, bias, scale), x.shape[-1], bias=use_bias)


def feed_forward(x, units, act="gelu", use_bias=True):
    return dense(dense(x, units, act, bias=use_bias), x.shape[-1], bias=use_bias)


def causal(n):
    return tf.constant(np.triu(np.full((n, n), -1e9, np.float32), 1))


def rms_norm(net, x):
    return x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True) + 1e-6) * (1 + net.weights(x.shape[-1], scale=0.1))


def pre_norm_encoder(x, layers, heads, units, act="gelu", bias=None):
    for _ in range(layers):
        x = x + attention(layer_norm(x), heads, bias)
        x = x + feed_forward(layer_norm(x), units, act)
    return layer_norm(x)


def patches(net, size, patch, width):
    x = net.input(1, size, size, 3, name="image")
    return tf.reshape(conv(x, width, patch, patch, None, False, padding="valid"), [1, (size // patch) ** 2, width])


def t5_encoder(net):
    """T5-small's encoder, 128 tokens: RMS norms, relative positions, no biases."""
    x, n, heads = embedding(net.tokens(1, 128, vocab=8000), 8000, 512), 128, 8
    near = np.clip(np.arange(n)[None] - np.arange(n)[:, None], -16, 15) + 16
    bias = tf.transpose(tf.gather(net.weights(32, heads), near), [2, 0, 1])
    for _ in range(6):
        x = x + attention(rms_norm(net, x), heads, bias, False, scale=False) * 0.5
        x = x + feed_forward(rms_norm(net, x), 2048, "relu", False)
    return rms_norm(net, x)


def mlp_mixer(net):
    """MLP-Mixer S/16, 224x224, eight layers."""
    x = patches(net, 224, 16, 512)
    for _ in range(8):
        y = tf.transpose(layer_norm(x), [0, 2, 1])
        x = x + tf.transpose(feed_forward(y, 256), [0, 2, 1])
        x = x + feed_forward(layer_norm(x), 2048)
    return dense(tf.reduce_mean(layer_norm(x), 1), 1000)


def vit_small(net):
    """ViT-S/16, 224x224, six of its twelve layers."""
    x = tf.concat([net.weights(1, 1, 384, scale=0.5), patches(net, 224, 16, 384)], 1)
    x = pre_norm_encoder(x + net.weights(1, 197, 384, scale=0.5), 6, 6, 1536)
    return dense(x[:, 0], 1000)


def gpt2_like(net):
    """GPT-2's layers, six of width 512, 128 tokens, logits of 8000."""
    x = embedding(net.tokens(1, 128, vocab=8000), 8000, 512) + net.weights(1, 128, 512, scale=0.5)
    return dense(pre_norm_encoder(x, 6, 8, 2048, "gelu_tanh", causal(128)), 8000, bias=False)


def distilbert_like(net):
    """DistilBERT's layers, six of width 512, 128 tokens and their mask, a class of two."""
    tokens, mask = net.tokens(1, 128, vocab=8000), net.tokens(1, 128, vocab=2, name="mask")
    x = layer_norm(embedding(tokens, 8000, 512) + net.weights(1, 128, 512, scale=0.5))
    bias = (1 - tf.cast(mask, tf.float32))[:, None, None, :] * -1e9
    for _ in range(6):
        x = layer_norm(x + attention(x, 8, bias))
        x = layer_norm(x + feed_forward(x, 2048))
    return dense(dense(x[:, 0], 512, "relu"), 2)


def rotate(x, positions):
    depth = x.shape[-1]
    angle = np.asarray(positions)[:, None] / 10000 ** (np.arange(0, depth, 2) / depth)
    cosine, sine = (np.concatenate([f(angle)] * 2, -1).astype(np.float32) for f in (np.cos, np.sin))
    a, b = tf.split(x, 2, -1)
    return x * cosine + tf.concat([-b, a], -1) * sine


def llama_like(net):
    """LLaMA's layers, four of width 512, 64 tokens: rotary positions, two key heads for eight, SwiGLU, RMS norms."""
    n, heads, kv_heads, width = 64, 8, 2, 512
    x = embedding(net.tokens(1, n, vocab=8000), 8000, width)
    for _ in range(4):
        y = rms_norm(net, x)
        q = rotate(split_heads(dense(y, width, bias=False), heads), range(n))
        k = rotate(split_heads(dense(y, width // 4, bias=False), kv_heads), range(n))
        v = split_heads(dense(y, width // 4, bias=False), kv_heads)
        k, v = (tf.repeat(t, heads // kv_heads, axis=1) for t in (k, v))
        x = x + dense(attend(q, k, v, causal(n)), width, bias=False)
        y = rms_norm(net, x)
        x = x + dense(dense(y, 1376, "swish", False) * dense(y, 1376, bias=False), width, bias=False)
    return dense(rms_norm(net, x), 8000, bias=False)


def gpt_decode_step(net):
    """One token through four layers of width 512 with keys and values of 127 others, 50 MB of weights."""
    x = embedding(net.tokens(1, 1, vocab=1000), 1000, 512)
    outputs = {}
    for i in range(4):
        y = layer_norm(x)
        q, k, v = (split_heads(dense(y, 512), 8) for _ in range(3))
        k = tf.concat([net.input(1, 8, 127, 64, name=f"keys{i}"), k], 2)
        v = tf.concat([net.input(1, 8, 127, 64, name=f"values{i}"), v], 2)
        outputs.update({f"keys{i}_out": k, f"values{i}_out": v})
        x = x + dense(attend(q, k, v), 512)
        x = x + feed_forward(layer_norm(x), 2048, "gelu_tanh")
    return {"logits": dense(layer_norm(x), 1000, bias=False), **outputs}


def mobilebert_like(net):
    """MobileBERT's bottlenecks, six layers of width 512 and 128 inside, 128 tokens, scales instead of norms, relu."""
    def scaled(x):
        return x * (0.6 + net.weights(x.shape[-1], scale=0.05)) + net.weights(x.shape[-1], scale=0.05)
    x = embedding(net.tokens(1, 128, vocab=8000), 8000, 128)
    x = scaled(dense(tf.concat([tf.pad(x[:, 1:], [[0, 0], [0, 1], [0, 0]]), x, tf.pad(x[:, :-1], [[0, 0], [1, 0], [0, 0]])], -1), 512))
    for _ in range(6):
        inner, shared = scaled(dense(x, 128)), scaled(dense(x, 128))
        q, k, v = (split_heads(dense(t, 128), 4) for t in (shared, shared, x))
        y = scaled(inner + dense(attend(q, k, v), 128))
        for _ in range(4):
            y = scaled(y + feed_forward(y, 512, "relu"))
        x = scaled(x + dense(y, 512))
    return {"start_end": dense(x, 2)}


def swin_like(net):
    """Swin transformer: windows of 7x7, shifted in every other block, 224x224, stages of 96, 192 and 384 channels."""
    def windows(x, c):
        h = x.shape[1]
        x = tf.reshape(x, [h // 7, 7, h // 7, 7, c])
        return tf.reshape(tf.transpose(x, [0, 2, 1, 3, 4]), [-1, 49, c])

    def whole(x, h, c):
        x = tf.reshape(x, [h // 7, h // 7, 7, 7, c])
        return tf.reshape(tf.transpose(x, [0, 2, 1, 3, 4]), [1, h, h, c])

    def shift_mask(h):
        part = np.repeat([0, 1, 2], [h - 7, 4, 3])
        region = part[:, None] * 3 + part[None]
        region = region.reshape(h // 7, 7, h // 7, 7).transpose(0, 2, 1, 3).reshape(-1, 49)
        return tf.constant(np.where(region[:, None] != region[:, :, None], -100, 0).astype(np.float32)[:, None])

    x = layer_norm(conv(net.input(1, 224, 224, 3, name="image"), 96, 4, 4, None, False, padding="valid"))
    for stage in range(3):
        c, h = x.shape[-1], x.shape[1]
        for shift in (0, 3):
            bias = net.weights(c // 32, 49, 49, scale=0.2)
            y = layer_norm(x)
            if shift:
                y, bias = tf.roll(y, [-shift, -shift], [1, 2]), bias + shift_mask(h)
            y = whole(attention(windows(y, c), c // 32, bias), h, c)
            x = x + (tf.roll(y, [shift, shift], [1, 2]) if shift else y)
            x = x + feed_forward(layer_norm(x), 4 * c)
        if stage < 2:
            x = tf.concat([x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)], -1)
            x = dense(layer_norm(x), 2 * c, bias=False)
    return dense(tf.reduce_mean(layer_norm(x), [1, 2]), 1000)


def conformer(net):
    """Conformer encoder: four layers of width 144, 400 frames of 80, kernels of 31, characters of 32."""
    x = net.input(1, 400, 80, 1, name="frames")
    x = conv(conv(x, 144, 3, 2, bn=False), 144, 3, 2, bn=False)
    x = dense(tf.reshape(x, [1, 100, 20 * 144]), 144)
    for _ in range(4):
        x = x + 0.5 * feed_forward(layer_norm(x), 576, "swish")
        x = x + attention(layer_norm(x), 4)
        a, gate = tf.split(dense(layer_norm(x), 288), 2, -1)
        y = L.DepthwiseConv1D(31, padding="same", use_bias=False, depthwise_initializer=tf.keras.initializers.RandomNormal(0, 0.25))(
            a * tf.sigmoid(gate))
        x = x + dense(tf.nn.swish(L.BatchNormalization()(y)), 144)
        x = layer_norm(x + 0.5 * feed_forward(layer_norm(x), 576, "swish"))
    return tf.nn.log_softmax(dense(x, 32))


def linear_attention(net):
    """Causal linear attention, two layers of width 120 with five heads, 197 steps: running sums of keys times values."""
    x = net.input(1, 197, 120)
    for _ in range(2):
        y = layer_norm(x)
        q, k, v = (split_heads(dense(y, 120), 5) for _ in range(3))
        q, k = tf.nn.elu(q) + 1, tf.nn.elu(k) + 1
        states = tf.cumsum(k[..., None] * v[..., None, :], 2)
        norm = tf.reduce_sum(q * tf.cumsum(k, 2), -1, keepdims=True)
        y = tf.einsum("bhnd,bhnde->bhne", q, states) / norm
        x = x + dense(tf.reshape(tf.transpose(y, [0, 2, 1, 3]), [1, 197, 120]), 120)
        x = x + feed_forward(layer_norm(x), 300, "swish")
    return dense(x, 30)


def window_attention(net):
    """Attention within 150 of 500 tokens: each block of 50 sees the blocks beside it, two layers of width 96 with four heads."""
    def near(x):
        x = tf.pad(x, [[1, 1], [0, 0], [0, 0], [0, 0]])
        return tf.concat([x[:-2], x[1:-1], x[2:]], 2)
    x = net.input(1, 500, 96)
    for _ in range(2):
        y = tf.reshape(layer_norm(x), [10, 50, 96])
        q, k, v = (split_heads(dense(y, 96), 4) for _ in range(3))
        x = x + tf.reshape(dense(attend(q, near(k), near(v)), 96), [1, 500, 96])
        x = x + feed_forward(layer_norm(x), 384)
    return dense(x, 9)


def segformer_like(net):
    """SegFormer: four stages of attention to reduced keys, with depthwise convolutions in the feed-forward layers, 128x128."""
    x, maps = net.input(1, 128, 128, 3, name="image"), []
    for width, heads, window, stride, reduction in ((32, 1, 7, 4, 8), (64, 2, 3, 2, 4), (160, 5, 3, 2, 2), (256, 8, 3, 2, 1)):
        x = L.Conv2D(width, window, stride, "same")(x)
        side, tokens = x.shape[1], x.shape[1] * x.shape[1]
        x = layer_norm(tf.reshape(x, [1, tokens, width]))
        for _ in range(2):
            y = keys = layer_norm(x)
            if reduction > 1:
                keys = L.Conv2D(width, reduction, reduction)(tf.reshape(y, [1, side, side, width]))
                keys = layer_norm(tf.reshape(keys, [1, -1, width]))
            q, k, v = (split_heads(dense(z, width), heads) for z in (y, keys, keys))
            x = x + dense(attend(q, k, v), width)
            y = tf.reshape(dense(layer_norm(x), 4 * width), [1, side, side, 4 * width])
            y = tf.reshape(L.DepthwiseConv2D(3, 1, "same")(y), [1, tokens, 4 * width])
            x = x + dense(tf.nn.gelu(y), width)
        x = tf.reshape(layer_norm(x), [1, side, side, width])
        maps.append(tf.image.resize(dense(x, 128), [32, 32]))
    return conv(conv(tf.concat(maps, -1), 128), 19, act=None, bn=False)


def deberta_like(net):
    """Attention to contents and to relative positions, whose scores are gathered, three layers of width 256 over 64 tokens."""
    n, width, heads = 64, 256, 4
    x = layer_norm(embedding(net.tokens(1, n, vocab=4000), 4000, width))
    positions = net.weights(1, 2 * n, width, scale=0.3)
    distance = np.arange(n)[:, None] - np.arange(n)[None] + n
    distance = tf.tile(tf.constant(distance.astype(np.int32))[None, None], [1, heads, 1, 1])
    for _ in range(3):
        to_q, to_k = L.Dense(width), L.Dense(width)
        q, k, v = (split_heads(y, heads) for y in (to_q(x), to_k(x), dense(x, width)))
        by_key = tf.matmul(q, split_heads(to_k(positions), heads), transpose_b=True)
        by_query = tf.matmul(k, split_heads(to_q(positions), heads), transpose_b=True)
        bias = tf.gather(by_key, distance, batch_dims=3)
        bias += tf.transpose(tf.gather(by_query, distance, batch_dims=3), [0, 1, 3, 2])
        x = layer_norm(x + dense(attend(q, k, v, bias / 8), width))
        x = layer_norm(x + feed_forward(x, 4 * width))
    return dense(x[:, 0], 3)
