"""Operations that new graphs no longer have, and those for sounds.

Recipes as in recipes.py. `producer` of a recipe is the version that its graph says: TensorFlow runs some of these in old graphs alone.
"""
import numpy as np
import tensorflow.compat.v1 as tf

from recipes import WIDE, Feeds, raw, recipe, values


def old(op, types, producer=2, label=""):
    """A recipe in a graph of the version that `producer` says; its case is called OP.LABEL.TYPE."""
    def add(build):
        def made(dtype):
            definition = tf.GraphDef()
            definition.versions.producer = producer
            definition.node.add(op="NoOp", name="version")
            tf.import_graph_def(definition, name="old")
            return build(dtype)
        made.__module__ = build.__module__
        if label:
            made.label = label
        return recipe(op, types)(made)
    return add


def labelled(op, types, label):
    def add(build):
        build.label = label
        return recipe(op, types)(build)
    return add


def lower(n, dtype, batch=()):
    x = values((*batch, n, n), "float64", n)
    return np.linalg.cholesky(x @ np.swapaxes(x, -1, -2) + n * np.eye(n)).astype(dtype)


for op_name in ("CholeskyGrad", "BatchCholeskyGrad"):
    @old(op_name, WIDE)
    def cholesky_grad(dtype, op=op_name):
        feeds, run = Feeds(), getattr(raw, op)
        return [{"feeds": feeds, "fetches": [run(l=feeds.add(lower(n, dtype, batch)), grad=feeds.add(values((*batch, n, n), dtype, 5)))
                                             for n, batch in ((1, ()), (4, ()), (7, (2, 3)))]}]


@old("MatrixExponential", ["float32", "complex128"])
def exponential(dtype):
    feeds = Feeds()
    fetches = [raw.MatrixExponential(input=feeds.add(values(shape, dtype, 3, -size, size)))
               for shape, size in (((1, 1), 1), ((3, 3), 0.1), ((4, 4), 2), ((2, 3, 5, 5), 1), ((3, 3), 6), ((0, 0), 1))]
    nilpotent = np.array([[0, 1, 2], [0, 0, 3], [0, 0, 0]], dtype)
    return [{"feeds": feeds, "fetches": fetches + [raw.MatrixExponential(input=feeds.add(np.stack([nilpotent, 0 * nilpotent])))]}]


@old("AdjustContrast", ["uint8", "int16", "float32", "float64"], producer=1)
def contrast(dtype):
    feeds = Feeds()
    images = feeds.add(values((2, 5, 4, 3), dtype, 7, 0, 100))
    scalar = lambda v: feeds.add(np.float32(v))
    return [{"feeds": feeds, "fetches": [raw.AdjustContrast(images=images, contrast_factor=scalar(by), min_value=scalar(low),
                                                            max_value=scalar(high))
                                         for by, low, high in ((2, 0, 100), (0.5, -1e9, 1e9), (-1, 40, 60))]}]


@old("QuantizeAndDequantize", WIDE)
def dequantize(dtype):
    feeds = Feeds()
    x = feeds.add(values((3, 7), dtype, 2))
    kinds = [dict(), dict(signed_input=False, num_bits=4), dict(range_given=True, input_min=-1, input_max=1.5),
             dict(range_given=True, input_min=0, input_max=1.5, signed_input=False, num_bits=3), dict(num_bits=16)]
    return [{"feeds": feeds, "fetches": [raw.QuantizeAndDequantize(input=x, **kind) for kind in kinds]}]


# TensorFlow reads the border of the first image for all of a batch: images come one by one here
@labelled("FusedPadConv2D", ["float32", "float16"], "modes")
def pad_conv(dtype):
    feeds, fetches = Feeds(), []
    x, w = feeds.add(values((1, 7, 6, 3), dtype, 1)), feeds.add(values((3, 2, 3, 4), dtype, 2))
    for mode in ("REFLECT", "SYMMETRIC"):
        for stride, padding in ((1, "VALID"), (2, "VALID"), (1, "SAME")):
            fetches.append(raw.FusedPadConv2D(input=x, paddings=[[0, 0], [2, 1], [0, 3], [0, 0]], filter=w, mode=mode,
                                              strides=[1, stride, stride, 1], padding=padding))
    return [{"feeds": feeds, "fetches": fetches}]


