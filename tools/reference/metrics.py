# SPDX-License-Identifier: Apache-2.0
"""Writes src/bary/text/metrics_cases_test.h: small corpora and what sacrebleu says about them."""
import pathlib
import subprocess

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF

HEADER = pathlib.Path(__file__).resolve().parents[2] / "src" / "bary" / "text" / "metrics_cases_test.h"

# name: (hypothesis, reference) pairs
CASES = {
    "perfect": [("The cat sat on the mat.", "The cat sat on the mat."), ("Speak, speak.", "Speak, speak.")],
    "one word differs": [("the cat sat on a mat", "the cat sat on the mat")],
    "repeats are clipped": [("the the the the the the the", "the cat is on the mat"), ("a a a b", "a b a b")],
    "empty hypothesis": [("", "Before we proceed any further, hear me speak.")],
    "empty among others": [("", "You are all resolved"), ("rather to die than to famish?", "rather to die than to famish?")],
    "empty reference": [("a few words too many", ""), ("hear me speak now", "hear me speak now")],
    "both empty": [("", "")],
    "only blanks": [(" \t ", "   "), ("a", "a")],
    "nothing matches": [("alpha beta gamma delta", "one two six ten")],
    "no pair of words matches": [("mat the on sat cat the", "the cat sat on the mat")],
    "no three words match": [("the cat on mat the sat rug", "the cat sat on the mat the")],
    "no four words match": [("the cat sat in the big hat", "the cat sat on the big mat")],
    "short texts": [("yes", "yes"), ("no no", "no"), ("ok then go", "ok then stop")],
    "one short text": [("hear me speak", "hear me speak")],
    "brevity": [("we are accounted", "we are accounted poor citizens , the patricians good"), ("no more", "no more talking on't")],
    "too long": [("we are all accounted poor citizens of this town and more", "we are accounted poor citizens")],
    "punctuation": [
        ("(Well), 'tis \"so\"; no -- yes? {a}[b]<c> #1 $5.00 50% a&b x*y_z ~ @me!", "(Well,) 'tis \"so\": no - yes! {a} [b] <c> #1 $5,00 50 % a & b x*y_z ~ @me?"),
        ("a..b ..c. ,,d, 1..2 .5 5. 5,", "a. .b ..c. , ,d, 1.. 2 .5 5 . 5 ,"),
        ("back\\slash ^caret `tick` |pipe| =eq+ no/slash", "back \\slash ^ caret `tick` |pipe| = eq + no / slash"),
    ],
    "numbers": [("3.14 1,000 2-3 a-b -5 5- 1-2-3 v1.0-rc.2,x", "3.14 1,000 2 - 3 a-b -5 5 - 1-2-3 v1.0-rc.2, x")],
    "entities": [("&quot;A&quot; &amp; &lt;b&gt; &amp;lt; &amp;amp;lt; &apos; &quot", "\"A\" & <b> < &lt; ' &quot;"), ("x <skipped> y z w", "x y z w")],
    "line ends": [("hyphen-\nated word\nnext one-\n", "hyphenated word next one-"), ("tab\tand\r\ncarriage return", "tab and carriage return")],
    "not ascii": [
        ("Le c\u0153ur a ses raisons, que la raison ne conna\u00eet point.", "Le c\u0153ur a ses raisons que la raison ne conna\u00eet pas."),
        ("\u00bfQu\u00e9 tal? \u00abBien\u00bb \u2014 \u201cgracias\u201d\u2026 \u20ac5.50", "\u00bfQu\u00e9 tal? \u00abMuy bien\u00bb \u2014 \u201cgracias\u201d. \u20ac5,50"),
        ("\u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002", "\u4eca\u5929\u5929\u6c14\u597d\u3002"),
        ("na\u00efve.caf\u00e9,\u00fcber \u0663.\u0664 \U0001f600.\U0001f601", "na\u00efve. caf\u00e9, \u00fcber \u0663. \u0664 \U0001f600 . \U0001f602"),
    ],
    "other blanks": [("a\u00a0b\u2003c\u3000d\u1680e\u0085f\u2028g", "a b c d e f g"), ("\x1ca\x1db\x1ec\x1fd\x0be\x0cf", "a b c d e f"), ("z\u200bw \ufeffq", "z w q")],
    "longer orders only on one side": [("abcdefgh", "abc"), ("abc", "abcdefgh"), ("ab", "ab")],
    "case and marks restored": [
        ("Before We proceed any further hear me Speak.", "Before we proceed any further, hear me speak."),
        ("we know't, We know't", "We know't, we know't."),
        ("One word good citizens", "One word, good citizens."),
    ],
}


def text(value: str) -> str:
    """A C++ literal: octal escapes, because they end after three digits."""
    plain = lambda byte: 32 <= byte < 127 and chr(byte) not in '"\\?'
    return '"' + "".join(chr(byte) if plain(byte) else f"\\{byte:03o}" for byte in value.encode()) + '"'


def braces(values) -> str:
    return "{" + ", ".join(values) + "}"


def case(name: str, pairs: list) -> str:
    hypotheses, references = [h for h, _ in pairs], [r for _, r in pairs]
    bleu = BLEU().corpus_score(hypotheses, [references])
    metric = CHRF()
    chrf = metric.corpus_score(hypotheses, [references])
    sums = [sum(column) for column in zip(*metric._extract_corpus_statistics(hypotheses, [references]))]
    fields = [
        text(name), braces(map(text, hypotheses)), braces(map(text, references)),
        repr(float(bleu.score)), braces(repr(float(p)) for p in bleu.precisions), braces(map(str, bleu.counts)), braces(map(str, bleu.totals)),
        repr(float(bleu.bp)), str(bleu.sys_len), str(bleu.ref_len), repr(float(chrf.score)),
        braces(map(str, sums[2::3])), braces(map(str, sums[0::3])), braces(map(str, sums[1::3])),
        braces(map(text, BLEU().tokenizer(hypotheses[0].rstrip()).split())),
    ]
    return "      {" + ",\n       ".join(fields) + "},\n"


HEADER.write_text(f"""// SPDX-License-Identifier: Apache-2.0
// Made by tools/reference/metrics.py with sacrebleu {sacrebleu.__version__}; not edited by hand.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace bary::test {{

struct MetricCase {{
  std::string name;
  std::vector<std::string> hypotheses, references;
  double bleu;
  std::array<double, 4> precisions;
  std::array<int64_t, 4> matched, total;
  double brevity_penalty;
  int64_t hypothesis_length, reference_length;
  double chrf;
  std::array<int64_t, 6> chrf_matched, chrf_hypothesis, chrf_reference;
  std::vector<std::string> first_tokens;  // of hypotheses[0], as BLEU counts them
}};

inline std::vector<MetricCase> metric_cases() {{
  return {{
{"".join(case(name, pairs) for name, pairs in CASES.items())}  }};
}}

}}  // namespace bary::test
""")
subprocess.run(["clang-format", "-i", HEADER], check=True)
print(f"{HEADER.name}: {len(CASES)} cases, sacrebleu {sacrebleu.__version__}")
