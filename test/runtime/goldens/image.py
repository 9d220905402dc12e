import base64

import numpy as np
import tensorflow as tf


def bmp(pixels):
    height, width, channels = pixels.shape
    stride = (channels * width + 3) // 4 * 4
    body = b''.join((pixels[y, :, ::-1] if channels == 3 else pixels[y]).tobytes().ljust(stride, b'\0') for y in range(height - 1, -1, -1))
    le = lambda v, n: int(v).to_bytes(n, 'little')
    return (b'BM' + le(54 + len(body), 4) + le(0, 4) + le(54, 4) + le(40, 4) + le(width, 4) + le(height, 4) + le(1, 2) +
            le(channels * 8, 2) + le(0, 24) + body)


# 11 x 9 pixels in CMYK without Adobe's marker, in CMYK with it, in YCCK
INKS = [base64.b64decode(s) for s in (
    '/9j/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk//wAAUCAAJAAsEQxEATREAWREA'
    'SxEA/8QAGAABAQEBAQAAAAAAAAAAAAAABgcABAX/xAAmEAABAQQLAQEAAAAAAAAAAAAAAgMEBXEGFiEiIzM0QUJjoTEy/9oADgRDAE0AWQBLAAA/ADdFuB41'
    'UevwNwuG/LoqjDz+rSmO2nRI1UevwTM4bhpu7BFq84qrdyZ0W4FFOWF7CCMcimO2nRIwmZ5aZBFrmqmf/9k=',
    '/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwANCQoLCggNCwoLDg4NDxMgFRMSEhMnHB4XIC4pMTAuKS0sMzpKPjM2RjcsLUBXQUZMTlJTUjI+WmFaUGBKUVJP/8AA'
    'FAgACQALBEMRAE0RAFkRAEsRAP/EABgAAQEBAQEAAAAAAAAAAAAAAAYHAAQF/8QAJhAAAQEECwEBAAAAAAAAAAAAAAIDBAVxBhYhIiMzNEFCY6ExMv/aAA4E'
    'QwBNAFkASwAAPwA3RbgeNVHr8DcLhvy6Kow8/q0pjtp0SNVHr8EzOG4abuwRavOKq3cmdFuBRTlhewgjHIpjtp0SMJmeWmQRa5qpn//Z',
    '/9j/7gAOQWRvYmUAZAAAAAAC/9sAQwANCQoLCggNCwoLDg4NDxMgFRMSEhMnHB4XIC4pMTAuKS0sMzpKPjM2RjcsLUBXQUZMTlJTUjI+WmFaUGBKUVJP/9sA'
    'QwEODg4TERMmFRUmTzUtNU9PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09P/8AAFAgACQALBAEiAAIRAQMRAQQiAP/E'
    'ABUAAQEAAAAAAAAAAAAAAAAAAAUG/8QAIhAAAQMDAwUAAAAAAAAAAAAAAAIEBQEDIiEyQSMxM0Jx/8QAFQEBAQAAAAAAAAAAAAAAAAAAAgP/xAAZEQACAwEA'
    'AAAAAAAAAAAAAAAAAgMFERL/2gAOBAEAAhEDEQQAAD8AdfTvfMEXO51zDn3IIvfUq8S6Oyr4uyqmHO7Ukbrnqq15KCY9iRu+VX0//9k=')]


def gif(frames, canvas=(9, 7), colors=None, end=b'\x3b'):
    """Frames are (indices [h, w], left, top, dict(transparent, colors, interlaced, disposal)); codes come uncompressed: a clear before each."""
    le = lambda v: int(v).to_bytes(2, 'little')
    table = lambda c: np.asarray(c, np.uint8).tobytes()
    out = b'GIF89a' + le(canvas[0]) + le(canvas[1]) + bytes([0x80 | 2 if colors is not None else 0, 0, 0])
    out += table(colors) if colors is not None else b''
    for indices, left, top, options in frames:
        if 'transparent' in options or 'disposal' in options:
            flags = options.get('disposal', 0) << 2 | ('transparent' in options)
            out += b'\x21\xf9\x04' + bytes([flags]) + le(10) + bytes([options.get('transparent', 0)]) + b'\0'
        out += b'\x21\xfe\x03abc\0' if options.get('comment') else b''
        h, w = indices.shape
        own = options.get('colors')
        out += b'\x2c' + le(left) + le(top) + le(w) + le(h)
        out += bytes([(0x80 | 2 if own is not None else 0) | (0x40 if options.get('interlaced') else 0)])
        out += table(own) if own is not None else b''
        rows = list(range(h))
        if options.get('interlaced'):
            rows = [y for first, step in [(0, 8), (4, 8), (2, 4), (1, 2)] for y in range(first, h, step)]
        bits = ''.join(format(c, '04b')[::-1] for v in indices[rows].reshape(-1) for c in (8, int(v))) + format(9, '04b')[::-1]
        bits += '0' * (-len(bits) % 8)
        data = bytes(int(bits[i:i + 8][::-1], 2) for i in range(0, len(bits), 8))
        out += b'\x03' + b''.join(bytes([len(data[i:i + 255])]) + data[i:i + 255] for i in range(0, len(data), 255)) + b'\0'
    return out + end


