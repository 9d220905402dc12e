"""Convolutions that end in classes."""
import tensorflow as tf

from models.common import (ACTIVATIONS, L, basic_block, classify, conv, dense, depthwise, inverted_residual, mobilenet_v1,
                           mobilenet_v2, squeeze_excite)


def lenet(net):
    """LeNet-5 on 28x28 digits."""
    x = conv(net.input(1, 28, 28, 1, name="image"), 6, 5, act="tanh", bn=False)
    x = conv(L.AveragePooling2D()(x), 16, 5, act="tanh", bn=False, padding="valid")
    x = dense(dense(L.Flatten()(L.AveragePooling2D()(x)), 120, "tanh"), 84, "tanh")
    return tf.nn.softmax(dense(x, 10))


def tf1_mnist(net):
    """The tutorial's MNIST network: 5x5 convolutions of 32 and 64 channels, dense layers of 1024 and 10."""
    x = tf.reshape(net.input(1, 784, name="x"), [-1, 28, 28, 1])
    for filters in (32, 64):
        x = tf.nn.max_pool2d(net.conv(x, filters, 5), 2, 2, "SAME")
    x = net.dense(tf.reshape(x, [-1, 7 * 7 * 64]), 1024)
    return tf.nn.softmax(net.dense(x, 10, tf.identity))


def squeezenet(net):
    """SqueezeNet 1.1, 224x224."""
    def fire(x, squeeze, expand):
        s = conv(x, squeeze, bn=False)
        return tf.concat([conv(s, expand, bn=False), conv(s, expand, 3, bn=False)], -1)
    x = L.MaxPooling2D(3, 2)(conv(net.input(1, 224, 224, 3, name="image"), 64, 3, 2, bn=False, padding="valid"))
    x = L.MaxPooling2D(3, 2)(fire(fire(x, 16, 64), 16, 64))
    x = L.MaxPooling2D(3, 2)(fire(fire(x, 32, 128), 32, 128))
    x = fire(fire(fire(fire(x, 48, 192), 48, 192), 64, 256), 64, 256)
    return tf.nn.softmax(L.GlobalAveragePooling2D()(conv(x, 1000, bn=False)))


def resnet(net, size, blocks):
    x = L.MaxPooling2D(3, 2, "same")(conv(net.input(1, size, size, 3, name="image"), 64, 7, 2))
    for stage, n in enumerate(blocks):
        for i in range(n):
            x = basic_block(x, 64 << stage, 2 if stage and i == 0 else 1)
    return classify(x)


def resnet18(net):
    """ResNet-18, 224x224."""
    return resnet(net, 224, (2, 2, 2, 2))


def resnet34_160(net):
    """ResNet-34, 160x160."""
    return resnet(net, 160, (3, 4, 6, 3))


def resnext_like(net):
    """ResNeXt 32x4d with two blocks a stage, 160x160."""
    def block(x, filters, stride):
        y = conv(conv(conv(x, filters), filters, 3, stride, groups=32), 2 * filters, act=None)
        return tf.nn.relu(y + (conv(x, 2 * filters, 1, stride, None) if x.shape[-1] != 2 * filters else x))
    x = L.MaxPooling2D(3, 2, "same")(conv(net.input(1, 160, 160, 3, name="image"), 64, 7, 2))
    for stage in range(4):
        x = block(block(x, 128 << stage, 2 if stage else 1), 128 << stage, 1)
    return classify(x)


