// SPDX-License-Identifier: Apache-2.0
// "the {x} did not cross the {y} because it was too {adj} , so the {ref} waited .": who waited? An average over the
// words, one block and two blocks, on a language where a bag of words is enough and on one where it is not; then where
// the blocks look, and what is left when their heads are switched off (chapter, section 7).
#include "bary/lab/two_nouns.h"

#include <algorithm>
#include <cmath>

#include "bary/inspect/capture.h"
#include "bary/inspect/circuit.h"
#include "bary/lab/list.h"
#include "bary/report/format.h"

namespace bary::lab {
namespace {

// The held-out sentences up to the answer, side by side
struct Sentences {
  std::vector<int32_t> ids, answer, wrong;
  int64_t length = 0;

  explicit Sentences(const SyntheticLanguage& language) {
    for (int64_t i = 0; i < language.count(SyntheticSplit::held_out); ++i) {
      const SyntheticSequence s = language.listed(SyntheticSplit::held_out, i);
      length = s.answer;
      ids.insert(ids.end(), s.tokens.begin(), s.tokens.begin() + length);
      answer.push_back(s.tokens[static_cast<size_t>(length)]), wrong.push_back(s.wrong);
    }
  }
  int64_t count() const { return std::ssize(answer); }
};

struct Score {
  double right = 0, wrong_noun = 0;  // shares; the rest said another word
};
Score score(const LanguageModel& model, const Sentences& s) {
  const Tensor logits = model.logits(s.ids, s.count());
  Score sum;
  for (int64_t i = 0; i < s.count(); ++i) {
    const float* row = logits.row((i + 1) * s.length - 1);
    const auto said = static_cast<int32_t>(std::max_element(row, row + logits.channels()) - row);
    sum.right += said == s.answer[static_cast<size_t>(i)], sum.wrong_noun += said == s.wrong[static_cast<size_t>(i)];
  }
  const auto n = static_cast<double>(s.count());
  return {sum.right / n, sum.wrong_noun / n};
}

// "the animal did not cross the street because it was too {adj} , so the" for the eight adjectives
std::vector<int32_t> eight_sentences(const SyntheticLanguage& language) {
  std::vector<int32_t> ids;
  for (const char* adjective : kAdjectives) {
    SyntheticSequence s = language.listed(SyntheticSplit::training, 0);
    s.tokens[kFirstNounAt] = language.id("animal"), s.tokens[kSecondNounAt] = language.id("street");
    s.tokens[kAdjectiveAt] = language.id(adjective);
    ids.insert(ids.end(), s.tokens.begin(), s.tokens.begin() + s.answer);
  }
  return ids;
}

// Where each block looks from the answering position, mean over heads, one row an adjective; and what the first block
// makes of "tired" and "wet": scores of the other words, and weights of all
void look(const LanguageModel& model, const SyntheticLanguage& language, nlohmann::json& row) {
  const auto ids = eight_sentences(language);
  const int64_t B = std::ssize(kAdjectives), H = model.config().n_head, T = std::ssize(ids) / B, last = T - 1;
  std::vector<std::string> words;
  for (int64_t t = 0; t < T; ++t)
    words.push_back(t == kAdjectiveAt ? "{adj}"
                                      : language.vocabulary()[static_cast<size_t>(ids[static_cast<size_t>(t)])]);
  row["words"] = words;
  const auto patterns = attention_patterns(model, ids, B);
  for (size_t block = 0; block < patterns.size(); ++block) {
    std::vector<double> map;
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t t = 0; t < T; ++t) {
        double sum = 0;
        for (int64_t h = 0; h < H; ++h) sum += static_cast<double>(patterns[block].row((b * H + h) * T + last)[t]);
        map.push_back(sum / static_cast<double>(H));
      }
    }
    row[fmt::format("map {}", block + 1)] = map;
  }
  const Tensor scores = attention_scores(model, 0, ids, B);
  double scores_apart = 0;
  for (int64_t h = 0; h < H; ++h)
    for (int64_t t = 0; t < T; ++t)
      if (t != kAdjectiveAt)
        scores_apart =
            greater_of(scores_apart, std::fabs(static_cast<double>(scores.row((kTired * H + h) * T + last)[t]) -
                                               static_cast<double>(scores.row((kWet * H + h) * T + last)[t])));
  row["scores apart"] = scores_apart;
}

