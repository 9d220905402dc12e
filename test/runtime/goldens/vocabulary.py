import os

import numpy as np
import tensorflow as tf

FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'files')


def write():
    """What the cases read."""
    os.makedirs(FILES, exist_ok=True)
    def lines(name, words):
        with open(os.path.join(FILES, name), 'w') as f:
            f.write(''.join(w + '\n' for w in words))
        return os.path.join(FILES, name)
    matrix = np.arange(20, dtype=np.float32).reshape(5, 4) / 4
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        prefix = os.path.join(FILES, 'matrix')
        session.run(tf.raw_ops.SaveV2(prefix=prefix, tensor_names=['m', 'v', 'whole'], shape_and_slices=['', '', ''],
                                      tensors=[matrix, matrix[0], matrix.astype(np.int32)]))
    return {'old': lines('old.txt', 'knot fern reed moss oak'.split()), 'new': lines('new.txt', 'reed ash knot moss birch fern'.split()),
            'twice': lines('twice.txt', 'a b a'.split()), 'empty': lines('empty.txt', []),
            'weights': lines('weights.csv', ['reed,3', 'ash,1.5', 'a,b,0.25', '4']), 'wrong': lines('wrong.csv', ['reed,3', 'ash,x']),
            'matrix': prefix}


def samplers(case, files):
    truth = np.int64([[1, 0], [3, 2]])
    for unique in [False, True]:
        for seed in [(5, 7), (3, 0)]:
            seeds = dict(seed=seed[0], seed2=seed[1], num_true=2, unique=unique)
            for n, weights in [(6, [1, 2, 3, 4, 5, 6, 7, 8]), (5, [1, 1, 1, 1, 1]), (4, [0.1, 9, 0.5, 20, 0.25]), (3, [0, 3, 4, 0, 1])]:
                for distortion in [1.0, 0.75, 0.0]:
                    if min(weights) > 0 or distortion:
                        case('FixedUnigramCandidateSampler', true_classes=truth, num_sampled=n, range_max=len(weights), unigrams=weights,
                             distortion=distortion, **seeds)
            case('FixedUnigramCandidateSampler', true_classes=truth, num_sampled=3, range_max=7, unigrams=[1., 2, 3, 4, 5], num_reserved_ids=2, **seeds)
            for shard in [0, 1]:
                case('FixedUnigramCandidateSampler', true_classes=truth, num_sampled=3, range_max=5, unigrams=[1., 2, 3, 4, 5, 6, 7, 8],
                     num_reserved_ids=2, num_shards=2, shard=shard, **seeds)
            case('FixedUnigramCandidateSampler', true_classes=truth, num_sampled=3, range_max=4, vocab_file=files['weights'], **seeds)
            for n, limit in [(6, 8), (7, 7), (4, 100)]:
                for op in ['LearnedUnigramCandidateSampler', 'ThreadUnsafeUnigramCandidateSampler']:
                    case(op, true_classes=truth, num_sampled=n, range_max=limit, **seeds)
    few = dict(true_classes=truth, num_true=2, num_sampled=3, seed=1, unique=False)
    case('FixedUnigramCandidateSampler', range_max=4, vocab_file=files['wrong'], **few)
    case('FixedUnigramCandidateSampler', range_max=4, vocab_file=FILES + '/none', **few)
    case('FixedUnigramCandidateSampler', range_max=4, unigrams=[1., 2, 3], **few)
    case('FixedUnigramCandidateSampler', range_max=3, **few)
    case('FixedUnigramCandidateSampler', range_max=3, unigrams=[1., 2, 3], vocab_file=files['weights'], **few)


def cases(case):
    files = write()
    samplers(case, files)
    for offset, count in [(0, 6), (1, 3), (2, 0), (0, 7), (5, 1), (6, 1)]:
        for size in [-1, 2, 5, 6]:
            case('GenerateVocabRemapping', new_vocab_file=files['new'], old_vocab_file=files['old'], new_vocab_offset=offset, num_new_vocab=count,
                 old_vocab_size=size)
    for new, old in [('new', 'twice'), ('twice', 'old'), ('new', 'empty'), ('empty', 'old')]:
        case('GenerateVocabRemapping', new_vocab_file=files[new], old_vocab_file=files[old], new_vocab_offset=0, num_new_vocab=2)
    case('GenerateVocabRemapping', new_vocab_file=FILES + '/none', old_vocab_file=files['old'], new_vocab_offset=0, num_new_vocab=2)

    def remap(rows, columns, initial, name='m', prefix=files['matrix'], **sizes):
        case('LoadAndRemapMatrix', ckpt_path=prefix, old_tensor_name=name, row_remapping=np.int64(rows), col_remapping=np.int64(columns),
             initializing_values=np.float32(initial), **{'num_rows': len(rows), 'num_cols': len(columns) or 4, **sizes})

    remap([0, 1, 2, 3, 4], [], [])
    remap([4, 0], [3, 1, 0], [])
    remap([4, -1, 0], [], [1, 2, 3, 4])
    remap([4, -1, 0], [2, -1], [1, 2, 3, 4])
    remap([-1, -1], [-1, 0, 2], [1, 2, 3, 4, 5, 6])
    remap([1, -1], [-1, 3], [1, 2, 3], max_rows_in_memory=1)
    remap([], [], [])
    remap([1, -1], [-1, 3], [1, 2])
    remap([1, -1], [-1, 3], [1, 2, 3, 4])
    remap([1, 1], [], [])
    remap([1, 2], [3, 3], [])
    remap([1, 5], [], [])
    remap([1, 2], [], [], num_cols=3)
    remap([1, 2], [1], [], num_rows=3)
    remap([1, 2], [1], [], num_cols=3)
    remap([1, 2], [], [], name='v')
    remap([1, 2], [], [], name='whole')
    remap([1, 2], [], [], name='none')
    remap([1, 2], [], [], prefix=FILES + '/none')
