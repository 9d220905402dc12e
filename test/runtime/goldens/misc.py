import numpy as np


def cases(case):
    for t in ['int32', 'int64', 'float32', 'float64']:
        v = lambda *x: np.asarray(x).astype(t)
        values = np.concatenate([np.arange(-5, 26), [1000, -1000, 3, 3, 20]]).astype(t)
        for bins in [1, 3, 5, 20]:
            for out in ['int32', 'int64']:
                case('HistogramFixedWidth', values=values, value_range=v(0, 20), nbins=bins, dtype=out)
        case('HistogramFixedWidth', values=values.reshape([4, 9]), value_range=v(-5, 5), nbins=4)
        case('HistogramFixedWidth', values=values, value_range=v(5, 5), nbins=4)
        case('HistogramFixedWidth', values=values, value_range=v(6, 5), nbins=4)
        case('HistogramFixedWidth', values=values[:0], value_range=v(0, 5), nbins=4)
        if t.startswith('float'):
            case('HistogramFixedWidth', values=v(np.inf, -np.inf, 0.3, 4.99, 5), value_range=v(0, 5), nbins=10)
            case('HistogramFixedWidth', values=v(0, np.nan), value_range=v(0, 5), nbins=10)
