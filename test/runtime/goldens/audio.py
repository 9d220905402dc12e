import struct

import numpy as np
import tensorflow as tf


def wav(samples, channels=1, rate=8000, bits=16, form=1, extra=b'', chunks=b'', header=None, moment=None, second=None, data=None):
    body = np.asarray(samples, '<i2').tobytes()
    moment = 2 * channels if moment is None else moment
    second = moment * rate if second is None else second
    form = struct.pack('<HHIIHH', form, channels, rate, second, moment, bits) + extra
    size = len(form) if header is None else header
    out = b'WAVEfmt ' + struct.pack('<I', size) + form + chunks + b'data' + struct.pack('<I', len(body) if data is None else data) + body
    return b'RIFF' + struct.pack('<I', len(out)) + out


def cases(case):
    samples = [0, 1, -1, 32767, -32768, 256, 300, -5, 12, 13]
    one, two = wav(samples), wav(samples, 2, 44100)
    for channels in [-1, 1, 2, 3]:
        for wanted in [-1, 0, 3, 12]:
            for contents in [one, two]:
                case('DecodeWav', contents=contents, desired_channels=channels, desired_samples=wanted)
    odd = wav(samples + [7], 2)
    list_chunk = b'LIST' + struct.pack('<I', 6) + b'abcdef'
    for contents in [odd, wav(samples, extra=b'\0\0'), wav(samples, chunks=list_chunk), one + list_chunk, one + b'dat', one + b'LIST',
                     wav(samples, bits=8), wav(samples, form=3), wav(samples, channels=0), wav(samples, header=20), wav(samples, moment=3),
                     wav(samples, second=5), wav(samples, data=30), wav(samples, data=3), wav(samples, data=2**31), wav(samples, data=2**32 - 1),
                     one + one[36:], wav([]), one[:43], one[:40], one[:20], b'', b'RIFX' + one[4:], one[:36],
                     one + b'LIST' + struct.pack('<I', 9) + b'short']:
        case('DecodeWav', contents=contents)
    x = np.linspace(-1.3, 1.3, 24).reshape(12, 2).astype(np.float32)
    for rate in [1, 8000, 192000]:
        case('EncodeWav', audio=x, sample_rate=rate)
        case('EncodeWav', audio=x[:, :1], sample_rate=rate)
    case('EncodeWav', audio=np.float32([[0.5 / 32768], [1.5 / 32768], [-0.5 / 32768], [np.inf], [-np.inf]]), sample_rate=5)
    for audio, rate in [(x[:0], 5), (x[:, :0], 5), (x, 0), (x, -3)]:
        case('EncodeWav', audio=audio, sample_rate=rate)
    case('DecodeWav', contents=tf.audio.encode_wav(x, 16000).numpy())
