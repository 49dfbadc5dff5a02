# SPDX-License-Identifier: Apache-2.0
"""Checks tokenizer files of bary with Hugging Face's tokenizers: hf_compare.py FOLDER

For each NAME.json with NAME.cases (a list of {"text", "ids"}): the library loads the file, gives the same ids, and decodes
them to the text. It then saves the tokenizer as NAME.saved, for bary to read again. Last, its own trainer must learn the
merges that bary learned with the tie rule `hf`.
"""
import json
import pathlib
import sys

import tokenizers


def check(file):
    tokenizer = tokenizers.Tokenizer.from_file(str(file))
    cases = json.loads(file.with_suffix(".cases").read_text(encoding="utf-8"))
    failures = 0
    for case in cases:
        text, ids = case["text"], case["ids"]
        got = tokenizer.encode(text, add_special_tokens=False).ids
        back = tokenizer.decode(ids, skip_special_tokens=False)
        if got != ids or back != text:
            failures += 1
            if failures <= 5:
                print(f"FAILED: {file.name}: {text!r}\n  bary {ids}\n  theirs {got}\n  decoded {back!r}")
    tokenizer.save(str(file.with_suffix(".saved")))
    print(f"{file.name}: {len(cases)} texts, {failures} differ")
    return failures


def check_unknown_character(file):
    tokenizer = tokenizers.Tokenizer.from_file(str(file))
    try:
        tokenizer.encode("\u2603")
    except Exception:
        return 0
    print(f"FAILED: {file.name}: a character that is not in it gave no error")
    return 1


def check_training(folder):
    ours = json.loads((folder / "learned_as_hf.json").read_text(encoding="utf-8"))["model"]["merges"]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=256 + len(ours),
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([(folder / "training_text").read_bytes().decode()], trainer)
    theirs = json.loads(tokenizer.to_str())["model"]["merges"]
    theirs = [merge.split(" ") if isinstance(merge, str) else merge for merge in theirs]
    if ours != theirs:
        print("FAILED: the trainer learned other merges than bary with the tie rule hf")
        return 1
    print(f"trainer: the same {len(ours)} merges")
    return 0


def main():
    folder = pathlib.Path(sys.argv[1])
    files = sorted(folder.glob("*.json"))
    failures = sum(check(file) for file in files)
    failures += check_unknown_character(folder / "chars.json")
    failures += check_training(folder)
    print(f"tokenizers {tokenizers.__version__}: {len(files)} files, {failures} failures")
    return 1 if failures or not files else 0


if __name__ == "__main__":
    sys.exit(main())
