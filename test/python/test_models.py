"""SavedModels and files of graphs."""
import os
import sys
import tempfile
import unittest

import numpy as np

import lathe
from graphs import constant, graph, placeholder, unary

SAMPLES = sys.argv.pop(1)


class SavedModels(unittest.TestCase):
    def test_signatures(self):
        expected = np.load(f"{SAMPLES}/text_classifier/expected.npz")["probabilities"]
        text = ["The film was GREAT fun", "a dull boring plot", "loved the acting", "", "unknown words only here"]
        with lathe.load_saved_model(f"{SAMPLES}/text_classifier/saved_model") as model:
            signature = model.signatures["serving_default"]
            self.assertEqual(repr(signature.inputs["text"]), "text: string [?]")
            self.assertEqual(signature.outputs["probabilities"].dtype, "float32")
            for got in (signature(text=text), signature(text), model(text=np.array(text)), signature(text=text, as_tensors=True)):
                self.assertEqual(list(got), ["probabilities"])
                np.testing.assert_allclose(np.asarray(got["probabilities"]), expected, rtol=1e-5, atol=1e-6)
            self.assertIn("<td>input</td><td>text</td><td>string</td>", signature._repr_html_())
            self.assertIn("serving_default", repr(model))
            with self.assertRaisesRegex(TypeError, "has no input 'words'"):
                signature(words=text)
            with self.assertRaisesRegex(TypeError, "lacks input 'text'"):
                signature()
            with self.assertRaises(KeyError):
                model.signatures["other"]

    def test_a_session_on_a_folder_has_its_variables(self):
        folder = f"{SAMPLES}/digits_cnn/saved_model"
        inputs = np.load(f"{SAMPLES}/digits_cnn/inputs.npz")["image"]
        expected = np.load(f"{SAMPLES}/digits_cnn/expected.npz")["probabilities"]
        with lathe.load_saved_model(folder) as model:
            signature = model.signatures["serving_default"]
            key, = signature.inputs
            np.testing.assert_allclose(signature(**{key: inputs})["probabilities"], expected, rtol=1e-4, atol=1e-5)
            tensor, feed = signature.outputs["probabilities"].tensor, signature.inputs[key].tensor
        with lathe.Session(folder) as session:
            np.testing.assert_allclose(session.run(tensor, {feed: inputs}), expected, rtol=1e-4, atol=1e-5)

    def test_wrong_folders(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(lathe.errors.NotFoundError):
                lathe.load_saved_model(folder)
            with open(os.path.join(folder, "saved_model.pb"), "wb") as f:
                f.write(b"\xff" * 40)
            with self.assertRaises(lathe.errors.InvalidArgumentError):
                lathe.load_saved_model(folder)
        with self.assertRaises(lathe.errors.NotFoundError):
            lathe.load_saved_model(f"{SAMPLES}/text_classifier/saved_model", tags="train")


class Files(unittest.TestCase):
    def test_kinds(self):
        text = graph(placeholder("x", "float", [2]), constant("two", np.float32(2)), unary("y", "Neg", "x"))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "graph.pbtxt")
            with open(path, "wb") as f:
                f.write(text)
            with lathe.Session(path) as session:
                binary = session.graph_def
                self.assertIn("graph.pbtxt", repr(session))
            meta = os.path.join(folder, "model.meta")
            with open(meta, "wb") as f:
                f.write(b"graph_def {" + text + b"} meta_info_def { tags: \"serve\" }")
            other = os.path.join(folder, "no suffix")
            with open(other, "wb") as f:
                f.write(binary)
            for source in (path, meta, other, text, binary, bytearray(binary), memoryview(binary)):
                with lathe.Session(source) as session:
                    np.testing.assert_array_equal(session.run("y:0", {"x:0": [1, 2]}), [-1, -2])
            with lathe.Session(meta) as session:
                with self.assertRaises(lathe.errors.FailedPreconditionError):
                    session.restore()  # names no restore op
            with open(other, "wb"):
                pass
            with self.assertRaisesRegex(lathe.errors.InvalidArgumentError, "the file is empty"):
                lathe.Session(other)
            with self.assertRaisesRegex(ValueError, "lathe.load"):
                lathe.Session("x.so")

    def test_messages(self):
        class Meta:
            graph_def = Message()

        for message in (Message(), Meta()):
            with lathe.Session(message) as session:
                self.assertEqual(session.run("c:0"), 4)


class Message:
    """What a GraphDef message is to a session: binary bytes."""

    def SerializeToString(self):
        with lathe.Session(graph(constant("c", np.int64(4)))) as session:
            return session.graph_def


if __name__ == "__main__":
    unittest.main()
