"""check_training.py FOLDER EXPECTED DIGITS NAME: trains FOLDER/forward.step.pb of test/graph/AddTraining.cpp as TensorFlow did, by a
session and by compiled steps. Gradients of the first step are within 1e-5 a tensor, losses of gradient descent within 1e-4 over 20 steps
and 1e-3 over 100, the last of Adam within 1 %."""
import os
import sys

import numpy as np

import lathe

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tools"))
from training_data import batches

folder, expected, digits, name = sys.argv[1:]
expected = dict(np.load(expected))
model = os.path.join(folder, "forward.step.pb")
gradients = [k for k in expected if k.startswith("grad_")]
STEPS = len(expected["sgd"])


def of_session():
    """Gradients of the first step, losses of both optimizers."""
    first = next(batches(digits, name, 1))
    with lathe.Session(model) as session:
        session.run("init")
        grads = session.run([g + ":0" for g in gradients], first)
        losses = []
        for inits, step in ((["init"], "sgd/train"), (["init", "adam_init"], "adam/train")):
            for init in inits:
                session.run(init)
            losses.append([session.run(["loss:0", step], feeds)[0] for feeds in batches(digits, name, STEPS)])
    return (grads, *losses)


def of_module():
    path = os.path.join(folder, name + ".so")
    lathe.compile(model, path[:-3], emit="so", cpu="host", entries={
        "Init": "/init", "AdamInit": "/adam_init", "Gradients": ([g + ":0" for g in gradients], []),
        "Descend": (["loss:0"], ["sgd/train"]), "Adam": (["loss:0"], ["adam/train"])})
    module = lathe.load(path)
    plain = lambda feeds: {k.split(":")[0]: v for k, v in feeds.items()}
    run = lambda entry, feeds: list(module[entry](**plain(feeds)).values())
    module["Init"]()
    grads = run("Gradients", next(batches(digits, name, 1)))
    losses = []
    for inits, step in ((["Init"], "Descend"), (["Init", "AdamInit"], "Adam")):
        for init in inits:
            module[init]()
        losses.append([run(step, feeds)[0] for feeds in batches(digits, name, STEPS)])
    return (grads, *losses)


def check(how, grads, sgd, adam):
    worst = max(np.abs(g - expected[k]).max() / max(1.0, np.abs(expected[k]).max()) for k, g in zip(gradients, grads))
    away = np.abs(np.array(sgd) - expected["sgd"]) / np.maximum(1.0, expected["sgd"])
    last = abs(adam[-1] / expected["adam"][-1] - 1)
    print("%s, %s: gradients %.1e, loss %.1e over 20 steps and %.1e over 100 (%.3f to %.3f), Adam's last loss %.4f %% off (%.3f)"
          % (name, how, worst, away[:20].max(), away.max(), sgd[0], sgd[-1], 100 * last, adam[-1]))
    assert worst <= 1e-5 and away[:20].max() <= 1e-4 and away.max() <= 1e-3 and last <= 0.01
    assert sgd[-1] < sgd[0] and adam[-1] < adam[0]


check("session", *of_session())
check("compiled", *of_module())