@labelled("FusedResizeAndPadConv2D", ["float32", "float64"], "modes")
def resize_pad_conv(dtype):
    feeds, fetches = Feeds(), []
    x, w = feeds.add(values((1, 7, 6, 3), dtype, 1)), feeds.add(values((3, 2, 3, 4), dtype, 2))
    for mode in ("REFLECT", "SYMMETRIC"):
        # a weight below half, at once behind the border, is finer than what is left of one in f32
        for size, corners in (((9, 4), False), ((5, 11), True), ((7, 6), False), ((19, 4), False)):
            fetches.append(raw.FusedResizeAndPadConv2D(input=x, size=size, paddings=[[0, 0], [2, 1], [0, 3], [0, 0]], filter=w, mode=mode,
                                                       strides=[1, 1, 1, 1], padding="VALID", resize_align_corners=corners))
    return [{"feeds": feeds, "fetches": fetches}]


def sound(samples, channels, seed=0):
    t = np.arange(samples)[:, None] / 8000
    tones = np.sin(2 * np.pi * t * (200 + 370 * np.arange(1, channels + 1))) + 0.3 * np.sin(2 * np.pi * 1733 * t)
    return (0.4 * tones + 0.05 * np.random.default_rng(seed).standard_normal(tones.shape)).astype(np.float32)


@labelled("AudioSpectrogram", ["float32"], "windows")
def spectrogram(dtype):
    feeds, fetches = Feeds(), []
    x = feeds.add(sound(300, 2))
    for window, stride, squared in ((100, 40, False), (64, 64, True), (2, 171, False), (300, 1, True), (301, 3, False)):
        fetches.append(raw.AudioSpectrogram(input=x, window_size=window, stride=stride, magnitude_squared=squared))
    return [{"feeds": feeds, "fetches": fetches}]


@labelled("Mfcc", ["float32"], "limits")
def mfcc(dtype):
    """The rate is a value that the run knows; the last is one where filters lie between frequencies."""
    feeds, fetches = Feeds(), []
    spectra = {n: raw.AudioSpectrogram(input=feeds.add(sound(4 * n, 2, n)), window_size=n, stride=n, magnitude_squared=True)
               for n in (512, 60)}
    rate = feeds.add(np.int32(8000))
    for n, attrs in ((512, {}), (512, dict(upper_frequency_limit=3000, lower_frequency_limit=100, filterbank_channel_count=20,
                                           dct_coefficient_count=20)),
                     (512, dict(lower_frequency_limit=0, dct_coefficient_count=1)),
                     (60, dict(filterbank_channel_count=12, dct_coefficient_count=12))):
        fetches.append(raw.Mfcc(spectrogram=spectra[n], sample_rate=rate, **attrs))
    fetches.append(raw.Mfcc(spectrogram=spectra[512], sample_rate=16000))
    return [{"feeds": feeds, "fetches": fetches}]


