"""Models as converters from PyTorch write them: channels first, transposes around each convolution, pool and resize."""
import tensorflow as tf

from models.common import L, dense

TO_IMAGE, TO_PLANES = [0, 2, 3, 1], [0, 3, 1, 2]


def planes(x, op):
    """An operation that TensorFlow has for channels last only."""
    return tf.transpose(op(tf.transpose(x, TO_IMAGE)), TO_PLANES)


def pad(x, p):
    return tf.pad(x, [[0, 0], [0, 0], [p, p], [p, p]]) if p else x


def hard_sigmoid(x):
    return tf.clip_by_value(x / 6 + 0.5, 0.0, 1.0)


def hardswish(x):
    return x * hard_sigmoid(x)


def convolve(net, x, filters, k=1, stride=1, act=tf.nn.relu, depthwise=False, bias=False):
    """Pad, convolution, batch norm as a product and a sum of constants, activation."""
    if depthwise:
        layer = L.DepthwiseConv2D(k, stride, "valid", use_bias=False, depthwise_initializer=tf.keras.initializers.RandomNormal(0, 1.4 / k))
    else:
        layer = L.Conv2D(filters, k, stride, "valid", use_bias=bias, kernel_initializer="he_normal")
    y = planes(pad(x, k // 2), layer)
    if not bias:
        c = y.shape[1]
        y = y * net.random.uniform(0.6, 1.0, (1, c, 1, 1)).astype("float32") + net.weights(1, c, 1, 1, scale=0.1)
    return act(y) if act else y


def torch_mobile_se(net):
    """Inverted residuals with hard swish and squeeze-and-excitation, 192x192."""
    x = convolve(net, net.input(1, 3, 192, 192, name="image"), 16, 3, 2, hardswish)
    for k, expand, filters, se, act, stride in ((3, 16, 16, True, tf.nn.relu, 2), (3, 72, 24, False, tf.nn.relu, 2), (3, 88, 24, False, tf.nn.relu, 1),
                                                (5, 96, 40, True, hardswish, 2), (5, 240, 40, True, hardswish, 1), (5, 240, 40, True, hardswish, 1),
                                                (5, 120, 48, True, hardswish, 1), (5, 144, 48, True, hardswish, 1), (5, 288, 96, True, hardswish, 2),
                                                (5, 576, 96, True, hardswish, 1), (5, 576, 96, True, hardswish, 1)):
        y = convolve(net, convolve(net, x, expand, act=act), expand, k, stride, act if not se else None, depthwise=True)
        if se:
            s = convolve(net, tf.reduce_mean(y, [2, 3], keepdims=True), max(8, expand // 4), bias=True)
            s = convolve(net, s, expand, act=None, bias=True)
            y = act(y * hard_sigmoid(s))
        y = convolve(net, y, filters, act=None)
        x = x + y if stride == 1 and x.shape[1] == filters else y
    x = convolve(net, x, 576, act=hardswish)
    return dense(hardswish(dense(tf.reduce_mean(x, [2, 3]), 1024)), 1000)


def torch_unet(net):
    """U-Net with concatenations along channels, transposed convolutions, one bilinear resize and softmax over channels, 128x128."""
    x, skips = net.input(1, 3, 128, 128, name="image"), []
    for filters in (24, 48, 96, 192):
        x = convolve(net, convolve(net, x, filters, 3, act=lambda v: tf.nn.leaky_relu(v, 0.1)), filters, 3)
        skips.append(x)
        x = planes(x, L.MaxPooling2D(2, 2))
    x = convolve(net, x, 256, 3)
    for filters, skip in zip((192, 96, 48, 24), reversed(skips)):
        if filters == 24:
            x = planes(x, lambda v, s=skip: tf.image.resize(v, s.shape[2:]))
        else:
            x = planes(x, L.Conv2DTranspose(filters, 2, 2))
        x = tf.concat([x, skip], 1)
        x = convolve(net, convolve(net, x, filters, 3), filters, 3)
    return tf.nn.softmax(convolve(net, x, 8, bias=True, act=None), 1)


def torch_shuffle(net):
    """Shuffled groups of channels: splits, concatenations and a transpose of five dimensions in each block, 160x160."""
    def shuffle(x):
        n, c, h, w = x.shape
        return tf.reshape(tf.transpose(tf.reshape(x, [n, 2, c // 2, h, w]), [0, 2, 1, 3, 4]), [n, c, h, w])
    x = convolve(net, net.input(1, 3, 160, 160, name="image"), 24, 3, 2)
    x = planes(pad(x, 1), L.MaxPooling2D(3, 2, "valid"))
    for filters, blocks in ((116, 4), (232, 5), (464, 3)):
        for i in range(blocks):
            if i == 0:
                a = convolve(net, convolve(net, x, 0, 3, 2, None, depthwise=True), filters // 2)
                b, stride = x, 2
            else:
                a, b = tf.split(x, 2, 1)
                stride = 1
            b = convolve(net, convolve(net, b, filters // 2), 0, 3, stride, None, depthwise=True)
            x = shuffle(tf.concat([a, convolve(net, b, filters // 2)], 1))
    return dense(tf.reduce_mean(convolve(net, x, 512), [2, 3]), 1000)
