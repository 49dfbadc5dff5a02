// SPDX-License-Identifier: Apache-2.0
// Measured rows and what is said of several of them: means, spreads, and verdicts that know how sure they can be.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace bary::lab {

enum class Verdict { holds, fails, undecided };

// Values of one figure over seeds.
struct Sample {
  std::vector<double> values;
  int64_t n() const { return static_cast<int64_t>(values.size()); }
  double mean() const;            // NaN without values
  double deviation() const;       // sqrt(sum (x - mean)^2 / (n-1)); 0 for fewer than two
  double standard_error() const;  // deviation / sqrt(n)
  double reach() const;           // the mean's 95 % interval to either side (Student's t); 0 for fewer than two
  std::string text(int digits = 4) const;  // "38.07 ± 0.42", "38.07" of one value, "" of none
};
Sample operator-(const Sample& a, const Sample& b);  // pair by pair: the same seed on both sides

// The greater and the lesser of two numbers, of some; NaN if any is, or of none: what could not be measured must not
// vanish in a maximum, as it does in std::max.
inline double greater_of(double a, double b) { return std::isnan(a) || a > b ? a : b; }
inline double lesser_of(double a, double b) { return std::isnan(a) || a < b ? a : b; }
double greatest(const std::vector<double>& values);
double least(const std::vector<double>& values);

// low <= mean <= high. Open without values, and where the mean lies outside by no more than its reach: the spread is
// too wide to say no. NaN fails.
Verdict within(const Sample& s, double low, double high);
inline Verdict at_least(const Sample& s, double low) { return within(s, low, std::numeric_limits<double>::infinity()); }
inline Verdict at_most(const Sample& s, double high) {
  return within(s, -std::numeric_limits<double>::infinity(), high);
}
// a above b, seed by seed: the mean difference must leave 0 by more than its reach, on either side; of one seed nothing
// is known about the spread, so nothing is said. A comparison without a margin in its rule asks this.
Verdict larger(const Sample& a, const Sample& b);
Verdict verdict_of(bool holds);
Verdict both(Verdict a, Verdict b);  // fails if either does, holds if both do

std::string count_text(double count);  // "1,024"; "" of NaN

// What a row keeps. JSON has no NaN: a null stands for it, and so does whatever else is no number; no list is empty.
double number_in(const nlohmann::json& value);
std::vector<double> numbers_in(const nlohmann::json& list);

// The finished rows of one experiment by their units' keys.
class Rows {
 public:
  using Map = std::map<std::string, nlohmann::json>;
  Rows() = default;
  explicit Rows(Map rows) : rows_(std::move(rows)) {}

  // A unit that broke off left a row that says why ("stopped") and nothing to judge: its figures are NaN.
  bool run(const std::string& key) const { return rows_.contains(key); }        // it will not be run again
  bool has(const std::string& key) const { return run(key) && !stopped(key); }  // it can be judged
  bool stopped(const std::string& key) const;
  const nlohmann::json& at(const std::string& key) const;       // null if there is nothing to judge
  std::vector<std::string> keys(const std::string& row) const;  // "row/1", "row/2", ... as far as they were run
  // The field of each of these
  Sample sample(const std::string& row, const std::string& field) const;
  double number(const std::string& key, const std::string& field) const;                // NaN if not measured
  std::vector<double> numbers(const std::string& key, const std::string& field) const;  // empty if not measured
  std::string count(const std::string& key, const std::string& field) const;            // "1,024"; "" if not measured
  const Map& all() const { return rows_; }

 private:
  Map rows_;
};

}  // namespace bary::lab
