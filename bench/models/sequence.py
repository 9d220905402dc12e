"""Recurrent networks, convolutions over time, sound."""
import numpy as np
import tensorflow as tf

from models.common import L, classify, conv, dense, mobilenet_v1, prelu, v1


def lstm_b1(net):
    """An LSTM of 128 units, one sequence of 100 steps of 64."""
    return tf.nn.softmax(dense(L.LSTM(128)(net.input(1, 100, 64)), 10))


def stacked_lstm(net):
    """Two LSTMs of 256 units, four sequences of 50 steps of 64."""
    return dense(L.LSTM(256)(L.LSTM(256, return_sequences=True)(net.input(4, 50, 64))), 10)


def stacked_gru_b16(net):
    """Two GRUs of 128 units, 16 sequences of 50 steps of 64."""
    return dense(L.GRU(128)(L.GRU(128, return_sequences=True)(net.input(16, 50, 64))), 10)


def gru_b8(net):
    """A GRU of 128 units, eight sequences of 50 steps of 32."""
    return dense(L.GRU(128)(net.input(8, 50, 32)), 10)


def gru_reset(net):
    """A GRU of 128 units that resets before its product, four sequences of 50 steps of 64, all steps' states."""
    return L.GRU(128, reset_after=False, return_sequences=True)(net.input(4, 50, 64))


def bilstm(net):
    """Tags of eight sentences of 40 words: LSTMs of 64 units in both directions."""
    x = L.Embedding(5000, 64, embeddings_initializer="uniform")(net.tokens(8, 40, vocab=5000))
    return tf.nn.softmax(dense(L.Bidirectional(L.LSTM(64, return_sequences=True))(x), 17))


def seq2seq_attention(net):
    """GRU encoder and decoder of 128 units with Luong's attention, four sentences of 30 and 20 words."""
    source, target = net.tokens(4, 30, vocab=5000, name="source"), net.tokens(4, 20, vocab=5000, name="target")
    encoded, state = L.GRU(128, return_sequences=True, return_state=True)(L.Embedding(5000, 64)(source))
    decoded = L.GRU(128, return_sequences=True)(L.Embedding(5000, 64)(target), initial_state=state)
    weights = tf.nn.softmax(tf.matmul(dense(decoded, 128, bias=False), encoded, transpose_b=True))
    x = dense(tf.concat([tf.matmul(weights, encoded), decoded], -1), 128, "tanh")
    return dense(x, 5000)


def crnn_ocr(net):
    """CRNN: 32x128 pixels of text, two LSTMs of 128 units in both directions, 37 characters at 32 places."""
    x = net.input(1, 32, 128, 1, name="image")
    for filters, pool in ((64, (2, 2)), (128, (2, 2)), (256, None), (256, (2, 1)), (512, (2, 1))):
        x = conv(x, filters, 3, bn=filters > 128)
        x = L.MaxPooling2D(pool)(x) if pool else x
    x = tf.reshape(tf.transpose(x, [0, 2, 1, 3]), [1, 32, 2 * 512])
    for _ in range(2):
        x = L.Bidirectional(L.LSTM(128, return_sequences=True))(x)
    return tf.nn.softmax(dense(x, 37))


def text_cnn(net):
    """Kim's CNN: 16 sentences of 100 words, 100 filters each over 3, 4 and 5 words."""
    x = L.Embedding(10000, 128, embeddings_initializer=tf.keras.initializers.RandomNormal(0, 0.5))(net.tokens(16, 100, vocab=10000))
    x = tf.concat([tf.reduce_max(conv1d(x, 100, k, padding="valid"), 1) for k in (3, 4, 5)], -1)
    return tf.nn.softmax(dense(x, 5))


def conv1d(x, filters, k, dilation=1, stride=1, padding="causal", act="relu"):
    return L.Conv1D(filters, k, stride, padding, dilation_rate=dilation, activation=act, kernel_initializer="he_normal")(x)


def tcn(net):
    """Temporal convolutions: six residual blocks of 64 channels, dilations of 1 to 32, 512 steps."""
    x = conv1d(net.input(1, 512, 16), 64, 1, act=None)
    for i in range(6):
        x = tf.nn.relu(x + conv1d(conv1d(x, 64, 3, 1 << i), 64, 3, 1 << i, act=None) * 0.5)
    return dense(x[:, -1], 10)


def wavenet(net):
    """WaveNet: two stacks of eight gated layers of 32 channels, 2048 samples, 256 levels."""
    x, skips = conv1d(net.input(1, 2048, 1, name="samples"), 32, 2, act=None), []
    for i in range(16):
        dilation = 1 << i % 8
        y = conv1d(x, 32, 2, dilation, act="tanh") * conv1d(x, 32, 2, dilation, act="sigmoid")
        skips.append(conv1d(y, 64, 1, act=None))
        x = x + conv1d(y, 32, 1, act=None)
    x = conv1d(tf.nn.relu(tf.add_n(skips) * 0.25), 64, 1)
    return tf.nn.softmax(conv1d(x, 256, 1, act=None))