def regnet_se(net):
    """RegNetY-400MF, groups of eight channels, 224x224."""
    def block(x, filters, stride):
        y = conv(conv(x, filters), filters, 3, stride, groups=filters // 8)
        y = conv(squeeze_excite(y, max(1, x.shape[-1] // 4)), filters, act=None)
        return tf.nn.relu(y + (conv(x, filters, 1, stride, None) if stride > 1 or x.shape[-1] != filters else x))
    x = conv(net.input(1, 224, 224, 3, name="image"), 32, 3, 2)
    for filters, n in ((48, 1), (104, 3), (208, 6), (440, 6)):
        for i in range(n):
            x = block(x, filters, 1 if i else 2)
    return classify(x)


def shuffle(x, groups):
    _, h, w, c = x.shape
    return tf.reshape(tf.transpose(tf.reshape(x, [-1, h, w, groups, c // groups]), [0, 1, 2, 4, 3]), [-1, h, w, c])


def shufflenet_v1(net):
    """ShuffleNet v1 with three groups, 224x224."""
    def unit(x, filters, stride, groups):
        y = shuffle(conv(x, filters // 4, groups=groups), 3)
        y = conv(depthwise(y, 3, stride, None), filters - (x.shape[-1] if stride == 2 else 0), act=None, groups=3)
        return tf.nn.relu(tf.concat([L.AveragePooling2D(3, 2, "same")(x), y], -1) if stride == 2 else x + y)
    x = L.MaxPooling2D(3, 2, "same")(conv(net.input(1, 224, 224, 3, name="image"), 24, 3, 2))
    for filters, n in ((240, 3), (480, 7), (960, 3)):
        for i in range(n + 1):
            x = unit(x, filters, 1 if i else 2, 1 if x.shape[-1] == 24 else 3)
    return classify(x)


def shufflenet_v2(net):
    """ShuffleNet v2 1.0x, 224x224."""
    def branch(x, c, stride):
        return conv(depthwise(conv(x, c), 3, stride, None), c)
    x = L.MaxPooling2D(3, 2, "same")(conv(net.input(1, 224, 224, 3, name="image"), 24, 3, 2))
    for filters, n in ((116, 3), (232, 7), (464, 3)):
        c = filters // 2
        x = shuffle(tf.concat([conv(depthwise(x, 3, 2, None), c), branch(x, c, 2)], -1), 2)
        for _ in range(n):
            kept, rest = tf.split(x, 2, -1)
            x = shuffle(tf.concat([kept, branch(rest, c, 1)], -1), 2)
    return classify(conv(x, 1024))


def mobilenet_v1_050_160(net):
    """MobileNet v1, half the channels, 160x160."""
    return classify(mobilenet_v1(net.input(1, 160, 160, 3, name="image"), 0.5)[-1])


def mobilenet_v2_035_96(net):
    """MobileNet v2, 0.35 of the channels, 96x96."""
    return classify(conv(mobilenet_v2(net.input(1, 96, 96, 3, name="image"), 0.35)[-1], 1280, act="relu6"))


def efficientnet_lite(net):
    """EfficientNet-Lite0: relu6 and no squeeze-and-excitation, 224x224."""
    x = conv(net.input(1, 224, 224, 3, name="image"), 32, 3, 2, "relu6")
    for expand, filters, n, stride, k in ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
                                          (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)):
        for i in range(n):
            x = inverted_residual(x, filters, 1 if i else stride, expand, k=k)
    return classify(conv(x, 1280, act="relu6"))


def nchw_like_torch(net):
    """A small ResNet as converters from PyTorch write it: channels first, explicit pads, transposes around each window."""
    def window(x, op, k, stride):
        p = k // 2
        x = tf.transpose(tf.pad(x, [[0, 0], [0, 0], [p, p], [p, p]]), [0, 2, 3, 1])
        return tf.transpose(op(k, stride)(x), [0, 3, 1, 2])

    def conv_nchw(x, filters, k, stride=1, act="relu"):
        x = window(x, lambda k, s: L.Conv2D(filters, k, s, "valid", use_bias=False, kernel_initializer="he_normal"), k, stride)
        scale, offset = net.random.uniform(0.4, 0.6, (1, filters, 1, 1)), net.random.normal(0, 0.1, (1, filters, 1, 1))
        return ACTIVATIONS[act](x * scale.astype("float32") + offset.astype("float32"))
    x = conv_nchw(net.input(1, 3, 128, 128, name="image"), 32, 7, 2)
    x = window(x, lambda k, s: L.MaxPooling2D(k, s, "valid"), 3, 2)
    for filters, stride in ((32, 1), (64, 2), (128, 2), (256, 2)):
        y = conv_nchw(conv_nchw(x, filters, 3, stride), filters, 3, 1, None)
        x = tf.nn.relu(y + (conv_nchw(x, filters, 1, stride, None) if stride > 1 else x))
    return tf.nn.softmax(dense(tf.reduce_mean(x, [2, 3]), 100))


def tf1_inception(net):
    """GoogLeNet with its local response norms, 224x224."""
    def pool(x):
        return tf.nn.max_pool2d(x, 3, 2, "SAME")

    def mixed(x, a, b0, b, c0, c, d):
        return tf.concat([net.conv(x, a, 1), net.conv(net.conv(x, b0, 1), b, 3), net.conv(net.conv(x, c0, 1), c, 5),
                          net.conv(tf.nn.max_pool2d(x, 3, 1, "SAME"), d, 1)], 3)
    x = pool(net.conv(net.input(1, 224, 224, 3, name="image"), 64, 7, 2))
    x = net.conv(net.conv(tf.nn.local_response_normalization(x, 2, 1.0, 2e-5, 0.75), 64, 1), 192, 3)
    x = pool(tf.nn.local_response_normalization(x, 2, 1.0, 2e-5, 0.75))
    x = pool(mixed(mixed(x, 64, 96, 128, 16, 32, 32), 128, 128, 192, 32, 96, 64))
    for widths in ((192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64),
                   (256, 160, 320, 32, 128, 128)):
        x = mixed(x, *widths)
    x = mixed(mixed(pool(x), 256, 160, 320, 32, 128, 128), 384, 192, 384, 48, 128, 128)
    return tf.nn.softmax(net.dense(tf.reshape(tf.nn.avg_pool2d(x, 7, 1, "VALID"), [-1, 1024]), 1000, tf.identity))


def tf1_resnet_v2_cifar(net):
    """ResNet v2 of 32 layers for 32x32 images, batch 4."""
    x = net.conv(net.input(4, 32, 32, 3, name="image"), 16, 3, act=tf.identity)
    for filters in (16, 32, 64):
        for i in range(5):
            stride = 2 if filters > 16 and i == 0 else 1
            with tf.compat.v1.variable_scope(f"block_{filters}_{i}"):
                y = tf.nn.relu(net.norm(x))
                shortcut = net.conv(y, filters, 1, stride, act=tf.identity, name="shortcut") if stride > 1 else x
                y = net.conv(y, filters, 3, stride, bn=True)
                x = shortcut + 0.5 * net.conv(y, filters, 3, act=tf.identity)
    x = tf.reduce_mean(tf.nn.relu(net.norm(x)), [1, 2])
    return tf.nn.softmax(net.dense(x, 10, tf.identity))


def cnn3d(net):
    """3-D convolutions over 16 frames of 64x64."""
    x = net.input(1, 16, 64, 64, 3, name="frames")
    for filters, pool in ((32, (1, 2, 2)), (64, 2), (128, 2), (128, 2)):
        x = L.Conv3D(filters, 3, padding="same", activation="relu", kernel_initializer="he_normal")(x)
        x = L.MaxPooling3D(pool)(x)
    return tf.nn.softmax(dense(dense(L.Flatten()(x), 256, "relu"), 10))


def repvgg_train(net):
    """RepVGG before its branches are joined: 3x3, 1x1 and identity with a batch norm each, 111x111."""
    x = net.input(1, 111, 111, 3, name="image")
    for filters, stride in ((40, 2), (40, 1), (72, 2), (72, 1), (72, 1), (136, 2), (136, 1)):
        y = conv(x, filters, 3, stride, None) + conv(x, filters, 1, stride, None)
        x = tf.nn.relu(y + L.BatchNormalization()(x) if x.shape[-1] == filters else y)
    return classify(x)


def poolformer(net):
    """PoolFormer with two blocks in each of three stages: pools instead of attention, norms over all of an image, 130x98."""
    def norm(x):
        mean, variance = tf.nn.moments(x, [1, 2, 3], keepdims=True)
        return (x - mean) / tf.sqrt(variance + 1e-5) * (1 + net.weights(x.shape[-1], scale=0.1)) + net.weights(x.shape[-1], scale=0.1)
    x = net.input(1, 130, 98, 3, name="image")
    for filters, k, stride in ((36, 7, 4), (68, 3, 2), (132, 3, 2)):
        x = conv(x, filters, k, stride, None, False)
        for _ in range(2):
            y = norm(x)
            x = x + (tf.nn.avg_pool2d(y, 3, 1, "SAME") - y) * net.weights(filters, scale=0.5)
            x = x + conv(conv(norm(x), 4 * filters, act="gelu", bn=False), filters, act=None, bn=False) * net.weights(filters, scale=0.5)
    return dense(tf.reduce_mean(norm(x), [1, 2]), 100)


def video_2plus1d(net):
    """Convolutions over images and then over time, nine frames of 57x63."""
    def conv3(x, filters, k, stride):
        x = L.Conv3D(filters, k, stride, "same", use_bias=False, kernel_initializer="he_normal")(x)
        return tf.nn.relu(L.BatchNormalization()(x))
    x = net.input(1, 9, 57, 63, 3, name="frames")
    for filters, time, space in ((20, 1, 2), (44, 2, 2), (44, 1, 1), (90, 2, 2)):
        x = conv3(conv3(x, filters + 7, (1, 3, 3), (1, space, space)), filters, (3, 1, 1), (time, 1, 1))
    return dense(tf.reduce_mean(x, [1, 2, 3]), 51)
