"""A graph whose 40 functions are each the gradient of the one before: twice the operations each time."""
T = 'attr { key: "T" value { type: DT_FLOAT } }'


def function(name, op):
    return """function {
  signature { name: "%s" input_arg { name: "x" type: DT_FLOAT } output_arg { name: "r" type: DT_FLOAT } }
  node_def { name: "n" %s }
  ret { key: "r" value: "n:%s:0" }
}""" % (name, op, "y" if "Tanh" in op else "output")


def types(key, n):
    return 'attr { key: "%s" value { list { %s } } }' % (key, "type: DT_FLOAT " * n)


def named(f):
    return 'attr { key: "f" value { func { name: "%s" } } }' % f


def main():
    print("library {")
    print(function("f0", 'op: "Tanh" input: "x" ' + T))
    for i in range(40):
        print(function("f%d" % (i + 1), 'op: "SymbolicGradient" input: "x" input: "x" %s %s %s' % (types("Tin", 2), types("Tout", 1), named("f%d" % i))))
    print("}")
    print('node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr { key: "shape" value { shape { dim { size: 2 } } } } }')
    print('node { name: "y" op: "PartitionedCall" input: "x" %s %s %s }' % (types("Tin", 1), types("Tout", 1), named("f40")))


main()
