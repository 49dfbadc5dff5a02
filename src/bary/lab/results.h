// SPDX-License-Identifier: Apache-2.0
// The file of a lab: results.json, every finished row by experiment and key, written anew as a whole after each row. A
// row is one line, so that two states of the file compare row by row.
#pragma once
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "bary/lab/experiment.h"

namespace bary::lab {

inline constexpr const char* kResultsName = "results.json";
inline constexpr int kResultsFormat = 2;

struct Setting {  // what the rows of one file have in common
  Budget budget = Budget::quick;
  std::string corpus = "tinyshakespeare";  // as it was asked for
  std::string corpus_sha256;               // empty until the text was first read
  bool own_text() const;                   // another text than the published figures'
};

class Results {
 public:
  // `folder` holds results.json or nothing yet. Input Error, with the reason and a way out, where the file is damaged,
  // of another format, or of another setting (budget, text) than `expected`.
  static Results open(const std::filesystem::path& folder, const Setting& expected);
  static Results load(const std::filesystem::path& folder);  // whatever its setting; must exist

  const Setting& setting() const { return setting_; }
  // The text as it was read: refused if the rows are of another.
  void set_corpus_sha256(const std::string& sha256);

  // Rows of the experiment's present revision; older ones are not shown and go when a new row comes.
  Rows rows(const Experiment& e) const;
  bool outdated(const Experiment& e) const;  // rows are there, of another revision
  // Keeps the row and writes the file; on an error of the machine the file stays as it was.
  void add(const Experiment& e, const std::string& key, nlohmann::json row, const nlohmann::json& machine);
  // Where its rows were measured, each machine once, the first one first; empty if nowhere
  nlohmann::json machines(const Experiment& e) const;
  int64_t seeds(const Experiment& e) const;  // most runs of any row
  const std::filesystem::path& folder() const { return folder_; }

 private:
  struct Part {
    int revision = 0;
    Rows::Map rows;
    nlohmann::json machines = nlohmann::json::array();
  };
  void read(const std::filesystem::path& file);
  void write() const;

  std::filesystem::path folder_;
  Setting setting_;
  std::map<std::string, Part> parts_;
};

std::string budget_text(Budget b);

}  // namespace bary::lab
