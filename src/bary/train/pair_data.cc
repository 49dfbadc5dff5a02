// SPDX-License-Identifier: Apache-2.0
#include "bary/train/pair_data.h"

#include <algorithm>
#include <numeric>

#include "bary/base/random.h"

namespace bary {
namespace {

Tokenizer tokenizer_named(const std::string& name, const std::string& alphabet) {
  if (name == "char") return Tokenizer::characters(alphabet, pair_specials());
  if (name == "byte") return Tokenizer::bytes(pair_specials());
  return Tokenizer::load(name);
}

// Sorted by length and cut where the next pair would exceed the budget: [begin, end) of each batch
std::vector<std::pair<size_t, size_t>> cut(const std::vector<CodedPair>& pairs, int64_t budget) {
  std::vector<std::pair<size_t, size_t>> batches;
  size_t begin = 0;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const int64_t longest = pairs[i].longest();
    BARY_CHECK(longest <= budget,
               "pairs: batch_tokens is {} and a pair has {} tokens on its longer side; give at least as many", budget,
               longest);
    if (static_cast<int64_t>(i - begin + 1) * longest > budget) batches.emplace_back(begin, i), begin = i;
  }
  batches.emplace_back(begin, pairs.size());
  return batches;
}

}  // namespace

std::vector<std::string> pair_specials() { return {"<pad>", "<bos>", "<eos>"}; }

PairTokens pair_tokens(const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  for (const std::string& name : pair_specials()) {
    const auto id = tokenizer.special_id(name);
    BARY_CHECK(
        id,
        "pairs: the tokenizer has no special token {}, which models of pairs need; make one with --tokenizer char "
        "or byte",
        name);
    ids.push_back(*id);
  }
  return {ids[0], ids[1], ids[2]};
}

std::vector<int32_t> source_tokens(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<int32_t> ids = tokenizer.encode(text, SpecialPolicy::as_text());
  ids.push_back(pair_tokens(tokenizer).eos);
  return ids;
}

PairData::PairData(std::shared_ptr<const PairTask> task, const PairDataOptions& options, const Tokenizers& given)
    : task_(std::move(task)), tokenizers_(given) {
  if (!tokenizers_.text) {
    tokenizers_.text = tokenizer_named(options.tokenizer, task_->alphabet());
    if (!options.source_tokenizer.empty())
      tokenizers_.source = tokenizer_named(options.source_tokenizer, task_->alphabet());
  }
  tokens_ = pair_tokens(target());
  pair_tokens(source());
}

CodedPair PairData::coded(const TextPair& pair) const {
  return {source_tokens(source(), pair.source), target().encode(pair.target, SpecialPolicy::as_text())};
}

std::vector<CodedPair> PairData::update(uint64_t seed, int64_t it, const UpdateSize& size) const {
  // one stream for a run, its draws numbered over all updates
  auto draw = [&](int64_t count) {
    std::vector<CodedPair> pairs;
    for (int64_t i = 0; i < count; ++i)
      pairs.push_back(coded(task_->draw(seed, PairSplit::training, static_cast<uint64_t>(it * count + i))));
    return pairs;
  };
  if (size.tokens == 0) return draw(size.pairs);
  const int64_t longest = std::max(task_->facts().longest_source, task_->facts().longest_target) + 1;
  std::vector<CodedPair> pairs = draw(16 * std::max<int64_t>(1, size.tokens / longest));
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const CodedPair& a, const CodedPair& b) { return a.longest() < b.longest(); });
  const auto batches = cut(pairs, size.tokens);
  RandomStream random(seed, Purpose::batch, static_cast<uint64_t>(it));
  const auto [begin, end] = batches[random.below(batches.size())];
  return {pairs.begin() + static_cast<std::ptrdiff_t>(begin), pairs.begin() + static_cast<std::ptrdiff_t>(end)};
}

std::vector<CodedPair> PairData::fixed(PairSplit split, int64_t count, uint64_t seed) const {
  std::vector<CodedPair> pairs;
  const bool whole = count == 0 && split == PairSplit::held_out && task_->is_list() && task_->count(split) <= 10000;
  const std::vector<TextPair> texts =
      whole ? listed_pairs(*task_, split) : drawn_pairs(*task_, seed, split, count ? count : 1000);
  for (const TextPair& pair : texts) pairs.push_back(coded(pair));
  return pairs;
}

}  // namespace bary
