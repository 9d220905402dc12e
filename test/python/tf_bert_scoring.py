"""tf_bert_scoring.py SAMPLE: scores sentences with BERT-tiny, a program for tf.compat.v1 with its session replaced by Lathe's."""
import sys

import numpy as np
import tensorflow as tf

import lathe

tf1 = tf.compat.v1
tf1.disable_eager_execution()
sample = sys.argv[1]


def score(session_class):
    with tf1.Graph().as_default() as graph:
        graph_def = tf1.GraphDef()
        with tf1.gfile.GFile(f"{sample}/graph.pb", "rb") as f:
            graph_def.ParseFromString(f.read())
        feeds = ["input_ids:0", "attention_mask:0", "token_type_ids:0"]
        *tensors, logits, pair = tf1.import_graph_def(graph_def, return_elements=feeds + ["Identity:0", "Identity_1:0"], name="bert")
        # on top of the imported graph: how likely each token is where it stands
        likely = tf.gather(tf.nn.log_softmax(logits), tensors[0], batch_dims=2, axis=-1)
        mask = tf.cast(tensors[1], tf.float32)
        total = tf.reduce_sum(likely * mask, 1) / tf.reduce_sum(mask, 1)
        inputs = np.load(f"{sample}/inputs.npz")
        with session_class(graph=graph, config=tf1.ConfigProto(intra_op_parallelism_threads=1)) as session:
            fetches = {"score": total, "pair": tf.nn.softmax(pair), "logits": logits}
            return session.run(fetches, feed_dict={t: inputs[n.split(":")[0]] for t, n in zip(tensors, feeds)})


expected, got = score(tf1.Session), score(lathe.Session)
np.testing.assert_allclose(got["logits"], np.load(f"{sample}/expected.npz")["mlm_logits"], rtol=1e-3, atol=1e-4)
for key in expected:
    np.testing.assert_allclose(got[key], expected[key], rtol=1e-3, atol=1e-4, err_msg=key)
print("scores", got["score"])