// Held-out accuracy without one head, or without all heads, of each block: block by block, the heads in order, then all
std::vector<double> switched_off(const LanguageModel& model, const Sentences& held_out) {
  std::vector<double> left;
  for (int64_t block = 0; block < model.config().n_layer; ++block) {
    for (int64_t h = 0; h <= model.config().n_head; ++h) {
      std::vector<int64_t> heads{h};
      if (h == model.config().n_head) {
        heads.pop_back();
        for (int64_t all = 0; all < h; ++all) heads.push_back(all);
      }
      Probe probe;
      switch_off(probe, model, block, heads);
      left.push_back(score(model, held_out).right);
    }
  }
  return left;
}

nlohmann::json run(const Trial& trial, const Work& work) {
  const auto language = trial.language();
  const Sentences held_out(*language);
  const Recipe& r = trial.recipe;
  const Batches batches = [&](int64_t step, int64_t s, std::span<int32_t> in, std::span<int32_t> out) {
    const auto index = static_cast<uint64_t>(step * r.batch + s);
    const auto tokens = language->sequence(r.seed, SyntheticSplit::training, index).tokens;
    std::copy(tokens.begin(), tokens.end() - 1, in.begin()), std::copy(tokens.begin() + 1, tokens.end(), out.begin());
  };
  std::vector<double> steps, right, wrong;
  const auto model = train_model(r, batches, work, [&](const StepSeen& s, LanguageModel& m) {
    if (!keep_point(s.step, r.steps, 40)) return;
    const Score now = score(m, held_out);
    steps.push_back(static_cast<double>(s.step)), right.push_back(now.right), wrong.push_back(now.wrong_noun);
  });
  nlohmann::json row{{"right", right.back()},
                     {"wrong noun", wrong.back()},
                     {"steps", steps},
                     {"rights", right},
                     {"wrongs", wrong},
                     {"sentences", held_out.count()},
                     {"parameters", model->parameters().count()}};
  if (!trial.leaky && r.model.mixer == Mixer::attention) {
    look(*model, *language, row);
    row["off"] = switched_off(*model, held_out);
  }
  return row;
}

}  // namespace

std::unique_ptr<SyntheticLanguage> Trial::language() const {
  SyntheticOptions o;
  o.seed = recipe.seed, o.symbols = static_cast<int>(symbols);
  return make_synthetic(leaky ? "two-nouns-leaky" : "two-nouns", o);
}

std::vector<Trial> trials(const Plan& plan) {
  std::vector<Trial> all;
  auto add = [&](const char* name, const char* model, int64_t steps, int64_t seeds, int64_t leaky) {
    for (int64_t seed = 1; seed <= seeds; ++seed) {
      Trial t{fmt::format("{}/{}", name, seed), leaky > 0, leaky > 0 ? leaky : 16, {}};
      t.recipe.model = preset(model);
      t.recipe.steps = plan.budget == Budget::smoke ? 2 : steps;
      if (plan.budget == Budget::smoke) t.recipe.batch = 4;
      t.recipe.seed = static_cast<uint64_t>(seed);
      const auto language = t.language();
      t.recipe.model.vocab_size = language->vocab_size();
      t.recipe.model.block_size = language->sequence_length() - 1;
      all.push_back(t);
    }
  };
  const bool chapter = plan.budget == Budget::chapter;
  const int64_t seeds = chapter ? plan.seeds : 1, several = plan.pick<int64_t>(1, 3, plan.seeds);
  const int64_t steps = chapter ? 4000 : 1000;  // of blocks; an average needs more and is cheap
  add("average", "average-added", 4000, seeds, 0);
  add("one block", "block", steps, several, 0);
  add("two blocks", "two-blocks", steps, seeds, 0);
  for (int64_t kinds : {8, 10, 12, 14, 16})
    if (chapter || kinds % 4 == 0) add(leaky_row(kinds).c_str(), "average-added", 4000, seeds, kinds);
  add("leaky one block", "block", steps, seeds, 16);
  return all;
}

Experiment two_nouns() {
  Experiment e;
  e.name = "two-nouns";
  e.question = "Can attention find the noun that a word two hops away decides about?";
  e.claims = two_nouns_claims();
  e.units = [](const Plan& plan) {
    std::vector<Unit> units;
    for (const Trial& t : trials(plan))
      units.push_back({t.key, recipe_gflop(t.recipe), [t](const Work& work) { return run(t, work); }});
    return units;
  };
  e.judge = judge_two_nouns;
  return e;
}

}  // namespace bary::lab
