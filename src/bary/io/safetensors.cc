// SPDX-License-Identifier: Apache-2.0
#include "bary/io/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "bary/base/error.h"
#include "bary/base/json.h"
#include "bary/base/nearest.h"
#include "bary/base/quote.h"

namespace bary {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors holds little-endian values; copy by bytes here");

constexpr uint64_t kLongestHeader = 100'000'000;  // the format's own limit
constexpr int kDeepestHeader = 8;
constexpr size_t kMostSizes = 64;  // of a shape; the file's own, but messages show it
constexpr const char* kMetadataKey = "__metadata__";

int64_t dtype_bytes(std::string_view dtype) {
  static constexpr std::pair<std::string_view, int64_t> kSizes[] = {
      {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F64", 8}, {"I64", 8},  {"I32", 4}, {"I16", 2},     {"I8", 1},
      {"U64", 8}, {"U32", 4}, {"U16", 2},  {"U8", 1},  {"BOOL", 1}, {"C64", 8}, {"F8_E5M2", 1}, {"F8_E4M3", 1}};
  for (auto [name, size] : kSizes) {
    if (name == dtype) return size;
  }
  return 0;
}

std::string advice_for_shape(const std::string& name, const FileShape& found, const FileShape& wanted) {
  bool matrices = found.size() == 2 && wanted.size() == 2;
  if (matrices && found[0] == wanted[1] && found[1] == wanted[0]) return "is it stored transposed?";
  bool vocabulary = name.find("wte") != std::string::npos || name.find("embed") != std::string::npos ||
                    name.find("lm_head") != std::string::npos;
  if (matrices && found[1] == wanted[1] && vocabulary) return "was the vocabulary padded?";
  return "is the file of another model?";
}

// The product of a shape, or -1 where it does not fit into 62 bits.
int64_t product(const FileShape& shape) {
  int64_t count = 1;
  bool zero = std::find(shape.begin(), shape.end(), 0) != shape.end();
  if (zero) return 0;
  for (int64_t size : shape) {
    if (__builtin_mul_overflow(count, size, &count) || count > (int64_t{1} << 62)) return -1;
  }
  return count;
}

}  // namespace

std::string shape_text(const FileShape& shape) {
  std::string out = "(";
  for (int64_t size : shape) {
    if (out.size() > 1) out += ',';
    out += std::to_string(size);
  }
  out += ')';
  return out;
}

float bfloat16_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

float half_to_float(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  uint32_t exponent = (bits >> 10) & 0x1Fu;
  uint32_t fraction = bits & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (fraction << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  float small = static_cast<float>(fraction) * 0x1p-24f;  // subnormal half: exact in float
  return sign ? -small : small;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : SafetensorsFile(MappedFile(path)) {}

SafetensorsFile::SafetensorsFile(MappedFile file)
    : file_(std::move(file)), bytes_(file_.text()), what_(file_.path().string()) {
  parse();
}

SafetensorsFile::SafetensorsFile(std::string_view bytes, std::string what) : bytes_(bytes), what_(std::move(what)) {
  parse();
}

void SafetensorsFile::parse() {
  BARY_CHECK(bytes_.size() >= 8, "{}: {} bytes, a safetensors file has at least 8; was the download cut off?", what_,
             bytes_.size());
  uint64_t length = 0;
  std::memcpy(&length, bytes_.data(), 8);
  BARY_CHECK(length <= kLongestHeader,
             "{}: says its header has {} bytes, at most {} are allowed; not a safetensors file", what_, length,
             kLongestHeader);
  BARY_CHECK(length <= bytes_.size() - 8,
             "{}: says its header has {} bytes, the file has {}; was the download cut off?", what_, length,
             bytes_.size());
  std::string_view header = bytes_.substr(8, length);
  BARY_CHECK(header.starts_with('{'), "{}: its header does not start with {{; not a safetensors file", what_);
  Json json = parse_json(header, what_, kDeepestHeader);
  int64_t data_begin = static_cast<int64_t>(8 + length);
  for (const auto& [name, value] : json.items()) {
    if (name != kMetadataKey) {
      tensors_.emplace(name, parse_tensor(name, value, data_begin));
      continue;
    }
    BARY_CHECK(value.is_object(), "{}: {} is no object of texts; not a safetensors file", what_, kMetadataKey);
    for (const auto& [key, text] : value.items()) metadata_[key] = json_string(value, key, what_ + ": " + kMetadataKey);
  }
  check_no_holes(data_begin);
}

SafetensorsFile::Info SafetensorsFile::parse_tensor(const std::string& name, const nlohmann::json& value,
                                                    int64_t data_begin) const {
  std::string where = what_ + ": tensor " + quote_if_odd(name);
  Info info;
  info.dtype = json_string(value, "dtype", where);
  int64_t each = dtype_bytes(info.dtype);
  BARY_CHECK(each > 0, "{}: has the unknown type {}; convert it to F32", where, quote(info.dtype));
  const Json& shape = json_member(value, "shape", where);
  const Json& offsets = json_member(value, "data_offsets", where);
  auto whole = [&](const Json& number) {
    bool good = number.is_number_unsigned() && number.get<uint64_t>() <= uint64_t{INT64_MAX};
    BARY_CHECK(good, "{}: {} is no size or offset; the file is damaged", where, quote(dump_json(number, -1)));
    return static_cast<int64_t>(number.get<uint64_t>());
  };
  BARY_CHECK(shape.is_array(), "{}: its shape is no list; the file is damaged", where);
  BARY_CHECK(shape.size() <= kMostSizes, "{}: its shape has {} sizes, at most {} are read; the file is damaged", where,
             shape.size(), kMostSizes);
  for (const Json& size : shape) info.shape.push_back(whole(size));
  BARY_CHECK(offsets.is_array() && offsets.size() == 2, "{}: data_offsets is no pair; the file is damaged", where);
  int64_t begin = whole(offsets[0]), end = whole(offsets[1]);
  int64_t room = static_cast<int64_t>(bytes_.size()) - data_begin;
  BARY_CHECK(begin <= end, "{}: ends at byte {}, before its start {}; the file is damaged", where, end, begin);
  BARY_CHECK(end <= room, "{}: ends at byte {} of the data, the file has {}; was it cut off?", where, end, room);
  info.count = product(info.shape);
  int64_t wanted = 0;
  bool fits = info.count >= 0 && !__builtin_mul_overflow(info.count, each, &wanted);
  BARY_CHECK(fits && wanted == end - begin, "{}: {} of {} needs {} bytes, the file gives {}; the file is damaged",
             where, shape_text(info.shape), info.dtype, fits ? std::to_string(wanted) : "over 2^62", end - begin);
  info.begin = data_begin + begin;
  info.bytes = end - begin;
  return info;
}

void SafetensorsFile::check_no_holes(int64_t data_begin) const {
  std::vector<std::pair<const std::string*, const Info*>> order;
  for (const auto& [name, info] : tensors_) order.emplace_back(&name, &info);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second->begin, a.second->bytes) < std::pair(b.second->begin, b.second->bytes);
  });
  int64_t next = data_begin;
  for (const auto& [name, info] : order) {
    BARY_CHECK(info->begin == next, "{}: tensor {} starts at byte {}, the one before it ends at {}; {}", what_,
               quote_if_odd(*name), info->begin, next,
               info->begin < next ? "two tensors share bytes" : "bytes between them belong to none");
    next += info->bytes;
  }
  BARY_CHECK(next == static_cast<int64_t>(bytes_.size()),
             "{}: the tensors end at byte {}, the file at {}; it is damaged", what_, next, bytes_.size());
}

