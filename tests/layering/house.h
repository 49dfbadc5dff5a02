// SPDX-License-Identifier: Apache-2.0
// The rules of the house that a machine can see in the tree: which folder may include which, and a few habits. Values
// in, values out, so that the checker itself is tested on made-up bad trees.
#pragma once
#include <string>
#include <vector>

namespace bary::house {

struct SourceFile {
  std::string path;  // from the project's root, with '/': "src/bary/nn/linear.h"
  std::string text;
};

// Sources, scripts and build files under `root`, sorted by path; build folders and data are not read.
std::vector<SourceFile> read_tree(const std::string& root);

// One line per violation, "path: what is wrong; what to do"; empty when the tree keeps the rules.
std::vector<std::string> violations(const std::vector<SourceFile>& files);

enum class Literals { keep, empty };
// Code without comments, lines kept; string and character literals stay or lose what is between their quotes.
std::string without_comments(const std::string& code, Literals literals);

}  // namespace bary::house
