// SPDX-License-Identifier: Apache-2.0
// A model, its optimiser and its place in a run, to a folder and back. What a damaged or half-written folder does is
// tested in io/run_folder_test.cc, a kill in the middle of a save in tests/same_bits.
#include "bary/train/checkpoint.h"

#include "bary/base/file.h"
#include "bary/base/sha256.h"
#include "bary/io/run_folder.h"
#include "bary/train/small_model_test.h"

namespace bary {
namespace {

using namespace test;

ModelConfig byte_model() {
  ModelConfig c = small_model();
  c.vocab_size = 256;  // of Tokenizer::bytes()
  return c;
}

// A model with three updates behind it, so that moments and weights are all different.
struct Trained {
  Trained() : model(byte_model(), 3), adamw(model.parameters(), {}) {
    for (uint64_t t = 0; t < 3; ++t) {
      RandomStream random(1, Purpose::test, t);
      std::vector<float> g(static_cast<size_t>(model.parameters().size()));
      for (float& x : g) x = static_cast<float>(random.normal());
      adamw.step(g.data(), 1, 1e-2);
    }
  }
  std::vector<float> moments() {
    std::vector<float> m(adamw.moment1(), adamw.moment1() + model.parameters().size());
    m.insert(m.end(), adamw.moment2(), adamw.moment2() + model.parameters().size());
    return m;
  }
  LanguageModel model;
  AdamW adamw;
};

TEST(Checkpoint, IsReadPastItsWindow) {
  Folder folder;
  ModelConfig c = byte_model();
  c.pos = Position::rotary;
  const LanguageModel trained(c, 3);
  save_model(folder / "last", trained, {Tokenizer::bytes(), {}}, nullptr, {});
  const std::vector<int32_t> longer = random_ids(3 * c.block_size, 29);
  EXPECT_THROW(load_model(folder / "last").model->logits(longer, 1), Error);
  const LoadedModel plain = load_model(folder / "last", {3 * c.block_size});
  const LoadedModel slow = load_model(folder / "last", {3 * c.block_size, RopeScaling::ntk, 3});
  EXPECT_EQ(values(*slow.model), values(trained));
  EXPECT_NE(slow.model->logits(longer, 1).to_vector(), plain.model->logits(longer, 1).to_vector());
}

TEST(Checkpoint, ComesBackBitForBit) {
  Folder folder;
  Trained t;
  const std::string hash =
      save_model(folder / "last", t.model, {Tokenizer::bytes(), {}}, &t.adamw, {{"step", 7}, {"note", "x"}});
  EXPECT_EQ(hash, weights_hash(t.model));
  LoadedModel loaded = load_model(folder / "last");
  EXPECT_EQ(values(*loaded.model), values(t.model));
  EXPECT_EQ(weights_hash(*loaded.model), hash);
  EXPECT_EQ(loaded.state["weights_sha256"], hash);
  EXPECT_EQ(loaded.state["note"], "x");
  EXPECT_EQ(loaded.state["updates"], 3);
  EXPECT_EQ(to_json(loaded.model->config()), to_json(t.model.config()));
  ASSERT_TRUE(loaded.tokenizer.has_value());
  EXPECT_EQ(loaded.tokenizer->fingerprint(), Tokenizer::bytes().fingerprint());
  const std::vector<int32_t> ids = random_ids(8, 29);
  EXPECT_EQ(loaded.model->logits(ids, 1).to_vector(), t.model.logits(ids, 1).to_vector());

  LanguageModel again(byte_model(), 99);
  AdamW adamw(again.parameters(), {});
  const std::vector<float> warm = again.logits(ids, 1).to_vector();  // packed with the old weights
  EXPECT_EQ(resume_into(folder.path(), again, adamw)["step"], 7);
  EXPECT_EQ(values(again), values(t.model));
  EXPECT_EQ(adamw.updates(), 3);
  const std::vector<float> moments = t.moments();
  EXPECT_TRUE(std::equal(adamw.moment1(), adamw.moment1() + again.parameters().size(), moments.begin()));
  EXPECT_TRUE(std::equal(adamw.moment2(), adamw.moment2() + again.parameters().size(),
                         moments.begin() + again.parameters().size()));
  EXPECT_EQ(again.logits(ids, 1).to_vector(), t.model.logits(ids, 1).to_vector());
  EXPECT_NE(warm, again.logits(ids, 1).to_vector());
}

TEST(Checkpoint, HasWhatOtherToolsLookFor) {
  Folder folder;
  Trained t;
  save_model(folder / "last", t.model, {Tokenizer::bytes(), {}}, &t.adamw, {{"step", 7}});
  SafetensorsFile file(folder / "last" / "model.safetensors");
  EXPECT_EQ(file.info("transformer.wte.weight").shape, (FileShape{256, 16}));
  EXPECT_EQ(file.info("transformer.h.0.attn.k_proj.weight").shape, (FileShape{16, 16})) << "not the joined matrix";
  EXPECT_EQ(file.metadata().at("format"), "pt");
  SafetensorsFile optimizer(folder / "last" / "optimizer.safetensors");
  EXPECT_EQ(optimizer.tensors().size(), 2 * file.tensors().size());
  EXPECT_TRUE(optimizer.contains("exp_avg_sq.lm_head.bias"));
  for (const char* name : {"config.json", "tokenizer.json", "state.json", "manifest.json"})
    EXPECT_TRUE(std::filesystem::exists(folder / "last" / name)) << name;
}

TEST(Checkpoint, WithoutOptimizerItRunsButDoesNotResume) {
  Folder folder;
  Trained t;
  save_model(folder / "best", t.model, {}, nullptr, {{"step", 7}});
  EXPECT_FALSE(load_model(folder.path()).tokenizer.has_value());
  LanguageModel again(byte_model(), 99);
  AdamW adamw(again.parameters(), {});
  const std::vector<float> before = values(again);
  const std::string said = message([&] { resume_into(folder.path(), again, adamw); });
  EXPECT_TRUE(has(said, "no optimiser state") && has(said, "--init_from")) << said;
  EXPECT_EQ(values(again), before);
}

TEST(Checkpoint, OfAnotherShapeIsRefused) {
  Folder folder;
  Trained t;
  save_model(folder / "last", t.model, {}, &t.adamw, {{"step", 7}});
  auto refused = [&](const std::function<void(ModelConfig&)>& change) {
    ModelConfig c = byte_model();
    change(c);
    LanguageModel model(c, 1);
    AdamW adamw(model.parameters(), {});
    return message([&] { resume_into(folder.path(), model, adamw); });
  };
  const std::string wider = refused([](ModelConfig& c) { c.n_embd = 32; });
  EXPECT_TRUE(has(wider, "16") && has(wider, "32") && has(wider, "model.safetensors")) << wider;
  EXPECT_TRUE(has(refused([](ModelConfig& c) { c.n_layer = 2; }), "transformer.h.1."));
  EXPECT_TRUE(has(refused([](ModelConfig& c) { c.n_layer = 0; }), "transformer.h.0."));
  EXPECT_TRUE(has(refused([](ModelConfig& c) { c.mlp = MlpKind::swiglu; }), "c_gate"));
}

TEST(Checkpoint, ConfigAndWeightsMustBelongTogether) {
  Folder folder;
  Trained t;
  Checkpoint c;  // a folder that is whole but wrong: the configuration of a deeper model
  ModelConfig deeper = byte_model();
  deeper.n_layer = 2;
  c.config = to_json(deeper);
  for (const Parameter& p : t.model.parameters().list()) {
    FileShape shape;
    for (int i = 0; i < p.shape.rank(); ++i) shape.push_back(p.shape[i]);
    c.weights.push_back({p.name, shape, t.model.parameters().values_of(p)});
  }
  save_checkpoint(folder / "last", c);
  EXPECT_TRUE(has(message([&] { load_model(folder.path()); }), "config.json describes a model of"));
  deeper.n_layer = 0;
  c.config = to_json(deeper);
  save_checkpoint(folder / "last", c);
  EXPECT_TRUE(has(message([&] { load_model(folder.path()); }), "does not have"));
}

TEST(Checkpoint, IsFoundInItsFolderOrTheRuns) {
  Folder folder;
  Trained t;
  EXPECT_TRUE(has(message([&] { find_checkpoint(folder.path(), true); }), "no checkpoint here"));
  write_file_atomic(folder / "model.safetensors", "weights");  // copied without the rest
  EXPECT_TRUE(has(message([&] { find_checkpoint(folder.path(), true); }), "manifest.json"));
  std::filesystem::remove(folder / "model.safetensors");
  save_model(folder / "last", t.model, {}, &t.adamw, {{"step", 7}});
  EXPECT_EQ(find_checkpoint(folder.path(), true), folder / "last");
  save_model(folder / "best", t.model, {}, nullptr, {{"step", 3}});
  EXPECT_EQ(find_checkpoint(folder.path(), true), folder / "best");
  EXPECT_EQ(find_checkpoint(folder.path(), false), folder / "last");
  EXPECT_EQ(find_checkpoint(folder / "last", true), folder / "last");
}

TEST(Checkpoint, TheHashIsOfTheWeightsAlone) {
  Trained t;
  const std::string hash = weights_hash(t.model);
  EXPECT_EQ(hash.size(), 64u);
  Folder folder;
  EXPECT_EQ(save_model(folder / "a", t.model, {Tokenizer::bytes(), {}}, nullptr, {{"step", 1}}), hash);
  EXPECT_EQ(sha256_hex(read_file(folder / "a" / "model.safetensors")), hash)
      << "what `sha256sum model.safetensors` says";
  t.model.parameters().values()[5] += 1e-3f;
  EXPECT_NE(weights_hash(t.model), hash);
}

TEST(Checkpoint, ATokenizerOfMoreTokensThanTheModelIsRefused) {  // its ids index rows of the model
  Folder folder;
  ModelConfig c = byte_model();
  c.vocab_size = 11;
  save_model(folder / "one", LanguageModel(c, 3), {Tokenizer::bytes(), {}}, nullptr, {});
  EXPECT_THROW(load_model(folder / "one"), Error);
  ModelConfig pairs = preset("copy");
  pairs.vocab_size = 300, pairs.source_vocab_size = 11;
  save_model(folder / "two", *make_seq2seq(pairs, 3), {Tokenizer::bytes(), {}}, nullptr, {});
  EXPECT_THROW(load_seq2seq(folder / "two"), Error);
  pairs.source_vocab_size = 256;
  save_model(folder / "two", *make_seq2seq(pairs, 3), {Tokenizer::bytes(), {}}, nullptr, {});
  EXPECT_NO_THROW(load_seq2seq(folder / "two"));
}

TEST(Checkpoint, ResumingIsRefusedBeforeAnythingChanges) {
  Folder folder;
  Trained t;
  save_model(folder / "last", t.model, {Tokenizer::bytes(), {}}, &t.adamw, {{"step", 3}});
  ModelConfig deeper = byte_model();
  deeper.n_layer += 1;
  LanguageModel model(deeper, 9);
  AdamW adamw(model.parameters(), {});
  const std::vector<float> before = values(model);
  EXPECT_THROW(resume_into(folder.path(), model, adamw), Error);
  EXPECT_EQ(values(model), before);
  EXPECT_EQ(adamw.updates(), 0);
}

}  // namespace
}  // namespace bary
