import numpy as np
import tensorflow as tf


def stateful(case):
    """Generators in variables: the numbers, and where the variable stands after them."""
    held = lambda *x: np.asarray(x, np.int64)
    states = [held(1, 2, 3), held(-1, -1, 2**40 + 9), held(-513, 7, -5, 11)]
    for state in states:
        for t in ['float16', 'bfloat16', 'float32', 'float64']:
            for op in ['StatefulUniform', 'StatefulStandardNormalV2', 'StatefulTruncatedNormal']:
                case(op, held=state, algorithm=1, shape=[3, 5], dtype=t)
            case('StatefulStandardNormal', held=np.concatenate([[1], state]), shape=np.int64([3, 5]), dtype=t, producer=28)
        for t in [np.int32, np.int64, np.uint32, np.uint64]:
            case('StatefulUniformFullInt', held=state, algorithm=1, shape=[7], dtype=t)
            case('StatefulUniformInt', held=state, algorithm=3, shape=[7], minval=t(3), maxval=t(100))
            case('StatefulUniformInt', held=state, algorithm=1, shape=[7], minval=np.iinfo(t).min, maxval=t(np.iinfo(t).max))
        for delta in [0, 1, -1, 2**56, -2**63]:
            case('RngSkip', held=state, algorithm=1, delta=delta)
    state = states[0]
    for shape in [[], [0], [2, 0], [-1], [2**40, 2**40]]:
        case('StatefulUniform', held=state, algorithm=1, shape=np.asarray(shape, np.int64), dtype='float32')
    for algorithm in [0, 2, 3, -1]:
        case('RngSkip', held=state, algorithm=algorithm, delta=1)
        case('StatefulUniform', held=state, algorithm=algorithm, shape=[2], dtype='float32')
    for wrong in [held(1, 2), held([1, 2, 3]), np.float32([1, 2, 3]), np.int32([1, 2, 3]), held()]:
        case('RngSkip', held=wrong, algorithm=1, delta=1)
        case('StatefulStandardNormalV2', held=wrong, algorithm=1, shape=[2], dtype='float32')
        case('StatefulRandomBinomial', held=wrong, algorithm=1, shape=[1], counts=np.float64([4]), probs=np.float64([0.5]))
    for low, high, shape in [(5, 5, [2]), (9, 2, [2]), (9, 2, [0])]:
        case('StatefulUniformInt', held=state, algorithm=1, shape=shape, minval=low, maxval=high)
    for t in ['float16', 'float32', 'float64']:
        for out in ['float32', 'int32', 'int64', 'float64']:
            case('StatefulRandomBinomial', held=state, algorithm=1, shape=[4, 2, 6], counts=np.asarray([[10], [60]]).astype(t),
                 probs=np.asarray([0.0, 0.1, 0.5, 0.75, 0.96, 1.0]).astype(t), dtype=out)
    for shape, count in [([5, 1], 1), ([0, 1], 1), ([3, 0], 0), ([4], 1), ([2, 3], 2)]:
        case('StatefulRandomBinomial', held=state, algorithm=1, shape=np.int32(shape), counts=np.full([count], 9.0), probs=np.full([count], 0.4))


