#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Alternates bary's tokenizer, Hugging Face's tokenizers and tiktoken on one machine and compares their times.

    bench/rivals/tokenizer.py --out bench/results/tokenizer.csv build/release/bin/bary

One thread each, one text, and ids that must be equal, with 768 merges learned on the text and with GPT-2's vocabulary
(--gpt2: a folder with encoder.json and vocab.bpe). In every round all take turns with each work:

  train           learn the merges (Hugging Face gets the text by lines, its faster way)
  cold            the text, by a coder made a moment ago
  warm            the same text again, by the same coder
  new words       each different word has its letters shuffled, another way every round: words nobody has seen, which
                  repeat as words do; by a coder made a moment ago
  no word twice   each single word has its letters shuffled: what no memory of words can help with
  decode          ids to text

Not timed: making lists of what Hugging Face's calls return. Needs the packages tokenizers and tiktoken, no network.
"""
import argparse
import array
import csv
import datetime
import gc
import hashlib
import json
import os
import pathlib
import random
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # both are read when the package is loaded
os.environ["RAYON_NUM_THREADS"] = "1"
import tiktoken
import tokenizers
from tiktoken_ext.openai_public import r50k_pat_str
from tokenizers import decoders, models, pre_tokenizers, trainers

from interleave import Stepper, machine_line, quartiles

VOCAB_SIZE = 1024
VERSIONS = f"tokenizers {tokenizers.__version__}, tiktoken {tiktoken.__version__}, one thread each"


def timed(work, *args, **options):
    begin = time.perf_counter()
    result = work(*args, **options)
    return 1e3 * (time.perf_counter() - begin), result


def sha256_of(ids):
    words = array.array("i", ids)
    if sys.byteorder == "big":
        words.byteswap()
    return hashlib.sha256(words.tobytes()).hexdigest()


def lines_of(text):
    """Cut before a line feed that text follows: a place where GPT-2's pattern cuts too, so the ids stay the same."""
    return re.split(r"(?=\n\S)", text)


def byte_level():
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


class Vocabulary:
    """Spelled tokens with their ids, and merges, as GPT-2's files have them."""

    def __init__(self, name, tokens, merges, source):
        self.name, self.tokens, self.merges, self.source = name, tokens, merges, source
        made = {left + right for left, right in merges}
        plain = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
        others = [byte for byte in range(256) if byte not in plain]
        byte_of = {chr(code): byte for byte, code in zip(plain + others, plain + list(range(256, 256 + len(others))))}
        self.ranks = {bytes(byte_of[c] for c in token): rank
                      for token, rank in tokens.items() if len(token) == 1 or token in made}

    @classmethod
    def learned(cls, file):
        model = json.loads(file.read_text(encoding="utf-8"))["model"]
        return cls(f"V {VOCAB_SIZE}", model["vocab"], [tuple(merge) for merge in model["merges"]], file)

    @classmethod
    def gpt2(cls, folder):
        tokens = json.loads((folder / "encoder.json").read_text(encoding="utf-8"))
        lines = (folder / "vocab.bpe").read_text(encoding="utf-8").split("\n")[1:]
        return cls("GPT-2", tokens, [tuple(line.split(" ")) for line in lines if line], folder)


class Bary(Stepper):
    share = 6  # warm codings for one of the slowest: short ones need more for a steady median

    def __init__(self, program, vocabulary, text):
        super().__init__(f"{shlex.quote(program)} bench tokenizer {shlex.quote(str(text))} --lines --ties hf "
                         f"--vocab_size {VOCAB_SIZE} --tokenizer {shlex.quote(str(vocabulary.source))}")
        self.name = "bary"

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.read()

    def code(self, file, text, times):
        self.ask(f"text {file}")
        answer = self.ask(f"encode {times}")
        return answer["ms"], answer["sha256"]

    def decode(self, ids):
        return self.ask("decode 1")["ms"]

    def train(self, file, text):
        self.ask(f"text {file}")
        return self.ask("train 1")["ms"], None


