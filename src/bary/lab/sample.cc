// SPDX-License-Identifier: Apache-2.0
#include "bary/lab/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bary/report/format.h"

namespace bary::lab {

double Sample::mean() const {
  double sum = 0;
  for (double v : values) sum += v;
  return values.empty() ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(n());
}

double Sample::deviation() const {
  if (n() < 2) return 0;
  const double m = mean();
  double sum = 0;
  for (double v : values) sum += (v - m) * (v - m);
  return std::sqrt(sum / static_cast<double>(n() - 1));
}

double Sample::standard_error() const { return n() ? deviation() / std::sqrt(static_cast<double>(n())) : 0; }

double Sample::reach() const {
  // 0.975 quantiles of Student's t for 1 to 9 degrees of freedom, beyond them by Cornish and Fisher's two terms
  constexpr double kT[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262};
  if (n() < 2) return 0;
  const double f = static_cast<double>(n() - 1), z = 1.959964;
  const double t = n() - 1 <= std::ssize(kT) ? kT[n() - 2]
                                             : z + (z * z * z + z) / (4 * f) +
                                                   (5 * std::pow(z, 5) + 16 * std::pow(z, 3) + 3 * z) / (96 * f * f);
  return t * standard_error();
}

std::string Sample::text(int digits) const {
  if (values.empty()) return "";
  std::string out = number_text(mean(), digits);
  return n() > 1 ? out + " ± " + number_text(deviation(), 2) : out;
}

Sample operator-(const Sample& a, const Sample& b) {
  Sample d;
  for (size_t i = 0; i < std::min(a.values.size(), b.values.size()); ++i) d.values.push_back(a.values[i] - b.values[i]);
  return d;
}

double greatest(const std::vector<double>& values) {
  double most = values.empty() ? std::nan("") : values[0];
  for (double v : values) most = greater_of(most, v);
  return most;
}

double least(const std::vector<double>& values) {
  double few = values.empty() ? std::nan("") : values[0];
  for (double v : values) few = lesser_of(few, v);
  return few;
}

Verdict within(const Sample& s, double low, double high) {
  if (s.n() == 0) return Verdict::undecided;
  const double m = s.mean(), reach = s.reach();
  if (m >= low && m <= high) return Verdict::holds;
  return m + reach >= low && m - reach <= high ? Verdict::undecided : Verdict::fails;
}

Verdict larger(const Sample& a, const Sample& b) {
  const Sample d = a - b;
  const double m = d.mean(), reach = d.reach();
  if (std::isnan(m) && d.n() > 0) return Verdict::fails;
  if (d.n() < 2) return Verdict::undecided;
  return m > reach ? Verdict::holds : reach > 0 && m >= -reach ? Verdict::undecided : Verdict::fails;
}

Verdict verdict_of(bool holds) { return holds ? Verdict::holds : Verdict::fails; }

Verdict both(Verdict a, Verdict b) {
  if (a == Verdict::fails || b == Verdict::fails) return Verdict::fails;
  return a == Verdict::holds && b == Verdict::holds ? Verdict::holds : Verdict::undecided;
}

bool Rows::stopped(const std::string& key) const {
  auto found = rows_.find(key);
  return found != rows_.end() && found->second.is_object() && found->second.contains("stopped") &&
         found->second["stopped"].is_string();
}

const nlohmann::json& Rows::at(const std::string& key) const {
  static const nlohmann::json kNothing;
  return has(key) ? rows_.find(key)->second : kNothing;
}

std::vector<std::string> Rows::keys(const std::string& row) const {
  std::vector<std::string> all;
  for (std::string key = row + "/1"; run(key); key = fmt::format("{}/{}", row, all.size() + 1)) all.push_back(key);
  return all;
}

Sample Rows::sample(const std::string& row, const std::string& field) const {
  Sample s;
  for (const std::string& key : keys(row)) s.values.push_back(number(key, field));
  return s;
}

std::string count_text(double count) { return std::fabs(count) < 0x1p53 ? grouped(static_cast<int64_t>(count)) : ""; }

double number_in(const nlohmann::json& value) { return value.is_number() ? value.get<double>() : std::nan(""); }

std::vector<double> numbers_in(const nlohmann::json& list) {
  std::vector<double> out;
  if (list.is_array())
    for (const auto& v : list) out.push_back(number_in(v));
  return out;
}

double Rows::number(const std::string& key, const std::string& field) const {
  const nlohmann::json& row = at(key);
  return row.is_object() && row.contains(field) ? number_in(row[field]) : std::nan("");
}

std::string Rows::count(const std::string& key, const std::string& field) const {
  return count_text(number(key, field));
}

std::vector<double> Rows::numbers(const std::string& key, const std::string& field) const {
  const nlohmann::json& row = at(key);
  return row.is_object() && row.contains(field) ? numbers_in(row[field]) : std::vector<double>();
}

}  // namespace bary::lab
