// SPDX-License-Identifier: Apache-2.0
// Token ids are names; a token's row of the table is where its meaning is kept, as a direction that training finds, and
// attention is what tells two meanings of one word apart.
#include "bary/lab/embedding.h"

#include <algorithm>
#include <cmath>

#include "bary/base/quote.h"
#include "bary/lab/list.h"
#include "bary/lab/training.h"
#include "bary/report/format.h"

namespace bary::lab {
namespace {

// Words that can stand in each other's place, chosen before any table was looked at; those that are not one token of
// the text's vocabulary are left out.
const std::vector<std::vector<const char*>> kGroups = {
    {" he", " she", " they", " we", " it"},
    {" him", " her", " them", " me", " us"},
    {" my", " your", " his", " their", " our", " thy"},
    {" will", " shall", " would", " should", " may", " can", " must"},
    {" is", " was", " are", " were"},
    {" in", " on", " by", " with", " from", " at"},
    {"And", "But", "For", "Or", "That", "To"},
    {" this", " that", " these", " those"},
};
constexpr const char* kProbes[] = {" he", " my", " will", " king", " in", "And", " good", " love"};
constexpr size_t kNeighbours = 5, kOfEachGroup = 4;

Recipe recipe(InitStyle init, uint64_t seed, const Plan& plan) {
  Recipe r;
  r.model = preset("block");
  r.model.init = init;
  r.seed = seed;
  return shortened(r, plan, 500);
}

// The rows of a token table, each divided by its length
class Directions {
 public:
  explicit Directions(const LanguageModel& model) : width_(static_cast<size_t>(model.config().n_embd)) {
    for (float v : model.parameters().values_of(*model.parameters().find("transformer.wte.weight")))
      values_.push_back(static_cast<double>(v));
    for (size_t at = 0; at < values_.size(); at += width_) {
      double square = 0;
      for (size_t c = at; c < at + width_; ++c) square += values_[c] * values_[c];
      for (size_t c = at; c < at + width_; ++c) values_[c] /= std::sqrt(square);
    }
  }
  double cosine(int64_t a, int64_t b) const {
    const auto n = static_cast<int64_t>(width_);
    double sum = 0;
    for (int64_t c = 0; c < n; ++c)
      sum += values_[static_cast<size_t>(a * n + c)] * values_[static_cast<size_t>(b * n + c)];
    return sum;
  }
  std::vector<int32_t> nearest(int32_t id, size_t count) const {
    std::vector<std::pair<double, int32_t>> others;
    for (int32_t v = 0; v < static_cast<int32_t>(values_.size() / width_); ++v)
      if (v != id) others.emplace_back(-cosine(id, v), v);
    std::partial_sort(others.begin(), others.begin() + static_cast<int64_t>(count), others.end());
    std::vector<int32_t> ids;
    for (size_t i = 0; i < count; ++i) ids.push_back(others[i].second);
    return ids;
  }

