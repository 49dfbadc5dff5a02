// SPDX-License-Identifier: Apache-2.0
// A small model, made-up tokens and a folder, for the tests of this floor.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "bary/base/parallel.h"
#include "bary/base/random.h"
#include "bary/train/checkpoint.h"
#include "bary/train/loop.h"
#include "bary/train/text_objective.h"

namespace bary::test {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "bary-train-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path() const { return path_.string(); }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

struct Threads {  // as many for one test, then as before; one is fastest for the smallest models
  explicit Threads(int n) : before(threads()) { set_threads(n); }
  ~Threads() { set_threads(before); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  int before;
};

inline std::vector<int32_t> random_ids(int64_t n, int64_t V, uint64_t seed = 1) {
  RandomStream random(seed, Purpose::test);
  std::vector<int32_t> ids(static_cast<size_t>(n));
  for (int32_t& id : ids) id = static_cast<int32_t>(random.below(static_cast<uint64_t>(V)));
  return ids;
}

inline ModelConfig small_model() {
  ModelConfig c;
  c.vocab_size = 29, c.block_size = 8, c.n_embd = 16, c.n_head = 2;
  return c;
}

struct Data {  // holds the ids its spans point into
  explicit Data(int64_t n, double val_fraction = 0.2, int64_t V = 29) : ids(random_ids(n, V)) {
    TokenSplit split = split_tokens(ids, val_fraction);
    data.train = split.train, data.val = split.val, data.vocab_size = V;
  }
  std::vector<int32_t> ids;
  TrainData data;
};

inline TrainConfig small_run(const std::string& out_dir) {
  TrainConfig t;
  t.out_dir = out_dir, t.batch_size = 4, t.max_iters = 6, t.eval_interval = 2, t.eval_iters = 3, t.log_interval = 1;
  return t;
}

inline std::vector<nlohmann::json> metrics(const std::string& out_dir) {
  std::vector<nlohmann::json> lines;
  std::ifstream in(out_dir + "/metrics.jsonl");
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

inline std::vector<float> values(const LanguageModel& model) {
  const Parameters& p = model.parameters();
  return {p.values(), p.values() + p.size()};
}

// The message of the Error of `kind` that f throws.
template <class F>
std::string message(F f, ErrorKind kind = ErrorKind::input) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace bary::test
