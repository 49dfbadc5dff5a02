// SPDX-License-Identifier: Apache-2.0
#include "targets.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include "bary/base/error.h"
#include "bary/base/json.h"
#include "bary/base/options.h"
#include "bary/base/sha256.h"
#include "bary/io/manifest.h"
#include "bary/io/run_folder.h"
#include "bary/io/safetensors.h"
#include "bary/model/config.h"
#include "bary/model/count.h"
#include "bary/text/corpus_command.h"
#include "bary/text/corpus_download.h"
#include "bary/text/token_file.h"
#include "bary/text/tokenizer.h"
#include "bary/text/tokenizer_json.h"
#include "samples.h"

namespace bary::fuzz {
namespace fs = std::filesystem;
namespace {

void require(bool condition, const char* promise) {
  if (!condition) throw Broken(promise);
}

void check_message(std::string_view message) {
  const auto control = [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7F; };
  if (message.empty() || message.size() > 4096)
    throw Broken(fmt::format("a refusal of {} bytes: {}", message.size(), message.substr(0, 200)));
  if (std::any_of(message.begin(), message.end(), control) || utf8_error(message) != message.size())
    throw Broken("a refusal with control characters or broken UTF-8 in it: " + std::string(message));
}

// What `read` refuses is refused; what it gives must be usable.
template <class Read, class Use>
bool read_and_use(Read read, Use use) {
  std::optional<decltype(read())> value;
  try {
    value.emplace(read());
  } catch (const Error& error) {
    check_message(error.what());
    return false;
  }
  try {
    use(*value);
  } catch (const Error& error) {
    throw Broken(std::string("was accepted but can't be used: ") + error.what());
  }
  return true;
}

// Every type of option: all of a model's, and what else a command has.
struct Settings {
  ModelConfig model;
  int64_t max_iters = 3000;
  uint64_t seed = 1;
  int32_t threads = 0;
  double learning_rate = 1e-3, clip = 1;
  bool compile = false;
  std::string out_dir = "out", device = "cpu", start = "\n";
  Options options{"train"};

  Settings() {
    model.describe(options);
    options.add("max_iters", &max_iters, "updates", {.min = 0});
    options.add("seed", &seed, "seed");
    options.add("threads", &threads, "threads", {.min = 1, .words = {{"all", 0}}});
    options.add("learning_rate", &learning_rate, "rate", {.min = 0, .above_min = true});
    options.add("grad_clip", &clip, "norm", {.min = 0, .allow_non_finite = true, .words = {{"off", 0}}});
    options.add("compile", &compile, "a flag");
    options.add("out_dir", &out_dir, "folder", {.value_name = "FOLDER"});
    options.add("device", &device, "device", {.choices = {"cpu", "none"}});
    options.add("start", &start, "text");
  }
};

// The record of a run and the words a person would type give the same settings again.
void check_settings(const Settings& settings) {
  const nlohmann::json record = settings.options.to_json();
  Settings again, typed;
  again.options.from_json(record);
  require(again.options.to_json() == record, "the record of the options gives other options");
  for (const std::string& name : settings.options.names()) typed.options.set(name, settings.options.text(name));
  require(typed.options.to_json() == record, "the options as they are typed are other options");
}

void check_config(const ModelConfig& config) {
  config.check();
  const nlohmann::json record = to_json(config);
  require(to_json(model_config_from_json(record, "again")) == record, "config.json gives another model");
  const ParameterCount count = count_parameters(config);
  require(count.total > 0 && count.embeddings > 0 && count.block >= 0, "a model has no parameters, or less");
  require(count_flops(config, 8).forward > 0, "a model works for nothing");
  require(forecast_memory(config, 2, 4).total() > 0, "a model needs no memory");
}

void check_tensors(const SafetensorsFile& file, size_t file_size) {
  for (const auto& [name, info] : file.tensors()) {
    const auto end = static_cast<uint64_t>(info.begin) + static_cast<uint64_t>(info.bytes);
    const bool inside = info.begin >= 8 && info.bytes >= 0 && end <= file_size;
    require(inside && info.count >= 0, "a tensor lies outside its file");
    const bool real = info.dtype == "F32" || info.dtype == "F16" || info.dtype == "BF16" || info.dtype == "F64";
    if (real) require(std::ssize(file.read(name)) == info.count, "a tensor has fewer values than it says");
  }
}

void check_ids(const Tokenizer& tokenizer, std::string_view text, const SpecialPolicy& policy) {
  std::vector<int32_t> ids;
  try {
    ids = tokenizer.encode(text, policy);
  } catch (const Error& error) {
    check_message(error.what());
    require(tokenizer.kind() == TokenizerKind::chars, "a text can't be encoded");
    return;
  }
  require(tokenizer.decode(ids) == text, "ids decode to another text");
  require(tokenizer.count(text, policy) == std::ssize(ids), "count is not the number of ids");
  StreamDecoder stream(tokenizer);
  std::string streamed;
  for (const int32_t id : ids) {
    require(id >= 0 && id < tokenizer.vocab_size(), "an id lies outside the vocabulary");
    streamed += stream.push(id);
  }
  require(streamed + stream.flush() == tokenizer.decode_text(ids), "a stream decodes to another text");
}

void check_tokenizer(const Tokenizer& tokenizer) {
  for (const std::string& text : sample_texts()) {
    check_ids(tokenizer, text, SpecialPolicy::as_text());
    check_ids(tokenizer, text, SpecialPolicy::match_all());
    tokenizer.explain(text);
  }
  for (int32_t id = -1; id <= std::min(tokenizer.vocab_size(), 2000); ++id) {
    try {
      require(!tokenizer.bytes_of(id).empty(), "a token is empty");
    } catch (const Error& error) {
      check_message(error.what());  // an id that no token has
    }
  }
  const Tokenizer again = Tokenizer::from_json(tokenizer.to_json());
  require(again.fingerprint() == tokenizer.fingerprint(), "its tokenizer.json is another tokenizer");
}

// Valid files of which a case replaces one; what the case before replaced is restored first.
class Files {
 public:
  explicit Files(std::map<std::string, std::string> valid) : valid_(std::move(valid)) {
    for (const auto& [name, bytes] : valid_) put(name, bytes);
  }
  const fs::path& path() const { return folder_.path(); }
  const std::map<std::string, std::string>& valid() const { return valid_; }
  void replace(std::map<std::string, std::string> changed) {
    for (const std::string& name : changed_) put(name, valid_.at(name));
    changed_.clear();
    for (const auto& [name, bytes] : changed) put(name, bytes), changed_.push_back(name);
  }

