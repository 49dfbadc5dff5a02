// SPDX-License-Identifier: Apache-2.0
#include "bary/base/json.h"

#include <set>
#include <utility>
#include <vector>

#include "bary/base/error.h"
#include "bary/base/quote.h"

namespace bary {
namespace {

// nlohmann's messages carry an id and the unread text; the place is what helps.
std::string short_reason(const std::string& message) {
  size_t from = message.find("] ");
  std::string reason = from == std::string::npos ? message : message.substr(from + 2);
  size_t cut = reason.find("; last read");
  if (cut != std::string::npos) reason.resize(cut);
  // It quotes a number that is too large as it came, however long that is.
  constexpr size_t kLongest = 200;
  if (reason.size() > kLongest) reason = reason.substr(0, kLongest) + "...";
  return reason;
}

[[noreturn]] void wrong_type(const Json& value, const std::string& key, const std::string& what, const char* wanted) {
  fail("{}: {} is {}, expected {}; the file was not written by bary or is damaged", what, quote_if_odd(key),
       quote(dump_json(value, -1)), wanted);
}

// Looks at the text before any of it is kept. (nlohmann's own callback would do, but with it each object that ends goes
// through all that stand beside it: a list of objects takes quadratic time.)
class Watch : public Json::json_sax_t {
 public:
  Watch(const std::string& what, int deepest) : what_(what), deepest_(deepest) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }
  bool start_object(size_t) override {
    keys_.emplace_back();
    return enter();
  }
  bool key(std::string& name) override {
    if (!keys_.back().insert(name).second) {
      fail("{}: the key {} stands twice in one object; keep one", what_, quote(name));
    }
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return leave();
  }
  bool start_array(size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    fail("{}: not JSON: {}", what_, short_reason(error.what()));
  }

 private:
  bool enter() {
    if (depth_++ >= deepest_) fail("{}: JSON nested deeper than {} levels; not a file bary reads", what_, deepest_);
    return true;
  }
  bool leave() { return --depth_, true; }

  const std::string& what_;
  int deepest_;
  int depth_ = 0;
  std::vector<std::set<std::string>> keys_;  // of the objects that are open
};

}  // namespace

Json parse_json(std::string_view text, const std::string& what, int deepest) {
  // The parser takes a NUL byte for the end of the text; JSON holds none.
  BARY_CHECK(text.find('\0') == std::string_view::npos, "{}: not JSON: a NUL byte at {}", what, text.find('\0'));
  Watch watch(what, deepest);
  Json::sax_parse(text.begin(), text.end(), &watch);
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::exception& error) {
    fail("{}: not JSON: {}", what, short_reason(error.what()));
  }
}

std::string dump_json(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

const Json& json_member(const Json& object, const std::string& key, const std::string& what) {
  BARY_CHECK(object.is_object(), "{}: a JSON object with {} was expected, {} came", what, key, object.type_name());
  auto found = object.find(key);
  BARY_CHECK(found != object.end(), "{}: {} is missing; the file was not written by bary or is damaged", what,
             quote_if_odd(key));
  return *found;
}

int64_t json_integer(const Json& object, const std::string& key, const std::string& what) {
  const Json& value = json_member(object, key, what);
  if (!value.is_number_integer()) wrong_type(value, key, what, "a whole number");
  if (value.is_number_unsigned() && !std::in_range<int64_t>(value.get<uint64_t>())) {
    wrong_type(value, key, what, "a whole number below 2^63");
  }
  return value.get<int64_t>();
}

double json_number(const Json& object, const std::string& key, const std::string& what) {
  const Json& value = json_member(object, key, what);
  if (!value.is_number()) wrong_type(value, key, what, "a number");
  return value.get<double>();
}

bool json_bool(const Json& object, const std::string& key, const std::string& what) {
  const Json& value = json_member(object, key, what);
  if (!value.is_boolean()) wrong_type(value, key, what, "true or false");
  return value.get<bool>();
}

std::string json_string(const Json& object, const std::string& key, const std::string& what) {
  const Json& value = json_member(object, key, what);
  if (!value.is_string()) wrong_type(value, key, what, "text");
  return value.get<std::string>();
}

}  // namespace bary
