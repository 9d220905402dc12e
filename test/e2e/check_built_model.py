"""check_built_model.py OUT DATA: loads with TensorFlow what train-digits left: its SavedModel, by both of TensorFlow's loaders, its checkpoint and
its frozen graph; all of them read the test images alike."""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

out, data = sys.argv[1:]
labels = np.fromfile(data + "/test_labels.u8", np.uint8)
images = np.fromfile(data + "/test_images.u8", np.uint8).reshape(len(labels), 8, 8, 1).astype(np.float32) / 16
model = tf.saved_model.load(out + "_model")
got = {k: v.numpy() for k, v in model.signatures["serving_default"](image=tf.constant(images)).items()}
assert sorted(got) == ["digit", "scores"], got.keys()
assert (got["digit"] == labels).mean() >= 0.97
np.testing.assert_allclose(got["scores"].sum(1), 1, atol=1e-5)
assert len(model.variables) == 8, model.variables

tf1 = tf.compat.v1
with tf1.Graph().as_default(), tf1.Session() as session:
    meta = tf1.saved_model.load(session, ["serve"], out + "_model")
    signature = meta.signature_def["serving_default"]
    digits = session.run(signature.outputs["digit"].name, {signature.inputs["image"].name: images})
    np.testing.assert_array_equal(digits, got["digit"])
    # its own saver goes on from there
    saver = tf1.train.Saver(tf1.trainable_variables())
    saver.restore(session, saver.save(session, out + "_again"))

checkpoint = tf.train.load_checkpoint(os.path.dirname(out) + "/" + os.path.basename(out) + "_checkpoint")
names = checkpoint.get_variable_to_shape_map()
assert len(names) == 8 * 3 + 2, sorted(names)
assert names["conv1"] == names["conv1/Adam"] == names["conv1/Adam_1"] == [3, 3, 1, 16], names
np.testing.assert_array_equal(checkpoint.get_tensor("dense"), next(v for v in model.variables if v.name == "dense:0").numpy())

with tf1.Graph().as_default(), tf1.Session() as session:
    graph = tf1.GraphDef.FromString(open(out + ".pb", "rb").read())
    assert not any("Variable" in n.op or n.op == "VarHandleOp" for n in graph.node)
    digit, = tf1.import_graph_def(graph, return_elements=["digit:0"])
    np.testing.assert_array_equal(session.run(digit, {"import/image:0": images}), got["digit"])
print(f"accuracy {(digits == labels).mean():.4f}")