def cases(case):
    for t in ['float16', 'float32', 'float64']:
        alpha = np.asarray([0.3, 1.0, 2.5, 30.0]).astype(t)
        case('RandomGamma', shape=[3, 2], alpha=alpha, seed=3, seed2=7)
        case('RandomGamma', shape=np.zeros([0], np.int32), alpha=alpha[0], seed=3, seed2=7)
        case('RandomGamma', shape=[0], alpha=alpha, seed=3, seed2=7)
        case('StatelessRandomGammaV2', shape=[3, 4], seed=[5, 6], alpha=alpha)
        case('StatelessRandomGammaV3', shape=[2, 4], key=np.asarray([77], np.uint64), counter=np.asarray([1, 2**40], np.uint64), alg=1, alpha=alpha)
        for out in ['float32', 'int32', 'int64', 'float16']:
            rate = np.asarray([0.0, 0.5, 3, 9.9, 10, 25, 1000]).astype(t)
            case('RandomPoissonV2', shape=[4], rate=rate, seed=3, seed2=7, dtype=out)
            case('StatelessRandomPoisson', shape=[3, 7], seed=[5, 6], lam=rate, dtype=out)
    case('RandomShuffle', value=np.arange(20), seed=3, seed2=9)
    case('RandomShuffle', value=np.arange(24, dtype=np.float32).reshape([6, 4]), seed=3, seed2=9)
    case('RandomShuffle', value=np.asarray(['a', 'b', 'c', 'd', 'e'], object), seed=30, seed2=9)
    key, counter = np.asarray([2**40 + 77], np.uint64), np.asarray([5, 2**33 + 1], np.uint64)
    for value in [np.arange(20), np.arange(24, dtype=np.float16).reshape([6, 2, 2]), np.asarray(['a', 'b', 'c', 'd', 'e'], object),
                  np.asarray([True, False, False, True, True]), np.arange(5) * (1 + 2j), np.asarray(3), np.zeros([0, 3]), np.zeros([3, 0]),
                  np.ones([1, 3], np.int8)]:
        case('StatelessShuffle', value=value, key=key, counter=counter, alg=1)
    for alg in [2, 3, -1]:
        case('StatelessShuffle', value=np.arange(5), key=key, counter=counter, alg=alg)
    case('StatelessShuffle', value=np.arange(5), key=key, counter=np.asarray([1, 2, 3], np.uint64), alg=1)
    classes = np.asarray([[1, 2], [5, 0]], np.int64)
    for unique in [True, False]:
        kw = dict(true_classes=classes, num_true=2, num_sampled=5, unique=unique, seed=3, seed2=11)
        case('AllCandidateSampler', **kw)
        case('LogUniformCandidateSampler', range_max=9, **kw)
        case('UniformCandidateSampler', range_max=9, **kw)
        case('UniformCandidateSampler', range_max=16, **kw)
    case('ComputeAccidentalHits', true_classes=classes, sampled_candidates=np.asarray([5, 1, 0, 9], np.int64), num_true=2)
    for t in ['float32', 'float64']:
        for dim, n, skip in [(1, 5, 0), (10, 33, 0), (40, 9, 17), (1111, 4, 1000), (3, 2, 2**29), (0, 1, 0)]:
            case('SobolSample', dim=dim, num_results=n, skip=skip, dtype=t)
    for t in ['float16', 'float32', 'float64']:
        for out in ['float32', 'int32', 'int64', 'float64']:
            case('StatelessRandomBinomial', shape=[4, 2, 6], seed=[5, 6], counts=np.asarray([[10], [60]]).astype(t),
                 probs=np.asarray([0.0, 0.1, 0.5, 0.75, 0.96, 1.0]).astype(t), dtype=out)
    for t in ['float16', 'float32', 'float64']:
        v = lambda *x: np.asarray(x).astype(t)
        for low, high in [(-2, 2), (1, 5), (-np.inf, 1), (3, np.inf), (-0.1, 0.2), (6, 9)]:
            case('ParameterizedTruncatedNormal', shape=[2, 20], means=v(0, 0.5), stdevs=v(1, 2), minvals=v(low, low), maxvals=v(high, high),
                 seed=3, seed2=4)
            case('ParameterizedTruncatedNormal', shape=[130], means=v(0)[0], stdevs=v(1)[0], minvals=v(low)[0], maxvals=v(high)[0], seed=3,
                 seed2=4)
            case('StatelessParameterizedTruncatedNormal', shape=[10, 2], seed=[3, 4], means=v(0, 0.5), stddevs=v(1), minvals=v(low),
                 maxvals=v(high))
    stateful(case)
    points = (np.arange(40) * 37 % 41).reshape([20, 2]).astype(np.float32)
    for count, retries in [(1, 0), (3, 0), (5, 3), (4, -1), (20, 1)]:
        case('KmeansPlusPlusInitialization', points=points, num_to_sample=np.int64(count), seed=np.int64(7), num_retries_per_sample=np.int64(retries))
