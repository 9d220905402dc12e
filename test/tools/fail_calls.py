"""Runs a program on the emulated device once for each call of the driver, which fails that time: fail_calls.py [options] PROGRAM ARGS.

A run must end with 0 or with 1 and a line "status N: ...", and leave no finding: nothing beside its memory, nothing left behind.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile


def run(command, timeout, **setting):
    environment = dict(os.environ, **{"LATHE_EMU_" + name: str(value) for name, value in setting.items()})
    try:
        return subprocess.run(command, env=environment, timeout=timeout, capture_output=True, text=True, errors="replace")
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, "no end", "", "")


def count(command, timeout, folder):
    """How many calls a run makes in which none fails."""
    counts = os.path.join(folder, "counts")
    done = run(command, timeout, COUNTS=counts)
    if done.returncode != 0:
        sys.exit(f"without a failure: {done.returncode}\n{done.stdout}{done.stderr}")
    with open(counts, encoding="utf-8") as lines:
        return sum(int(line.split()[1]) for line in lines)


def judge(done, log):
    """What is wrong with a run, else None."""
    if done.returncode not in (0, 1):
        return f"ends with {done.returncode}"
    if done.returncode == 1 and not re.search(r"^status \d+: ", done.stdout, re.M):
        return "fails and does not say why"
    if os.path.exists(log):
        with open(log, encoding="utf-8") as lines:
            return lines.read().strip() or None
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=6, help="earlier calls are of a program that has no device yet")
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--result", type=int, default=2, help="what the call returns; 2: out of memory")
    parser.add_argument("--valgrind", action="store_true", help="what valgrind finds is a failure too")
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    command = (["valgrind", "-q", "--error-exitcode=99"] if args.valgrind else []) + args.command
    wrong = told = calm = 0
    with tempfile.TemporaryDirectory() as folder:
        calls = count(command, args.timeout, folder)
        numbers = range(args.first, calls + 1, args.step)
        for n in numbers:
            log = os.path.join(folder, f"log{n}")
            done = run(command, args.timeout, FAIL_CALL=n, FAIL_RESULT=args.result, LOG=log)
            problem = judge(done, log)
            if problem:
                wrong += 1
                print(f"call {n}: {problem}\n{done.stdout}{done.stderr[-2000:]}")
            elif done.returncode:
                told += 1
            else:
                calm += 1
    print(f"{calls} calls, of which {len(numbers)} failed in turn: {told} runs told it, {calm} had no need to")
    return 1 if wrong or not told else 0


if __name__ == "__main__":
    sys.exit(main())
