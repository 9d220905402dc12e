import numpy as np
import tensorflow as tf

I64 = lambda v: np.asarray(v, np.int64)


def cases(case):
    rng = np.random.RandomState(1)
    for t in ['float32', 'float64', 'int32', 'int64']:
        x = (rng.rand(2, 9, 11, 2) * 100).astype(t)
        for pseudo in [True, False]:
            for overlapping in [True, False]:
                kw = dict(value=x, pseudo_random=pseudo, overlapping=overlapping, deterministic=True, seed=5, seed2=8)
                for ratio in [[1.0, 1.44, 1.73, 1.0], [1.0, 3.0, 2.2, 1.0]]:
                    case('FractionalMaxPool', pooling_ratio=ratio, **kw)
                    case('FractionalAvgPool', pooling_ratio=ratio, **kw)
        rows, columns = I64([0, 2, 5, 9]), I64([0, 3, 6, 8, 11])
        for overlapping in [True, False]:
            grad = np.arange(48).reshape([2, 3, 4, 2]).astype(t)
            case('FractionalAvgPoolGrad', orig_input_tensor_shape=I64([2, 9, 11, 2]), out_backprop=grad, row_pooling_sequence=rows,
                 col_pooling_sequence=columns, overlapping=overlapping)
            out = np.zeros([2, 3, 4, 2], t)
            for r in range(3):
                for c in range(4):
                    out[:, r, c] = x[:, rows[r]:rows[r + 1] + overlapping, columns[c]:columns[c + 1] + overlapping].max((1, 2))
            case('FractionalMaxPoolGrad', orig_input=x, orig_output=out, out_backprop=grad, row_pooling_sequence=rows,
                 col_pooling_sequence=columns, overlapping=overlapping)
    for t in ['float32', 'float64']:
        logits = (rng.rand(7, 3, 5) * 4 - 2).astype(t)
        for merge in [True, False]:
            case('CTCGreedyDecoder', inputs=logits, sequence_length=[7, 4, 0], merge_repeated=merge)
            case('CTCGreedyDecoder', inputs=logits, sequence_length=[7, 4, 0], merge_repeated=merge, blank_index=1)
            for collapse in [True, False]:
                for ignore in [True, False]:
                    case('CTCLoss', inputs=logits, labels_indices=I64([[0, 0], [0, 1], [0, 2], [1, 0], [2, 0]]), labels_values=[1, 1, 3, 2, 0],
                         sequence_length=[7, 4, 6], ctc_merge_repeated=merge, preprocess_collapse_repeated=collapse,
                         ignore_longer_outputs_than_inputs=ignore, tolerance=1e-5)
                    case('CTCLoss', inputs=logits, labels_indices=I64([[0, 0], [0, 1], [0, 2], [1, 0], [2, 0]]), labels_values=[1, 1, 3, 2, 0],
                         sequence_length=[2, 4, 3], ctc_merge_repeated=merge, preprocess_collapse_repeated=collapse,
                         ignore_longer_outputs_than_inputs=ignore, tolerance=1e-5)
    for t in ['float32', 'float64']:
        logits = (rng.rand(6, 3, 4) * 6 - 3).astype(t)
        for width, paths, merge in [(3, 1, True), (10, 3, False), (5, 2, True)]:
            case('CTCBeamSearchDecoder', inputs=logits, sequence_length=[6, 3, 5], beam_width=width, top_paths=paths, merge_repeated=merge)
    # a probability that underflows never happens
    logits = np.float32([[[0, 200, 0]], [[100, 0, -100]]])
    case('CTCLoss', inputs=logits, labels_indices=I64([[0, 0]]), labels_values=[0], sequence_length=[2])
    case('CTCLoss', inputs=logits, labels_indices=I64([[0, 0], [0, 1]]), labels_values=[0, 1], sequence_length=[2])
    ties = np.array([[2, 2, 1, 1, 3, 0], [1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1], [3, 1, 2, 2, 0, 5]])
    for t, out in [('float32', 'float32'), ('float64', 'float64'), ('int64', 'float64'), ('float16', 'float16')]:
        case('IsotonicRegression', input=ties.astype(t), output_dtype=tf.as_dtype(out))
    odd = np.float32([[1, np.nan, 2, np.nan, 3], [np.inf, 1, np.inf, 2, 5], [-np.inf, 1, 2, 0, 1]])
    for x in [rng.randn(2, 3, 40).astype(np.float32), odd, odd[0], np.float32(5), np.zeros([0, 3], np.float32), np.zeros([2, 0], np.float32)]:
        case('IsotonicRegression', input=x, output_dtype=tf.float32)