 private:
  void put(const std::string& name, std::string_view bytes) {
    std::ofstream(path() / name, std::ios::binary).write(bytes.data(), std::ssize(bytes));
  }
  TemporaryFolder folder_;
  std::map<std::string, std::string> valid_;
  std::vector<std::string> changed_;
};

std::string manifest_of(const std::map<std::string, std::string>& files) {
  Manifest manifest;
  for (const auto& [name, bytes] : files)
    if (name != kManifestName) manifest[name] = {std::ssize(bytes), sha256_hex(bytes)};
  return manifest_text(manifest);
}

std::map<std::string, std::string> with_manifest(std::map<std::string, std::string> files) {
  files[kManifestName] = manifest_of(files);
  return files;
}

}  // namespace

bool fuzz_json(std::string_view bytes) {
  return read_and_use([&] { return parse_json(bytes, "x.json"); },
                      [](const Json& value) {
                        for (int indent : {-1, 2})
                          require(parse_json(dump_json(value, indent), "again") == value, "JSON changes when written");
                      });
}

bool fuzz_options_toml(std::string_view bytes) {
  Settings settings;
  return read_and_use([&] { return settings.options.parse_toml_text(bytes, "x.toml"), true; },
                      [&](bool) { check_settings(settings); });
}

bool fuzz_options_args(std::string_view bytes) {
  std::vector<std::string> args;
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', at), bytes.size());
    args.emplace_back(bytes.substr(at, end - at));
    at = end + 1;
  }
  Settings settings;
  return read_and_use([&] { return settings.options.parse_args(args); },
                      [&](const std::vector<std::string>& others) {
                        require(others.size() <= args.size(), "more arguments came out than in");
                        check_settings(settings);
                      });
}

bool fuzz_model_config(std::string_view bytes) {
  return read_and_use([&] { return model_config_from_json(parse_json(bytes, "config.json"), "config.json"); },
                      check_config);
}

bool fuzz_safetensors(std::string_view bytes) {
  return read_and_use([&] { return SafetensorsFile(bytes, "x.safetensors"); },
                      [&](const SafetensorsFile& file) { check_tensors(file, bytes.size()); });
}

bool fuzz_run_folder(std::string_view bytes) {
  static Files files(with_manifest(sample_checkpoint()));
  static constexpr std::array<const char*, 6> kNames = {"config.json",           "state.json",     "model.safetensors",
                                                        "optimizer.safetensors", "tokenizer.json", "manifest.json"};
  if (bytes.empty()) return false;
  const auto choice = static_cast<unsigned char>(bytes[0]);
  std::map<std::string, std::string> changed = {{kNames[choice % 128 % 6], std::string(bytes.substr(1))}};
  if (choice >= 128 && !changed.contains(kManifestName)) {
    std::map<std::string, std::string> all = files.valid();
    all[changed.begin()->first] = changed.begin()->second;
    changed[kManifestName] = manifest_of(all);
  }
  files.replace(std::move(changed));
  return read_and_use([&] { return load_checkpoint(files.path()); },
                      [&](const LoadedCheckpoint& loaded) {
                        check_tensors(loaded.weights, size_t{1} << 40);
                        if (loaded.optimizer) check_tensors(*loaded.optimizer, size_t{1} << 40);
                        dump_json(loaded.state);
                      });
}

