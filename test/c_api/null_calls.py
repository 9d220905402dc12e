"""null_calls.py LIBRARY HEADER...: each function of TensorFlow's C interface with each argument wrong in turn, a process a call.

The other arguments are as they should be, or nearly. A pointer becomes null, a number negative, an enumerator one that there is not, an
output that of no operation or one that its operation does not have. No call may end its process or wait for ever. Under valgrind with
--error-exitcode=9 and PYTHONMALLOC=malloc none may read or write what is not its own."""
import ctypes as C
import os
import re
import signal
import subprocess
import sys

LIMIT = 20  # seconds a call


class Output(C.Structure):
    _fields_ = [("oper", C.c_void_p), ("index", C.c_int)]


class StringView(C.Structure):
    _fields_ = [("data", C.c_void_p), ("len", C.c_size_t)]


class Buffer(C.Structure):
    _fields_ = [("data", C.c_void_p), ("length", C.c_size_t), ("data_deallocator", C.c_void_p)]


class Attr(C.Structure):
    _fields_ = [("is_list", C.c_ubyte), ("list_size", C.c_int64), ("type", C.c_int), ("total_size", C.c_int64)]


class While(C.Structure):
    _fields_ = [("ninputs", C.c_int), ("cond_graph", C.c_void_p), ("cond_inputs", C.c_void_p), ("cond_output", Output),
                ("body_graph", C.c_void_p), ("body_inputs", C.c_void_p), ("body_outputs", C.c_void_p), ("name", C.c_char_p)]


VALUES = {"int": C.c_int, "int64_t": C.c_int64, "uint64_t": C.c_uint64, "size_t": C.c_size_t, "float": C.c_float, "double": C.c_double,
          "unsigned char": C.c_ubyte, "bool": C.c_bool, "TF_DataType": C.c_int, "TF_Code": C.c_int, "TF_AttrType": C.c_int,
          "uint8_t": C.c_ubyte, "TF_Output": Output, "TF_Input": Output, "TF_StringView": StringView, "TF_AttrMetadata": Attr, "TF_WhileParams": While,
          "TF_TString_Type": C.c_int, "TF_Buffer": Buffer, "unsigned int": C.c_uint}
ENUMS = ("TF_DataType", "TF_Code", "TF_AttrType")
LIBC = C.CDLL(None)
LIBC.strdup.restype = C.c_void_p


def read(paths):
    """{name: (type of the result, [(type, name)])}."""
    found = {}
    for path in paths:
        text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", open(path).read(), flags=re.S)
        text = re.sub(r"^\s*#(\\\n|.)*$", "", text, flags=re.M)
        for result, name, args in re.findall(r"TF_CAPI_EXPORT\s+(?:extern\s+)?([\w\s*]+?)\b(TF_\w+)\s*\((.*?)\)\s*;", text, flags=re.S):
            out, depth, last = [], 0, ""
            for c in args + ",":
                if c == "," and depth == 0:
                    out.append(" ".join(last.split()))
                    last = ""
                    continue
                depth += (c == "(") - (c == ")")
                last += c
            found[name] = (" ".join(result.split()), [argument(a, i) for i, a in enumerate(out) if a not in ("void", "")])
    return found


def argument(text, position):
    if "(*" in text or "TF_PayloadVisitor" in text:
        return "function", text
    text = re.sub(r"\bconst\b", "", text)
    stars = text.count("*") + text.count("[")
    words = re.sub(r"\[.*?\]", "", text).replace("*", " ").split()
    if words[:2] in (["unsigned", "char"], ["unsigned", "int"]):
        words = [" ".join(words[:2])] + words[2:]
    return words[0] + "*" * stars, words[1] if len(words) > 1 else "argument %d" % position


