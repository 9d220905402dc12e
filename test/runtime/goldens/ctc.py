"""CTCLossV2, whose blank is class 0: what CTCLoss says of the same classes with the blank at the end."""
import numpy as np
import tensorflow as tf


def cases(case):
    rng = np.random.RandomState(3)
    for lengths in [[7, 4, 6], [2, 4, 3], [7, 7, 7]]:
        logits = (rng.rand(7, 3, 5) * 4 - 2).astype(np.float32)
        labels = dict(labels_indices=np.int64([[0, 0], [0, 1], [0, 2], [1, 0], [2, 0]]), sequence_length=lengths)
        values = np.int32([1, 1, 3, 2, 4])
        for merge in [True, False]:
            for collapse in [True, False]:
                attrs = dict(ctc_merge_repeated=merge, preprocess_collapse_repeated=collapse, ignore_longer_outputs_than_inputs=True)
                loss, gradient = tf.raw_ops.CTCLoss(inputs=np.roll(logits, -1, 2), labels_values=values - 1, **labels, **attrs)
                case('CTCLossV2', inputs=logits, labels_values=values, outputs=[loss.numpy(), np.roll(gradient.numpy(), 1, 2)], **labels, **attrs)
