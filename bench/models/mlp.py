"""Dense layers: classifiers, recommenders, an autoencoder, points."""
import tensorflow as tf

from models.common import L, dense


def mlp_wide_b1(net):
    """One row through dense layers of 512, 1024, 1024 and 128 units."""
    x = net.input(1, 512)
    for units in (1024, 1024, 128):
        x = dense(x, units, "relu")
    return tf.nn.softmax(dense(x, 10))


def mlp_b128(net):
    """128 rows through dense layers of 784, 512, 512 and 256 units."""
    x = net.input(128, 784)
    for units in (512, 512, 256):
        x = dense(x, units, "relu")
    return tf.nn.softmax(dense(x, 10))


def tf1_mlp_bn(net):
    """32 rows, dense layers of 784, 256 and 256 units with batch norms in single operations."""
    x = net.input(32, 784)
    for layer in ("fc1", "fc2"):
        x = net.dense(x, 256, lambda y: tf.nn.relu(net.norm(y)), layer)
    return tf.nn.softmax(net.dense(x, 10, tf.identity, "logits"))


def vae_dense(net):
    """Variational autoencoder, 64 rows of 784, 32 latent variables whose noise is an input."""
    x, noise = net.input(64, 784, name="pixels"), net.input(64, 32, name="noise")
    h = dense(dense(x, 512, "relu"), 256, "relu")
    mean, log_variance = dense(h, 32), dense(h, 32)
    z = mean + tf.exp(0.5 * log_variance) * noise
    return {"pixels": dense(dense(dense(z, 256, "relu"), 512, "relu"), 784, "sigmoid"), "mean": mean, "log_variance": log_variance}


def dlrm(net):
    """DLRM: 128 rows, 13 numbers, 8 tables of 10,000 x 16, products of all pairs of features."""
    numbers, ids = net.input(128, 13, name="numbers"), net.tokens(128, 8, vocab=10000, name="ids")
    x = numbers
    for units in (512, 256, 64, 16):
        x = dense(x, units, "relu")
    embedded = [L.Embedding(10000, 16, embeddings_initializer=tf.keras.initializers.RandomNormal(0, 0.5))(ids[:, i]) for i in range(8)]
    features = tf.stack([x] + embedded, 1)
    products = tf.reshape(tf.matmul(features, features, transpose_b=True), [128, 81])
    pairs = tf.gather(products, [9 * i + j for i in range(9) for j in range(i)], axis=1)
    x = tf.concat([x, pairs], 1)
    for units in (512, 256):
        x = dense(x, units, "relu")
    return dense(x, 1, "sigmoid")


def dcn(net):
    """Deep & Cross v2: 256 rows, 13 numbers, 26 features of a table of 10,000 x 16, three cross layers beside 1024-512."""
    numbers, ids = net.input(256, 13, name="numbers"), net.tokens(256, 26, vocab=10000, name="ids")
    embedded = L.Embedding(10000, 16, embeddings_initializer=tf.keras.initializers.RandomNormal(0, 0.5))(ids)
    x0 = tf.concat([numbers, tf.reshape(embedded, [256, 26 * 16])], 1)
    cross = x0
    for _ in range(3):
        cross = x0 * dense(cross, x0.shape[-1]) + cross
    deep = dense(dense(x0, 1024, "relu"), 512, "relu")
    return dense(tf.concat([cross, deep], 1), 1, "sigmoid")


def pointnet(net):
    """PointNet classifier: 1024 points, transforms of points and of 64 features, 40 classes."""
    def shared(x, *widths):
        for c in widths:
            x = tf.nn.relu(L.BatchNormalization()(L.Dense(c, kernel_initializer="he_normal")(x)))
        return x

    def transform(x, k):
        y = tf.reduce_max(shared(x, 64, 128, 1024), 1)
        y = dense(dense(dense(y, 512, "relu"), 256, "relu"), k * k)
        return tf.matmul(x, tf.reshape(y, [1, k, k]) * 0.1 + tf.eye(k))
    x = shared(transform(net.input(1, 1024, 3, name="points"), 3), 64, 64)
    x = tf.reduce_max(shared(transform(x, 64), 64, 128, 1024), 1)
    return tf.nn.softmax(dense(dense(dense(x, 512, "relu"), 256, "relu"), 40))


def dgcnn(net):
    """DGCNN: 300 points twice, edges to the 12 nearest in two layers, 40 classes."""
    x, results = net.input(2, 300, 3, name="points"), []
    for units in (40, 72):
        square = tf.reduce_sum(x * x, -1)
        distance = square[:, :, None] - 2 * tf.matmul(x, x, transpose_b=True) + square[:, None]
        near = tf.gather(x, tf.math.top_k(-distance, 12)[1], batch_dims=1)
        own = tf.repeat(x[:, :, None], 12, 2)
        x = tf.reduce_max(dense(tf.concat([own, near - own], -1), units, "leaky"), 2)
        results.append(x)
    y = dense(tf.concat(results, -1), 200, "leaky")
    return dense(tf.concat([tf.reduce_max(y, 1), tf.reduce_mean(y, 1)], -1), 40)
