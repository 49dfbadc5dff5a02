// SPDX-License-Identifier: Apache-2.0
// Induction heads: models without MLPs learn to complete [A][B] ... [A] with B, and every head is watched on the way.
// The distance between the copies is drawn anew for every passage and the window is cut anywhere, so that nothing but
// the text itself tells where to look; a model of one layer is the control, a model of the chapter's text the outlook.
#include "bary/lab/induction.h"

#include <algorithm>
#include <cmath>

#include "bary/base/random.h"
#include "bary/inspect/capture.h"
#include "bary/inspect/circuit.h"
#include "bary/inspect/detect.h"
#include "bary/lab/list.h"
#include "bary/lab/training.h"
#include "bary/text/synthetic.h"

namespace bary::lab {
namespace {

// Passages [r][r] of the language `repeat`, one after another, the length of each r drawn from shortest .. longest.
class RepeatStream {
 public:
  // A passage's symbols differ, so a small vocabulary shortens it.
  RepeatStream(int symbols, int64_t shortest, int64_t longest) : longest_(std::min<int64_t>(longest, symbols)) {
    for (int64_t length = std::min(shortest, longest_); length <= longest_; ++length) {
      SyntheticOptions o;
      o.symbols = symbols, o.length = static_cast<int>(length);
      languages_.push_back(make_synthetic("repeat", o));
    }
  }

  // A window that starts anywhere in its first passage. scored[i]: tokens[i] stands in a second copy and what tells it,
  // the token before it in the first copy, lies in the window.
  struct Window {
    std::vector<int32_t> tokens;
    std::vector<uint8_t> scored;
  };
  Window window(uint64_t seed, SyntheticSplit split, uint64_t index, int64_t length) const {
    RandomStream random(seed, Purpose::synthetic, 16 + static_cast<uint64_t>(split), index);
    Window w;
    int64_t cut = 0;
    const int64_t most = length + 2 * longest_;
    for (uint64_t passage = 0; std::ssize(w.tokens) < most; ++passage) {
      const auto& language = *languages_[random.below(languages_.size())];
      const auto s = language.sequence(seed, split, index * static_cast<uint64_t>(most) + passage);
      const int64_t copy = std::ssize(s.tokens) / 2;
      if (passage == 0) cut = static_cast<int64_t>(random.below(s.tokens.size()));
      for (int64_t i = 0; i < 2 * copy; ++i) {
        w.tokens.push_back(s.tokens[static_cast<size_t>(i)]);
        w.scored.push_back(s.scored[static_cast<size_t>(i)] && (passage > 0 || i - copy - 1 >= cut));
      }
    }
    auto keep = [&](auto& all) { all.erase(all.begin(), all.begin() + cut), all.resize(static_cast<size_t>(length)); };
    keep(w.tokens), keep(w.scored);
    return w;
  }

 private:
  int64_t longest_;
  std::vector<std::unique_ptr<SyntheticLanguage>> languages_;
};

// Random passages that were never trained on, and what heads do with them
class Examination {
 public:
  Examination(const RepeatStream& stream, int64_t count, int64_t T) : B_(count) {
    for (int64_t i = 0; i < count; ++i) {
      const auto w = stream.window(0, SyntheticSplit::held_out, static_cast<uint64_t>(i), T + 1);
      ids_.insert(ids_.end(), w.tokens.begin(), w.tokens.end() - 1);
      for (size_t t = 1; t < w.tokens.size(); ++t) targets_.push_back(w.scored[t] ? w.tokens[t] : -1);
    }
  }

  double second_copy_loss(const LanguageModel& model) const {
    const LossSum l = model.loss(ids_, targets_, B_);
    return l.sum / static_cast<double>(l.count);
  }

  // Appends this moment to the row: the loss, and of every head, layer by layer, its three scores.
  void watch(const LanguageModel& model, int64_t step, nlohmann::json& row) const {
    row["steps"].push_back(step);
    row["second copy"].push_back(rounded(second_copy_loss(model)));
    const auto patterns = attention_patterns(model, ids_, B_);
    nlohmann::json induction, previous, copying;
    for (size_t l = 0; l < patterns.size(); ++l) {
      for (const RowMass& m : row_mass(HeadKind::induction, patterns[l], ids_)) {
        induction.push_back(rounded(m.score));
        row["uniform"] = m.uniform, row["rows"] = m.rows;
      }
      for (const RowMass& m : row_mass(HeadKind::previous, patterns[l], ids_)) {
        previous.push_back(rounded(m.score));
        row["uniform previous"] = m.uniform;
      }
      for (double c : copying_scores(model, static_cast<int64_t>(l), ids_, B_)) copying.push_back(rounded(c));
    }
    row["induction"].push_back(induction), row["previous"].push_back(previous), row["copying"].push_back(copying);
  }

  // What each head of the first layer would score if places alone told it where to look: its mean weight at (i,j) over
  // all windows in the place of each window's own. A score above it needs the text.
  std::vector<double> by_place(const LanguageModel& model) const {
    const Tensor pattern = attention_patterns(model, ids_, B_).front();
    const int64_t rows = pattern.rows() / B_, T = pattern.dim(3);
    Tensor mean(pattern.shape());
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t j = 0; j < T; ++j) {
        double sum = 0;
        for (int64_t b = 0; b < B_; ++b) sum += static_cast<double>(pattern.row(b * rows + r)[j]);
        for (int64_t b = 0; b < B_; ++b) mean.row(b * rows + r)[j] = static_cast<float>(sum / static_cast<double>(B_));
      }
    }
    std::vector<double> scores;
    for (const RowMass& m : row_mass(HeadKind::induction, mean, ids_)) scores.push_back(rounded(m.score));
    return scores;
  }

