"""check_symbols.py ROOT NM: compares what nm says of libtensorflow.so with the list of functions, the headers, the
docs and the programs that test them."""
import glob
import re
import sys

root, nm = sys.argv[1:]
listed = re.findall(r"LATHE_C_API\((\w+)\)", open(f"{root}/runtime/c_api/Functions.def").read())
declared = set()
for header in glob.glob(f"{root}/runtime/c_api/include/tensorflow/c/*.h"):
    text = re.sub(r"/\*.*?\*/", "", open(header).read(), flags=re.S)
    declared |= set(re.findall(r"TF_CAPI_EXPORT[^;(]*?\b(TF_\w+)\(", text))
documented = set(re.findall(r"^\| `(TF_\w+)` \| \S", open(f"{root}/docs/c-api.md").read(), flags=re.M))
called = set()
for program in glob.glob(f"{root}/test/c_api/*.[ch]"):
    called |= set(re.findall(r"\b(TF_\w+)\(", open(program).read()))
exported = {line.split()[-1] for line in open(nm) if " A " not in line}
wanted = {f"{f}@@VERS_1.0" for f in listed} | {f"{f}@tensorflow" for f in listed}
bad = 0
for what, a, b in [("exported", exported, wanted), ("declared", declared, set(listed)), ("documented", documented, set(listed))]:
    for name in sorted(a - b):
        print(f"{what} but not listed: {name}")
        bad = 1
    for name in sorted(b - a):
        print(f"listed but not {what}: {name}")
        bad = 1
for name in sorted(set(listed) - called):
    print(f"no program of test/c_api calls {name}")
    bad = 1
if listed != sorted(set(listed)):
    print("the list is not in order")
    bad = 1
sys.exit(bad)
