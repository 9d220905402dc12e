"""Detection, segmentation, and images from images."""
import tensorflow as tf

from models.common import (L, conv, deconv, dense, depthwise, inverted_residual, mobilenet_v1, mobilenet_v2, prelu, resize,
                           separable, upsample, v1)


def ssd_mnv1(net):
    """SSD on MobileNet v1, 300x300, 21 classes: boxes and scores of all anchors."""
    results = mobilenet_v1(net.input(1, 300, 300, 3, name="image"))
    maps = [results[11], results[13]]
    for squeeze, filters in ((256, 512), (128, 256), (128, 256), (64, 128)):
        maps.append(conv(conv(maps[-1], squeeze, act="relu6"), filters, 3, 2, "relu6"))
    boxes, scores = [], []
    for i, x in enumerate(maps):
        anchors = 3 if i == 0 else 6
        boxes.append(tf.reshape(conv(x, anchors * 4, act=None, bn=False), [1, -1, 4]))
        scores.append(tf.reshape(conv(x, anchors * 21, act=None, bn=False), [1, -1, 21]))
    return {"boxes": tf.concat(boxes, 1), "scores": tf.sigmoid(tf.concat(scores, 1))}


def yolov5_like(net):
    """YOLOv5n without its decoding of boxes, 320x320, 80 classes."""
    def c3(x, c, n, shortcut=True):
        y = conv(x, c // 2, act="swish")
        for _ in range(n):
            z = conv(conv(y, c // 2, act="swish"), c // 2, 3, act="swish")
            y = y + z if shortcut else z
        return conv(tf.concat([y, conv(x, c // 2, act="swish")], -1), c, act="swish")
    x = conv(net.input(1, 320, 320, 3, name="image"), 16, 6, 2, "swish")
    x = c3(conv(x, 32, 3, 2, "swish"), 32, 1)
    p3 = c3(conv(x, 64, 3, 2, "swish"), 64, 2)
    p4 = c3(conv(p3, 128, 3, 2, "swish"), 128, 3)
    x = conv(c3(conv(p4, 256, 3, 2, "swish"), 256, 1), 128, act="swish")
    pools = [x]
    for _ in range(3):
        pools.append(L.MaxPooling2D(5, 1, "same")(pools[-1]))
    p5 = conv(conv(tf.concat(pools, -1), 256, act="swish"), 128, act="swish")
    x = conv(c3(tf.concat([upsample(p5, 2, "nearest"), p4], -1), 128, 1, False), 64, act="swish")
    n3 = c3(tf.concat([upsample(x, 2, "nearest"), p3], -1), 64, 1, False)
    n4 = c3(tf.concat([conv(n3, 64, 3, 2, "swish"), x], -1), 128, 1, False)
    n5 = c3(tf.concat([conv(n4, 128, 3, 2, "swish"), p5], -1), 256, 1, False)
    return tf.concat([tf.reshape(conv(n, 255, act="sigmoid", bn=False), [1, -1, 85]) for n in (n3, n4, n5)], 1)


def yolo_tiny(net):
    """YOLOv3-tiny, 320x320, 80 classes, results of both scales."""
    x = net.input(1, 320, 320, 3, name="image")
    for filters in (16, 32, 64, 128, 256):
        x = conv(x, filters, 3, act="leaky")
        skip, x = x, L.MaxPooling2D(2)(x)
    x = L.MaxPooling2D(2, 1, "same")(conv(x, 512, 3, act="leaky"))
    x = conv(conv(x, 1024, 3, act="leaky"), 256, act="leaky")
    coarse = conv(conv(x, 512, 3, act="leaky"), 255, act=None, bn=False)
    x = tf.concat([upsample(conv(x, 128, act="leaky"), 2, "nearest"), skip], -1)
    return {"coarse": coarse, "fine": conv(conv(x, 256, 3, act="leaky"), 255, act=None, bn=False)}


def fast_scnn(net):
    """Fast-SCNN, 256x512, 19 classes."""
    image = net.input(1, 256, 512, 3, name="image")
    high = separable(separable(conv(image, 32, 3, 2), 48, 2), 64, 2)
    x = high
    for filters, stride in ((64, 2), (96, 2), (128, 1)):
        for i in range(3):
            x = inverted_residual(x, filters, 1 if i else stride, 6, "relu")
    pyramid = [x]
    for n in (1, 2, 4):
        size = (x.shape[1] // n, x.shape[2] // n)
        pyramid.append(resize(conv(L.AveragePooling2D(size)(x), 32), x))
    x = conv(tf.concat(pyramid, -1), 128)
    x = conv(depthwise(resize(x, high)), 128, act=None)
    x = tf.nn.relu(x + conv(high, 128, act=None))
    x = conv(separable(separable(x, 128), 128), 19, act=None, bn=False)
    return tf.nn.softmax(resize(x, image))


def tf1_deeplab(net):
    """A small DeepLab, 128x128, 21 classes, dilations by space_to_batch, as TensorFlow 1 wrote them."""
    def dilated(x, filters, rate):
        size = x.shape[1]
        pad = -(size + 2 * rate) % rate
        x = tf.space_to_batch_nd(x, [rate, rate], [[rate, rate + pad], [rate, rate + pad]])
        return tf.batch_to_space(net.conv(x, filters, 3, padding="VALID", bn=True), [rate, rate], [[0, pad], [0, pad]])
    image = net.input(1, 128, 128, 3, name="image")
    x = net.conv(image, 32, 3, 2, bn=True)
    x = net.conv(net.conv(x, 64, 3, 2, bn=True), 64, 3, bn=True)
    x = net.conv(x, 128, 3, 2, bn=True)
    for rate in (2, 2, 4):
        x = tf.nn.relu(x + net.conv(dilated(net.conv(x, 64, 1, bn=True), 64, rate), 128, 1, act=tf.identity, bn=True))
    mean = net.conv(tf.reduce_mean(x, [1, 2], keepdims=True), 64, 1, bn=True)
    mean = v1.image.resize_bilinear(mean, x.shape[1:3], align_corners=True)
    x = tf.concat([net.conv(x, 64, 1, bn=True), dilated(x, 64, 3), dilated(x, 64, 6), dilated(x, 64, 9), mean], 3)
    x = net.conv(net.conv(x, 128, 1, bn=True), 21, 1, act=tf.identity)
    return tf.nn.softmax(v1.image.resize_bilinear(x, image.shape[1:3], align_corners=True))


def fcn_transpose(net):
    """FCN-8s on a narrow VGG, 128x128, 21 classes, transposed convolutions."""
    x, pools = net.input(1, 128, 128, 3, name="image"), []
    for filters, n in ((32, 2), (64, 2), (128, 2), (256, 2), (256, 2)):
        for _ in range(n):
            x = conv(x, filters, 3, bn=False)
        x = L.MaxPooling2D(2)(x)
        pools.append(x)
    x = deconv(conv(conv(x, 512, 3, bn=False), 21, act=None, bn=False), 21, 4, 2, None, False)
    x = deconv(x + conv(pools[3], 21, act=None, bn=False), 21, 4, 2, None, False)
    return tf.nn.softmax(deconv(x + conv(pools[2], 21, act=None, bn=False), 21, 16, 8, None, False))


def deeplab_mnv2(net):
    """DeepLab v3 on MobileNet v2 with a stride of 16, 257x257, 21 classes."""
    image = net.input(1, 257, 257, 3, name="image")
    x = mobilenet_v2(image, output_stride=16)[-1]
    mean = resize(conv(tf.reduce_mean(x, [1, 2], keepdims=True), 256, bn=False), x)
    x = conv(conv(tf.concat([mean, conv(x, 256)], -1), 256), 21, act=None, bn=False)
    return tf.nn.softmax(resize(x, image))


def unet_of(net, up):
    x, skips = net.input(1, 128, 128, 3, name="image"), []
    for filters in (32, 64, 128, 256):
        x = conv(conv(x, filters, 3), filters, 3)
        skips.append(x)
        x = L.MaxPooling2D(2)(x)
    x = conv(conv(x, 512, 3), 512, 3)
    for skip in reversed(skips):
        filters = skip.shape[-1]
        x = conv(conv(tf.concat([skip, up(x, filters)], -1), filters, 3), filters, 3)
    return conv(x, 1, act="sigmoid", bn=False)


def unet(net):
    """U-Net of 32 to 512 channels, 128x128, transposed convolutions."""
    return unet_of(net, lambda x, filters: deconv(x, filters, 2, 2, None, False))


def unet_up(net):
    """The same with bilinear resizes."""
    return unet_of(net, lambda x, filters: conv(upsample(x, 2), filters, 3))


def style_transfer(net):
    """Fast style transfer: reflected borders, instance norms, five residual blocks, 128x128."""
    def window(x, filters, k, stride=1, relu=True):
        p = k // 2
        x = L.Conv2D(filters, k, stride, kernel_initializer="he_normal")(tf.pad(x, [[0, 0], [p, p], [p, p], [0, 0]], "REFLECT"))
        mean, variance = tf.nn.moments(x, [1, 2], keepdims=True)
        x = net.weights(filters, scale=0.1) + (1 + net.weights(filters, scale=0.1)) * (x - mean) * tf.math.rsqrt(variance + 1e-3)
        return tf.nn.relu(x) if relu else x
    x = window(net.input(1, 128, 128, 3, name="image"), 32, 9)
    x = window(window(x, 64, 3, 2), 128, 3, 2)
    for _ in range(5):
        x = x + window(window(x, 128, 3), 128, 3, relu=False)
    x = window(upsample(x, 2, "nearest"), 64, 3)
    x = window(upsample(x, 2, "nearest"), 32, 3)
    return tf.tanh(window(x, 3, 9, relu=False))


def srcnn(net):
    """SRCNN 9-1-5, 128x128."""
    x = conv(net.input(1, 128, 128, 1, name="image"), 64, 9, bn=False)
    return conv(conv(x, 32, bn=False), 1, 5, act=None, bn=False)


def espcn(net):
    """ESPCN, 120x120 to three times as many pixels a side."""
    x = conv(net.input(1, 120, 120, 1, name="image"), 64, 5, act="tanh", bn=False)
    return tf.nn.depth_to_space(conv(conv(x, 32, 3, act="tanh", bn=False), 9, 3, act=None, bn=False), 3)


def edsr(net):
    """EDSR with eight blocks of 64 channels, 64x64 to 128x128."""
    x = head = conv(net.input(1, 64, 64, 3, name="image"), 64, 3, act=None, bn=False)
    for _ in range(8):
        x = x + 0.5 * conv(conv(x, 64, 3, bn=False), 64, 3, act=None, bn=False)
    x = head + conv(x, 64, 3, act=None, bn=False)
    return conv(tf.nn.depth_to_space(conv(x, 256, 3, act=None, bn=False), 2), 3, 3, act=None, bn=False)


def fsrcnn(net):
    """FSRCNN(56, 12, 4), 64x64 to three times as many pixels a side."""
    def prelu(x):
        return L.PReLU(shared_axes=[1, 2])(x)
    x = prelu(conv(net.input(1, 64, 64, 1, name="image"), 56, 5, act=None, bn=False))
    x = prelu(conv(x, 12, act=None, bn=False))
    for _ in range(4):
        x = prelu(conv(x, 12, 3, act=None, bn=False))
    return deconv(prelu(conv(x, 56, act=None, bn=False)), 1, 9, 3, None, False)


def dcgan(net):
    """DCGAN's generator, eight images of 64x64."""
    x = tf.reshape(dense(net.input(8, 100, name="noise"), 4 * 4 * 512, "relu"), [-1, 4, 4, 512])
    for filters in (256, 128, 64):
        x = deconv(x, filters, 5, 2)
    return deconv(x, 3, 5, 2, "tanh", False)


def ae_conv(net):
    """Convolutional autoencoder, 96x96."""
    x = net.input(1, 96, 96, 3, name="image")
    for filters in (32, 64, 128):
        x = conv(x, filters, 3, 2, bn=False)
    x = dense(dense(L.Flatten()(x), 128, "relu"), 12 * 12 * 128, "relu")
    x = tf.reshape(x, [-1, 12, 12, 128])
    for filters in (64, 32, 16):
        x = deconv(x, filters, 3, 2, bn=False)
    return conv(x, 3, 3, act="sigmoid", bn=False)


def centernet(net):
    """CenterNet: heat maps of 20 classes from an hourglass, peaks by a maximum pool, the best 40 with their boxes, 97x131."""
    x = conv(conv(net.input(1, 97, 131, 3, name="image"), 24, 7, 2), 40, 3)
    skips = []
    for filters in (56, 72):
        skips.append(x)
        x = conv(x, filters, 3, 2)
    for skip in reversed(skips):
        x = conv(tf.image.resize(conv(x, skip.shape[-1]), skip.shape[1:3], "nearest") + skip, skip.shape[-1], 3)
    heat = conv(conv(x, 40, 3), 20, act="sigmoid", bn=False)
    sizes = tf.reshape(conv(conv(x, 40, 3), 4, act=None, bn=False), [1, -1, 4])
    peaks = tf.where(tf.equal(tf.nn.max_pool2d(heat, 3, 1, "SAME"), heat), heat, 0.0)
    scores, places = tf.math.top_k(tf.reshape(peaks, [1, -1]), 40)
    return {"scores": scores, "boxes": tf.gather(sizes, places // 20, batch_dims=1)}


def dynamic_conv(net):
    """Two convolutions with filters mixed from four by attention to the image, a depthwise one with filters made from it, 45x53."""
    x = net.input(1, 45, 53, 20)
    for filters in (36, 60):
        shares = tf.nn.softmax(dense(dense(tf.reduce_mean(x, [1, 2]), 8, "relu"), 4))
        mixed = tf.tensordot(shares[0], net.weights(4, 3, 3, x.shape[-1], filters, scale=(9 * x.shape[-1]) ** -0.5), 1)
        x = tf.nn.relu(tf.nn.conv2d(x, mixed, 1, "SAME"))
    made = tf.reshape(dense(tf.reduce_mean(x, [1, 2]), 25 * 60), [5, 5, 60, 1])
    return tf.reduce_max(tf.nn.depthwise_conv2d(x, made, [1, 1, 1, 1], "SAME"), [1, 2])


def srgan(net):
    """SRGAN's generator: six residual blocks of 64 channels with PReLU, two steps of depth to space, 64x64 to 256x256."""
    x = first = prelu(conv(net.input(1, 64, 64, 3, name="image"), 64, 9, act=None, bn=False))
    for _ in range(6):
        x = x + conv(prelu(conv(x, 64, 3, act=None)), 64, 3, act=None)
    x = first + conv(x, 64, 3, act=None)
    for _ in range(2):
        x = prelu(tf.nn.depth_to_space(conv(x, 256, 3, act=None, bn=False), 2))
    return conv(x, 3, 9, act="tanh", bn=False)


def bifpn(net):
    """EfficientDet's necks and heads: three weighted feature pyramids of five levels, boxes and classes of nine anchors a pixel."""
    maps = [conv(net.input(1, s, s, c, name=f"map{s}"), 64, act=None) for s, c in ((64, 40), (32, 112), (16, 320))]

    def smaller(x):
        return L.MaxPooling2D(3, 2, "same")(x)

    def fuse(parts):
        share = tf.nn.relu(net.weights(len(parts)) + 1.0)
        share = share / (tf.reduce_sum(share) + 1e-4)
        return separable(tf.nn.swish(tf.add_n([share[i] * part for i, part in enumerate(parts)])), 64, act="swish")
    for _ in range(2):
        maps.append(smaller(maps[-1]))
    for _ in range(3):
        down = [maps[-1]]
        for m in maps[-2::-1]:
            down.insert(0, fuse([m, upsample(down[0], 2, "nearest")]))
        up = [down[0]]
        for m, d in zip(maps[1:], down[1:]):
            up.append(fuse([m, d, smaller(up[-1])]))
        maps = up
    classes, boxes = [], []
    for m in maps:
        for results, size, act in ((classes, 20, "sigmoid"), (boxes, 4, None)):
            x = m
            for _ in range(3):
                x = separable(x, 64, act="swish")
            results.append(tf.reshape(conv(x, 9 * size, 3, act=act, bn=False), [1, -1, size]))
    return {"classes": tf.concat(classes, 1), "boxes": tf.concat(boxes, 1)}
