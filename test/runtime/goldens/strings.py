import numpy as np
import tensorflow as tf


def a(value, dtype):
    return np.asarray(value).astype(tf.as_dtype(dtype).as_numpy_dtype)


STR = lambda v: np.asarray(v, dtype=object)
NONE = np.zeros([0], np.int32)


def cases(case):
    for dtype in ['int8', 'uint8', 'int32', 'uint64', 'float16', 'bfloat16', 'float32', 'float64', 'complex64', 'complex128',
                  'bool', 'string']:
        x = STR(['a', 'bcdef']) if dtype == 'string' else a([1, 0, 100], dtype)
        for kw in [{}, {'precision': 2}, {'width': 9, 'fill': '0'}, {'width': 6}, {'shortest': True}, {'scientific': True},
                   {'width': 5, 'fill': 'x'}, {'fill': '+'}, {'width': 6, 'fill': '-'}, {'precision': 2, 'width': 9}]:
            case('AsString', input=x, **kw)
    case('AsString', input=a([-1, 2**40], 'int64'))
    case('AsString', input=a([float('nan'), float('inf'), -0.0, 1e30], 'float32'))
    for x in [a(1 / 3, 'float32'), a(1 / 3, 'float64'), a(1e10, 'float32'), a([1e-7, np.nan, -np.inf], 'float16'),
              a([], 'float32'), np.zeros([0, 3], np.float32), a([True, False], 'bool'), STR(['a\n"\u00e9'.encode(), 'b']),
              a([1 + 2j], 'complex64'), a([1, 2], 'int8'), a(2**63, 'uint64')]:
        case('StringFormat', inputs=[x], template='{}', placeholder='{}')
    grid = np.arange(60, dtype=np.int32).reshape([3, 4, 5])
    for summary in [-1, 0, 1, 2, 3, 100]:
        case('StringFormat', inputs=[grid, a([1.5], 'float32')], template='x {} y {} z', placeholder='{}', summarize=summary)
    for encoding in ['', 'utf-8']:
        for op in ['StringLower', 'StringUpper']:
            case(op, input=STR([b'aBc1', b'\xc3\x89\xff', '\u00e9\u01c4\u0130'.encode(), b'', b'a\x00b']), encoding=encoding)
    case('StringStrip', input=STR([' a b\t\n', '', '\v\fx']))
    for unit in ['BYTE', 'UTF8_CHAR']:
        case('StringLength', input=STR([[b'aBc', b'\xc3\x89\xff', '\U0001f600'.encode(), b'']]), unit=unit)
        text = 'a\u00e9\u4e2d\U0001f600z'.encode()
        for pos, length in [([-3, 3], [2, -1]), ([1], [2]), ([0], [100]), ([5], [1]), ([[1, 2], [-1, 0]], [[2, 1], [1, 1]])]:
            case('Substr', input=STR([text, 'hello']), pos=a(pos, 'int32'), len=a(length, 'int32'), unit=unit)
            case('Substr', input=STR(text), pos=a(pos, 'int64'), len=a(length, 'int64'), unit=unit)
    case('Substr', input=STR(['hello']), pos=9, len=1)
    case('Substr', input=STR(['hello']), pos=-6, len=1)
    case('Substr', input=STR(['a', 'b', 'c']), pos=[0, 0], len=[1, 1])

    words = STR(['a', '', 'abcde', 'abcdefgh', 'hello world foo', 'p' * 16, 'r' * 17, 's' * 32, 't' * 33, 'x' * 50, 'y' * 64,
                 'z' * 65, 'q' * 200, bytes(range(256))])
    for n in [1, 10, 1 << 60]:
        case('StringToHashBucket', string_tensor=words, num_buckets=n)
        case('StringToHashBucketFast', input=words, num_buckets=n)
        case('StringToHashBucketStrong', input=words, num_buckets=n, key=[123, 456])
    for x in [words, words.reshape([7, 2]), a(np.arange(6).reshape([2, 3]), 'float32'), a([1, 2], 'int8'),
              np.zeros([2, 0], np.int32), STR('x')]:
        case('Fingerprint', data=x, method='farmhash64')
    case('Fingerprint', data=words, method='other')

    for skip in [True, False]:
        for delimiter in [' ', '', '#,', 'b']:
            case('StringSplit', input=STR(['a  b', '', ' c d ', ',#x']), delimiter=delimiter, skip_empty=skip)
    for separator in ['', ' ', '--']:
        for most in [-1, 0, 1, 2]:
            case('StringSplitV2', input=STR(['a b  c', '', ' d ', 'a--b----c', '--d--', '\t x\ny']), sep=separator, maxsplit=most)
    case('StringSplitV2', input=STR([]), sep='')
    case('StringNGrams', data=STR(['a', 'b', 'c', 'd', 'e']), data_splits=a([0, 3, 3, 5], 'int64'), separator='|',
         ngram_widths=[2, 3], left_pad='L', right_pad='R', pad_width=-1, preserve_short_sequences=False)
    for widths in [[1], [2], [4], [4, 5], [2, 9]]:
        for pad in [0, 1, -1]:
            for keep in [True, False]:
                case('StringNGrams', data=STR(['a', 'b', 'c', 'd', 'e']), data_splits=a([0, 3, 3, 5], 'int32'), separator='|',
                     ngram_widths=widths, left_pad='L', right_pad='R', pad_width=pad, preserve_short_sequences=keep)
    case('StringNGrams', data=STR(['a', 'b']), data_splits=a([0, 3], 'int64'), separator='|', ngram_widths=[2], left_pad='',
         right_pad='', pad_width=0, preserve_short_sequences=False)
    case('StringNGrams', data=STR([]), data_splits=a([0, 0], 'int64'), separator='|', ngram_widths=[2], left_pad='',
         right_pad='', pad_width=0, preserve_short_sequences=True)

    for s in [[' 1.5 ', 'inf', '-nan', '1e400', '0x1p3', '1e-50', '+3'], [' 15 '], ['-1'], [''], ['1.5x'], ['99999999999'],
              ['-2147483648']]:
        for t in ['float32', 'float64', 'int32', 'int64', 'uint32', 'uint64']:
            case('StringToNumber', string_tensor=STR(s), out_type=t)

    case('ReduceJoin', inputs=STR([['a', 'b'], ['c', 'd']]), reduction_indices=[0, 1], separator='-', keep_dims=True)
    for axes in [[1, 0], [0, 1], [-1], [0], NONE, [2], [0, 0], [0, -2]]:
        for keep in [True, False]:
            case('ReduceJoin', inputs=STR([['a', 'b', 'c'], ['d', 'e', 'f']]), reduction_indices=axes, separator='-', keep_dims=keep)
    case('ReduceJoin', inputs=np.zeros([0, 2], object), reduction_indices=[0], separator='-')
    case('ReduceJoin', inputs=STR('x'), reduction_indices=NONE)
    for ids in [[0, -1, 0], [0, 2, 0], [0, 5, 0], [1, 1, 0]]:
        case('UnsortedSegmentJoin', inputs=STR(['a', 'b', 'c']), segment_ids=ids, num_segments=3, separator=':')
    case('UnsortedSegmentJoin', inputs=STR([['a', 'b'], ['c', 'd']]), segment_ids=a([1, 1], 'int64'), num_segments=2, separator=':')
    case('UnsortedSegmentJoin', inputs=STR([['a', 'b'], ['c', 'd']]), segment_ids=[[0, 1], [1, 1]], num_segments=3)
    case('StringJoin', inputs=[STR(['a', 'b']), STR('x'), STR(['c', ''])], separator='.')

    for s in ['YQ', 'YQ==', 'YQ=', 'YR', 'a+/b', 'a-_b', '', 'YWI', 'YWJj', 'YWJjZA', 'Y', '====', 'YQ=a', 'Y Q=']:
        case('DecodeBase64', input=STR([s]))
    for pad in [True, False]:
        case('EncodeBase64', input=STR(['', 'a', 'ab', 'abc', bytes(range(250, 256))]), pad=pad)
    for globally in [True, False]:
        for pattern, rewrite in [('a', 'x'), ('(b+)', '<\\1>'), ('', '-'), ('(', 'x'), ('a', '\\1')]:
            case('RegexReplace', input=STR(['aabbb', '', 'xa']), pattern=pattern, rewrite=rewrite, replace_global=globally)
    case('StaticRegexReplace', input=STR(['aabbb', '', 'xa']), pattern='a|b', rewrite='q\\0', replace_global=True)
    for pattern in ['a.*', '', '[', '(?i)XA']:
        case('RegexFullMatch', input=STR(['aabbb', '', 'xa']), pattern=pattern)
    case('StaticRegexFullMatch', input=STR(['aabbb', '', 'xa']), pattern='a.*')

    case('UnicodeScript', input=[65, 0x4e00, -1, 0x110000, 0x20])
    bad = STR([b'ab\xffc\xe4\xb8d', b'\x01\xf0\x9f\x98\x80\xf0\x9f', b'', b'\xed\xa0\x80x', b'\xc0\x80'])
    for errors in ['replace', 'ignore', 'strict']:
        for control in [False, True]:
            kw = dict(input=bad, input_encoding='UTF-8', errors=errors, replace_control_characters=control)
            case('UnicodeDecodeWithOffsets', replacement_char=88, **kw)
            case('UnicodeDecode', Tsplits=tf.int32, **kw)
            for out in ['UTF-8', 'UTF-16-BE', 'UTF-32-BE']:
                case('UnicodeTranscode', output_encoding=out, **kw)
        for out in ['UTF-8', 'UTF-16-BE', 'UTF-32-BE']:
            case('UnicodeEncode', input_values=[72, 0x1F600, 0xd800, 0x110000, -1, 66], input_splits=a([0, 2, 2, 6], 'int64'),
                 output_encoding=out, errors=errors)
    for splits in [[0, 2, 1], [1, 2], [0, 1], [0, 5, 2]]:
        case('UnicodeEncode', input_values=[72, 70], input_splits=a(splits, 'int32'), output_encoding='UTF-8')
    for encoding, s in [('UTF-16-BE', b'\x00a\xd8\x3d\xde\x00\xd8'), ('UTF-16-LE', b'a\x00'), ('UTF-16', b'\xff\xfea\x00'),
                        ('latin-1', b'\xe9a'), ('US-ASCII', b'a\xe9'), ('ISO-2022-JP', b'\x1b$B$"'), ('UTF-32-BE', b'\0\0\0a'),
                        ('shift_jis', b'\x82\xa0x')]:
        case('UnicodeDecodeWithOffsets', input=STR([s]), input_encoding=encoding)
        case('UnicodeTranscode', input=STR([s]), input_encoding=encoding, output_encoding='UTF-8')
