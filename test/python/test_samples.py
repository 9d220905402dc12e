"""Every sample against what TensorFlow recorded, through lathe.Session. Folders of samples are the arguments."""
import json
import os
import sys
import unittest

import numpy as np

import lathe

FOLDERS = [sys.argv.pop(1) for _ in sys.argv[1:]]


def close(test, got, expected, what):
    test.assertEqual((got.shape, got.dtype), (expected.shape, expected.dtype), what)
    if expected.dtype.kind in "fc":
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5 * max(1.0, float(np.abs(expected).max(initial=0))), err_msg=what)
    else:
        np.testing.assert_array_equal(got, expected, what)


class Samples(unittest.TestCase):
    def each(self, name):
        for folder in FOLDERS:
            path = os.path.join(folder, name)
            if os.path.isdir(path):
                with self.subTest(path):
                    yield path

    def test_feeds_and_fetches(self):
        tried = set()
        for folder in FOLDERS:
            for name in sorted(os.listdir(folder)):
                path = os.path.join(folder, name)
                if not os.path.exists(f"{path}/inputs.npz"):
                    continue
                with self.subTest(path), open(f"{path}/model.json") as f, lathe.Session(f"{path}/graph.pb") as session:
                    model = json.load(f)
                    # a model for any size has several pairs of files
                    for number in [""] + [f".{i}" for i in range(1, 9)]:
                        if not os.path.exists(f"{path}/inputs{number}.npz"):
                            continue
                        inputs, expected = np.load(f"{path}/inputs{number}.npz"), np.load(f"{path}/expected{number}.npz")
                        got = session.run({k: v["tensor"] for k, v in model["fetches"].items()},
                                          {v["tensor"]: inputs[k] for k, v in model["feeds"].items()})
                        self.assertEqual(set(got), set(model["fetches"]))
                        for key, value in got.items():
                            close(self, np.asarray(value), expected[key], f"{path}{number} {key}")
                    tried.add(name)
        self.assertLessEqual({"bert_tiny", "conv_lstm", "digits_cnn", "lstm_multi_output", "while_v1", "wide_deep"}, tried)

    def test_training(self):
        for path in self.each("mnist_softmax_train"):
            digits, expected = np.load(f"{path}/digits.npz"), np.load(f"{path}/expected.npz")
            flat = digits["train_images"].reshape(len(digits["train_images"]), -1)
            with lathe.Session(f"{path}/graph.pb") as session:
                session.run("init")
                step = session.make_callable(["loss:0", "train_step"], ["x:0", "y_:0"])
                for i in range(300):
                    at = 64 * i % 1344
                    loss, _ = step(flat[at:at + 64], digits["train_labels"][at:at + 64])
                    self.assertAlmostEqual(loss, expected["losses"][i], delta=1e-4 * expected["losses"][i])
                test = digits["test_images"].reshape(len(digits["test_images"]), -1)
                accuracy, w, b = session.run(["accuracy:0", "W:0", "b:0"], {"x": test, "y_": digits["test_labels"]})
                self.assertEqual(accuracy, expected["accuracy"])
                np.testing.assert_allclose(w, expected["W"], rtol=1e-4, atol=1e-5)
                np.testing.assert_allclose(b, expected["b"], rtol=1e-4, atol=1e-5)

    def test_pipeline(self):
        for path in self.each("tfrecord_pipeline"):
            expected = np.load(f"{path}/expected.npz")
            with lathe.Session(f"{path}/graph.pb") as session:
                session.run("enqueue", {"filenames:0": [f"{path}/digits.tfrecord"]})
                session.run("close")
                for n in range(200):
                    label, image = session.run(("label:0", "image:0"))
                    np.testing.assert_array_equal(np.ravel(label), np.ravel(expected["labels"][n]))
                    np.testing.assert_array_equal(np.ravel(image), np.ravel(expected["images"][n]))
                with self.assertRaises(lathe.errors.OutOfRangeError):
                    session.run("label:0")

    def test_text(self):
        for path in self.each("text_classifier"):
            with open(f"{path}/model.json") as f:
                text = json.load(f)["feeds"]["text"]
            with lathe.load_saved_model(f"{path}/saved_model") as model:
                close(self, model(text=text)["probabilities"], np.load(f"{path}/expected.npz")["probabilities"], path)


if __name__ == "__main__":
    unittest.main()
