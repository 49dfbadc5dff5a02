// SPDX-License-Identifier: Apache-2.0
#include "bary/base/options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "bary/base/error.h"

namespace bary {
namespace {

enum class Norm { pre, post, none };

struct Sample {
  int n_layer = 6;
  int64_t max_iters = 3000;
  uint64_t seed = 1337;
  int64_t warmup_iters = 100;
  int64_t eval_iters = 0;
  double learning_rate = 1e-3;
  double top_p = 1;
  double limit = 0;
  bool bias = false;
  bool decay_lr = true;
  std::string start = "\n";
  std::string device = "cpu";
  Norm norm = Norm::pre;
};

Options describe(Sample& s) {
  Options o("train");
  o.group("Model");
  o.add("n_layer", &s.n_layer, "blocks", {.min = 1});
  o.add("norm", &s.norm, {{"pre", Norm::pre}, {"post", Norm::post}, {"none", Norm::none}},
        "place of the normalisation");
  o.add("bias", &s.bias, "biases in linear layers");
  o.group("Training");
  o.add("max_iters", &s.max_iters, "updates", {.min = 0, .max = 1e12});
  o.add("seed", &s.seed, "seed of all randomness");
  o.add("warmup_iters", &s.warmup_iters, "updates of warm-up", {.min = 0});
  o.add("eval_iters", &s.eval_iters, "batches of an evaluation", {.min = 1, .words = {{"all", 0}}});
  o.add("learning_rate", &s.learning_rate, "peak learning rate", {.min = 0});
  o.add("decay_lr", &s.decay_lr, "whether the rate falls");
  o.add("top_p", &s.top_p, "nucleus", {.min = 0, .max = 1, .above_min = true});
  o.add("limit", &s.limit, "a limit", {.allow_non_finite = true});
  o.add("start", &s.start, "prompt");
  o.add("device", &s.device, "where it runs", {.choices = {"cpu", "gpu"}});
  return o;
}

using Args = std::vector<std::string>;

std::string message(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
  return "(no error)";
}

std::string refusal(const Args& args) {
  Sample s;
  Options o = describe(s);
  return message([&] { o.parse_args(args); });
}

TEST(OptionsArgs, BothFormsAndBothSpellings) {
  Sample s;
  Options o = describe(s);
  Args rest =
      o.parse_args(Args{"a.txt", "--n_layer", "3", "--max-iters=10", "--learning-rate", "3e-4", "-", "--norm=post"});
  EXPECT_EQ(rest, (Args{"a.txt", "-"}));
  EXPECT_EQ(s.n_layer, 3);
  EXPECT_EQ(s.max_iters, 10);
  EXPECT_EQ(s.learning_rate, 3e-4);
  EXPECT_EQ(s.norm, Norm::post);
  EXPECT_EQ(o.set_by(OptionSource::command_line), (Args{"n_layer", "norm", "max_iters", "learning_rate"}));
  EXPECT_FALSE(o.is_set("seed"));
}

TEST(OptionsArgs, SplitsAtTheFirstEquals) {
  Sample s;
  Options o = describe(s);
  o.parse_args(Args{"--start=1+1="});
  EXPECT_EQ(s.start, "1+1=");
  o.parse_args(Args{"--start="});
  EXPECT_EQ(s.start, "");
  o.parse_args(Args{"--start", "a=b"});
  EXPECT_EQ(s.start, "a=b");
  o.parse_args(Args{"--start=--odd"});
  EXPECT_EQ(s.start, "--odd");
}

TEST(OptionsArgs, Booleans) {
  Sample s;
  Options o = describe(s);
  EXPECT_EQ(o.parse_args(Args{"--bias", "file.txt"}), Args{"file.txt"});
  EXPECT_TRUE(s.bias);
  for (const char* off : {"--bias=false", "--bias=False", "--bias=0", "--no-bias", "--no_bias", "--bias=off"}) {
    s.bias = true;
    o.parse_args(Args{off});
    EXPECT_FALSE(s.bias) << off;
  }
  o.parse_args(Args{"--bias", "true", "--decay_lr", "false"});
  EXPECT_TRUE(s.bias);
  EXPECT_FALSE(s.decay_lr);
  EXPECT_EQ(refusal({"--no-bias=true"}), "--no-bias: takes no value; write --bias or --no-bias");
  EXPECT_EQ(refusal({"--bias=maybe"}), "--bias: \"maybe\" came, expected true or false");
  EXPECT_EQ(refusal({"--no-n_layer"}).substr(0, 22), "--no-n_layer: unknown;");
}

TEST(OptionsArgs, LastWinsAndDoubleDashEnds) {
  Sample s;
  Options o = describe(s);
  Args rest = o.parse_args(Args{"--seed=1", "--seed", "2", "--", "--seed", "-x"});
  EXPECT_EQ(s.seed, 2u);
  EXPECT_EQ(rest, (Args{"--seed", "-x"}));
}

TEST(OptionsArgs, UnknownKeysComeWithTheNearest) {
  EXPECT_EQ(refusal({"--warmpu", "3"}), "--warmpu: unknown; did you mean --warmup_iters?");
  EXPECT_EQ(refusal({"--lr=3"}), "--lr: unknown; did you mean --learning_rate?");
  EXPECT_EQ(refusal({"--qqqqqq=3"}), "--qqqqqq: unknown; bary train --help lists the known keys");
  EXPECT_EQ(refusal({"-n", "3"}).substr(0, 13), "\"-n\": unknown");
  EXPECT_EQ(refusal({"--n_layer"}),
            "--n_layer: its value is missing; give a whole number of at least 1, as --n_layer=VALUE");
  EXPECT_EQ(refusal({"--start", "--seed=3"}), "--start: its value is missing; give text, as --start=VALUE");
  EXPECT_EQ(refusal({"--=3"}).substr(0, 11), "--: unknown");
}

TEST(OptionsArgs, BadValuesNameKeyValueAndWhatIsAccepted) {
  EXPECT_EQ(refusal({"--n_layer=0"}), "--n_layer: \"0\" came, expected a whole number of at least 1");
  EXPECT_EQ(refusal({"--n_layer=2.5"}), "--n_layer: \"2.5\" came, expected a whole number of at least 1");
  EXPECT_EQ(refusal({"--n_layer="}), "--n_layer: \"\" came, expected a whole number of at least 1");
  EXPECT_EQ(refusal({"--n_layer=3000000000"}).substr(0, 32), "--n_layer: \"3000000000\" came, ex");
  EXPECT_EQ(refusal({"--learning_rate=fast"}), "--learning_rate: \"fast\" came, expected a number of at least 0");
  EXPECT_EQ(refusal({"--learning_rate=-1"}), "--learning_rate: \"-1\" came, expected a number of at least 0");
  EXPECT_EQ(refusal({"--learning_rate", "-1"}), "--learning_rate: \"-1\" came, expected a number of at least 0");
  EXPECT_EQ(refusal({"--learning_rate=nan"}), "--learning_rate: \"nan\" came, expected a number of at least 0, finite");
  EXPECT_EQ(refusal({"--learning_rate=1e999"}), "--learning_rate: \"1e999\" came, expected a number of at least 0");
  EXPECT_EQ(refusal({"--learning_rate=1e-3x"}).substr(0, 31), "--learning_rate: \"1e-3x\" came, ");
  EXPECT_EQ(refusal({"--top_p=0"}), "--top_p: \"0\" came, expected a number above 0 and of at most 1");
  EXPECT_EQ(refusal({"--norm=pree"}), "--norm: \"pree\" came, expected pre, post or none; did you mean pre?");
  EXPECT_EQ(refusal({"--device=tpu"}), "--device: \"tpu\" came, expected cpu or gpu; did you mean cpu?");
  EXPECT_EQ(refusal({"--eval_iters=0.5"}), "--eval_iters: \"0.5\" came, expected a whole number of at least 1 or all");
  EXPECT_EQ(refusal({"--seed=-1"}).substr(0, 10), "--seed: \"-");
}

TEST(OptionsArgs, CountsWithUnitsAreExact) {
  Sample s;
  Options o = describe(s);
  const std::vector<std::pair<const char*, int64_t>> cases = {{"5k", 5000},    {"1.5M", 1500000},  {"1.001k", 1001},
                                                              {"1e5", 100000}, {"2G", 2000000000}, {"+7", 7},
                                                              {"0", 0},        {"1200e-2", 12}};
  for (auto [text, value] : cases) {
    o.set("max_iters", text);
    EXPECT_EQ(s.max_iters, value) << text;
  }
  for (const char* bad : {"k", "1.5", "1.0005k", "5kk", "1e", "e5", "1e99", "0x10", "5 ", " 5", "1_000", "1.2.3k",
                          "0e-2147483648", "--5", "99999999999999999999"}) {
    EXPECT_NE(message([&] { o.set("max_iters", bad); }), "(no error)") << bad;
  }
}

TEST(OptionsArgs, TheEndsOfEachType) {
  Sample s;
  Options o = describe(s);
  o.set("seed", "18446744073709551615");
  EXPECT_EQ(s.seed, std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(o.text("seed"), "18446744073709551615");
  EXPECT_NE(message([&] { o.set("seed", "18446744073709551616"); }), "(no error)");
  o.set("n_layer", "2147483647");
  EXPECT_EQ(s.n_layer, 2147483647);
  EXPECT_NE(message([&] { o.set("n_layer", "2147483648"); }), "(no error)");
  int64_t any = 0;
  Options p;
  p.add("any", &any, "");
  p.set("any", "-9223372036854775808");
  EXPECT_EQ(any, std::numeric_limits<int64_t>::min());
  EXPECT_EQ(p.text("any"), "-9223372036854775808");
  EXPECT_NE(message([&] { p.set("any", "-9223372036854775809"); }), "(no error)");
}

TEST(OptionsArgs, WordsAndNonFiniteValuesWhereAllowed) {
  Sample s;
  Options o = describe(s);
  o.parse_args(Args{"--eval_iters=20", "--limit=inf"});
  EXPECT_EQ(s.eval_iters, 20);
  EXPECT_TRUE(std::isinf(s.limit));
  o.parse_args(Args{"--eval_iters=all"});
  EXPECT_EQ(s.eval_iters, 0);
  EXPECT_EQ(o.text("eval_iters"), "all");
  EXPECT_EQ(o.to_json()["eval_iters"], "all");
  EXPECT_EQ(o.to_json()["limit"], "inf");
}

TEST(OptionsToml, FlatKeysAndHeadings) {
  Sample s;
  Options o = describe(s);
  o.parse_toml_text(
      "max_iters = 500\nbias = true\n[model]\nn_layer = 2\nnorm = \"none\"\n[a.b]\nlearning_rate = 1\ntop-p=0.5\n",
      "run.toml");
  EXPECT_EQ(s.max_iters, 500);
  EXPECT_TRUE(s.bias);
  EXPECT_EQ(s.n_layer, 2);
  EXPECT_EQ(s.norm, Norm::none);
  EXPECT_EQ(s.learning_rate, 1.0);
  EXPECT_EQ(s.top_p, 0.5);
  o.parse_toml_text("max_iters = 1e3", "run.toml");
  EXPECT_EQ(s.max_iters, 1000);
  o.parse_toml_text("max_iters = '4k'", "run.toml");
  EXPECT_EQ(s.max_iters, 4000);
  o.parse_toml_text("", "run.toml");
}

TEST(OptionsToml, RefusalsNameTheLine) {
  Sample s;
  Options o = describe(s);
  auto toml = [&](const char* text) { return message([&] { o.parse_toml_text(text, "run.toml"); }); };
  EXPECT_EQ(toml("\nwarmpu = 3"), "run.toml:2: warmpu: unknown; did you mean warmup_iters?");
  EXPECT_EQ(toml("n_layer = 0"), "run.toml:1: n_layer: 0 came, expected a whole number of at least 1");
  EXPECT_EQ(toml("n_layer = 1.5"), "run.toml:1: n_layer: 1.5 came, expected a whole number of at least 1");
  EXPECT_EQ(toml("n_layer = true"), "run.toml:1: n_layer: true came, expected a whole number of at least 1");
  EXPECT_EQ(toml("start = 5"), "run.toml:1: start: 5 came, expected text, in quotes");
  EXPECT_EQ(toml("bias = 1"), "run.toml:1: bias: 1 came, expected true or false");
  EXPECT_EQ(toml("learning_rate = nan"),
            "run.toml:1: learning_rate: nan came, expected a number of at least 0, finite");
  EXPECT_EQ(toml("seed = [1, 2]").substr(0, 18), "run.toml:1: \"seed\"");
  EXPECT_EQ(toml("seed = 1979-05-27").substr(0, 18), "run.toml:1: \"seed\"");
  EXPECT_EQ(toml("[a]\nseed = 1\n[b]\nseed = 2"), "run.toml:4: seed: stands at run.toml:2 too; keep one");
  EXPECT_EQ(toml("seed = 1\nseed = 2").substr(0, 20), "run.toml:2: not TOML");
  EXPECT_EQ(toml("seed = ").substr(0, 20), "run.toml:1: not TOML");
  EXPECT_EQ(toml("\xff\xfe = 1").substr(0, 20), "run.toml:1: not TOML");
  std::string deep = "seed = " + std::string(100000, '[');
  EXPECT_EQ(toml(deep.c_str()).substr(0, 20), "run.toml:1: not TOML");
  EXPECT_NE(message([&] { o.parse_toml("/no/such/file.toml"); }), "(no error)");
}

TEST(Options, TheStrongerSourceWinsInAnyOrder) {
  Sample s;
  Options o = describe(s);
  o.parse_args(Args{"--seed=3"});
  o.parse_toml_text("seed = 2\nn_layer = 2", "run.toml");
  o.from_json({{"seed", 1}, {"n_layer", 1}, {"max_iters", 1}});
  EXPECT_EQ(s.seed, 3u);
  EXPECT_EQ(s.n_layer, 2);
  EXPECT_EQ(s.max_iters, 1);
  EXPECT_EQ(o.source("seed"), OptionSource::command_line);
  EXPECT_EQ(o.source("n_layer"), OptionSource::file);
  EXPECT_EQ(o.source("max_iters"), OptionSource::record);
  EXPECT_EQ(o.source("bias"), OptionSource::default_value);
  EXPECT_NE(message([&] { o.parse_toml_text("seed = -2", "run.toml"); }), "(no error)")
      << "a hidden value is still checked";
}

TEST(OptionsRecord, RoundTripsEveryKind) {
  Sample s;
  Options o = describe(s);
  o.parse_args(Args{"--n_layer=2", "--norm=post", "--bias", "--seed=18446744073709551615", "--eval_iters=all",
                    "--learning_rate=0.1", "--limit=-inf", "--start=\"\n"});
  Sample t;
  Options p = describe(t);
  p.from_json(nlohmann::json::parse(o.to_json().dump()));
  EXPECT_EQ(o.to_json(), p.to_json());
  EXPECT_EQ(t.seed, s.seed);
  EXPECT_EQ(t.learning_rate, 0.1);
  EXPECT_EQ(t.norm, Norm::post);
  EXPECT_EQ(t.limit, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(message([&] {
              p.from_json({{"sede", 1}}, "config.json");
            }),
            "config.json: sede: unknown; did you mean seed?");
  EXPECT_EQ(message([&] { p.from_json({{"seed", nullptr}}, "config.json"); }).substr(0, 18), "config.json: seed:");
  EXPECT_NE(message([&] { p.from_json(nlohmann::json::array()); }), "(no error)");
}

TEST(OptionsRecord, DifferencesForAResume) {
  Sample s;
  Options o = describe(s);
  auto record = o.to_json();
  EXPECT_TRUE(o.differences(record).empty());
  record.erase("bias");
  o.parse_args(Args{"--max_iters=5k", "--norm=none"});
  auto changes = o.differences(record);
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[0].name + changes[0].before + changes[0].after, "normprenone");
  EXPECT_EQ(changes[1].name + changes[1].before + changes[1].after, "bias(absent)false");
  EXPECT_EQ(changes[2].name + changes[2].before + changes[2].after, "max_iters30005000");
}

TEST(OptionsHelp, GroupedWithDefaults) {
  Sample s;
  Options o = describe(s);
  s.n_layer = 99;  // help shows the default, not what came since
  std::string help = o.help();
  EXPECT_NE(help.find("Model:\n  --n_layer N                 blocks (default 6)\n"), std::string::npos) << help;
  EXPECT_NE(help.find("--norm pre|post|none"), std::string::npos);
  EXPECT_NE(help.find("--[no-]bias"), std::string::npos);
  EXPECT_NE(help.find("(default off)"), std::string::npos);
  EXPECT_NE(help.find("--eval_iters N|all"), std::string::npos);
  EXPECT_NE(help.find("(default \"\\n\")"), std::string::npos);
  for (size_t from = 0; from < help.size();) {
    size_t to = help.find('\n', from);
    EXPECT_LE(to - from, 110u);
    from = to + 1;
  }
}

TEST(Options, AWrongDescriptionIsRefused) {
  Sample s;
  Options o = describe(s);
  EXPECT_NE(message([&] { o.add("seed", &s.seed, "again"); }), "(no error)");
  EXPECT_NE(message([&] { o.add("Bad-Name", &s.seed, ""); }), "(no error)");
  EXPECT_NE(message([&] { o.add("low", &s.n_layer, "", {.min = 100}); }), "(no error)");
  s.norm = static_cast<Norm>(77);
  EXPECT_NE(message([&] { o.add("norm2", &s.norm, {{"pre", Norm::pre}}, ""); }), "(no error)");
}

}  // namespace
}  // namespace bary
