import numpy as np
import tensorflow as tf


def bmp(pixels):
    height, width, channels = pixels.shape
    stride = (channels * width + 3) // 4 * 4
    body = b''.join((pixels[y, :, ::-1] if channels == 3 else pixels[y]).tobytes().ljust(stride, b'\0') for y in range(height - 1, -1, -1))
    le = lambda v, n: int(v).to_bytes(n, 'little')
    return (b'BM' + le(54 + len(body), 4) + le(0, 4) + le(54, 4) + le(40, 4) + le(width, 4) + le(height, 4) + le(1, 2) +
            le(channels * 8, 2) + le(0, 24) + body)


def cases(case):
    rng = np.random.RandomState(2)
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
    case('DecodeImage', contents=bmp(x))
    boxes = rng.rand(2, 8, 1, 4).astype(np.float32)
    boxes[..., 2:] += boxes[..., :2]
    for per_class in [False, True]:
        for clip in [False, True]:
            for q in [1, 3]:
                case('CombinedNonMaxSuppression', boxes=np.repeat(boxes, q, 2), scores=rng.rand(2, 8, 3).astype(np.float32),
                     max_output_size_per_class=3, max_total_size=5 if q == 1 else 20, iou_threshold=np.float32(0.4),
                     score_threshold=np.float32(0.2), pad_per_class=per_class, clip_boxes=clip)
