"""stablehlo.py: what `lathe compile --emit hlo --mlir-print-op-generic` writes as StableHLO, whose operations ours are by name.

Constants of many elements become arguments, in the order in which they are met, since their text is long. For graphs whose sizes are
known; what XLA has no operation for is an error.
"""
import re

import numpy as np

LARGE = 64  # bytes
TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": np.uint16, "i1": np.bool_, "i8": np.int8, "i16": np.int16,
         "i32": np.int32, "i64": np.int64, "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64}
OWN = {"check": "", "erfc": "chlo.erfc", "erf": "chlo.erf", "square": "chlo.square", "tan": "chlo.tan", "sinh": "chlo.sinh",
       "asinh": "chlo.asinh", "acosh": "chlo.acosh", "atanh": "chlo.atanh", "lgamma": "chlo.lgamma", "digamma": "chlo.digamma"}
KNOWN = set("""abs add and atan2 broadcast_in_dim ceil clamp compare concatenate constant convert convolution cosine count_leading_zeros divide
dot_general dynamic_slice dynamic_update_slice exponential exponential_minus_one floor gather iota is_finite log log_plus_one logistic maximum
minimum multiply negate not or pad popcnt power reduce reduce_window remainder reshape return reverse round_nearest_even rsqrt scatter select
shift_left shift_right_arithmetic shift_right_logical sign sine slice sort sqrt subtract tanh transpose xor while if case cbrt""".split())


def arrayOf(value, type):
    """The elements of a constant, from the text of its attribute."""
    dims, element = re.fullmatch(r"tensor<((?:\d+x)*)(\w+)>", type).groups()
    shape = [int(d) for d in dims.split("x") if d]
    if m := re.fullmatch(r'dense<"0x([0-9A-Fa-f]*)">', value):
        data = bytes.fromhex(m.group(1))
        if element == "i1":
            return np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[: int(np.prod(shape))].astype(bool).reshape(shape)
        return np.resize(np.frombuffer(data, TYPES[element]), shape)
    if element == "bf16":
        return None
    text = value[len("dense<"):-1].replace("[", " ").replace("]", " ").replace(",", " ")
    if "x" in text or "(" in text:
        return None
    flat = np.array([{"true": 1, "false": 0}.get(w, w) for w in text.split()])
    return np.resize(flat.astype(np.float64 if element[0] == "f" else np.int64).astype(TYPES[element]), shape)


def convert(text, exact=True):
    """The module's text and the arrays of its further arguments. `exact`: products are as exact as f32 is, where XLA would take TF32."""
    resources = dict(re.findall(r'(\w+): "0x([0-9A-Fa-f]*)"', text[text.rfind("{-#"):])) if "{-#" in text else {}
    text = text[: text.rfind("{-#")] if "{-#" in text else text
    lines, arguments, types = [], [], []
    for line in text.splitlines():
        if line.startswith(("#loc", "#map")):
            continue
        line = re.sub(r" loc\((?:#\w+|unknown|\"[^\"]*\"(?:\(#\w+\))?)\)", "", line)
        op = re.search(r'"hlo\.(\w+)"', line)
        if op and op.group(1) in OWN and not OWN[op.group(1)]:
            continue
        if op and op.group(1) not in OWN and op.group(1) not in KNOWN:
            raise ValueError(f"hlo.{op.group(1)} has no counterpart")
        m = re.fullmatch(r'\s*(%\w+) = "hlo\.constant"\(\) <\{value = (.*) : (tensor<[^>]*>)\}> : \(\) -> tensor<[^>]*>', line)
        if m:
            name, value, type = m.groups()
            if r := re.fullmatch(r"dense_resource<(\w+)>", value):
                dims, element = re.fullmatch(r"tensor<((?:\d+x)*)(\w+)>", type).groups()
                data = bytes.fromhex(resources[r.group(1)][8:])  # behind the alignment
                array = np.frombuffer(data, np.uint8 if element == "i1" else TYPES[element])
                array = np.resize(array, [int(d) for d in dims.split("x") if d])
            else:
                array = arrayOf(value, type) if len(value) > LARGE else None
            if array is not None:
                arguments.append(array)
                types.append((name, type))
                continue
        if op:
            line = line.replace(f'"hlo.{op.group(1)}"', '"' + OWN.get(op.group(1), "stablehlo." + op.group(1)) + '"')
        line = line.replace("#hlo", "#stablehlo")
        if exact and op and op.group(1) in ("dot_general", "convolution") and "precision_config" not in line:
            highest = "#stablehlo<precision HIGHEST>"
            line = line.replace("<{", f"<{{precision_config = [{highest}, {highest}], ", 1)
        lines.append(line)
    head = next(i for i, l in enumerate(lines) if '"func.func"' in l)
    body = next(i for i in range(head, len(lines)) if re.match(r"\s*\^bb0\(", lines[i]))
    function = re.search(r"function_type = \((.*?)\) -> (\(.*?\)|tensor<[^>]*>)(?=, |\}>)", lines[head])
    inputs, results = function.groups()
    given = re.findall(r"tensor<[^>]*>", inputs)
    every = ", ".join(given + [t for _, t in types])
    arguments_text = ", ".join([f"%arg{i}: {t}" for i, t in enumerate(given)] + [f"{n}: {t}" for n, t in types])
    if "func.call" in text or len([l for l in lines if '"func.func"' in l]) > 1:
        raise ValueError("more than one function")
    end = next(i for i in range(body, len(lines)) if '"func.return"' in lines[i])
    results = results if results.startswith("(") else f"({results})"
    out = ["module @main {", f"func.func public @main({arguments_text}) -> {results} {{", *lines[body + 1 : end + 1], "}", "}"]
    return "\n".join(out) + "\n", arguments
