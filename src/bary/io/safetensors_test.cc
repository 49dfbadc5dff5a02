// SPDX-License-Identifier: Apache-2.0
#include "bary/io/safetensors.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "bary/base/error.h"
#include "bary/io/test_folder_test.h"

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

std::string bytes_of(std::span<const TensorView> tensors, Metadata metadata = {}) {
  std::string out;
  stream_safetensors(tensors, std::move(metadata), [&](std::string_view piece) { out += piece; });
  return out;
}

// A file with this header and this many bytes of data.
std::string with_header(const std::string& header, size_t data, uint64_t stated = UINT64_MAX) {
  uint64_t length = stated == UINT64_MAX ? header.size() : stated;
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out + header + std::string(data, '\1');
}

std::string refusal(const std::string& bytes) {
  std::string text = message([&] { SafetensorsFile(std::string_view(bytes), "x"); });
  return text.starts_with("x: ") ? text.substr(3) : text;
}

std::string tensor(const std::string& shape, const std::string& offsets, const std::string& dtype = "F32") {
  return "{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

TEST(Safetensors, RoundTripsEveryBitPattern) {
  TestFolder folder;
  std::vector<float> odd = {
      0.0f, -0.0f, 1e-45f, -std::numeric_limits<float>::infinity(), std::bit_cast<float>(0x7FC12345u), 3.5f};
  std::vector<float> scalar = {7}, none;
  std::vector<TensorView> tensors = {{"z", {2, 3}, odd}, {"a.scalar", {}, scalar}, {"empty", {0, 5}, none}};
  write_safetensors(folder / "w.safetensors", tensors, {{"step", "12"}});
  SafetensorsFile file(folder / "w.safetensors");
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}, {"step", "12"}}));
  ASSERT_EQ(file.tensors().size(), 3u);
  auto back = file.read("z");
  EXPECT_EQ(std::memcmp(back.data(), odd.data(), 24), 0);
  EXPECT_EQ(file.read("a.scalar"), scalar);
  EXPECT_TRUE(file.read("empty").empty());
  EXPECT_EQ(file.info("z").shape, (FileShape{2, 3}));
  EXPECT_EQ(file.info("z").begin % 4, 0);
  EXPECT_TRUE(file.contains("z") && !file.contains("y"));
  SafetensorsFile moved = std::move(file);
  EXPECT_EQ(moved.read("a.scalar"), scalar);
}

TEST(Safetensors, BytesDoNotDependOnTheOrderGiven) {
  std::vector<float> one = {1}, two = {2, 3};
  std::vector<TensorView> forward = {{"a", {1}, one}, {"b", {2}, two}}, backward = {{"b", {2}, two}, {"a", {1}, one}};
  EXPECT_EQ(bytes_of(forward), bytes_of(backward));
  EXPECT_EQ(bytes_of({}).substr(8), "{\"__metadata__\":{\"format\":\"pt\"}}");
  uint64_t length = 0;
  std::string bytes = bytes_of(forward);
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
}

TEST(Safetensors, TheWriterRefuses) {
  std::vector<float> one = {1};
  auto refused = [&](std::vector<TensorView> tensors) { return message([&] { bytes_of(tensors); }); };
  EXPECT_NE(refused({{"", {1}, one}}), "(no error)");
  EXPECT_NE(refused({{"__metadata__", {1}, one}}), "(no error)");
  EXPECT_NE(refused({{"\xff", {1}, one}}), "(no error)");
  EXPECT_NE(refused({{"a", {1}, one}, {"a", {1}, one}}), "(no error)");
  EXPECT_EQ(refused({{"a", {2}, one}}),
            "safetensors: tensor a is (2) but has 1 values; give as many as the shape says");
  EXPECT_NE(refused({{"a", {-1, -1}, one}}), "(no error)");
  EXPECT_NE(refused({{"a", {int64_t{1} << 32, int64_t{1} << 32}, {}}}), "(no error)") << "2^64 wraps to 0";
}

