// SPDX-License-Identifier: Apache-2.0
#include "bary/base/json.h"

#include <gtest/gtest.h>

#include <functional>

#include "bary/base/error.h"

namespace bary {
namespace {

std::string message(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
  return "(no error)";
}

std::string refusal(std::string_view text) {
  return message([&] { parse_json(text, "x.json"); });
}

TEST(Json, RefusesWhatReadersDisagreeOn) {
  EXPECT_EQ(refusal(R"({"a":1,"a":2})"), "x.json: the key \"a\" stands twice in one object; keep one");
  EXPECT_EQ(refusal(R"({"b":{"a":1},"c":{"a":1}})"), "(no error)");
  EXPECT_EQ(refusal(R"([{"a":1},{"a":1}])"), "(no error)");
  EXPECT_EQ(refusal(R"({"b":[{"a":1,"a":1}]})").substr(0, 19), "x.json: the key \"a\"");
}

TEST(Json, RefusesBrokenText) {
  for (const char* text : {"", "{", "{\"a\":}", "{} {}", "[1,]", "nan", "\"\xff\"", "{'a':1}", "01"}) {
    EXPECT_EQ(refusal(text).substr(0, 17), "x.json: not JSON:") << text;
  }
  EXPECT_EQ(refusal(std::string_view("{}\0", 3)).substr(0, 17), "x.json: not JSON:");
}

TEST(Json, DepthIsLimitedBeforeMemoryIsTaken) {
  EXPECT_EQ(refusal(std::string(64, '[') + std::string(64, ']')), "(no error)");
  EXPECT_NE(refusal(std::string(65, '[') + std::string(65, ']')), "(no error)");
  EXPECT_NE(refusal(std::string(10000000, '[')), "(no error)");
  std::string objects;
  for (int i = 0; i < 100; ++i) objects += "{\"a\":";
  EXPECT_NE(refusal(objects), "(no error)");
}

TEST(Json, MembersNameFileAndKey) {
  Json object = parse_json(R"({"n":3,"x":1.5,"s":"t","big":18446744073709551615,"b":true})", "x.json");
  EXPECT_EQ(json_integer(object, "n", "x.json"), 3);
  EXPECT_EQ(json_number(object, "n", "x.json"), 3.0);
  EXPECT_EQ(json_number(object, "x", "x.json"), 1.5);
  EXPECT_EQ(json_string(object, "s", "x.json"), "t");
  EXPECT_TRUE(json_bool(object, "b", "x.json"));
  EXPECT_EQ(message([&] { json_integer(object, "m", "x.json"); }).substr(0, 20), "x.json: m is missing");
  for (const char* key : {"x", "s", "big", "b"}) {
    EXPECT_NE(message([&] { json_integer(object, key, "x.json"); }), "(no error)") << key;
  }
  EXPECT_NE(message([&] { json_string(object, "n", "x.json"); }), "(no error)");
  EXPECT_NE(message([&] { json_bool(object, "n", "x.json"); }), "(no error)");
  EXPECT_NE(message([&] { json_number(object, "s", "x.json"); }), "(no error)");
  EXPECT_NE(message([&] { json_member(Json::array(), "n", "x.json"); }), "(no error)");
}

TEST(Json, DumpsAnyBytes) {
  EXPECT_EQ(dump_json(Json("\xff"), -1), "\"\xef\xbf\xbd\"");
  EXPECT_EQ(dump_json(Json(0.1), -1), "0.1");
}

}  // namespace
}  // namespace bary
