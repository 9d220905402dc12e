"""Exchanges checkpoints with TensorFlow. usage: check_checkpoint.py read|write FOLDER
read: the checkpoints that HostKernelTests left in FOLDER; write: FOLDER/tf for its test readsWhatTensorFlowWrote."""
import os
import sys

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ.setdefault('CUDA_VISIBLE_DEVICES', '')
import numpy as np
import tensorflow as tf

mode, folder = sys.argv[1:]
if mode == 'read':
    reader = tf.train.load_checkpoint(os.path.join(folder, 'lathe-all', 'ckpt'))
    names = reader.get_variable_to_shape_map()
    assert len(names) == 18, names
    for name in names:
        t = reader.get_tensor(name)
        if name == 'words':
            assert t.tolist() == [[b'a', b'x' * 300], [b'', b'\0\xff']], t
        elif name == 'empty':
            assert t.shape == (0, 4)
        else:
            n = np.arange(t.nbytes)
            want = (n % 2 if name == 'bool' else n * 7 + 129).astype(np.uint8)
            assert np.array_equal(np.frombuffer(t.tobytes(), np.uint8), want), name
    whole = tf.train.load_checkpoint(os.path.join(folder, 'lathe-slices', 'ckpt')).get_tensor('p')
    assert np.array_equal(np.frombuffer(whole.tobytes(), np.uint8), (np.arange(whole.nbytes) * 7 + 129).astype(np.uint8))
    assert tf.train.load_checkpoint(os.path.join(folder, 'lathe-merge', 'whole')).get_tensor('split').tolist() == list(range(6))
    old = tf.raw_ops.Restore(file_pattern=os.path.join(folder, 'lathe-damaged', 'ckpt'), tensor_name='b', dt=tf.string)
    assert old.numpy().tolist() == [b'x', b'y'], old
else:
    tf.raw_ops.SaveV2(prefix=os.path.join(folder, 'tf'), tensor_names=['f', 's', 'h', 'p', 'p'],
                      shape_and_slices=['', '', '', '4 2 0,3:-', '4 2 3,1:-'],
                      tensors=[np.float32([[1, 2], [3, 4]]), np.array([b'x', b'yy'], object), np.float16([1, 2.5]),
                               np.arange(6).reshape(3, 2), np.arange(2).reshape(1, 2)])