class Caller:
    """Makes what calls need, in the process of the call."""

    def __init__(self, library, functions):
        self.lib = C.CDLL(library)
        self.functions = functions
        self.kept = []
        self.status = self.call("TF_NewStatus")
        self.graph = self.call("TF_NewGraph")
        x = self.describe("Placeholder", "x")
        self.call("TF_SetAttrType", x, b"dtype", 1)
        self.x = self.call("TF_FinishOperation", x, self.status)
        neg = self.describe("Neg", "y")
        self.call("TF_AddInput", neg, Output(self.x, 0))
        self.op = self.call("TF_FinishOperation", neg, self.status)
        assert self.op and self.code() == 0

    def code(self):
        return self.call("TF_GetCode", self.status)

    def describe(self, kind, name):
        return self.call("TF_NewOperation", self.graph, kind.encode(), name.encode())

    def call(self, name, *args):
        result, parameters = self.functions[name]
        f = getattr(self.lib, name)
        f.restype = None if result == "void" else C.c_void_p if "*" in result else VALUES[result.replace("const ", "")]
        f.argtypes = [C.c_void_p if kind == "function" or "*" in kind else VALUES[kind] for kind, _ in parameters]
        return f(*args)

    def keep(self, value):
        self.kept.append(value)
        return C.cast(C.byref(value), C.c_void_p).value

    def tensor(self):
        self.dims = (C.c_int64 * 1)(4)
        return self.call("TF_AllocateTensor", 1, self.keep(self.dims), 1, 16)

    def good(self, function, kind, name):
        """An argument as it should be, or near it."""
        if kind == "function":
            return None
        if kind in ENUMS:
            return 1
        if kind in ("TF_Output", "TF_Input"):
            return Output(self.op, 0)
        if kind == "TF_StringView":
            return StringView(None, 0)
        if kind in ("float", "double"):
            return 1.0
        if "*" not in kind:
            return 0 if name in ("index", "flags") else 1
        pointed = kind[:-1]
        if function == "TF_DeletePRunHandle":
            return LIBC.strdup(b"x")
        if kind == "char*":
            return self.keep(C.create_string_buffer(b"x", 64))
        if kind == "TF_TString*":
            return self.keep((C.c_char * 64)())
        if kind in ("void*", "unsigned char*", "float*", "size_t*", "int64_t*", "int*", "double*", "bool*", "uint64_t*"):
            return self.keep((C.c_int64 * 64)(*[1] * 2))
        if kind in ("TF_Output*", "TF_Input*"):
            return self.keep((Output * 4)(*[Output(self.op, 0)] * 4))
        if kind in ("TF_DataType*", "TF_Code*", "TF_AttrType*"):
            return self.keep((C.c_int * 64)(*[1] * 64))
        if kind == "TF_WhileParams*":
            params = self.call("TF_NewWhile", self.graph, self.keep((Output * 1)(Output(self.x, 0))), 1, self.status)
            params.name = b"loop"
            return self.keep(params)
        if pointed.endswith("*"):
            return self.keep((C.c_void_p * 64)(*[self.good(function, pointed, name)] * 2))
        if kind == "TF_Status*":
            return self.status
        if kind == "TF_Graph*":
            return self.graph
        if kind == "TF_Operation*":
            return self.op
        if kind == "TF_OperationDescription*":
            return self.describe("Neg", "z")
        if kind == "TF_Tensor*":
            return self.tensor()
        if kind == "TF_Buffer*":
            return self.call("TF_NewBuffer")
        options = self.call("TF_NewSessionOptions")
        made = {"TF_SessionOptions*": lambda: options,
                "TF_Session*": lambda: self.call("TF_NewSession", self.graph, options, self.status),
                "TF_DeprecatedSession*": lambda: self.call("TF_NewDeprecatedSession", options, self.status),
                "TF_ImportGraphDefOptions*": lambda: self.call("TF_NewImportGraphDefOptions"),
                "TF_ImportGraphDefResults*": self.imported, "TF_Function*": self.function, "TF_DeviceList*": self.devices,
                "TF_ApiDefMap*": lambda: self.call("TF_NewApiDefMap", self.call("TF_GetAllOpList"), self.status),
                "TF_FunctionOptions*": lambda: None, "TF_Library*": lambda: None, "TF_Server*": lambda: None}
        return made[kind]()

    def imported(self):
        return self.call("TF_GraphImportGraphDefWithResults", self.graph, self.call("TF_NewBuffer"),
                         self.call("TF_NewImportGraphDefOptions"), self.status)

    def function(self):
        return self.call("TF_GraphToFunction", self.graph, self.keep(C.create_string_buffer(b"f")), 0, -1, None, 1,
                         self.keep((Output * 1)(Output(self.x, 0))), 1, self.keep((Output * 1)(Output(self.op, 0))), None, None,
                         self.keep(C.create_string_buffer(b"")), self.status)

    def devices(self):
        session = self.call("TF_NewSession", self.graph, self.call("TF_NewSessionOptions"), self.status)
        return self.call("TF_SessionListDevices", session, self.status)


