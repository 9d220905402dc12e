"""The models of unseen_models.py: name -> a function from keras and its layers to a model and CALIBRATE + UNSEEN inputs."""
import numpy as np

rng = np.random.default_rng(7)
CALIBRATE, UNSEEN = 32, 100


def images(size, channels=3):
    import tensorflow as tf
    smooth = tf.image.resize(rng.normal(size=(CALIBRATE + UNSEEN, size // 8, size // 8, channels)), (size, size), method="bicubic").numpy()
    return (smooth + 0.2 * rng.normal(size=smooth.shape)).astype("f")


def numbers(*shape):
    return rng.normal(size=(CALIBRATE + UNSEEN, *shape)).astype("f")


def application(name, size, **options):
    def make(K, L):
        return getattr(K.applications, name)(weights=None, input_shape=(size, size, 3), classes=20, **options), images(size)
    return make


def unet(up):
    def make(K, L):
        i = x = K.Input((64, 64, 3))
        skips = []
        for w in (16, 32):
            x = L.BatchNormalization()(L.Conv2D(w, 3, padding="same", activation="relu")(x))
            skips.append(x)
            x = L.MaxPool2D()(x)
        x = L.LeakyReLU(negative_slope=0.1)(L.DepthwiseConv2D(3, padding="same", depth_multiplier=2)(x))
        for w, s in zip((32, 16), reversed(skips)):
            x = L.UpSampling2D(interpolation=up)(x) if up else L.Conv2DTranspose(w, 3, 2, "same")(x)
            x = L.Conv2D(w, 3, padding="same")(L.Concatenate()([x, s]))
            x = L.PReLU(shared_axes=[1, 2], alpha_initializer=K.initializers.RandomUniform(0, 0.4))(x)
        return K.Model(i, L.Conv2D(4, 1, activation="softmax")(x)), images(64)
    return make


def regnet(K, L):
    norm = lambda x: L.BatchNormalization()(x)
    i = K.Input((64, 64, 3))
    x = L.ReLU()(norm(L.Conv2D(32, 3, 2, "same", use_bias=False)(i)))
    for w, stride in ((32, 1), (64, 2), (128, 2)):
        y = L.ReLU()(norm(L.Conv2D(w, 1, use_bias=False)(x)))
        y = L.ReLU()(norm(L.Conv2D(w, 3, stride, "same", groups=w // 16, use_bias=False)(y)))
        gate = L.Conv2D(w // 4, 1, activation="relu")(L.GlobalAveragePooling2D(keepdims=True)(y))
        y = norm(L.Conv2D(w, 1, use_bias=False)(L.Multiply()([y, L.Conv2D(w, 1, activation="sigmoid")(gate)])))
        x = L.ReLU()(L.Add()([norm(L.Conv2D(w, 1, stride, use_bias=False)(x)) if x.shape != y.shape else x, y]))
    return K.Model(i, L.Dense(20)(L.GlobalAveragePooling2D()(x))), images(64)


def tcn(K, L):
    i = x = K.Input((200, 16))
    for d in (1, 2, 4):
        y = L.LayerNormalization()(L.Conv1D(32, 3, padding="causal", dilation_rate=d, activation="relu")(x))
        x = L.ReLU()(L.Add()([x if x.shape[-1] == 32 else L.Conv1D(32, 1)(x), L.Conv1D(32, 3, padding="causal", dilation_rate=d)(y)]))
    return K.Model(i, L.Dense(12, activation="softmax")(L.GlobalAveragePooling1D()(x))), numbers(200, 16)


def recurrent(layer, **options):
    def make(K, L):
        i = K.Input((20, 12))
        inner = getattr(L, layer)(24, return_sequences=layer == "LSTM", **options)
        x = L.Bidirectional(inner)(i) if layer == "LSTM" and not options else inner(i)
        return K.Model(i, L.Dense(5, activation="softmax")(x)), numbers(20, 12)
    return make


def transformer(K, L):
    i = K.Input((16,), dtype="int32")
    x = L.Embedding(100, 32)(i)
    for _ in range(2):
        x = L.LayerNormalization()(x + L.MultiHeadAttention(4, 8)(x, x))
        x = L.LayerNormalization()(x + L.Dense(32)(L.Dense(64, activation="gelu")(x)))
    return K.Model(i, L.Dense(3)(L.GlobalAveragePooling1D()(x))), rng.integers(0, 100, (CALIBRATE + UNSEEN, 16)).astype("int32")


def autoencoder(K, L):
    i = K.Input((32, 32, 1))
    x = L.LeakyReLU()(L.Conv2D(16, 3, 2, "same")(i))
    x = L.Dense(16)(L.Flatten()(L.Conv2D(32, 3, 2, "same", activation="selu")(x)))
    x = L.Conv2DTranspose(16, 3, 2, "same", activation="elu")(L.Reshape((8, 8, 32))(L.Dense(8 * 8 * 32)(x)))
    return K.Model(i, L.Conv2DTranspose(1, 4, 2, "same", activation="hard_sigmoid")(x)), images(32, 1)


def masked(K, L):
    """Tokens of which 0 is none: attention and a recurrent layer leave those out."""
    i = K.Input((16,), dtype="int32")
    x = L.Embedding(60, 24, mask_zero=True)(i)
    x = L.LayerNormalization()(x + L.MultiHeadAttention(3, 8)(x, x))
    x = L.Bidirectional(L.GRU(16, return_sequences=True))(x)
    x = L.Bidirectional(L.LSTM(16))(x)
    words = rng.integers(1, 60, (CALIBRATE + UNSEEN, 16)) * (np.arange(16) < rng.integers(5, 17, (CALIBRATE + UNSEEN, 1)))
    return K.Model(i, L.Dense(6)(x)), words.astype("int32")


def decoder(K, L):
    """Six tokens by a loop: each is the likeliest after those before and a memory of numbers; the logits of the last step."""
    import tensorflow as tf
    tokens, memory = K.Input((8,), dtype="int32"), K.Input((10, 32))
    x = L.Embedding(40, 32)(tokens) + L.Embedding(8, 32)(np.arange(8)[None])
    x = L.LayerNormalization()(x + L.MultiHeadAttention(4, 8)(x, x, use_causal_mask=True))
    x = L.LayerNormalization()(x + L.MultiHeadAttention(4, 8)(x, memory))
    x = L.LayerNormalization()(x + L.Dense(32)(L.Dense(64, activation="gelu")(x)))
    step = K.Model([tokens, memory], L.Dense(40)(x))

    class Loop(L.Layer):
        def __init__(self):
            super().__init__()
            self.step = step

        def call(self, memory):
            def body(i, tokens, _):
                logits = self.step([tokens, memory])[:, i]
                best = tf.argmax(logits, -1, output_type=tf.int32)
                return i + 1, tf.where(tf.range(8) == i + 1, best[:, None], tokens), logits
            n = tf.shape(memory)[0]
            return tf.while_loop(lambda i, *_: i < 6, body, (0, tf.zeros((n, 8), tf.int32), tf.zeros((n, 40))))[2]

        def compute_output_shape(self, shape):
            return shape[0], 40
    i = K.Input((10, 12))
    return K.Model(i, Loop()(L.Dense(32)(i))), numbers(10, 12)


def vit(K, L):
    """Patches, a token of the class and places, two blocks that normalize first."""
    class Tokens(L.Layer):
        def build(self, shape):
            self.token = self.add_weight(shape=(1, 1, shape[-1]), initializer="random_normal", name="token")
            self.places = self.add_weight(shape=(1, shape[1] + 1, shape[-1]), initializer="random_normal", name="places")

        def call(self, x):
            import tensorflow as tf
            return tf.concat([tf.repeat(self.token, tf.shape(x)[0], 0), x], 1) + self.places

        def compute_output_shape(self, shape):
            return shape[0], shape[1] + 1, shape[2]
    i = K.Input((32, 32, 3))
    x = Tokens()(L.Reshape((16, 48))(L.Conv2D(48, 8, 8)(i)))
    for _ in range(2):
        y = L.LayerNormalization(epsilon=1e-6)(x)
        x = x + L.MultiHeadAttention(4, 12)(y, y)
        x = x + L.Dense(48)(L.Dense(96, activation="gelu")(L.LayerNormalization(epsilon=1e-6)(x)))
    return K.Model(i, L.Dense(20)(L.LayerNormalization(epsilon=1e-6)(x)[:, 0])), images(32)


def unet_nested(K, L):
    """U-Net++: each step up reads all that were made at its size."""
    def block(x, w):
        for _ in range(2):
            x = L.ReLU()(L.BatchNormalization()(L.Conv2D(w, 3, padding="same", use_bias=False)(x)))
        return x
    i = K.Input((48, 48, 3))
    widths = (12, 24, 40)
    columns = [[block(i, widths[0])]]
    for w in widths[1:]:
        columns.append([block(L.MaxPool2D()(columns[-1][0]), w)])
    for depth in range(1, 3):
        for k in range(3 - depth):
            up = L.UpSampling2D(interpolation="bilinear")(columns[k + 1][depth - 1])
            columns[k].append(block(L.Concatenate()(columns[k] + [up]), widths[k]))
    return K.Model(i, L.Average()([L.Conv2D(3, 1, activation="sigmoid")(x) for x in columns[0][1:]])), images(48)


def crnn(K, L):
    """Text of an image: convolutions, then a recurrent layer over its columns."""
    i = x = K.Input((32, 64, 1))
    for w, pool in ((16, (2, 2)), (32, (2, 2)), (48, (4, 1))):
        x = L.MaxPool2D(pool)(L.ReLU()(L.BatchNormalization()(L.Conv2D(w, 3, padding="same")(x))))
    x = L.Reshape((16, 96))(L.Permute((2, 1, 3))(x))
    x = L.Bidirectional(L.GRU(24, return_sequences=True))(x)
    wide = images(64, 1)
    return K.Model(i, L.Dense(27, activation="softmax")(x)), wide[:, :32]


def conformer(K, L):
    """Half steps of dense layers around attention and a gated convolution over time."""
    swish = K.activations.swish
    half = lambda x: x + 0.5 * L.Dense(32)(L.Dense(96, activation=swish)(L.LayerNormalization()(x)))
    i = K.Input((60, 20))
    x = L.Dense(32)(i)
    for _ in range(2):
        x = half(x)
        y = L.LayerNormalization()(x)
        x = x + L.MultiHeadAttention(4, 8)(y, y)
        y = L.Conv1D(64, 1)(L.LayerNormalization()(x))
        y = L.DepthwiseConv1D(7, padding="same")(y[..., :32] * K.ops.sigmoid(y[..., 32:]))
        x = x + L.Conv1D(32, 1)(L.Activation(swish)(L.BatchNormalization()(y)))
        x = L.LayerNormalization()(half(x))
    return K.Model(i, L.Dense(12)(x)), numbers(60, 20)


def vae(K, L):
    """An encoder of means and deviations, a sample of settled noise, a decoder."""
    i = K.Input((32, 32, 1))
    x = L.Conv2D(24, 3, 2, "same", activation="relu")(L.Conv2D(12, 3, 2, "same", activation="relu")(i))
    x = L.Dense(32, activation="relu")(L.Flatten()(x))
    z = L.Dense(8)(x) + K.ops.exp(0.5 * L.Dense(8)(x)) * rng.normal(size=(1, 8)).astype("f")
    x = L.Reshape((8, 8, 16))(L.Dense(8 * 8 * 16, activation="relu")(z))
    x = L.Conv2DTranspose(12, 3, 2, "same", activation="relu")(L.Conv2DTranspose(16, 3, 2, "same", activation="relu")(x))
    return K.Model(i, L.Conv2D(1, 3, padding="same", activation="sigmoid")(x)), images(32, 1)


MODELS = {"mobilenet_v3": application("MobileNetV3Small", 96, alpha=0.75, include_preprocessing=False), "densenet": application("DenseNet121", 64),
          "resnet50_v2": application("ResNet50V2", 64), "xception": application("Xception", 80), "unet": unet(None), "unet_bilinear": unet("bilinear"),
          "unet_nearest": unet("nearest"), "regnet": regnet, "tcn": tcn, "gru": recurrent("GRU"), "gru_unrolled": recurrent("GRU", unroll=True),
          "bilstm": recurrent("LSTM"), "transformer": transformer, "autoencoder": autoencoder,
          "inception_v3": application("InceptionV3", 80), "convnext": application("ConvNeXtTiny", 64, include_preprocessing=False),
          "nasnet": application("NASNetMobile", 64), "vgg16": application("VGG16", 64),
          "efficientnet_v2": application("EfficientNetV2B0", 64, include_preprocessing=False), "masked": masked, "decoder": decoder,
          "vit": vit, "unet_nested": unet_nested, "crnn": crnn, "conformer": conformer, "vae": vae}