 private:
  size_t width_;
  std::vector<double> values_;
};

struct Words {  // of the groups, as far as each is one token
  std::vector<int32_t> ids;
  std::vector<size_t> group;
};
Words known_words(const Tokenizer& tokenizer) {
  Words words;
  for (size_t g = 0; g < kGroups.size(); ++g) {
    for (const char* word : kGroups[g]) {
      const auto ids = tokenizer.encode(word, SpecialPolicy::as_text());
      if (ids.size() == 1) words.ids.push_back(ids[0]), words.group.push_back(g);
    }
  }
  return words;
}

nlohmann::json measure(const LanguageModel& model, const Tokenizer& tokenizer) {
  const Directions table(model);
  const Words words = known_words(tokenizer);
  Sample alike, others, random;
  for (size_t i = 0; i < words.ids.size(); ++i)
    for (size_t j = i + 1; j < words.ids.size(); ++j)
      (words.group[i] == words.group[j] ? alike : others).values.push_back(table.cosine(words.ids[i], words.ids[j]));
  RandomStream draw(1, Purpose::synthetic, 302);
  const auto V = static_cast<uint64_t>(model.config().vocab_size);
  while (random.n() < 2000) {
    const auto a = static_cast<int64_t>(draw.below(V)), b = static_cast<int64_t>(draw.below(V));
    if (a != b) random.values.push_back(table.cosine(a, b));
  }
  nlohmann::json row = {
      {"alike", alike.mean()}, {"others", others.mean()}, {"random", random.mean()}, {"pairs", alike.n()}};
  auto spelled = [&](int32_t id) { return quote(tokenizer.bytes_of(id), 16); };
  row["neighbours"] = nlohmann::json::object();
  for (const char* word : kProbes) {
    const auto ids = tokenizer.encode(word, SpecialPolicy::as_text());
    if (ids.size() != 1) continue;
    std::string near;
    for (int32_t id : table.nearest(ids[0], kNeighbours)) near += (near.empty() ? "" : " ") + spelled(id);
    row["neighbours"][word] = near;
  }
  std::vector<size_t> shown;
  std::vector<size_t> count(kGroups.size());
  for (size_t i = 0; i < words.ids.size(); ++i)
    if (count[words.group[i]]++ < kOfEachGroup) shown.push_back(i);
  std::vector<double> map;
  row["labels"] = nlohmann::json::array();
  for (size_t i : shown) {
    row["labels"].push_back(std::string(tokenizer.bytes_of(words.ids[i])));
    for (size_t j : shown) map.push_back(table.cosine(words.ids[i], words.ids[j]));
  }
  row["map"] = map;
  return row;
}

nlohmann::json run(Recipe r, const Work& work) {
  const TrainData& data = work.text(r.model.block_size);
  r.model.vocab_size = data.vocab_size;
  const Tokenizer& tokenizer = *data.tokenizer;  // a text always has one
  nlohmann::json row = {{"before", measure(LanguageModel(r.model, r.seed), tokenizer)}};
  const auto model = train_model(r, text_windows(data, r.model.block_size, r.seed), work);
  row["after"] = measure(*model, tokenizer);
  for (const char* when : {"before", "after"})
    for (const char* what : {"alike", "others", "random"}) row[std::string(what) + " " + when] = row[when][what];
  return row;
}

constexpr const char *kSmall = "N(0, 0.02)", *kUnit = "N(0, 1)";

void judge_neighbours(Findings& f, const Rows& rows, const Plan& plan) {
  Table table({{"rows drawn from", Align::left},
               {"alike, before", Align::right},
               {"after", Align::right},
               {"other words, before", Align::right},
               {"after", Align::right},
               {"random tokens, after", Align::right}});
  for (const char* name : {kSmall, kUnit}) {
    const std::string first = std::string(name) + "/1";
    if (!rows.has(first)) continue;
    auto text = [&](const char* field) { return rows.sample(name, field).text(2); };
    table.row({name, text("alike before"), text("alike after"), text("others before"), text("others after"),
               text("random after")});
    const auto& before = rows.at(first)["before"];
    const auto& after = rows.at(first)["after"];
    Table near({{"word", Align::left}, {"nearest before training", Align::left}, {"after", Align::left}});
    for (const auto& [word, words] : before["neighbours"].items())
      near.row({quote(word), words.get<std::string>(), after["neighbours"].value(word, std::string())});
    f.tables.emplace_back(std::string("nearest rows by cosine, rows drawn from ") + name, near);
    for (const char* when : {"before", "after"}) {
      if (before["labels"].empty()) break;  // another text
      const std::vector<std::string> labels = rows.at(first)[when]["labels"];
      f.maps.push_back({fmt::format("cosine of words, {} training, rows drawn from {}, seed 1", when, name), "word",
                        "word", labels, labels, numbers_in(rows.at(first)[when]["map"]), 0, 1});
    }
  }
  f.tables.emplace_back("mean cosine of words of one group and of different groups", table);
  const Sample alike = rows.sample(kSmall, "alike before"), others = rows.sample(kSmall, "others before");
  const Sample apart = rows.sample(kSmall, "alike after") - rows.sample(kSmall, "others after");
  const bool enough =
      rows.has(std::string(kSmall) + "/1") && rows.at(std::string(kSmall) + "/1")["after"]["pairs"] >= 20;
  const Verdict v = both(both(within(alike, -0.05, 0.05), within(others, -0.05, 0.05)), at_least(apart, 0.1));
  f.say("Q2 neighbours", fmt::format("before {}, after {} more than other words", alike.text(2), apart.text(2)),
        enough ? plan.unless_smoke(v) : Verdict::undecided);
  f.notes.push_back(
      "Chosen here: one block, every matrix drawn from N(0, 0.02) as in GPT-2, so that training and not "
      "the draw decides a direction; the chapter's budget also trains from PyTorch's N(0, 1) rows.");
}

Findings judge(const Rows& rows, const Plan& plan) {
  Findings f;
  auto number = [&](const char* key, const char* field) { return rows.number(key, field); };
  auto none_differ = [&](const char* id, const char* key) {
    if (!rows.has(key)) return;
    f.say(id, fmt::format("{} of {} differ", number(key, "different"), rows.count(key, "all")),
          verdict_of(number(key, "different") == 0));
  };
  none_differ("M5 look-up", "look-up");
  none_differ("Q2 names", "names");
  if (rows.has("angles"))
    f.say("M5 angle", number_text(number("angles", "apart"), 2), verdict_of(number("angles", "apart") <= 1e-12));
  if (rows.has("look-up"))
    f.notes.push_back(
        fmt::format("The product with a one-hot row takes {} operations a token at this size, the "
                    "look-up copies {} numbers.",
                    rows.count("look-up", "operations"), number("look-up", "copied")));
  judge_neighbours(f, rows, plan);
  if (rows.has("bank")) {
    const bool holds = number("bank", "row_different") == 0 && number("bank", "met") == 0 &&
                       number("bank", "within") - number("bank", "across") >= 0.1;
    f.say("Q2 bank",
          fmt::format("one row; after attention cosine {} within a sense, {} across",
                      number_text(number("bank", "within"), 3), number_text(number("bank", "across"), 3)),
          plan.unless_smoke(verdict_of(holds)));
    HeatMap map{"`bank` after attention: cosine between sentences",
                "the ... bank",
                "the ... bank",
                {},
                {},
                rows.numbers("bank", "cosines"),
                -1,
                1};
    for (const char* word : kSenses) map.row_labels.push_back(word), map.column_labels.push_back(word);
    f.maps.push_back(map);
    f.notes.push_back(
        fmt::format("`bank` is measured in a made-up language of 18 words (\"the river bank overflowed\", "
                    "\"the loan bank paid\"), as it is rare in the text; a verb of the right kind gets at "
                    "least {} after it.",
                    percent_text(number("bank", "right"))));
  }
  return f;
}

}  // namespace

Experiment embedding() {
  Experiment e;
  e.name = "embedding";
  e.question = "Are token ids numbers, and where does a word get its meaning?";
  e.claims = {
      {"M5 look-up", "A one-hot row times the table is a look-up.", "",
       "200 tokens of 1,024, width 128: every number the same"},
      {"Q2 names", "Token ids are names: another numbering is the same model.", "",
       "with the rows of table and head moved along, every logit is the same to the bit under its new number"},
      {"M5 angle", "A dot product is |a| |b| cos of the angle.", "",
       "1,000 random pairs, the angle measured without a dot product: a.b / (|a| |b|) within 1e-12 of its cosine"},
      {"Q2 neighbours", "Similar tokens come to point in similar directions.", "",
       "trained on the text: mean cosine of pairs within eight groups of words of like use (at least 20 pairs) at "
       "least 0.1 above that of pairs across groups; before training both within 0.05 of 0; mean over the seeds"},
      {"Q2 bank", "One row in the table, two points after attention.", "",
       "eight sentences with `bank` in two senses: its vector before the block is the same to the bit, after attention "
       "no two of different senses are, and the mean cosine within a sense is at least 0.1 above that across"},
  };
  e.units = [](const Plan& plan) {
    std::vector<Unit> units{
        {"look-up", 0.1, one_hot_look_up}, {"names", 0.1, renumbered}, {"angles", 0.1, angles}, {"bank", 2, bank}};
    const bool chapter = plan.budget == Budget::chapter;
    for (int64_t seed = 1; seed <= (chapter ? plan.seeds : 1); ++seed) {
      for (InitStyle init : {InitStyle::gpt2, InitStyle::pytorch}) {
        if (init == InitStyle::pytorch && !chapter) continue;
        const Recipe r = recipe(init, static_cast<uint64_t>(seed), plan);
        units.push_back(training_unit(init == InitStyle::gpt2 ? kSmall : kUnit, r, run));
      }
    }
    return units;
  };
  e.judge = judge;
  return e;
}

}  // namespace bary::lab