class HuggingFace:
    share = 1

    def __init__(self, vocabulary, by_line):
        self.vocabulary, self.by_line = vocabulary, by_line
        self.name = "tokenizers batch by line" if by_line else "tokenizers encode"

    def code(self, file, text, times):
        self.coder = byte_level()
        self.coder.model = models.BPE(vocab=self.vocabulary.tokens, merges=self.vocabulary.merges)
        given, work = (lines_of(text), self.coder.encode_batch_fast) if self.by_line else (text, self.coder.encode)
        taken = []
        for _ in range(times):
            ms, result = timed(work, given, add_special_tokens=False)
            taken.append(ms)
        return taken, sha256_of([id for part in result for id in part.ids] if self.by_line else result.ids)

    def decode(self, ids):
        return [timed(self.coder.decode, ids)[0]]

    def train(self, file, text):
        learner = byte_level()
        trainer = trainers.BpeTrainer(vocab_size=VOCAB_SIZE, show_progress=False,
                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
        ms, _ = timed(learner.train_from_iterator, lines_of(text), trainer)
        return [ms], [tuple(merge) for merge in json.loads(learner.to_str())["model"]["merges"]]


class Tiktoken:
    name, share = "tiktoken", 3

    def __init__(self, vocabulary):
        self.vocabulary = vocabulary

    def code(self, file, text, times):
        self.coder = tiktoken.Encoding(self.vocabulary.name, pat_str=r50k_pat_str, special_tokens={},
                                       mergeable_ranks=self.vocabulary.ranks)
        taken = []
        for _ in range(times):
            ms, ids = timed(self.coder.encode_ordinary, text)
            taken.append(ms)
        return taken, sha256_of(ids)

    def decode(self, ids):
        return [timed(self.coder.decode_bytes, ids)[0]]


def shuffled(text, seed, every_time):
    source, known = random.Random(seed), {}
    def another(match):
        word = match.group()
        if not every_time and word in known:
            return known[word]
        letters = list(word)
        source.shuffle(letters)
        return known.setdefault(word, "".join(letters)) if not every_time else "".join(letters)
    return re.sub("[A-Za-z]+", another, text)


class Comparison:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.rows = []  # round, vocabulary, work, who, ms
        text = args.text.read_bytes()
        self.text, self.bytes, self.text_file = text.decode("utf-8"), len(text), args.text.resolve()
        if not self.text:
            raise SystemExit(f"tokenizer: {args.text} is empty; name a text of some hundred kilobytes")
        file = folder / "tokenizer.json"
        subprocess.run([args.bary, "tokenizer", "train", str(args.text), "--vocab_size", str(VOCAB_SIZE), "--ties",
                        "hf", "--out", str(file)], check=True, stdout=subprocess.DEVNULL)
        self.vocabularies = [Vocabulary.learned(file)]
        if args.gpt2 and (args.gpt2 / "vocab.bpe").exists():
            self.vocabularies.append(Vocabulary.gpt2(args.gpt2))
        else:
            print("SKIPPED: GPT-2's vocabulary; --gpt2 or $BARY_GPT2 names no folder with encoder.json and vocab.bpe")
        self.teams = [(vocabulary, [Bary(args.bary, vocabulary, self.text_file), Tiktoken(vocabulary),
                                    HuggingFace(vocabulary, False), HuggingFace(vocabulary, True)])
                      for vocabulary in self.vocabularies]
        for _, team in self.teams:  # patterns are compiled, allocators fill
            for coder in team[1:]:
                coder.code(None, "once upon a time", 1)

    def note(self, turn, vocabulary, work, coder, times):
        self.rows += [(turn, vocabulary.name, work, coder.name, round(ms, 4)) for ms in times]

    def play(self, turn):
        made = {work: shuffled(self.text, f"{self.args.seed} {turn} {work}", work == "no word twice")
                for work in ("new words", "no word twice")}
        for work, text in made.items():
            (self.folder / work).write_bytes(text.encode("utf-8"))
        for vocabulary, team in self.teams:
            order = team if turn % 2 == 0 else team[::-1]
            if vocabulary is self.vocabularies[0]:
                self.train(turn, vocabulary, [coder for coder in order if coder.name in ("bary", "tokenizers encode")])
            for work, text in made.items():
                self.code(turn, vocabulary, order, (work,), self.folder / work, text, 0)
            self.code(turn, vocabulary, order, ("cold", "warm"), self.text_file, self.text, self.args.again)
            ids = team[1].coder.encode_ordinary(self.text)
            for coder in order:
                if coder.name != "tokenizers batch by line":
                    self.note(turn, vocabulary, "decode", coder, coder.decode(ids))

    def train(self, turn, vocabulary, order):
        for coder in order:
            times, merges = coder.train(self.text_file, self.text)
            if merges is not None and merges != vocabulary.merges:
                raise SystemExit(f"tokenizer: {coder.name} learned other merges than bary; nothing to compare")
            self.note(turn, vocabulary, "train", coder, times)

    def code(self, turn, vocabulary, order, works, file, text, again):
        hashes = {}
        for coder in order:
            taken, hashes[coder.name] = coder.code(file, text, 1 + again * coder.share)
            self.note(turn, vocabulary, works[0], coder, taken[:1])
            self.note(turn, vocabulary, works[-1], coder, taken[1:])
        if len(set(hashes.values())) != 1:
            raise SystemExit(f"tokenizer: ids differ on '{works[0]}' with {vocabulary.name}: {hashes}")

    def report(self):
        print(f"{'vocabulary':12}{'work':15}{'who':26}{'median ms':>10}{'quartiles':>18}{'MB/s':>8}{'by round':>22}")
        for key in dict.fromkeys(row[1:3] for row in self.rows):
            rounds = {}
            for name in (coder.name for coder in self.teams[0][1]):
                times = [row[4] for row in self.rows if row[1:4] == (*key, name)]
                if not times:
                    continue
                for turn in range(self.args.rounds):
                    rounds[name, turn] = statistics.median(row[4] for row in self.rows if row[:4] == (turn, *key, name))
                ratios = [rounds[name, turn] / rounds["bary", turn] for turn in range(self.args.rounds)]
                (low, middle, high), (a, b, c) = quartiles(times), quartiles(ratios)
                print(f"{key[0]:12}{key[1]:15}{name:26}{middle:10.2f}{f'{low:.2f} - {high:.2f}':>18}"
                      f"{self.bytes / 1e3 / middle:8.1f}{f'{b:.1f} ({a:.1f} - {c:.1f})':>22}")

    def write(self, file, machine):
        file.parent.mkdir(parents=True, exist_ok=True)
        with open(file, "w", newline="") as out:
            out.write(f"# {datetime.date.today().isoformat()} {machine}\n# {VERSIONS}, text of {self.bytes} bytes\n")
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(("round", "vocabulary", "work", "who", "ms"))
            writer.writerows(self.rows)
        print(f"every time: {file}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bary", help="the program")
    data = pathlib.Path(os.environ.get("BARY_DATA", "../shared/data"))
    parser.add_argument("--text", type=pathlib.Path, default=data / "tinyshakespeare.txt" if data.is_dir() else data)
    gpt2 = os.environ.get("BARY_GPT2")
    parser.add_argument("--gpt2", type=pathlib.Path, default=gpt2 and pathlib.Path(gpt2))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--again", type=int, default=2, help="warm codings of the slowest a round")
    parser.add_argument("--seed", default="1", help="of the new words")
    parser.add_argument("--out", type=pathlib.Path, help="CSV of every time")
    args = parser.parse_args()
    if args.rounds < 1 or args.again < 1:
        parser.error("--rounds and --again must be at least 1")
    machine = machine_line()
    gc.disable()  # no pause of Python's in a rival's time
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(args, pathlib.Path(folder))
        for turn in range(args.rounds):
            comparison.play(turn)
        for _, team in comparison.teams:
            team[0].quit()
    print(f"machine: {machine}\n{VERSIONS}; {args.rounds} rounds, taking turns")
    print(f"text: {args.text.name}, {comparison.bytes} bytes; all ids and merges were equal")
    if args.out:
        comparison.write(args.out, machine)
    comparison.report()


if __name__ == "__main__":
    main()