def res1d_ecg(net):
    """Residual network over 12 leads of an ECG, 2048 samples, windows of 17, 64 to 256 channels."""
    def normed(x, filters, stride=1, act=True):
        x = L.Conv1D(filters, 17, stride, "same", use_bias=False, kernel_initializer="he_normal")(x)
        x = L.BatchNormalization()(x)
        return tf.nn.relu(x) if act else x
    x = normed(net.input(1, 2048, 12, name="leads"), 64)
    for filters in (128, 192, 256):
        y = normed(normed(x, filters), filters, 4, False)
        x = tf.nn.relu(y + L.Conv1D(filters, 1, use_bias=False)(L.MaxPooling1D(4, 4, "same")(x)))
    return tf.sigmoid(dense(L.Flatten()(x), 6))


def yamnet_like(net):
    """YAMNet: MobileNet v1 over 96 frames of 64 bands, 521 classes."""
    return classify(mobilenet_v1(net.input(1, 96, 64, 1, name="bands"), act="relu")[-1], 521)


def tf1_kws_dscnn(net):
    """DS-CNN for key words: 49 frames of 10 coefficients, 64 channels, 12 words."""
    x = tf.reshape(net.input(1, 490, name="fingerprint"), [-1, 49, 10, 1])
    x = net.conv(x, 64, (10, 4), 2, bn=True)
    for _ in range(4):
        x = net.conv(net.depthwise(x, 3), 64, 1, bn=True)
    x = tf.reshape(tf.nn.avg_pool2d(x, x.shape[1:3], 1, "VALID"), [-1, 64])
    return tf.nn.softmax(net.dense(x, 12, tf.identity))


def vocoder(net):
    """HiFi-GAN: 37 frames of 80 bands to 4736 samples, transposed convolutions and dilated ones of 3 and 7 taps."""
    x = conv1d(net.input(1, 37, 80, name="bands"), 96, 7, padding="same", act=None)
    for filters, stride in ((48, 8), (24, 8), (12, 2)):
        x = L.Conv1DTranspose(filters, 2 * stride, stride, "same", kernel_initializer="he_normal")(tf.nn.leaky_relu(x, 0.1))
        branches = []
        for k in (3, 7):
            for dilation in (1, 3):
                y = conv1d(tf.nn.leaky_relu(x, 0.1), filters, k, dilation, padding="same", act=None)
                branches.append(conv1d(tf.nn.leaky_relu(y, 0.1), filters, k, padding="same", act=None))
        x = x + 0.25 * tf.add_n(branches)
    return conv1d(tf.nn.leaky_relu(x), 1, 7, padding="same", act="tanh")


def conv_tasnet(net):
    """Conv-TasNet: 4000 samples to two speakers' by masks, ten dilated depthwise blocks with global norms and PReLU."""
    def norm(x):
        mean, variance = tf.nn.moments(x, [1, 2], keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-8) * (1 + net.weights(x.shape[-1], scale=0.1))
    waves = conv1d(net.input(1, 4000, 1, name="samples"), 128, 16, stride=8, padding="valid")
    x, skips = dense(norm(waves), 96), []
    for dilation in (1, 2, 4, 8, 16) * 2:
        y = norm(prelu(dense(x, 192)))[:, None]
        y = norm(prelu(L.DepthwiseConv2D((1, 3), padding="same", dilation_rate=(1, dilation))(y)[:, 0]))
        skips.append(dense(y, 96))
        x = x + dense(y, 96)
    masks = tf.reshape(dense(tf.nn.relu(tf.add_n(skips)), 256, "sigmoid"), [1, -1, 2, 128])
    parts = tf.transpose(masks * waves[:, :, None], [2, 1, 0, 3])
    return L.Conv2DTranspose(1, (16, 1), (8, 1), use_bias=False)(parts)[..., 0]


def tf1_dynamic_rnn(net):
    """An LSTM with peepholes and a projection over sequences of given lengths, dropout behind a conditional that an input chooses."""
    x, training = net.input(4, 30, 20), net.feed("training", np.array(False))
    cell = v1.nn.rnn_cell.LSTMCell(48, use_peepholes=True, num_proj=24)
    y, state = v1.nn.dynamic_rnn(cell, x, net.feed("lengths", np.array([30, 17, 5, 22], np.int32)), dtype=tf.float32)
    y = v1.cond(training, lambda: tf.nn.dropout(y, 0.5), lambda: y * 1.0)
    return net.dense(tf.concat([tf.reduce_max(y, 1), state.c], -1), 13, tf.identity)
