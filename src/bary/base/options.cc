// SPDX-License-Identifier: Apache-2.0
#include "bary/base/options.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bary/base/error.h"
#include "bary/base/nearest.h"
#include "bary/base/quote.h"

namespace bary {
namespace {

std::string snake(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

bool starts_with_two_dashes(std::string_view arg) { return arg.size() > 2 && arg.starts_with("--"); }

}  // namespace

void Options::add(std::string name, bool* target, std::string help, Rule rule) {
  Entry entry = describe(std::move(name), Kind::boolean, std::move(help), std::move(rule));
  entry.read = [target]() -> OptionValue { return *target; };
  entry.write = [target](const OptionValue& value) { *target = std::get<bool>(value); };
  insert(std::move(entry));
}

void Options::add(std::string name, double* target, std::string help, Rule rule) {
  Entry entry = describe(std::move(name), Kind::real, std::move(help), std::move(rule));
  entry.read = [target]() -> OptionValue { return *target; };
  entry.write = [target](const OptionValue& value) { *target = std::get<double>(value); };
  insert(std::move(entry));
}

void Options::add(std::string name, std::string* target, std::string help, Rule rule) {
  Entry entry = describe(std::move(name), Kind::text, std::move(help), std::move(rule));
  if (!entry.rule.choices.empty()) entry.kind = Kind::choice;
  entry.read = [target]() -> OptionValue { return *target; };
  entry.write = [target](const OptionValue& value) { *target = std::get<std::string>(value); };
  insert(std::move(entry));
}

Options::Entry Options::describe(std::string name, Kind kind, std::string help, Rule rule) const {
  Entry entry;
  entry.name = std::move(name);
  entry.help = std::move(help);
  entry.heading = heading_;
  entry.kind = kind;
  entry.rule = std::move(rule);
  return entry;
}

void Options::insert(Entry entry) {
  BARY_CHECK(entry.name == snake(entry.name) && !entry.name.empty(), "options: {} is no snake_case name",
             quote(entry.name));
  BARY_CHECK(!look_up(entry.name), "options: {} was added twice; give it another name", entry.name);
  entry.initial = entry.read();
  // A default outside its own rule could be recorded but not read back.
  convert(entry, entry.initial, entry.name + " (its default)");
  entries_.push_back(std::move(entry));
}

const Options::Entry* Options::look_up(std::string_view name) const {
  std::string wanted = snake(name);
  for (const auto& entry : entries_) {
    if (entry.name == wanted) return &entry;
  }
  return nullptr;
}

Options::Entry& Options::find(std::string_view name, std::string_view shown) {
  if (const Entry* entry = look_up(name)) return const_cast<Entry&>(*entry);
  auto known = names();
  if (auto guess = nearest(snake(name), known)) {
    // The guess is shown in the spelling of what came: with its dashes on the command line.
    std::string_view dashes = shown.starts_with("--") ? "--" : "";
    fail("{}: unknown; did you mean {}{}?", shown, dashes, *guess);
  }
  if (command_.empty()) fail("{}: unknown; the known keys are in --help", shown);
  fail("{}: unknown; bary {} --help lists the known keys", shown, command_);
}

const Options::Entry& Options::at(std::string_view name) const {
  const Entry* entry = look_up(name);
  BARY_CHECK(entry, "options: no option is called {}; add it first", quote(name));
  return *entry;
}

void Options::assign(Entry& entry, const OptionValue& raw, OptionSource source, const std::string& shown) {
  OptionValue value = convert(entry, raw, shown);  // checked even where a stronger source has spoken
  if (source < entry.source) return;
  entry.write(value);
  entry.source = source;
}

std::vector<std::string> Options::parse_args(std::span<const std::string> args) {
  std::vector<std::string> others;
  for (size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (arg == "--") {
      others.insert(others.end(), args.begin() + static_cast<std::ptrdiff_t>(i) + 1, args.end());
      break;
    }
    if (!starts_with_two_dashes(arg)) {
      bool letter = arg.size() > 1 && arg[0] == '-';
      BARY_CHECK(!letter,
                 "{}: unknown; options have two dashes and a whole name, a file of this name is given after --",
                 quote(arg));
      others.push_back(arg);
      continue;
    }
    size_t equals = arg.find('=');  // the first: --start="1+1=" is the key start
    std::string key = arg.substr(2, equals == std::string::npos ? equals : equals - 2);
    std::string shown = quote_if_odd("--" + key);
    bool negated = snake(key).starts_with("no_") && !look_up(key);
    if (negated) {
      const Entry* entry = look_up(std::string_view(key).substr(3));
      if (entry && entry->kind == Kind::boolean) {
        BARY_CHECK(equals == std::string::npos, "{}: takes no value; write --{} or {}", shown, entry->name, shown);
        assign(const_cast<Entry&>(*entry), false, OptionSource::command_line, shown);
        continue;
      }
    }
    Entry& entry = find(key, shown);
    if (equals != std::string::npos) {
      assign(entry, arg.substr(equals + 1), OptionSource::command_line, shown);
      continue;
    }
    bool follows = i + 1 < args.size();
    if (entry.kind == Kind::boolean) {
      // A file may follow a flag, so only the two plain words are taken as its value.
      bool spoken = follows && (args[i + 1] == "true" || args[i + 1] == "false");
      assign(entry, spoken ? args[++i] == "true" : true, OptionSource::command_line, shown);
      continue;
    }
    BARY_CHECK(follows && !starts_with_two_dashes(args[i + 1]), "{}: its value is missing; give {}, as {}=VALUE", shown,
               accepted(entry), shown);
    assign(entry, args[++i], OptionSource::command_line, shown);
  }
  return others;
}

void Options::set(std::string_view name, std::string_view text, OptionSource source) {
  std::string shown = quote_if_odd(name);
  assign(find(name, shown), std::string(text), source, shown);
}

nlohmann::json Options::to_json() const {
  nlohmann::json out = nlohmann::json::object();
  for (const auto& entry : entries_) {
    OptionValue value = entry.read();
    const auto* real = std::get_if<double>(&value);
    bool beyond_json = real && !(*real - *real == 0);
    std::string word = typed(entry, value);
    bool named =
        std::any_of(entry.rule.words.begin(), entry.rule.words.end(), [&](auto& w) { return w.first == word; });
    if (beyond_json || named)
      out[entry.name] = word;
    else
      std::visit([&](const auto& v) { out[entry.name] = v; }, value);
  }
  return out;
}

void Options::from_json(const nlohmann::json& record, const std::string& what) {
  BARY_CHECK(record.is_object(), "{}: a JSON object of options was expected, {} came", what, record.type_name());
  for (const auto& [key, value] : record.items()) {
    std::string shown = what + ": " + quote_if_odd(key);
    Entry& entry = find(key, shown);
    OptionValue raw;
    if (value.is_boolean())
      raw = value.get<bool>();
    else if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX})
      raw = value.get<uint64_t>();
    else if (value.is_number_integer())
      raw = value.get<int64_t>();
    else if (value.is_number())
      raw = value.get<double>();
    else if (value.is_string())
      raw = value.get<std::string>();
    else
      fail("{}: is {}, expected {}", shown, value.type_name(), accepted(entry));
    assign(entry, raw, OptionSource::record, shown);
  }
}

std::string Options::text(std::string_view name) const { return typed(at(name), at(name).read()); }

OptionSource Options::source(std::string_view name) const { return at(name).source; }

void Options::refuse(std::span<const std::string_view> names, std::string_view why) const {
  for (std::string_view name : names) BARY_CHECK(!asked(name), "{}: --{} {}; leave it out", command_, name, why);
}

std::vector<std::string> Options::names() const {
  std::vector<std::string> out;
  for (const auto& entry : entries_) out.push_back(entry.name);
  return out;
}

std::vector<std::string> Options::set_by(OptionSource source) const {
  std::vector<std::string> out;
  for (const auto& entry : entries_) {
    if (entry.source == source) out.push_back(entry.name);
  }
  return out;
}

std::vector<OptionChange> Options::differences(const nlohmann::json& record) const {
  std::vector<OptionChange> out;
  nlohmann::json now = to_json();
  for (const auto& entry : entries_) {
    auto before = record.find(entry.name);
    if (before != record.end() && *before == now[entry.name]) continue;
    std::string was = "(absent)";
    if (before != record.end()) was = before->is_string() ? before->get<std::string>() : before->dump();
    out.push_back({entry.name, was, typed(entry, entry.read())});
  }
  return out;
}

}  // namespace bary
