"""set_plan.py TUNING_FILE NAME=VALUE...: gives every kernel of the file this plan."""
import json
import sys


def main():
    path, *items = sys.argv[1:]
    with open(path) as f:
        content = json.load(f)
    plan = {name: int(value) for name, value in (item.split("=") for item in items)}
    for kernels in content["targets"].values():
        for kernel in kernels.values():
            kernel["plan"] = plan
    with open(path, "w") as f:
        json.dump(content, f)


main()
