// SPDX-License-Identifier: Apache-2.0
#include "bary/train/data.h"

#include <filesystem>

namespace bary {
namespace {

constexpr const char* kSeparator = "<|endoftext|>";  // between documents, so that a model can tell where one ends

std::vector<std::string_view> views(const Corpus& corpus) { return {corpus.documents.begin(), corpus.documents.end()}; }

std::vector<std::string> specials_for(const DataOptions& o, const Corpus& corpus) {
  std::vector<std::string> specials;
  if (corpus.documents.size() > 1) specials.push_back(kSeparator);
  if (o.mask) specials.push_back(kMaskToken);
  return specials;
}

std::vector<int32_t> encode_documents(const Tokenizer& tokenizer, const Corpus& corpus) {
  std::vector<int32_t> ids;
  const auto separator = tokenizer.special_id(kSeparator);
  for (const std::string& document : corpus.documents) {
    auto part = tokenizer.encode(document, SpecialPolicy::as_text());
    ids.insert(ids.end(), part.begin(), part.end());
    if (separator && corpus.documents.size() > 1) ids.push_back(*separator);
  }
  return ids;
}

}  // namespace

bool is_token_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::path(path) / "train.bin", ignored);
}

Tokenizer make_tokenizer(const DataOptions& options, const Corpus& corpus) {
  const std::vector<std::string> specials = specials_for(options, corpus);
  if (options.tokenizer == "byte") return Tokenizer::bytes(specials);
  if (options.tokenizer == "char") {
    std::string all;
    for (const std::string& d : corpus.documents) all += d;
    return Tokenizer::characters(all, specials);
  }
  if (options.tokenizer != "bpe") return Tokenizer::load(options.tokenizer);
  BpeOptions o;
  BARY_CHECK(options.vocab_size >= 256 && options.vocab_size <= 1 << 24,
             "vocab_size {}: byte-level BPE has 256 bytes to begin with; give 256 to "
             "{}",
             options.vocab_size, 1 << 24);
  o.vocab_size = static_cast<int>(options.vocab_size);
  auto rule = tie_rule_named(options.ties);
  BARY_CHECK(rule.has_value(), "ties: got '{}', expected first, hf or bytes", options.ties);
  o.ties = *rule;
  o.specials = specials;
  BpeTraining training = train_bpe(views(corpus), o);
  if (options.notice && !training.note.empty()) options.notice(training.note);
  return Tokenizer::bpe(training, o, corpus.sha256);
}

TrainData TrainData::load(const DataOptions& o, const std::optional<Tokenizer>& given) {
  TrainData data;
  data.tokenizer = given;
  if (is_token_folder(o.dataset)) {
    std::error_code unreadable;
    if (!data.tokenizer && std::filesystem::exists(std::filesystem::path(o.dataset) / "tokenizer.json", unreadable))
      data.tokenizer = Tokenizer::load(std::filesystem::path(o.dataset) / "tokenizer.json");
    TokenFolderOptions options;
    if (data.tokenizer) options.tokenizer = data.tokenizer->fingerprint_hex();
    if (!std::filesystem::exists(std::filesystem::path(o.dataset) / "meta.json", unreadable))
      options.vocab_size = data.tokenizer ? data.tokenizer->vocab_size() : o.vocab_size;
    data.files_ = std::make_shared<TokenFolder>(open_token_folder(o.dataset, options));
    data.vocab_size = data.files_->vocab_size;
    data.train = data.files_->train.tokens();
    if (data.files_->val) data.val = data.files_->val->tokens();
    data.name = o.dataset, data.source = o.dataset;
    if (data.files_->meta) data.sha256 = data.files_->meta->corpus_sha256;
  } else {
    CorpusOptions options;
    options.corpus_path = o.corpus;
    options.notice = o.notice;
    Corpus corpus = load_corpus(o.dataset, options);
    if (!data.tokenizer) data.tokenizer = make_tokenizer(o, corpus);
    data.ids_ = encode_documents(*data.tokenizer, corpus);
    TokenSplit split = split_tokens(data.ids_, o.val_fraction);
    data.train = split.train, data.val = split.val;
    data.vocab_size = data.tokenizer->vocab_size();
    data.name = corpus.name, data.source = corpus.source, data.sha256 = corpus.sha256, data.bytes = corpus.bytes;
  }
  if (o.mask) {
    if (data.tokenizer) data.mask_token = data.tokenizer->special_id(kMaskToken);
    BARY_CHECK(data.mask_token,
               "the tokenizer has no token {} to hide others with; train without --tokenizer and "
               "--init_from, or add it to the tokenizer's special tokens",
               kMaskToken);
  }
  if (data.tokenizer) {
    const Tokenizer& t = *data.tokenizer;
    for (int32_t id = 0; id < data.vocab_size;
         ++id)  // a vocabulary may skip ids; what stands between documents is no byte of theirs
      data.bytes_of_token.push_back(t.has(id) && !t.is_special(id) ? static_cast<int32_t>(t.bytes_of(id).size()) : 0);
  }
  return data;
}

}  // namespace bary
