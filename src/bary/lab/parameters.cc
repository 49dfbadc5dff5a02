// SPDX-License-Identifier: Apache-2.0
// Where the parameters of a transformer sit: arithmetic, before anything is allocated (chapter, section 6).
#include <algorithm>
#include <cmath>

#include "bary/lab/list.h"
#include "bary/model/count.h"
#include "bary/model/language_model.h"
#include "bary/report/format.h"

namespace bary::lab {
namespace {

constexpr const char* kFamily[] = {"chapter", "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"};
constexpr const char* kLadder[] = {"token",     "average", "average-positions", "head", "heads",
                                   "heads-mlp", "block",   "two-blocks"};
struct Part {
  const char *name, *field;
};
constexpr Part kParts[] = {{"token table", "tokens"},  {"position table", "positions"},
                           {"attention", "attention"}, {"MLP", "mlp"},
                           {"normalisation", "norms"}, {"head", "head"}};

struct Counted {
  int64_t tokens = 0, positions = 0, attention = 0, mlp = 0, norms = 0, final_norm = 0, head = 0;  // three: one block
  int64_t block = 0, total = 0;
};
Counted count(const ModelConfig& c) {
  const ParameterCount n = count_parameters(c);
  Counted out;
  for (const CountRow& r : n.rows) {
    if (r.part == "token embedding") out.tokens = r.count;
    if (r.part == "position embedding") out.positions = r.count;
    if (r.part.starts_with("attention")) out.attention += r.count;
    if (r.part == "MLP") out.mlp = r.count;
    if (r.part == "normalisation") out.norms = r.count;
    if (r.part == "final normalisation") out.final_norm = r.count;
    if (r.part == "head") out.head = r.count;
  }
  out.block = n.block, out.total = n.total;
  return out;
}

ModelConfig with_biases(const ModelConfig& model, bool on) {
  ModelConfig c = model;
  c.bias = c.qkv_bias = on;
  return c;
}

// One model of the family, its blocks added up, and the rules of section 6 at its width
nlohmann::json measure(const std::string& name) {
  const ModelConfig c = preset(name);
  const Counted n = count(c), full = count(with_biases(c, true)), bare = count(with_biases(c, false));
  const int64_t d = c.n_embd;
  ModelConfig no_qkv_bias = with_biases(c, true);
  no_qkv_bias.qkv_bias = false;
  const bool formulas = full.attention == 4 * d * d + 4 * d && full.mlp == 8 * d * d + 5 * d && full.norms == 4 * d &&
                        full.block == 12 * d * d + 13 * d && n.tokens == c.vocab_size * d &&
                        n.positions == c.positions() * d;
  return {{"width", d},
          {"layers", c.n_layer},
          {"tokens", n.tokens},
          {"positions", n.positions},
          {"attention", c.n_layer * n.attention},
          {"mlp", c.n_layer * n.mlp},
          {"norms", c.n_layer * n.norms + n.final_norm},
          {"head", n.head},
          {"block", n.block},
          {"final norm", n.final_norm},
          {"total", n.total},
          {"mlp of block", static_cast<double>(n.mlp) / static_cast<double>(n.block)},
          {"two thirds", 3 * bare.mlp == 2 * (bare.mlp + bare.attention)},
          {"formulas", formulas},
          {"less without q, k, v biases", full.block - count(no_qkv_bias).block}};
}

// One width over 1, 2, 4 ... heads, and one head without the output matrix
nlohmann::json split(const Work&) {
  ModelConfig c = preset("chapter");
  std::vector<double> heads, attention, mlp;
  for (int64_t h = 1; h <= c.n_embd; h *= 2) {
    c.n_head = h;
    const Counted n = count(c);
    heads.push_back(static_cast<double>(h));
    attention.push_back(static_cast<double>(n.attention)), mlp.push_back(static_cast<double>(n.mlp));
  }
  c.n_head = 1, c.attn_proj = false;
  return {{"heads", heads}, {"attention", attention}, {"mlp", mlp}, {"without output matrix", count(c).attention}};
}

// What models that were really built hold, beside what was counted
nlohmann::json build(const Work&) {
  nlohmann::json row;
  bool same = true;
  for (const char* name : kLadder) {
    const ModelConfig c = preset(name);
    const int64_t held = LanguageModel(c, 1).parameters().count();
    same = same && held == count(c).total;
    row[name] = held;
  }
  row["same"] = same;
  return row;
}

void family_pictures(const Rows& rows, Findings& f) {
  Table table({{"model", Align::left},
               {"width", Align::right},
               {"blocks", Align::right},
               {"token table", Align::right},
               {"position table", Align::right},
               {"attention", Align::right},
               {"MLP", Align::right},
               {"normalisation", Align::right},
               {"head", Align::right},
               {"all", Align::right}});
  HeatMap map{"share of the parameters", "model", "part", {}, {}, {}, 0, 1};
  Figure figure{
      "where the parameters sit, from the chapter's model to GPT-2 XL", "parameters", "share", {}, true, false};
  for (const Part& p : kParts) map.column_labels.push_back(p.name), figure.series.push_back({p.name, {}, {}});
  for (const char* name : kFamily) {
    if (!rows.has(name)) continue;
    auto v = [&](const char* field) { return rows.number(name, field); };
    std::vector<std::string> cells{name, count_text(v("width")), count_text(v("layers"))};
    map.row_labels.push_back(name);
    for (size_t i = 0; i < std::size(kParts); ++i) {
      const double share = v(kParts[i].field) / v("total");
      cells.push_back(count_text(v(kParts[i].field)));
      map.values.push_back(share);
      figure.series[i].x.push_back(v("total")), figure.series[i].y.push_back(share);
    }
    cells.push_back(count_text(v("total")));
    table.row(cells);
  }
  f.tables.emplace_back("parameters by part, all blocks together; a head tied to the token table counts once", table);
  f.figures.push_back(figure);
  f.maps.push_back(map);
}

void say_gpt2(const Rows& rows, Findings& f) {
  auto v = [&](const char* field) { return rows.number("gpt2", field); };
  struct Line {
    const char* part;
    double measured, published;
  };
  const Line lines[] = {{"token table, 50,257 x 768", v("tokens"), 38'597'376},
                        {"position table, 1,024 x 768", v("positions"), 786'432},
                        {"one block", v("block"), 7'087'872},
                        {"twelve blocks", v("layers") * v("block"), 85'054'464},
                        {"final normalisation", v("final norm"), 1'536},
                        {"all", v("total"), 124'439'808}};
  Table table({{"GPT-2 small", Align::left}, {"counted", Align::right}, {"published", Align::right}});
  bool exact = true;
  for (const Line& l : lines) {
    table.row({l.part, count_text(l.measured), count_text(l.published)});
    exact = exact && l.measured == l.published;
  }
  f.tables.emplace_back("the arithmetic of GPT-2 small", table);
  const double share = v("tokens") / v("total");
  f.say("M2", count_text(v("total")), verdict_of(exact));
  f.say("M2 table", percent_text(share), verdict_of(share >= 0.305 && share < 0.315));
  f.say("M1 biases", count_text(v("less without q, k, v biases")),
        verdict_of(v("less without q, k, v biases") == 2304));
}

void say_heads(const Rows& rows, Findings& f) {
  const std::vector<double> attention = rows.numbers("heads", "attention"), mlp = rows.numbers("heads", "mlp");
  auto constant = [](const std::vector<double>& x) {
    return !x.empty() && std::all_of(x.begin(), x.end(), [&](double v) { return v == x[0]; });
  };
  const double output = attention.empty() ? 0 : attention[0] - rows.number("heads", "without output matrix");
  f.say("B10 heads", "128 x 128 over 1 to 128 heads: " + count_text(attention.empty() ? 0 : attention[0]),
        verdict_of(constant(attention)));
  f.say("Q7", "output matrix " + count_text(output),
        verdict_of(constant(attention) && constant(mlp) && output == 16'512));
}

Findings judge(const Rows& rows, const Plan&) {
  Findings f;
  family_pictures(rows, f);
  bool complete = true, formulas = true, two_thirds = true;
  double least = 1, most = 0;
  for (const char* name : kFamily) {
    if (!rows.has(name)) {
      complete = false;
      continue;
    }
    formulas = formulas && rows.at(name)["formulas"] == true;
    two_thirds = two_thirds && rows.at(name)["two thirds"] == true;
    least = lesser_of(least, rows.number(name, "mlp of block"));
    most = greater_of(most, rows.number(name, "mlp of block"));
  }
  if (complete) {
    f.say("B10 MLP", fmt::format("{} to {}", percent_text(least), percent_text(most)),
          verdict_of(two_thirds && least >= 0.66 && most <= 0.67));
    f.say("M1", formulas ? "12 d^2 + 13 d at 128, 768, 1024, 1280, 1600" : "other counts than 12 d^2 + 13 d",
          verdict_of(formulas));
  }
  if (rows.has("gpt2")) say_gpt2(rows, f);
  if (rows.has("heads")) say_heads(rows, f);
  if (rows.has("built")) {
    Table table({{"rung", Align::left}, {"parameters held", Align::right}});
    for (const char* name : kLadder) table.row({name, count_text(rows.number("built", name))});
    f.tables.emplace_back("models of the ladder, built and counted", table);
    f.say("M1 built", "block: " + count_text(rows.number("built", "block")),
          verdict_of(rows.at("built")["same"] == true && rows.number("built", "block") == 477'696));
  }
  f.notes.push_back("Any other configuration: bary params --n_embd 512 --n_layer 8 ... prints the same arithmetic.");
  return f;
}

}  // namespace

Experiment parameters() {
  Experiment e;
  e.name = "parameters";
  e.question = "Where do a transformer's parameters sit?";
  e.claims = {
      {"B10 MLP", "Two thirds of every block are the MLP at every scale.", "two thirds",
       "from the chapter's model to GPT-2 XL: exactly 2/3 of a block's matrices, 66 to 67 % of it with biases and "
       "norms"},
      {"B10 heads", "Splitting a width over heads adds no parameters.", "0",
       "the attention of width 128 has the same number of parameters with 1, 2, 4 ... 128 heads"},
      {"M1", "A block has 12 d^2 + 13 d parameters.", "12 d^2 + 13 d",
       "at five widths with all biases: attention 4 d^2 + 4 d, MLP 8 d^2 + 5 d, norms 4 d; tables V d and n_ctx d"},
      {"M1 biases", "Without biases on queries, keys and values a block of GPT-2 small is a little smaller.", "2,304",
       "exactly"},
      {"M1 built", "The arithmetic is what a model holds.", "477,696",
       "every rung of the ladder, built, has as many parameters as counted; the chapter's block exactly 477,696"},
      {"M2", "GPT-2 small has 124,439,808 parameters.",
       "38,597,376 + 786,432 + 12 x 7,087,872 (= 85,054,464) + 1,536 = 124,439,808", "every one of these exactly"},
      {"M2 table", "Almost a third of GPT-2 small is its token table.", "31 %", "31 % when rounded"},
      {"Q7", "Several heads cost what one head costs, plus the output matrix; the MLP does not know of heads.",
       "16,512", "attention and MLP alike for 1 to 128 heads, the output matrix 128 x 128 + 128 parameters"},
  };
  e.units = [](const Plan&) {
    std::vector<Unit> units;
    for (const char* name : kFamily)
      units.push_back({name, 0.001, [name = std::string(name)](const Work&) { return measure(name); }});
    units.push_back({"heads", 0.001, split});
    units.push_back({"built", 0.1, build});
    return units;
  };
  e.judge = judge;
  return e;
}

}  // namespace bary::lab