const SafetensorsFile::Info& SafetensorsFile::info(const std::string& name) const {
  auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& entry : tensors_) names.push_back(entry.first);
  auto guess = nearest(name, names);
  fail("{}: tensor {} is missing{}; is the file of another model?", what_, quote_if_odd(name),
       guess ? ", the nearest name there is " + quote_if_odd(*guess) : "");
}

std::vector<float> SafetensorsFile::read(const std::string& name) const {
  const Info& found = info(name);
  std::vector<float> out(static_cast<size_t>(found.count));
  read_into(name, found.shape, out);
  return out;
}

void SafetensorsFile::read_into(const std::string& name, const FileShape& shape, std::span<float> out) const {
  const Info& found = info(name);
  BARY_CHECK(found.shape == shape, "{}: tensor {} is {}, config says {}; {}", what_, quote_if_odd(name),
             shape_text(found.shape), shape_text(shape), advice_for_shape(name, found.shape, shape));
  BARY_CHECK(static_cast<int64_t>(out.size()) == found.count,
             "{}: tensor {} has {} values, room for {} was given; pass {}", what_, quote_if_odd(name), found.count,
             out.size(), found.count);
  const char* from = bytes_.data() + found.begin;
  if (found.dtype == "F32") {
    if (!out.empty()) std::memcpy(out.data(), from, out.size_bytes());
    return;
  }
  // Foreign files need not align their values: every value goes through memcpy.
  auto convert = [&]<class Stored>(Stored stored, auto&& as_float) {
    for (size_t i = 0; i < out.size(); ++i) {
      std::memcpy(&stored, from + i * sizeof(Stored), sizeof(Stored));
      out[i] = as_float(stored);
    }
  };
  if (found.dtype == "F16")
    convert(uint16_t{}, half_to_float);
  else if (found.dtype == "BF16")
    convert(uint16_t{}, bfloat16_to_float);
  else if (found.dtype == "F64")
    convert(double{}, [](double x) { return static_cast<float>(x); });
  else
    fail("{}: tensor {} holds {}, weights are F32, F16, BF16 or F64; convert it first", what_, quote_if_odd(name),
         found.dtype);
}

