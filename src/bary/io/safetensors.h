// SPDX-License-Identifier: Apache-2.0
// Weights in the safetensors format (facts: huggingface/safetensors, README "Format"): 8 bytes of header length (little
// endian), a JSON header {"name": {"dtype": "F32", "shape": [..], "data_offsets": [begin, end]}, "__metadata__": {..}},
// then one buffer in which the tensors lie without holes, row by row.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bary/base/file.h"

namespace bary {

// Sizes as a file states them: any rank, not yet trusted.
using FileShape = std::vector<int64_t>;

std::string shape_text(const FileShape& shape);  // "(50257,768)", "()" for a scalar

// A tensor to write: `values` are the caller's, row-major, as many as the shape's product.
struct TensorView {
  std::string name;
  FileShape shape;
  std::span<const float> values;
};

using Metadata = std::map<std::string, std::string>;

// Float32, sorted by name, header padded with spaces to a multiple of 8 so that every value is aligned. "format": "pt"
// is added to the metadata where it is missing (Hugging Face's loaders ask for it). Refused: a name that is empty,
// given twice, reserved or not UTF-8, and a shape whose product is not the number of values.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors, Metadata metadata = {});

// The same bytes, handed to `sink` piece by piece.
void stream_safetensors(std::span<const TensorView> tensors, Metadata metadata,
                        const std::function<void(std::string_view)>& sink);

// A file somebody else may have made: every length, offset and shape is checked against the file's size before anything
// is allocated for it; the values stay in the file until they are read. Errors are input Errors that name the file and
// the tensor.
class SafetensorsFile {
 public:
  struct Info {
    std::string dtype;  // "F32", "F16", "BF16", "F64", "I64", ...
    FileShape shape;
    int64_t count = 0;  // of values
    int64_t begin = 0;  // first byte in the file
    int64_t bytes = 0;
  };

  explicit SafetensorsFile(const std::filesystem::path& path);
  explicit SafetensorsFile(MappedFile file);
  // The same for bytes in memory, which must outlive this; `what` names them in errors.
  SafetensorsFile(std::string_view bytes, std::string what);

  const Metadata& metadata() const { return metadata_; }
  const std::map<std::string, Info>& tensors() const { return tensors_; }
  bool contains(const std::string& name) const { return tensors_.count(name) != 0; }
  const Info& info(const std::string& name) const;  // a missing name comes with the nearest one

  // As float32: F32 as it is, F16 and BF16 exactly, F64 rounded to nearest. Other types are refused.
  std::vector<float> read(const std::string& name) const;
  // Into the caller's memory; `shape` is what the caller's configuration says.
  void read_into(const std::string& name, const FileShape& shape, std::span<float> out) const;

 private:
  void parse();
  Info parse_tensor(const std::string& name, const nlohmann::json& value, int64_t data_begin) const;
  void check_no_holes(int64_t data_begin) const;

  MappedFile file_;
  std::string_view bytes_;
  std::string what_;
  Metadata metadata_;
  std::map<std::string, Info> tensors_;
};

float half_to_float(uint16_t bits);      // IEEE 754 binary16
float bfloat16_to_float(uint16_t bits);  // the upper half of a float

}  // namespace bary
