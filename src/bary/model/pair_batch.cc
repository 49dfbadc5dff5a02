// SPDX-License-Identifier: Apache-2.0
#include "bary/model/pair_batch.h"

namespace bary {

PairBatch batch_of(std::span<const CodedPair> pairs, const PairTokens& tokens) {
  std::vector<std::vector<int32_t>> sources, inputs;
  for (const CodedPair& p : pairs) {
    sources.push_back(p.source);
    inputs.push_back({tokens.bos});
    inputs.back().insert(inputs.back().end(), p.target.begin(), p.target.end());
  }
  PairBatch batch{pad(sources, tokens.pad), pad(inputs, tokens.pad), {}};
  batch.targets.assign(batch.inputs.ids.size(), -1);
  const auto T = static_cast<size_t>(batch.inputs.T());
  for (size_t b = 0; b < pairs.size(); ++b) {
    std::copy(pairs[b].target.begin(), pairs[b].target.end(),
              batch.targets.begin() + static_cast<std::ptrdiff_t>(b * T));
    batch.targets[b * T + pairs[b].target.size()] = tokens.eos;
  }
  return batch;
}

LineBatch lines_of(std::span<const CodedPair> pairs, const PairTokens& tokens) {
  std::vector<std::vector<int32_t>> lines;
  LineBatch batch;
  for (const CodedPair& p : pairs) {
    BARY_CHECK(!p.source.empty(), "lines_of: an empty source; every one ends with <eos>");
    std::vector<int32_t> line(p.source.begin(), p.source.end() - 1);  // <bos> parts the two
    line.push_back(tokens.bos);
    batch.sources.push_back(static_cast<int64_t>(line.size()));
    line.insert(line.end(), p.target.begin(), p.target.end());
    lines.push_back(std::move(line));
  }
  batch.inputs = pad(lines, tokens.pad);
  batch.targets.assign(batch.inputs.ids.size(), -1);
  const auto T = static_cast<size_t>(batch.inputs.T());
  for (size_t b = 0; b < pairs.size(); ++b) {
    const size_t from = b * T + static_cast<size_t>(batch.sources[b]) - 1;
    std::copy(pairs[b].target.begin(), pairs[b].target.end(),
              batch.targets.begin() + static_cast<std::ptrdiff_t>(from));
    batch.targets[from + pairs[b].target.size()] = tokens.eos;
  }
  return batch;
}

}  // namespace bary