namespace {

std::string header_of(std::span<const TensorView* const> order, const Metadata& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  int64_t offset = 0;
  for (const TensorView* tensor : order) {
    int64_t end = offset + static_cast<int64_t>(tensor->values.size_bytes());
    header[tensor->name] = {{"dtype", "F32"}, {"shape", tensor->shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const Json::exception& error) {
    fail("safetensors: a name or metadata text is not UTF-8; rename it ({})", error.what());
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  BARY_CHECK(text.size() <= kLongestHeader,
             "safetensors: the header has {} bytes, at most {} are allowed; store fewer tensors", text.size(),
             kLongestHeader);
  return text;
}

}  // namespace

void stream_safetensors(std::span<const TensorView> tensors, Metadata metadata,
                        const std::function<void(std::string_view)>& sink) {
  metadata.emplace("format", "pt");
  std::vector<const TensorView*> order;
  for (const auto& tensor : tensors) {
    bool good_name = !tensor.name.empty() && tensor.name != kMetadataKey;
    BARY_CHECK(good_name, "safetensors: {} is no name for a tensor; choose another", quote(tensor.name));
    bool sizes = std::all_of(tensor.shape.begin(), tensor.shape.end(), [](int64_t size) { return size >= 0; });
    BARY_CHECK(sizes && product(tensor.shape) == static_cast<int64_t>(tensor.values.size()),
               "safetensors: tensor {} is {} but has {} values; give as many as the shape says",
               quote_if_odd(tensor.name), shape_text(tensor.shape), tensor.values.size());
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->name < b->name; });
  for (size_t i = 1; i < order.size(); ++i) {
    BARY_CHECK(order[i - 1]->name != order[i]->name, "safetensors: two tensors are called {}; names are unique",
               quote_if_odd(order[i]->name));
  }
  std::string header = header_of(order, metadata);
  uint64_t length = header.size();
  sink({reinterpret_cast<const char*>(&length), 8});
  sink(header);
  for (const TensorView* tensor : order) {
    if (!tensor->values.empty())
      sink({reinterpret_cast<const char*>(tensor->values.data()), tensor->values.size_bytes()});
  }
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors, Metadata metadata) {
  AtomicFile file(path);
  stream_safetensors(tensors, std::move(metadata), [&](std::string_view bytes) { file.write(bytes); });
  file.commit();
}

}  // namespace bary
