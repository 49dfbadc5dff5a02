// SPDX-License-Identifier: Apache-2.0
// Each reader against a few hundred damaged files, the same ones in every run. A longer hunt:
//   BARY_FUZZ_TIMES=100 bary_fuzz_test            a hundred times as many cases
//   BARY_FUZZ_SEED=2 bary_fuzz_test               others
//   BARY_FUZZ_CASE=17 bary_fuzz_test --gtest_filter=Fuzz.Json      one of them again
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <functional>

#include "allocation_watch.h"
#include "bary/base/json.h"
#include "bary/base/quote.h"
#include "bary/text/corpus_command.h"
#include "bary/text/unicode.h"
#include "last_words.h"
#include "mutate.h"
#include "samples.h"
#include "targets.h"

namespace bary::fuzz {
namespace {

constexpr size_t kFreeBytes = size_t{1} << 20;  // for any input, however short
constexpr size_t kTimesInput = 64;

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Empty: all is well.
std::string trouble_with(const Target& target, std::string_view bytes, bool& accepted) {
  unicode_table();  // built at first use, whatever the input
  const AllocationWatch watch;
  std::string trouble;
  try {
    accepted = target.run(bytes);
  } catch (const std::exception& error) {
    trouble = error.what();
    if (trouble.empty()) trouble = "an exception without a message";
  }
  const size_t most = kTimesInput * bytes.size() + kFreeBytes;
  if (trouble.empty() && watch.largest() > most)
    trouble = fmt::format("{} bytes were asked for at once, {} are allowed", watch.largest(), most);
  return trouble;
}

const Target& target_named(std::string_view name) {
  for (const Target& target : all_targets())
    if (target.name == name) return target;
  throw std::logic_error("no such target");
}

using Damage = std::function<std::string(Mutator&)>;

void hunt(const char* name, uint64_t cases, const std::vector<std::string>& valid, const Damage& damage) {
  const Target& target = target_named(name);
  bool accepted = false;
  for (const std::string& bytes : valid) {
    EXPECT_EQ(trouble_with(target, bytes, accepted), "") << name << ", a valid file: " << quote(bytes, 600);
    EXPECT_TRUE(accepted) << name << ", a valid file: " << quote(bytes, 600);
  }
  const uint64_t seed = setting("BARY_FUZZ_SEED", 1), all = cases * setting("BARY_FUZZ_TIMES", 1);
  const uint64_t first = setting("BARY_FUZZ_CASE", 0);
  const uint64_t end = std::getenv("BARY_FUZZ_CASE") != nullptr ? first + 1 : all;
  const auto index = static_cast<uint64_t>(&target - all_targets().data());
  uint64_t refused = 0;
  for (uint64_t number = first; number < end; ++number) {
    const std::string again = fmt::format("{}: repeat with BARY_FUZZ_SEED={} BARY_FUZZ_CASE={}\n", name, seed, number);
    const LastWords words(again);
    Mutator mutator(RandomStream(seed, Purpose::test, number, index));
    const std::string bytes = damage(mutator);
    const std::string trouble = trouble_with(target, bytes, accepted);
    ASSERT_EQ(trouble, "") << again << bytes.size() << " bytes: " << quote(bytes, 600);
    refused += !accepted;
  }
  if (name != std::string_view("text") && end > first + 1) {
    EXPECT_GT(refused, 0u) << name << ": the damage does none";
  }
}

const std::string& pick(const std::vector<std::string>& from, Mutator& mutator) {
  return from[mutator.below(from.size())];
}

// Half the cases through the structure, half through the bytes.
Damage json_and_bytes(const std::vector<std::string>& valid) {
  return [&valid](Mutator& m) {
    const std::string& start = pick(valid, m);
    return m.one_in(3) ? m.bytes(start, pick(valid, m)) : m.json(start);
  };
}

Damage lines_and_bytes(const std::vector<std::string>& valid) {
  return [&valid](Mutator& m) {
    const std::string& start = pick(valid, m);
    return m.one_in(3) ? m.bytes(start, pick(valid, m)) : m.lines(start);
  };
}

TEST(Fuzz, Json) {
  const auto valid = sample_json();
  hunt("json", 3000, valid, json_and_bytes(valid));
}

TEST(Fuzz, OptionsToml) {
  const auto valid = sample_toml();
  hunt("options_toml", 2000, valid, lines_and_bytes(valid));
}

// Tables in tables without end are a few bytes each to write, and a call each to read.
TEST(Fuzz, OptionsTomlDeep) {
  const auto deep = [](const char* before, const char* each, const char* after, size_t times) {
    std::string text = before;
    for (size_t i = 0; i < times; ++i) text += each;
    return text + after;
  };
  bool accepted = false;
  for (const size_t times : {100, 1000, 100'000}) {
    const LastWords words("options_toml: deep\n");
    for (const std::string& text :
         {deep("[", "a.", "a]\nseed = 1\n", times), deep("", "a.", "seed = 1\n", times),
          deep("seed = ", "[", "\n", times), deep("", "a = {", "\n", times), deep("x = {", "a.", "b = 1}\n", times),
          deep("[[", "a.", "a]]\nseed = 1\n", times), deep("[", "\"a\" . ", "a]\nseed = 1\n", times)}) {
      EXPECT_EQ(trouble_with(target_named("options_toml"), text, accepted), "") << text.substr(0, 30) << times;
    }
  }
}

TEST(Fuzz, OptionsArgs) {
  const auto valid = sample_args();
  hunt("options_args", 2000, valid, lines_and_bytes(valid));
}

TEST(Fuzz, ModelConfig) {
  const auto valid = sample_configs();
  hunt("model_config", 2000, valid, json_and_bytes(valid));
}

// Sizes that are each allowed but overflow once they are multiplied, which random damage does not find.
TEST(Fuzz, ModelConfigSizes) {
  const std::vector<std::string> names = {"n_layer", "n_head",    "n_embd",    "block_size", "context",
                                          "d_head",  "n_kv_head", "mlp_ratio", "vocab_size"};
  const std::array<int64_t, 4> sizes = {10'000, 1 << 16, 1 << 20, 1 << 30};
  const Target& target = target_named("model_config");
  const Json start = parse_json(sample_configs().front(), "sample");
  bool accepted = false;
  for (size_t a = 0; a < names.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      for (size_t c = 0; c < b; ++c) {
        for (size_t choice = 0; choice < 64; ++choice) {
          Json config = start;
          config[names[a]] = sizes[choice % 4], config[names[b]] = sizes[choice / 4 % 4],
          config[names[c]] = sizes[choice / 16];
          const std::string bytes = dump_json(config, -1);
          const LastWords words(bytes.substr(0, 250) + "\n");
          ASSERT_EQ(trouble_with(target, bytes, accepted), "") << bytes;
        }
      }
    }
  }
}

TEST(Fuzz, Safetensors) {
  const auto valid = sample_safetensors();
  hunt("safetensors", 4000, valid, [&](Mutator& m) {
    const std::string& start = pick(valid, m);
    return m.one_in(3) ? m.bytes(start, pick(valid, m)) : m.safetensors(start);
  });
}

TEST(Fuzz, RunFolder) {
  const auto files = sample_checkpoint();
  const std::vector<std::string> names = {"config.json", "state.json", "model.safetensors", "optimizer.safetensors",
                                          "tokenizer.json"};
  hunt("run_folder", 500, {"\x80" + files.at("config.json"), "\x82" + files.at("model.safetensors")}, [&](Mutator& m) {
    const size_t choice = m.below(6);
    if (choice == 5) return "\x05" + m.json(R"({"version":1,"files":{"a":{"size":1,"sha256":"00"}},"sha256":"00"})");
    const std::string& start = files.at(names[choice]);
    const bool weights = choice == 2 || choice == 3;
    const std::string damaged = m.one_in(3) ? m.bytes(start) : weights ? m.safetensors(start) : m.json(start);
    const size_t agrees = m.one_in(4) ? 0 : 128;
    return std::string(1, static_cast<char>(choice + agrees)) + damaged;
  });
}

TEST(Fuzz, TokenizerJson) {
  const auto valid = sample_tokenizer_json();
  hunt("tokenizer_json", 320, valid, [&](Mutator& m) {
    const std::string& start = valid[m.one_in(8) ? m.below(valid.size()) : 2 * m.below(valid.size() / 2) + 1];
    if (m.one_in(3)) return m.json_number(start);
    return m.one_in(4) ? m.bytes(start, pick(valid, m)) : m.json(start);
  });
}

TEST(Fuzz, TokenizerGpt2) {
  const auto valid = sample_gpt2_pairs();
  hunt("tokenizer_gpt2", 240, valid, [&](Mutator& m) {
    const std::string& start = valid.front();
    const size_t cut = start.find('\0');
    if (m.one_in(3)) return m.bytes(start);
    if (m.one_in(2)) return m.json_number(start.substr(0, cut)) + start.substr(cut);
    if (m.one_in(2)) return m.json(start.substr(0, cut)) + start.substr(cut);
    return start.substr(0, cut + 1) + m.lines(start.substr(cut + 1));
  });
}

TEST(Fuzz, TokenFolder) {
  const auto files = sample_token_folder();
  const std::vector<std::string> names = {"train.bin", "val.bin", "meta.json"};
  std::vector<std::string> valid;
  for (size_t i = 0; i < names.size(); ++i) valid.push_back(std::string(1, static_cast<char>(i)) + files.at(names[i]));
  hunt("token_folder", 600, valid, [&](Mutator& m) {
    const size_t choice = m.below(3);
    const std::string& start = files.at(names[choice]);
    return std::string(1, static_cast<char>(choice)) + (choice == 2 && !m.one_in(3) ? m.json(start) : m.bytes(start));
  });
}

TEST(Fuzz, Text) {
  hunt("text", 400, sample_texts(), [](Mutator& m) { return m.random_bytes(m.one_in(10) ? 60'000 : 3000); });
}

TEST(Fuzz, Wheel) {
  try {
    if (run_command({"python3", "-I", "-c", "import zipfile"}).exit_code != 0) GTEST_SKIP() << "SKIPPED: needs zipfile";
  } catch (const Error& error) {
    GTEST_SKIP() << "SKIPPED: python3 is needed: " << error.what();
  }
  const std::vector<std::string> valid = {sample_wheel()};
  hunt("wheel", 8, valid, [&](Mutator& m) {
    // Its directory, where the lengths are, stands at the end.
    const size_t tail = valid[0].size() - 120;
    return m.one_in(2) ? m.bytes(valid[0]) : valid[0].substr(0, tail) + m.bytes(valid[0].substr(tail));
  });
}

}  // namespace
}  // namespace bary::fuzz