TEST(Safetensors, ReadsHalvesAndDoubles) {
  EXPECT_EQ(half_to_float(0x3C00), 1.0f);
  EXPECT_EQ(half_to_float(0xC000), -2.0f);
  EXPECT_EQ(half_to_float(0x7BFF), 65504.0f);
  EXPECT_EQ(half_to_float(0x0001), 0x1p-24f);
  EXPECT_EQ(half_to_float(0x03FF), 1023 * 0x1p-24f);
  EXPECT_EQ(half_to_float(0x0400), 0x1p-14f);
  EXPECT_TRUE(std::signbit(half_to_float(0x8000)));
  EXPECT_EQ(half_to_float(0xFC00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(half_to_float(0x7E00)));
  EXPECT_EQ(bfloat16_to_float(0x3F80), 1.0f);
  // One header byte of padding less than a multiple of 8, so that no value is aligned.
  std::string header = "{\"h\":" + tensor("[1]", "[0,2]", "F16") + ",\"b\":" + tensor("[1]", "[2,4]", "BF16") +
                       ",\"d\":" + tensor("[2]", "[4,20]", "F64") + ",\"i\":" + tensor("[1]", "[20,28]", "I64") + "}";
  while ((header.size() + 8) % 8 != 1) header += ' ';
  std::string bytes = with_header(header, 0);
  uint16_t half = 0x3C00, brain = 0xBF80;
  double pair[2] = {0.1, 1e300};
  bytes.append(reinterpret_cast<char*>(&half), 2).append(reinterpret_cast<char*>(&brain), 2);
  bytes.append(reinterpret_cast<char*>(pair), 16).append(8, '\0');
  SafetensorsFile file(bytes, "x");
  EXPECT_EQ(file.read("h"), std::vector<float>{1});
  EXPECT_EQ(file.read("b"), std::vector<float>{-1});
  EXPECT_EQ(file.read("d"), (std::vector<float>{0.1f, std::numeric_limits<float>::infinity()}));
  EXPECT_EQ(message([&] { file.read("i"); }),
            "x: tensor i holds I64, weights are F32, F16, BF16 or F64; convert it first");
}

TEST(Safetensors, WrongNamesAndShapesSayWhatToDo) {
  std::vector<float> six(6);
  std::vector<TensorView> tensors = {{"wte", {3, 2}, six}, {"h.0.attn.weight", {3, 2}, six}};
  std::string bytes = bytes_of(tensors);
  SafetensorsFile file(bytes, "gpt2.safetensors");
  std::vector<float> out(8);
  auto into = [&](const char* name, FileShape shape) { return message([&] { file.read_into(name, shape, out); }); };
  EXPECT_EQ(into("wte", {4, 2}),
            "gpt2.safetensors: tensor wte is (3,2), config says (4,2); was the vocabulary padded?");
  EXPECT_EQ(into("wte", {2, 3}), "gpt2.safetensors: tensor wte is (3,2), config says (2,3); is it stored transposed?");
  EXPECT_EQ(into("wte", {6}), "gpt2.safetensors: tensor wte is (3,2), config says (6); is the file of another model?");
  EXPECT_EQ(into("h.0.attn.weight", {4, 2}),
            "gpt2.safetensors: tensor h.0.attn.weight is (3,2), config says (4,2); is the file of another model?");
  EXPECT_EQ(
      into("h.0.atn.weight", {3, 2}),
      "gpt2.safetensors: tensor h.0.atn.weight is missing, the nearest name there is h.0.attn.weight; is the file of "
      "another model?");
  EXPECT_NE(into("wte", {3, 2}), "(no error)") << "room for 8, not 6";
}

TEST(Safetensors, HostileLengths) {
  EXPECT_EQ(refusal("").substr(0, 8), "0 bytes,");
  EXPECT_EQ(refusal("1234567").substr(0, 8), "7 bytes,");
  EXPECT_NE(refusal(with_header("{}", 0, 3)).find("was the download cut off"), std::string::npos);
  EXPECT_NE(refusal(with_header("{}", 0, UINT64_MAX - 1)).find("at most 100000000"), std::string::npos);
  EXPECT_NE(refusal(with_header("{}", 0, 100'000'000)).find("the file has 10"), std::string::npos);
  EXPECT_NE(refusal(with_header("", 0)).find("does not start with {"), std::string::npos);
  EXPECT_NE(refusal(with_header("[]", 0)).find("does not start with {"), std::string::npos);
  EXPECT_NE(refusal(with_header(" {}", 0)).find("does not start with {"), std::string::npos);
  EXPECT_EQ(refusal(with_header("{}", 0)), "(no error)");
  EXPECT_EQ(refusal(with_header("{}     ", 0)), "(no error)");
  EXPECT_NE(refusal(with_header("{}", 1)), "(no error)") << "bytes of no tensor";
}

TEST(Safetensors, HostileHeaders) {
  auto one = [](const std::string& value, size_t data = 4) {
    return refusal(with_header("{\"a\":" + value + "}", data));
  };
  EXPECT_EQ(one(tensor("[1]", "[0,4]")), "(no error)");
  EXPECT_EQ(one(tensor("[]", "[0,4]")), "(no error)");
  EXPECT_NE(one(tensor("[2]", "[0,4]")), "(no error)");
  EXPECT_NE(one(tensor("[1]", "[4,0]")), "(no error)");
  EXPECT_NE(one(tensor("[1]", "[0,8]")).find("was it cut off?"), std::string::npos);
  EXPECT_NE(one(tensor("[-1]", "[0,4]")), "(no error)");
  EXPECT_NE(one(tensor("[1.0]", "[0,4]")), "(no error)");
  EXPECT_NE(one(tensor("[1e0]", "[0,4]")), "(no error)");
  EXPECT_NE(one(tensor("[18446744073709551615]", "[0,4]")), "(no error)");
  EXPECT_NE(one(tensor("[1]", "[0,18446744073709551615]")), "(no error)");
  EXPECT_NE(one(tensor("[1]", "[18446744073709551612,0]")), "(no error)");
  EXPECT_NE(one(tensor("[4294967296,4294967296]", "[0,0]"), 0), "(no error)") << "2^64 wraps to 0";
  EXPECT_NE(one(tensor("[4611686018427387905]", "[0,4]")), "(no error)") << "times 4 wraps to 4";
  EXPECT_EQ(one(tensor("[0,4294967296,4294967296]", "[0,0]"), 0), "(no error)") << "empty whatever its other sizes";
  EXPECT_NE(one(tensor("[1]", "[0,4,4]")), "(no error)");
  EXPECT_NE(one(tensor("[1]", "{}")), "(no error)");
  EXPECT_NE(one(tensor("1", "[0,4]")), "(no error)");
  EXPECT_NE(one(tensor("[1]", "[0,4]", "F33")), "(no error)");
  EXPECT_NE(one("{}"), "(no error)");
  EXPECT_NE(one("null"), "(no error)");
  EXPECT_NE(one(std::string(100000, '[')), "(no error)");
  EXPECT_NE(refusal(with_header("{\"__metadata__\":{\"a\":1}}", 0)), "(no error)");
  EXPECT_NE(refusal(with_header("{\"__metadata__\":[]}", 0)), "(no error)");
  EXPECT_NE(refusal(with_header("{\"\xff\":" + tensor("[1]", "[0,4]") + "}", 4)), "(no error)");
}

TEST(Safetensors, NoOverlapsHolesOrDoubles) {
  auto two = [](const std::string& a, const std::string& b, size_t data) {
    return refusal(with_header("{\"a\":" + tensor("[1]", a) + ",\"b\":" + tensor("[1]", b) + "}", data));
  };
  EXPECT_EQ(two("[0,4]", "[4,8]", 8), "(no error)");
  EXPECT_EQ(two("[4,8]", "[0,4]", 8), "(no error)");
  EXPECT_NE(two("[0,4]", "[0,4]", 4).find("share bytes"), std::string::npos);
  EXPECT_NE(two("[0,4]", "[2,6]", 6).find("share bytes"), std::string::npos);
  EXPECT_NE(two("[0,4]", "[5,9]", 9).find("belong to none"), std::string::npos);
  EXPECT_NE(two("[1,5]", "[5,9]", 9).find("belong to none"), std::string::npos);
  EXPECT_NE(two("[0,4]", "[4,8]", 9).find("damaged"), std::string::npos);
  std::string twice = "{\"a\":" + tensor("[1]", "[0,4]") + ",\"a\":" + tensor("[1]", "[0,4]") + "}";
  EXPECT_NE(refusal(with_header(twice, 4)).find("stands twice"), std::string::npos);
}

TEST(Safetensors, TruncatedAtEveryByte) {
  std::vector<float> four(4);
  std::vector<TensorView> tensors = {{"a", {2, 2}, four}, {"b", {4}, four}};
  std::string bytes = bytes_of(tensors);
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_NE(refusal(bytes.substr(0, length)), "(no error)") << length;
  }
}

TEST(Safetensors, EveryFlippedHeaderBitIsRefusedOrHarmless) {
  std::vector<float> four = {1, 2, 3, 4};
  std::vector<TensorView> tensors = {{"a", {2, 2}, four}};
  std::string bytes = bytes_of(tensors);
  for (size_t bit = 0; bit < (bytes.size() - 16) * 8; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    // Read or refused; a crash, an exception of another kind or a read outside the bytes is what this looks for.
    message([&] {
      SafetensorsFile file(std::string_view(flipped), "x");
      for (const auto& entry : file.tensors()) file.read(entry.first);
    });
  }
}

}  // namespace
}  // namespace bary
