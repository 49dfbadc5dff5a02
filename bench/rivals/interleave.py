#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Alternates two or more step processes on one machine and compares their step times.

    bench/rivals/interleave.py --out bench/results/step.csv \\
        "build/release/bin/bary bench step --lines" "python3 bench/rivals/torch_step.py" "python3 bench/rivals/torch_step.py --compile"

Each command reads "step N" and answers {"ms": [...]} on one line; its first line says {"name": ...}. One process runs at a time,
the order turns round every round, so a slow phase of the machine hits all alike. The first command is the one that others are
divided by. Standard library only.
"""
import argparse
import csv
import datetime
import json
import os
import pathlib
import platform
import shlex
import statistics
import subprocess
import sys
import time


class Stepper:
    def __init__(self, command):
        self.command = command
        self.process = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        hello = self.read()
        self.name = hello.get("name", command)
        self.about = hello
        self.times = []    # every step
        self.rounds = []   # median of each round

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"interleave: '{self.command}' ended (exit {self.process.wait()}); run it by hand to see why")
        answer = json.loads(line)
        if "error" in answer:
            raise SystemExit(f"interleave: '{self.command}' says: {answer['error']}")
        return answer

    def steps(self, count):
        self.process.stdin.write(f"step {count}\n")
        self.process.stdin.flush()
        times = self.read()["ms"]
        if len(times) != count:
            raise SystemExit(f"interleave: '{self.command}' gave {len(times)} times for {count} steps")
        return times

    def quit(self):
        self.process.stdin.write("quit\n")
        self.process.stdin.close()
        self.process.wait()


def machine_line():
    model, flags = platform.processor() or platform.machine(), ""
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
            if line.startswith("flags"):
                flags = line.split(":", 1)[1]
                break
    except OSError:
        pass
    isa = "AVX-512" if " avx512f" in flags else "AVX2" if " avx2" in flags else platform.machine()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = os.getloadavg()[0]
    return f"{model}, {cores} logical CPUs, {isa}, {platform.system()} {platform.release()}, load {load:.2f} at the start"


def quartiles(values):
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commands", nargs="+", help="step processes; the first is the one the others are divided by")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=5, help="steps of each process a round")
    parser.add_argument("--warm", type=int, default=5, help="steps of each process before anything counts")
    parser.add_argument("--rest", type=float, default=0.3, help="seconds between processes: spinning threads go to sleep")
    parser.add_argument("--out", type=pathlib.Path, help="CSV of every step")
    args = parser.parse_args()
    if args.rounds < 1 or args.steps < 1 or args.warm < 0:
        parser.error("--rounds and --steps must be at least 1, --warm at least 0")

    machine = machine_line()
    steppers = [Stepper(command) for command in args.commands]
    for stepper in steppers:
        if args.warm:
            stepper.steps(args.warm)
    rows = []
    for turn in range(args.rounds):
        for stepper in steppers if turn % 2 == 0 else reversed(steppers):
            time.sleep(args.rest)
            times = stepper.steps(args.steps)
            stepper.times += times
            stepper.rounds.append(statistics.median(times))
            rows += [(turn, stepper.name, index, ms) for index, ms in enumerate(times)]
    for stepper in steppers:
        stepper.quit()

    print(f"machine: {machine}")
    print(f"method: {args.rounds} rounds of {args.steps} steps each, alternating, after {args.warm} uncounted steps")
    print(f"{'':32}{'median ms':>10}{'quartiles':>18}{'ratio':>8}{'ratio by round':>24}")
    first = steppers[0]
    for stepper in steppers:
        low, middle, high = quartiles(stepper.times)
        ratio = middle / statistics.median(first.times)
        a, b, c = quartiles([mine / base for mine, base in zip(stepper.rounds, first.rounds)])
        print(f"{stepper.name:32}{middle:10.1f}{f'{low:.1f} - {high:.1f}':>18}{ratio:8.2f}{f'{b:.2f} ({a:.2f} - {c:.2f})':>24}")
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        with open(args.out, "w", newline="") as file:
            file.write(f"# {datetime.date.today().isoformat()} {machine}\n")
            for stepper in steppers:
                file.write(f"# {stepper.name}: {json.dumps(stepper.about)}\n")
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(("round", "who", "step", "ms"))
            writer.writerows(rows)
        print(f"every step: {args.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