def wrong(kind):
    """What an argument is replaced by, as functions of a caller."""
    if kind in ("TF_Output", "TF_Input"):
        return [("no operation", lambda c: Output(None, 0)), ("output -1", lambda c: Output(c.op, -1)),
                ("output 9", lambda c: Output(c.op, 9))]
    if kind in ENUMS:
        return [("-1", lambda c: -1), ("1000", lambda c: 1000)]
    if kind in ("int", "int64_t"):
        return [("-1", lambda c: -1), ("least", lambda c: -2 ** (31 if kind == "int" else 63)), ("0", lambda c: 0)]
    if kind == "size_t":
        return [("0", lambda c: 0)]
    if kind in ("TF_Output*", "TF_Input*"):
        return [("null", lambda c: None), ("no operation", lambda c: c.keep((Output * 4)())),
                ("output 9", lambda c: c.keep((Output * 4)(*[Output(c.op, 9)] * 4)))]
    if kind.endswith("**"):
        return [("null", lambda c: None), ("of null", lambda c: c.keep((C.c_void_p * 64)()))]
    return [("null", lambda c: None)] if "*" in kind else []


def run(library, functions, name, position, make):
    """The signal that ended the call, or None."""
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(LIMIT)
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 2)
            caller = Caller(library, functions)
            args = [caller.good(name, kind, parameter) for kind, parameter in functions[name][1]]
            if position is not None:
                args[position] = make(caller)
            caller.call("TF_SetStatus", caller.status, 0, caller.keep(C.create_string_buffer(b"")))
            caller.call(name, *args)
            # what the call left must still do for another
            again = caller.call("TF_NewStatus")
            caller.call("TF_DeleteStatus", again)
            os._exit(0)
        except BaseException as e:  # a mistake of this program's
            os.write(1, f"{name}: {type(e).__name__}: {e}\n".encode())
            os._exit(3)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return None if os.WEXITSTATUS(status) == 0 else "exit %d" % os.WEXITSTATUS(status)


def main():
    library, headers = sys.argv[1], sys.argv[2:]
    functions = read(headers)
    exported = set(re.findall(r" T (TF_\w+)", subprocess.run(["nm", "-D", "--without-symbol-versions", library], stdout=subprocess.PIPE,
                                                            universal_newlines=True, check=True).stdout))
    if exported != set(functions):
        print("not in the headers, or not exported:", *sorted(exported ^ set(functions)))
        return 1
    C.CDLL(library)  # once, for all children
    calls = failed = 0
    for name, (_, parameters) in functions.items():
        cases = [(None, "as it should be", None)]
        cases += [(i, "%s: %s" % (parameter, what), make) for i, (kind, parameter) in enumerate(parameters) for what, make in wrong(kind)]
        for position, what, make in cases:
            calls += 1
            end = run(library, functions, name, position, make)
            if end:
                failed += 1
                print(f"{name}, {what}: {end}", flush=True)
    print(f"{len(functions)} functions, {calls} calls, {failed} ended their process")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
