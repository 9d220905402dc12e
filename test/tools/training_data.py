"""Batches for training.py and test/e2e/check_training.py: digits of examples/digits/data as rows, or as a text of darkness."""
import os

import numpy as np

BATCH = 32


def batches(folder, name, count):
    """`count` batches {placeholder: array} of the model `name`."""
    images = np.fromfile(os.path.join(folder, "train_images.u8"), np.uint8).reshape(-1, 8, 8)
    labels = np.fromfile(os.path.join(folder, "train_labels.u8"), np.uint8)
    for k in range(count):
        which = np.arange(k * BATCH, (k + 1) * BATCH) % len(images)
        if name == "lstm":
            yield {"rows:0": images[which].astype(np.float32) / 16, "labels:0": labels[which].astype(np.int32)}
        else:
            # each word is the darkness of two by two pixels, and each is to be told from those before it
            words = images[which].reshape(BATCH, 4, 2, 4, 2).mean((2, 4)).reshape(BATCH, 16)
            yield {"words:0": words.astype(np.int32)}
