// SPDX-License-Identifier: Apache-2.0
// safetensors_tool write FILE: the tensors that safetensors_package.py expects. safetensors_tool read FILE: one line a
// tensor, name, type, shape and the float32 values as hexadecimal bits.
#include <bit>
#include <cstdio>
#include <string>

#include "bary/io/safetensors.h"

namespace {

void write(const std::string& path) {
  const std::vector<std::pair<std::string, bary::FileShape>> shapes = {// sorted by name
                                                                       {"empty", {0, 4}},
                                                                       {"h.0.ln_1.bias", {7}},
                                                                       {"scalar", {}},
                                                                       {"wte.weight", {5, 3}},
                                                                       {"z\xc3\xbcrich", {2, 1, 2}}};
  std::vector<std::vector<float>> values;
  for (const auto& entry : shapes) {
    size_t count = 1;
    for (int64_t size : entry.second) count *= static_cast<size_t>(size);
    auto& row = values.emplace_back(count);
    for (size_t i = 0; i < count; ++i) {
      row[i] = (static_cast<float>(i) - 3) / 8 + static_cast<float>(values.size() - 1);
    }
  }
  std::vector<bary::TensorView> tensors;
  for (size_t i = 0; i < shapes.size(); ++i) tensors.push_back({shapes[i].first, shapes[i].second, values[i]});
  bary::write_safetensors(path, tensors, {{"step", "12"}});
}

void read(const std::string& path) {
  bary::SafetensorsFile file(path);
  for (const auto& [name, info] : file.tensors()) {
    std::printf("%s\t%s\t%s\t", name.c_str(), info.dtype.c_str(), bary::shape_text(info.shape).c_str());
    for (float value : file.read(name)) std::printf("%08x ", std::bit_cast<unsigned>(value));
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    if (std::string(argv[1]) == "write")
      write(argv[2]);
    else
      read(argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