bool fuzz_tokenizer_json(std::string_view bytes) {
  return read_and_use([&] { return Tokenizer::from_json(bytes); }, check_tokenizer);
}

bool fuzz_tokenizer_gpt2(std::string_view bytes) {
  const size_t cut = std::min(bytes.find('\0'), bytes.size());
  const std::string_view merges = bytes.substr(std::min(cut + 1, bytes.size()));
  return read_and_use([&] { return Tokenizer(tokenizer_parts_from_gpt2_files(bytes.substr(0, cut), merges, "gpt2")); },
                      check_tokenizer);
}

bool fuzz_token_folder(std::string_view bytes) {
  static Files files(sample_token_folder());
  static constexpr std::array<const char*, 3> kNames = {"train.bin", "val.bin", "meta.json"};
  if (bytes.empty()) return false;
  files.replace({{kNames[static_cast<unsigned char>(bytes[0]) % 3], std::string(bytes.substr(1))}});
  return read_and_use([&] { return open_token_folder(files.path()); },
                      [](const TokenFolder& folder) {
                        const TokenSpan tokens = folder.train.tokens();
                        for (int64_t i = 0; i < folder.train.size(); ++i)
                          require(tokens[i] >= 0 && tokens[i] < folder.vocab_size, "an id outside the vocabulary");
                      });
}

bool fuzz_text(std::string_view bytes) {
  for (const Pattern pattern : {Pattern::none, Pattern::gpt2}) {
    PieceScanner pieces(pattern, bytes);
    size_t at = 0;
    for (std::string_view piece; pieces.next(piece); at += piece.size())
      require(!piece.empty() && piece.data() == bytes.data() + at, "the pieces do not tile the text");
    require(at == bytes.size(), "the pieces end before the text");
  }
  for (const Tokenizer& tokenizer : sample_tokenizers()) {
    check_ids(tokenizer, bytes, SpecialPolicy::as_text());
    check_ids(tokenizer, bytes, SpecialPolicy::match_all());
  }
  const Tokenizer& bpe = sample_tokenizers().front();
  const size_t cut = safe_cut(bpe.pattern(), bytes, bytes.size() / 2);
  std::vector<int32_t> ids = bpe.encode(bytes.substr(0, cut), SpecialPolicy::as_text());
  const std::vector<int32_t> rest = bpe.encode(bytes.substr(cut), SpecialPolicy::as_text());
  ids.insert(ids.end(), rest.begin(), rest.end());
  require(ids == bpe.encode(bytes, SpecialPolicy::as_text()), "a safe cut changes the ids");

  const std::string whole = replace_invalid_utf8(bytes);
  require(utf8_error(whole) == whole.size(), "replaced text is not UTF-8");
  require((utf8_error(bytes) == bytes.size()) == (whole == bytes), "valid text is replaced, or broken text is not");
  Utf8Stream stream;
  std::string streamed;
  // The text itself says where it is cut.
  for (size_t at = 0; at < bytes.size();) {
    const size_t step = 1 + static_cast<unsigned char>(bytes[at]) % 5;
    const std::string part = stream.push(bytes.substr(at, step));
    require(utf8_error(part) == part.size(), "a stream gave part of a character");
    streamed += part;
    at += step;
  }
  require(streamed + stream.flush() == whole, "a stream replaces other bytes than the whole");
  return true;
}

bool fuzz_wheel(std::string_view bytes) {
  static const TemporaryFolder folder;
  const fs::path wheel = folder.path() / "fuzz-0.0.1-py3-none-any.whl";
  std::ofstream(wheel, std::ios::binary).write(bytes.data(), std::ssize(bytes));
  constexpr int64_t kMost = 1 << 16;
  return read_and_use([&] { return read_wheel_member(wheel, kWheelMember, {.most_bytes = kMost}); },
                      [](const std::string& member) { require(std::ssize(member) <= kMost, "more than was allowed"); });
}

std::span<const Target> all_targets() {
  static constexpr Target kTargets[] = {
      {"json", fuzz_json},
      {"options_toml", fuzz_options_toml},
      {"options_args", fuzz_options_args},
      {"model_config", fuzz_model_config},
      {"safetensors", fuzz_safetensors},
      {"run_folder", fuzz_run_folder},
      {"tokenizer_json", fuzz_tokenizer_json},
      {"tokenizer_gpt2", fuzz_tokenizer_gpt2},
      {"token_folder", fuzz_token_folder},
      {"text", fuzz_text},
      {"wheel", fuzz_wheel},
  };
  return kTargets;
}

}  // namespace bary::fuzz
