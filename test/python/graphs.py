"""GraphDefs as text, for tests: a few lines a graph, without TensorFlow."""
import numpy as np

TYPES = {"float": "DT_FLOAT", "int32": "DT_INT32", "int64": "DT_INT64", "string": "DT_STRING", "bfloat16": "DT_BFLOAT16",
         "double": "DT_DOUBLE", "bool": "DT_BOOL", "int4": "DT_INT4", "float8_e5m2": "DT_FLOAT8_E5M2", "half": "DT_HALF", "qint8": "DT_QINT8",
         "complex64": "DT_COMPLEX64", "uint8": "DT_UINT8"}


def attr(key, value):
    return f'attr {{ key: "{key}" value {{ {value} }} }} '


def type_attr(key, name):
    return attr(key, f"type: {TYPES[name]}")


def node(name, op, inputs=(), attrs=""):
    return f'node {{ name: "{name}" op: "{op}" ' + "".join(f'input: "{i}" ' for i in inputs) + attrs + "}\n"


def shape(dims):
    return "shape { unknown_rank: true }" if dims is None else "shape { " + "".join(f"dim {{ size: {d} }} " for d in dims) + "}"


def placeholder(name, dtype="float", dims=None):
    return node(name, "Placeholder", (), type_attr("dtype", dtype) + attr("shape", shape(dims)))


def constant(name, values):
    a = np.asarray(values)
    dtype, field = {"f": ("float", "float_val"), "i": ("int64" if a.dtype.itemsize == 8 else "int32", "int64_val" if a.dtype.itemsize == 8 else "int_val")}[a.dtype.kind]
    tensor = f"dtype: {TYPES[dtype]} tensor_{shape(a.shape)} " + "".join(f"{field}: {v} " for v in a.ravel())
    return node(name, "Const", (), type_attr("dtype", dtype) + attr("value", f"tensor {{ {tensor} }}"))


def graph(*nodes):
    """The text of a GraphDef, as bytes."""
    return ("".join(nodes) + "versions { producer: 1882 }").encode()


def unary(name, op, x, dtype="float"):
    return node(name, op, [x], type_attr("T", dtype))


def binary(name, op, x, y, dtype="float"):
    return node(name, op, [x, y], type_attr("T", dtype))


def variable(name, dims, dtype="float"):
    """A variable's handle, its value NAME_value, and NAME_assign from NAME_start."""
    return (node(name, "VarHandleOp", (), type_attr("dtype", dtype) + attr("shape", shape(dims)) + attr("shared_name", f's: "{name}"')) +
            placeholder(name + "_start", dtype, dims) +
            node(name + "_assign", "AssignVariableOp", [name, name + "_start"], type_attr("dtype", dtype)) +
            node(name + "_value", "ReadVariableOp", [name], type_attr("dtype", dtype)))