@old("TileGrad", ["float32", "int32"])
def tile_grad(dtype):
    feeds, fetches, expected = Feeds(), [], []
    for shape, multiples in (((6, 4, 3), (2, 1, 3)), ((5,), (1,)), ((4, 6), (4, 2))):
        x = feeds.add(values(shape, dtype, 1))
        fetches.append(raw.TileGrad(input=x, multiples=np.array(multiples, np.int32)))
        split = [n for m, size in zip(multiples, shape) for n in (m, size // m)]
        expected.append(raw.Sum(input=raw.Reshape(tensor=x, shape=split), axis=[2 * i for i in range(len(shape))]))
    return [{"feeds": feeds, "fetches": fetches, "expected": expected}]


for op_name in ("Conv2DBackpropInput", "Conv2DBackpropFilter"):
    @labelled(op_name + "V2", ["float32"], "sizes")
    def conv_grad(dtype, op=op_name):
        """The newer form takes a tensor for its shape alone."""
        feeds, fetches, expected = Feeds(), [], []
        x, w = feeds.add(values((2, 7, 6, 3), dtype, 1)), feeds.add(values((3, 2, 3, 4), dtype, 2))
        for window in (dict(strides=[1, 2, 1, 1], padding="SAME"), dict(strides=[1, 1, 1, 1], padding="VALID"),
                       dict(strides=[1, 2, 2, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 1, 2, 0, 1, 0, 0])):
            y = raw.Conv2D(input=x, filter=w, **window)
            if op == "Conv2DBackpropInput":
                expected.append(raw.Conv2DBackpropInput(input_sizes=[2, 7, 6, 3], filter=w, out_backprop=y, **window))
                fetches.append(raw.Conv2DBackpropInputV2(input=x, filter=w, out_backprop=y, **window))
            else:
                expected.append(raw.Conv2DBackpropFilter(input=x, filter_sizes=[3, 2, 3, 4], out_backprop=y, **window))
                fetches.append(raw.Conv2DBackpropFilterV2(input=x, filter=w, out_backprop=y, **window))
        return [{"feeds": feeds, "fetches": fetches, "expected": expected}]


@labelled("FFTND", ["complex64"], "axes")
def fourier(dtype):
    """All four of the family, against transforms of the last dimensions."""
    feeds, real = Feeds(), "float32" if dtype == "complex64" else "float64"
    z, x = feeds.add(values((2, 4, 3, 5), dtype, 1)), feeds.add(values((4, 6, 5), real, 2))
    half = raw.RFFT2D(input=x, fft_length=[6, 5], Tcomplex=dtype)
    over = raw.Transpose(x=x, perm=[1, 2, 0])
    fetches = [raw.FFTND(input=z, fft_length=[4, 3, 5], axes=[1, 2, 3]), raw.IFFTND(input=z, fft_length=[3, 5], axes=[2, -1]),
               raw.FFTND(input=z, fft_length=[2, 4, 3, 5], axes=[0, 1, 2, 3]),
               raw.RFFTND(input=x, fft_length=[6, 5], axes=[1, 2], Tcomplex=dtype),
               raw.RFFTND(input=x, fft_length=[3, 4], axes=[2, 0], Tcomplex=dtype),
               raw.IRFFTND(input=half, fft_length=[6, 5], axes=[1, 2], Treal=real),
               raw.IRFFTND(input=half, fft_length=[4], axes=[2], Treal=real)]
    swapped = raw.Transpose(x=raw.FFT3D(input=z), perm=[1, 2, 3, 0])
    expected = [raw.FFT3D(input=z), raw.IFFT2D(input=z), raw.Transpose(x=raw.FFT(input=swapped), perm=[3, 0, 1, 2]), half,
                raw.Transpose(x=raw.RFFT2D(input=over, fft_length=[3, 4], Tcomplex=dtype), perm=[2, 0, 1]),
                raw.IRFFT2D(input=half, fft_length=[6, 5], Treal=real), raw.IRFFT(input=half, fft_length=[4], Treal=real)]
    return [{"feeds": feeds, "fetches": fetches, "expected": expected}]


@labelled("DecodeWav", ["float32"], "speech")
def speech(dtype):
    """The front of a model that listens: the length is an attribute, the rate what the file says."""
    with tf.Graph().as_default(), tf.Session() as session:
        contents = session.run(raw.EncodeWav(audio=sound(700, 2), sample_rate=8000))
    feeds = Feeds()
    wav = raw.DecodeWav(contents=feeds.add(np.array(contents, object), tf.string), desired_channels=1, desired_samples=600)
    spectrum = raw.AudioSpectrogram(input=wav.audio, window_size=128, stride=100, magnitude_squared=True)
    coefficients = raw.Mfcc(spectrogram=spectrum, sample_rate=wav.sample_rate, filterbank_channel_count=20)
    return [{"feeds": feeds, "fetches": [wav.sample_rate, coefficients]}]