def jpegs(case, rng):
    y, x = np.mgrid[0:27, 0:21]
    smooth = np.stack([x * 5, y * 6, (x + y) * 3], -1).astype(np.uint8)
    noisy = rng.randint(0, 256, [27, 21, 3]).astype(np.uint8)
    plain = tf.io.encode_jpeg(smooth, quality=80).numpy()
    full = tf.io.encode_jpeg(noisy, quality=70, chroma_downsampling=False).numpy()
    steps = tf.io.encode_jpeg(noisy, quality=60, progressive=True).numpy()
    gray = tf.io.encode_jpeg(noisy[:, :, :1]).numpy()
    for data in [plain, full, steps, gray]:
        for channels in [0, 1, 3]:
            case('DecodeJpeg', contents=data, channels=channels)
        case('ExtractJpegShape', contents=data)
        case('DecodeJpeg', contents=data, dct_method='INTEGER_ACCURATE')
        case('DecodeJpeg', contents=data, fancy_upscaling=False, dct_method='INTEGER_FAST')
        for ratio in [2, 4, 8]:
            case('DecodeJpeg', contents=data, ratio=ratio)
        for window in [[0, 0, 27, 21], [3, 5, 20, 7], [16, 8, 8, 8], [26, 20, 1, 1], [20, 1, 7, 20]]:
            case('DecodeAndCropJpeg', contents=data, crop_window=window)
        for window in [[0, 0, 28, 21], [-1, 0, 4, 4], [0, 0, 0, 4], [0, 16, 4, 6]]:
            case('DecodeAndCropJpeg', contents=data, crop_window=window)
        case('DecodeAndCropJpeg', contents=data, crop_window=[1, 2, 9, 8], ratio=2, channels=1)
        size = len(data)
        for part in [2, 20, 100, size // 2, size * 3 // 4, size - 12, size - 2, size - 1]:
            case('DecodeJpeg', contents=data[:part])
            case('DecodeJpeg', contents=data[:part], try_recover_truncated=True)
            case('DecodeJpeg', contents=data[:part], acceptable_fraction=0.3)
            case('DecodeAndCropJpeg', contents=data[:part], crop_window=[2, 3, 20, 11], try_recover_truncated=True)
            case('DecodeAndCropJpeg', contents=data[:part], crop_window=[2, 3, 9, 11])
        for dtype in ['uint8', 'uint16', 'float32'] if data is gray else ['uint8']:
            case('DecodeImage', contents=data, dtype=dtype)
    case('DecodePng', contents=plain, dtype='uint16')
    case('DecodePng', contents=plain, channels=1)
    case('DecodeGif', contents=plain)
    case('DecodeBmp', contents=plain)
    case('DecodeJpeg', contents=plain, channels=4)
    case('DecodeImage', contents=plain, channels=4)
    case('ExtractJpegShape', contents=plain, output_type=tf.int64)
    for damage in ['', 'rubbish', b'\xff\xd8\xff', b'\xff\xd8\xff\xe0' + bytes(90), plain[:-90] + bytes(50) + plain[-40:]]:
        for op in ['DecodeJpeg', 'DecodeImage', 'DecodeGif', 'ExtractJpegShape']:
            case(op, contents=damage)
        case('DecodeAndCropJpeg', contents=damage, crop_window=[0, 0, 1, 1])
    for data in INKS:
        case('DecodeJpeg', contents=data)
        case('DecodeJpeg', contents=data, channels=3, dct_method='INTEGER_ACCURATE')
        case('DecodeJpeg', contents=data, channels=1)
        case('DecodeAndCropJpeg', contents=data, crop_window=[1, 9, 3, 2])
        case('ExtractJpegShape', contents=data)


def gifs(case, rng):
    colors, other = rng.randint(0, 256, [2, 8, 3])
    indices = lambda h, w: rng.randint(0, 8, [h, w])
    still = gif([(indices(7, 9), 0, 0, {})], colors=colors)
    moving = gif([(indices(7, 9), 0, 0, {'disposal': 1}), (indices(3, 4), 2, 3, {'transparent': 5, 'disposal': 2}),
                  (indices(4, 3), 0, 1, {'colors': other, 'comment': True}), (indices(7, 9), 0, 0, {'transparent': 1, 'interlaced': True})],
                 colors=colors)
    for data in [still, moving, gif([(indices(3, 4), 2, 3, {'transparent': 5}), (indices(7, 2), 7, 5, {})], colors=colors),
                 gif([(indices(3, 4), 1, 1, {})], canvas=(30, 40), colors=colors), gif([(indices(2, 2), 0, 0, {})]),
                 gif([(indices(3, 4), 0, 0, {}), (indices(2, 2), 0, 0, {'colors': other})], canvas=(2, 2), colors=colors),
                 gif([(indices(2, 2), 0, 0, {'colors': other})]), gif([], colors=colors), gif([(indices(4, 4), 0, 0, {})], colors=colors, end=b''),
                 gif([(indices(4, 4), 0, 0, {}), (indices(0, 4), 0, 0, {})], colors=colors),
                 gif([(indices(17, 20), 0, 0, {'interlaced': True})], canvas=(20, 17), colors=colors)]:
        case('DecodeGif', contents=data)
        for expand in [True, False]:
            for dtype in ['uint8', 'uint16', 'float32']:
                case('DecodeImage', contents=data, expand_animations=expand, dtype=dtype)
        for op in ['DecodeJpeg', 'DecodePng', 'DecodeBmp']:
            case(op, contents=data)
        case('DecodeAndCropJpeg', contents=data, crop_window=[0, 0, 1, 1])
    for channels in [1, 3, 4]:
        case('DecodeImage', contents=still, channels=channels)
        case('DecodeJpeg', contents=still, channels=channels)
    for part in [4, 6, 12, 20, 40, 60, 100, 130, 150, 180, 200]:
        case('DecodeGif', contents=moving[:part])
        case('DecodeImage', contents=moving[:part], expand_animations=False)


def suppression(case):
    f, h = np.float32, np.float16
    boxes = f([[0, 0, 1, 1], [0, .1, 1, 1.1], [0, -.1, 1, .9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101], [1, 11, 0, 10], [3, 3, 3, 4]])
    scores = f([.9, .75, .6, .95, .5, .3, .95, .4])
    rng = np.random.RandomState(3)
    many = rng.rand(60, 4).astype(f)
    for b, s in [(boxes, scores), (many, rng.rand(60).astype(f)), (boxes.astype(h), scores.astype(h)), (many.astype(h), rng.rand(60).astype(h)),
                 (boxes, f([np.nan, 1, np.inf, -np.inf, np.nan, 2, 0, -1])), (boxes * f(np.nan), scores), (boxes * f(3e38), scores),
                 (boxes[:0], scores[:0])]:
        t = b.dtype.type
        for sigma, least, iou in [(0, 0, .5), (.5, 0, .5), (.1, .3, 0), (0, -1, 1), (.5, -np.inf, .5), (np.inf, .2, .5), (1e-8, -.5, .2)]:
            for most, pad in [(100, False), (6, True), (0, True)]:
                case('NonMaxSuppressionV5', boxes=b, scores=s, max_output_size=most, iou_threshold=t(iou), score_threshold=t(least),
                     soft_nms_sigma=t(sigma), pad_to_max_output_size=pad)
    good = dict(boxes=boxes, scores=scores, max_output_size=3, iou_threshold=f(.5), score_threshold=f(0), soft_nms_sigma=f(.5))
    for wrong in [dict(max_output_size=-1), dict(iou_threshold=f(1.5)), dict(iou_threshold=f(np.nan)), dict(soft_nms_sigma=f(-1)),
                  dict(soft_nms_sigma=f(np.nan)), dict(score_threshold=f(np.nan))]:
        case('NonMaxSuppressionV5', **dict(good, **wrong))
    overlaps = rng.rand(8, 8).astype(f)
    odd = overlaps.copy()
    odd[2] = [np.nan, np.inf, -np.inf, 0, 1, 0, 0, 0]
    for o in [overlaps, odd]:
        for threshold in [.3, .7, 5, -1, np.nan, np.inf]:
            for least in [0, .5]:
                case('NonMaxSuppressionWithOverlaps', overlaps=o, scores=scores, max_output_size=5, overlap_threshold=f(threshold),
                     score_threshold=f(least))
    case('NonMaxSuppressionWithOverlaps', overlaps=overlaps, scores=scores, max_output_size=-5, overlap_threshold=f(0), score_threshold=f(0))
    case('NonMaxSuppressionWithOverlaps', overlaps=overlaps[:0, :0], scores=scores[:0], max_output_size=5, overlap_threshold=f(0),
         score_threshold=f(0))


def windows(case):
    f = np.float32
    boxes = f([[[.1, .2, .5, .6], [.3, .3, .9, .95]]])
    size = np.int32([100, 120, 3])
    for seed in range(1, 6):
        case('SampleDistortedBoundingBox', image_size=size, bounding_boxes=boxes, seed=seed, seed2=4, min_object_covered=.4)
        case('SampleDistortedBoundingBoxV2', image_size=size, bounding_boxes=boxes, seed=seed, seed2=4, min_object_covered=f(.9), max_attempts=seed)
        for area, ratio in [((.05, 1.), (.75, 1.33)), ((.3, .4), (2., 1.)), ((.9, 1.), (.5, .6)), ((1e-4, .01), (.1, 9.))]:
            case('StatelessSampleDistortedBoundingBox', image_size=size, bounding_boxes=boxes, seed=[seed, 9], min_object_covered=f(.1),
                 area_range=area, aspect_ratio_range=ratio)
    case('SampleDistortedBoundingBox', image_size=size, bounding_boxes=boxes, seed=1, min_object_covered=-1)
    good = dict(image_size=size, bounding_boxes=boxes, seed=[3, 4], min_object_covered=f(.5))
    for t in [np.uint8, np.int8, np.int16, np.int64]:
        case('StatelessSampleDistortedBoundingBox', **dict(good, image_size=t([100, 120, 3])))
    for u in [dict(image_size=[0, 120, 3]), dict(image_size=[0, 0, 0]), dict(image_size=[-5, 5, 3]), dict(image_size=np.int64([2**40, 2, 3])),
              dict(image_size=[1, 1, 3]), dict(image_size=np.int64([30000, 60000, 3])), dict(bounding_boxes=boxes * 3), dict(bounding_boxes=-boxes),
              dict(bounding_boxes=boxes * f(np.nan)), dict(bounding_boxes=boxes[:, :, ::-1]), dict(bounding_boxes=np.concatenate([boxes, boxes])),
              dict(bounding_boxes=boxes[:, :0]), dict(bounding_boxes=boxes[:, :0], use_image_if_no_bounding_boxes=True),
              dict(min_object_covered=f(-1)), dict(min_object_covered=f(2)), dict(min_object_covered=f(np.nan)), dict(min_object_covered=f(0)),
              dict(area_range=[.5, .1]), dict(area_range=[0., .5]), dict(area_range=[.5, 1.5]), dict(area_range=[.5]),
              dict(aspect_ratio_range=[-1., 1.]), dict(aspect_ratio_range=[1e30, 1e31]), dict(aspect_ratio_range=[1e-30, 1e31]),
              dict(aspect_ratio_range=[1e-20, 1e-19]), dict(aspect_ratio_range=[1., 3e38], area_range=[1e-30, 1.]),
              dict(aspect_ratio_range=[np.nan, 1.]), dict(aspect_ratio_range=[1., np.inf]), dict(max_attempts=0), dict(max_attempts=-1)]:
        case('StatelessSampleDistortedBoundingBox', **dict(good, **u))


def cases(case):
    rng = np.random.RandomState(2)
    suppression(case)
    windows(case)
    for channels in [1, 2, 3, 4]:
        for dtype in [np.uint8, np.uint16]:
            x = rng.randint(0, np.iinfo(dtype).max, [5, 7, channels]).astype(dtype)
            png = tf.io.encode_png(x).numpy()
            for want in [0, 1, 3, 4]:
                for t in ['uint8', 'uint16']:
                    if want != 1 or channels < 3:  # TensorFlow's own weights of colours differ by a rounding
                        case('DecodePng', contents=png, channels=want, dtype=t)
    x = rng.randint(0, 255, [5, 7, 3]).astype(np.uint8)
    for channels in [0, 3, 1]:
        case('DecodeBmp', contents=bmp(x), channels=channels)
    case('DecodeBmp', contents=bmp(x[:, :, :1]), channels=0)
    case('DecodeBmp', contents=bmp(x)[:90], channels=0)
    png = tf.io.encode_png(x).numpy()
    case('DecodePng', contents=png[:60])
    case('DecodePng', contents='rubbish')
    case('DecodeImage', contents=png)
    for dtype in ['uint8', 'uint16', 'float32']:
        case('DecodeImage', contents=png, dtype=dtype)
        case('DecodeImage', contents=bmp(x), dtype=dtype)
    case('DecodeGif', contents=png)
    case('DecodeJpeg', contents=png)
    case('DecodeJpeg', contents=png, channels=4)
    case('DecodeJpeg', contents=bmp(x))
    case('DecodeBmp', contents=png)
    case('DecodeAndCropJpeg', contents=png, crop_window=[0, 0, 1, 1])
    case('DecodeBmp', contents=bmp(x) + b'x')
    for channels in [0, 3, 4]:
        for own in [1, 3, 4]:
            y = rng.randint(0, 256, [5, 7, own]).astype(np.uint8)
            case('DecodeBmp', contents=bmp(y), channels=channels)
    jpegs(case, rng)
    gifs(case, rng)
    # what encoders refuse; what they write follows from the libraries' versions, and is tested by decoding it
    for shape in [[4, 4, 2], [0, 4, 3], [4, 0, 1], [4, 4, 5]]:
        case('EncodeJpeg', image=np.zeros(shape, np.uint8))
        case('EncodeJpegVariableQuality', images=np.zeros(shape, np.uint8), quality=50)
    for shape in [[4, 4, 5], [4, 4, 0]]:
        case('EncodePng', image=np.zeros(shape, np.uint8))
    case('EncodePng', image=np.zeros([2, 0, 4, 4, 3], np.uint16))
    case('EncodePng', image=np.zeros([4, 4, 3], np.uint16), compression=10)
    case('EncodeJpeg', image=np.zeros([4, 4, 3], np.uint8), format='grayscale')
    case('EncodeJpeg', image=np.zeros([4, 4, 1], np.uint8), format='rgb')
    case('EncodeJpeg', image=np.zeros([4, 4, 3], np.uint8), quality=101)
    case('EncodeJpeg', image=np.zeros([4, 4, 3], np.uint8), xmp_metadata='x' * 70000)
    case('EncodeJpegVariableQuality', images=np.zeros([4, 4, 3], np.uint8), quality=-1)
    case('EncodeJpegVariableQuality', images=np.zeros([4, 4, 3], np.uint8), quality=[1])
    boxes = rng.rand(2, 8, 1, 4).astype(np.float32)
    boxes[..., 2:] += boxes[..., :2]
    for per_class in [False, True]:
        for clip in [False, True]:
            for q in [1, 3]:
                case('CombinedNonMaxSuppression', boxes=np.repeat(boxes, q, 2), scores=rng.rand(2, 8, 3).astype(np.float32),
                     max_output_size_per_class=3, max_total_size=5 if q == 1 else 20, iou_threshold=np.float32(0.4),
                     score_threshold=np.float32(0.2), pad_per_class=per_class, clip_boxes=clip)
    generator = np.random.default_rng(5)
    maps = np.asarray([[1, 0, 0, 0, 1, 0, 0, 0], [0.8, -0.55, 2.1, 0.6, 0.75, -1.3, 0, 0], [-1, 0, 20.3, 0, 1.7, -9.1, 0.01, -0.02],
                       [0.3, 0.1, -30, 0.2, 2.3, 25, -0.125, 0]], np.float32)
    for t in ['uint8', 'int32', 'int64', 'float16', 'bfloat16', 'float32', 'float64']:
        images = generator.uniform(0, 200, [4, 5, 6, 2]).astype(tf.as_dtype(t).as_numpy_dtype)
        for how in ['NEAREST', 'BILINEAR']:
            for mode in ['CONSTANT', 'NEAREST', 'REFLECT', 'WRAP'] if t == 'float32' else ['CONSTANT', 'REFLECT']:
                kw = dict(interpolation=how, fill_mode=mode, tolerance=1e-3 if t == 'float32' else None)
                case('ImageProjectiveTransformV3', images=images, transforms=maps, output_shape=[7, 5], fill_value=np.float32(7), **kw)
            case('ImageProjectiveTransformV2', images=images[:, :, :, :1], transforms=maps[1:2], output_shape=[4, 9], interpolation=how)
    one = np.ones([2, 1, 1, 3], np.float32)
    for mode in ['CONSTANT', 'NEAREST', 'REFLECT', 'WRAP']:
        case('ImageProjectiveTransformV2', images=one, transforms=maps[2:3], output_shape=[3, 3], interpolation='BILINEAR', fill_mode=mode)
    for shape in [[0, 3], [3, -1]]:
        case('ImageProjectiveTransformV2', images=one, transforms=maps[:1], output_shape=shape, interpolation='NEAREST')
    case('ImageProjectiveTransformV2', images=one, transforms=maps[:3], output_shape=[3, 3], interpolation='NEAREST')
    case('ImageProjectiveTransformV2', images=one, transforms=maps[:1, :7], output_shape=[3, 3], interpolation='NEAREST')