  // The loss without one head of the first layer, head by head
  std::vector<double> without_each(const LanguageModel& model) const {
    std::vector<double> losses;
    for (int64_t h = 0; h < model.config().n_head; ++h) {
      Probe probe;
      switch_off(probe, model, 0, std::vector<int64_t>{h});
      losses.push_back(second_copy_loss(model));
    }
    return losses;
  }

 private:
  static double rounded(double x) { return std::round(x * 1e4) / 1e4; }  // a row keeps hundreds of them

  int64_t B_;
  std::vector<int32_t> ids_, targets_;
};

nlohmann::json on_repeats(const Recipe& r, const Work& work) {
  const int64_t T = r.model.block_size;
  const RepeatStream stream(static_cast<int>(r.model.vocab_size), T / 5, T / 2);
  const Examination exam(stream, 64, T);
  const Batches batches = [&](int64_t step, int64_t s, std::span<int32_t> in, std::span<int32_t> out) {
    const auto w = stream.window(r.seed, SyntheticSplit::training, static_cast<uint64_t>(step * r.batch + s), T + 1);
    std::copy(w.tokens.begin(), w.tokens.end() - 1, in.begin()),
        std::copy(w.tokens.begin() + 1, w.tokens.end(), out.begin());
  };
  nlohmann::json row{{"symbols", r.model.vocab_size}};
  const auto model = train_model(r, batches, work, [&](const StepSeen& s, LanguageModel& m) {
    if (keep_point(s.step, r.steps, 60)) exam.watch(m, s.step, row);
  });
  row["without"] = exam.without_each(*model), row["by place"] = exam.by_place(*model);
  return row;
}

std::string word_of(const TrainData& data, int32_t id) {
  if (!data.tokenizer) return std::to_string(id);
  std::string word;
  for (char c : data.tokenizer->decode_text({&id, 1})) {
    if (c == ' ') {
      word += "\u2423";
    } else if (c == '\n') {
      word += "\u23ce";
    } else {
      word += c;
    }
  }
  return word;
}

// One sentence as a model of the text sees it: heads of the last layer side by side would not fit, so their mean. And
// of each head the share of rows that put half of their weight on one token further back than the last.
void keep_map(const LanguageModel& model, const TrainData& data, nlohmann::json& row) {
  const int64_t T = std::min<int64_t>(24, model.config().block_size), H = model.config().n_head;
  std::vector<int32_t> ids(static_cast<size_t>(T));
  for (int64_t t = 0; t < T; ++t) ids[static_cast<size_t>(t)] = data.val[t];
  std::vector<double> map(static_cast<size_t>(T * T), 0), pointed(static_cast<size_t>(H), 0);
  const Tensor pattern = attention_patterns(model, ids).back();
  for (int64_t i = 0; i < H * T; ++i) {
    const float* w = pattern.row(i);
    for (int64_t j = 0; j < T; ++j)
      map[static_cast<size_t>(i % T * T + j)] += static_cast<double>(w[j]) / static_cast<double>(H);
    if (std::any_of(w, w + std::max<int64_t>(0, i % T - 1), [](float v) { return v >= 0.5f; }))
      pointed[static_cast<size_t>(i / T)] += 1 / static_cast<double>(T);
  }
  row["map"] = map, row["pointed"] = pointed;
  for (int32_t id : ids) row["map words"].push_back(word_of(data, id));
}

// The chapter's block of half a million parameters, trained on the text
nlohmann::json as_it_is(const Recipe& r, const Work& work) {
  auto [model, row] = train_on_text(r, work);
  keep_map(*model, work.text(r.model.block_size), row);
  return row;
}

nlohmann::json on_text(Recipe r, const Work& work) {
  const TrainData& data = work.text(r.model.block_size);
  r.model.vocab_size = data.vocab_size;
  // Of all tokens of the vocabulary, wherever they come from: passages of the exercise, not of the text
  const RepeatStream stream(static_cast<int>(data.vocab_size), r.model.block_size / 5, r.model.block_size / 2);
  const Examination exam(stream, 8, r.model.block_size);
  nlohmann::json row{{"symbols", data.vocab_size}};
  const auto model =
      train_model(r, text_windows(data, r.model.block_size, r.seed), work, [&](const StepSeen& s, LanguageModel& m) {
        if (keep_point(s.step, r.steps, 30)) exam.watch(m, s.step, row);
      });
  return row;
}

}  // namespace

Experiment induction() {
  Experiment e;
  e.name = "induction";
  e.question = "How does a model learn to complete what it has seen before, and when?";
  e.claims = induction_claims();
  e.units = [](const Plan& plan) {
    std::vector<Unit> units;
    for (int64_t seed = 1; seed <= plan.pick<int64_t>(1, 1, plan.seeds); ++seed) {
      for (int64_t layers : {2, 1}) {
        const Recipe r = repeat_recipe(layers, static_cast<uint64_t>(seed), plan);
        units.push_back({fmt::format("{}/{}", layers == 2 ? kTwoLayers : kOneLayer, seed), recipe_gflop(r),
                         [r](const Work& work) { return on_repeats(r, work); }});
      }
    }
    Recipe r = text_recipe(plan);
    units.push_back({fmt::format("{}/1", kText), recipe_gflop(r), [r](const Work& work) { return on_text(r, work); }});
    r.model = preset("block");
    units.push_back(training_unit(kMap, r, as_it_is));
    return units;
  };
  e.judge = judge_induction;
  return e;
}

}  // namespace bary::lab
