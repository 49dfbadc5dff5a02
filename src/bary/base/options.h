// SPDX-License-Identifier: Apache-2.0
// One description of an options struct, four uses: flags, a TOML file, help, and the record of a run (JSON).
//
//   struct TrainOptions { int64_t max_iters = 3000; double learning_rate = 1e-3; Norm norm = Norm::pre; };
//   TrainOptions o;
//   Options options("train");
//   options.group("Optimiser");
//   options.add("max_iters", &o.max_iters, "updates", {.min = 1});
//   options.add("learning_rate", &o.learning_rate, "peak learning rate", {.min = 0});
//   options.add("norm", &o.norm, {{"pre", Norm::pre}, {"post", Norm::post}}, "place of the normalisation");
//   auto files = options.parse_args(args);   // "--max_iters 5k", "--learning-rate=3e-4", "--no-bias"
//
// Names are snake_case; '-' and '_' are the same. The stronger source wins whatever the order of the calls: default <
// record < file < command line; within one source the last wins. Every refusal is an input Error that names the key,
// what came and what is accepted; an unknown key comes with the nearest name.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace bary {

// Who set a value, weakest first.
enum class OptionSource { default_value, record, file, command_line };

// What a value must keep to. min and max are accepted themselves unless above_min or below_max says otherwise.
struct Rule {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool above_min = false;
  bool below_max = false;
  bool allow_non_finite = false;       // inf and nan, for reals
  std::vector<std::string> choices{};  // for text: one of these
  std::vector<std::pair<std::string, double>>
      words{};               // for numbers: a word for a value, outside min and max too ("all", 0)
  std::string value_name{};  // in help: --out_dir FOLDER
};

using OptionValue = std::variant<bool, int64_t, uint64_t, double, std::string>;

template <class E>
using EnumNames = std::vector<std::pair<std::string, E>>;

// One line of "what did the command line change": values as they are typed.
struct OptionChange {
  std::string name, before, after;
};

class Options {
 public:
  explicit Options(std::string command = "") : command_(std::move(command)) {}

  void group(std::string heading) { heading_ = std::move(heading); }  // of what is added next, in help

  // The struct behind `target` must outlive the Options. Its present value is the default and must keep the rule.
  template <std::integral T>
  requires(!std::same_as<T, bool>) void add(std::string name, T* target, std::string help, Rule rule = {});
  void add(std::string name, bool* target, std::string help, Rule rule = {});
  void add(std::string name, double* target, std::string help, Rule rule = {});
  void add(std::string name, std::string* target, std::string help, Rule rule = {});
  template <class E>
  requires std::is_enum_v<E>
  void add(std::string name, E* target, std::type_identity_t<EnumNames<E>> names, std::string help, Rule rule = {});

  // Returns what is not an option, in order: "data.txt", "-", and all that follows "--".
  std::vector<std::string> parse_args(std::span<const std::string> args);
  void parse_toml(const std::string& path);  // tables are headings only: [model] n_layer = 4 is n_layer
  void parse_toml_text(std::string_view text, const std::string& path);
  void set(std::string_view name, std::string_view text, OptionSource source = OptionSource::command_line);

  nlohmann::json to_json() const;  // every option, flat
  void from_json(const nlohmann::json& record, const std::string& what = "record");

  std::string help() const;                       // grouped, with defaults, at most 110 columns
  std::string text(std::string_view name) const;  // the present value as it is typed
  OptionSource source(std::string_view name) const;
  bool is_set(std::string_view name) const { return source(name) != OptionSource::default_value; }
  bool asked(std::string_view name) const { return source(name) >= OptionSource::file; }  // by a person, not a record
  // Input Error if one of these was asked for: "eval: --beam <why>; leave it out".
  void refuse(std::span<const std::string_view> names, std::string_view why) const;
  void refuse(std::initializer_list<std::string_view> names, std::string_view why) const {
    refuse(std::span(names.begin(), names.size()), why);
  }
  std::vector<std::string> names() const;
  std::vector<std::string> set_by(OptionSource source) const;
  // Options whose present value is not the record's; a key the record lacks has before "(absent)".
  std::vector<OptionChange> differences(const nlohmann::json& record) const;

 private:
  enum class Kind { boolean, integer, real, text, choice };
  struct Entry {
    std::string name, help, heading;
    Kind kind = Kind::text;
    Rule rule;
    int64_t lowest = 0;  // what an integer's own type holds
    uint64_t highest = 0;
    OptionValue initial;
    std::function<OptionValue()> read;
    std::function<void(const OptionValue&)> write;  // after convert(): always of the kind's own alternative
    OptionSource source = OptionSource::default_value;
  };

  Entry describe(std::string name, Kind kind, std::string help, Rule rule) const;
  void insert(Entry entry);
  Entry& find(std::string_view name, std::string_view shown);  // refuses an unknown name
  const Entry& at(std::string_view name) const;                // the program's own name: must exist
  const Entry* look_up(std::string_view name) const;
  void assign(Entry& entry, const OptionValue& raw, OptionSource source, const std::string& shown);
  static OptionValue convert(const Entry& entry, const OptionValue& raw, const std::string& shown);
  static std::string accepted(const Entry& entry);
  static std::string typed(const Entry& entry, const OptionValue& value);
  static std::string value_name(const Entry& entry);
  static void append_help(std::string& out, const Entry& entry);

  std::string command_, heading_;
  std::vector<Entry> entries_;
};

template <std::integral T>
requires(!std::same_as<T, bool>) void Options::add(std::string name, T* target, std::string help, Rule rule) {
  Entry entry = describe(std::move(name), Kind::integer, std::move(help), std::move(rule));
  entry.lowest = static_cast<int64_t>(std::numeric_limits<T>::min());
  entry.highest = static_cast<uint64_t>(std::numeric_limits<T>::max());
  // Unsigned above int64's range travels as uint64, everything else as int64: one alternative per value.
  entry.read = [target]() -> OptionValue {
    if (std::in_range<int64_t>(*target)) return static_cast<int64_t>(*target);
    return static_cast<uint64_t>(*target);
  };
  entry.write = [target](const OptionValue& value) {
    if (const auto* big = std::get_if<uint64_t>(&value))
      *target = static_cast<T>(*big);
    else
      *target = static_cast<T>(std::get<int64_t>(value));
  };
  insert(std::move(entry));
}

template <class E>
requires std::is_enum_v<E>
void Options::add(std::string name, E* target, std::type_identity_t<EnumNames<E>> names, std::string help, Rule rule) {
  Entry entry = describe(std::move(name), Kind::choice, std::move(help), std::move(rule));
  for (const auto& [word, value] : names) entry.rule.choices.push_back(word);
  entry.read = [target, names]() -> OptionValue {
    for (const auto& [word, value] : names) {
      if (value == *target) return word;
    }
    return std::string("(unnamed value)");
  };
  entry.write = [target, names](const OptionValue& value) {
    for (const auto& [word, meaning] : names) {
      if (word == std::get<std::string>(value)) *target = meaning;
    }
  };
  insert(std::move(entry));
}

}  // namespace bary
