"""What tests of programs for tf.compat.v1 share. A program is a function of a session class and an empty folder that gives nested
values; main() runs each with TensorFlow's sessions and with Lathe's in their place, and compares what they give: structures and
types exactly, floats as far as their sums' order leaves them."""
import os
import sys
import tempfile
import traceback

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

import lathe

tf1 = tf.compat.v1
tf1.disable_eager_execution()
tf1.logging.set_verbosity(tf1.logging.ERROR)
PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def raised(function, *args):
    """The type of exception that TensorFlow knows, by which programs tell errors apart; "none"."""
    try:
        function(*args)
    except tf.errors.OpError as e:
        return tf1.errors.exception_type_from_error_code(e.error_code).__name__
    except Exception as e:
        return type(e).__name__
    return "none"


def same(expected, got, path):
    assert type(expected) is type(got), f"{path}: {type(got)} instead of {type(expected)}"
    if isinstance(expected, dict):
        assert list(expected) == list(got), f"{path}: keys {list(got)} instead of {list(expected)}"
        for key in expected:
            same(expected[key], got[key], f"{path}[{key!r}]")
    elif isinstance(expected, (list, tuple)):
        assert len(expected) == len(got), f"{path}: {len(got)} values instead of {len(expected)}"
        for i, (e, g) in enumerate(zip(expected, got)):
            same(e, g, f"{path}[{i}]")
    elif isinstance(expected, (np.ndarray, np.generic)):
        assert (expected.dtype, expected.shape) == (got.dtype, got.shape), f"{path}: {got.dtype}{got.shape} instead of {expected.dtype}{expected.shape}"
        if expected.dtype.kind in "fc":
            np.testing.assert_allclose(got, expected, rtol=2e-4, atol=1e-5, err_msg=path)
        else:
            np.testing.assert_array_equal(got, expected, err_msg=path)
    else:
        assert expected == got, f"{path}: {got!r} instead of {expected!r}"


def run(function, session_class):
    with tf1.Graph().as_default(), tempfile.TemporaryDirectory() as folder:
        tf1.set_random_seed(7)
        return function(session_class, folder)


def main():
    failed = 0
    for function in PROGRAMS:
        if sys.argv[1:] and function.__name__ not in sys.argv[1:]:
            continue
        try:
            same(run(function, tf1.Session), run(function, lathe.Session), function.__name__)
            print("fine", function.__name__)
        except Exception:
            failed += 1
            print("FAILED", function.__name__)
            traceback.print_exc()
    sys.exit(failed > 0)
