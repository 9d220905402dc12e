"""many_operands.py N FILE: a graph whose ConcatV2 and AddN take N tensors each."""
import sys


def attr(key, value):
    return f'  attr {{ key: "{key}" value {{ {value} }} }}\n'


def node(name, op, inputs, *attrs):
    return f'node {{ name: "{name}" op: "{op}"' + "".join(f' input: "{i}"' for i in inputs) + "\n" + "".join(attrs) + "}\n"


n, path = int(sys.argv[1]), sys.argv[2]
parts = [f"parts:{i}" if i else "parts" for i in reversed(range(n))]
float32 = "type: DT_FLOAT"
with open(path, "w") as f:
    f.write(node("x", "Placeholder", [], attr("dtype", float32), attr("shape", f"shape {{ dim {{ size: -1 }} dim {{ size: {n} }} }}")))
    f.write(node("axis", "Const", [], attr("dtype", "type: DT_INT32"), attr("value", "tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 }")))
    f.write(node("parts", "Split", ["axis", "x"], attr("T", float32), attr("num_split", f"i: {n}")))
    f.write(node("joined", "ConcatV2", parts + ["axis"], attr("T", float32), attr("Tidx", "type: DT_INT32"), attr("N", f"i: {n}")))
    f.write(node("sum", "AddN", parts, attr("T", float32), attr("N", f"i: {n}")))
