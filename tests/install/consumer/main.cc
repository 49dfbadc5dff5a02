// SPDX-License-Identifier: Apache-2.0
// A model of the installed library, made, asked and refused: every floor below the command is linked.
#include <cstdio>

#include "bary/base/error.h"
#include "bary/base/portable_math.h"
#include "bary/generate/generate.h"

int main() try {
  std::printf("e = %.15g\n", bary::portable::exp(1.0));
  bary::ModelConfig config;
  config.vocab_size = 256, config.block_size = 16, config.n_layer = 1, config.n_head = 2, config.n_embd = 16;
  bary::LanguageModel model(config, /*seed*/ 1);
  bary::GenerateOptions options;
  options.max_new_tokens = 4;
  const auto texts = bary::generate(model, bary::Tokenizer::bytes(), {"To be"}, options);
  std::printf("%zu tokens\n", texts.at(0).ids.size());
  config.n_head = 3;
  bary::LanguageModel refused(config, 1);
} catch (const bary::Error& error) {
  std::printf("%s\n", error.what());
}
