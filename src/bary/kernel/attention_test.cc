// SPDX-License-Identifier: Apache-2.0
#include "bary/kernel/attention.h"

#include "bary/kernel/attention_case_test.h"

namespace bary::kernel {
namespace {

std::vector<float> outputs(const AttentionCase& c, bool keep_pattern = false) {
  AttentionRun run(c, keep_pattern);
  return run.values();
}

void expect_right(const AttentionHead& h) {
  AttentionCase c(h);
  std::vector<float> got = on_every_isa(c.str(), [&] { return outputs(c); });
  got.resize(static_cast<size_t>(h.T * h.D));
  expect_close(got, reference::attention(h, c.q.doubles(), c.k.doubles(), c.v.doubles()).out, c.tolerance(), c.str());
}

TEST(Attention, EveryLengthUnderEveryMask) {
  for (int64_t T : kLengths) {
    expect_right(head_of(T, 16));
    expect_right(head_of(T, 20, false));
    for (int64_t window : {1, 5, 70, 300}) expect_right(head_of(T, 8, true, window));
  }
}

TEST(Attention, EveryWidth) {
  for (int64_t D : kWidths) {
    expect_right(head_of(70, D));
    expect_right(head_of(70, D, false));
    expect_right(head_of(270, D, true, 100));
  }
}

TEST(Attention, SlopeNoScaleAndDropout) {
  for (int64_t T : kSlowBuild ? std::vector<int64_t>{7, 270} : std::vector<int64_t>{7, 65, 300}) {
    for (int64_t window : {0, 40}) {
      AttentionHead h = head_of(T, 20, true, window);
      h.slope = 0.25f;
      expect_right(h);
      expect_right(with_dropout(h, 0.3f));
      h.slope = 0;
      h.scale = 1;
      expect_right(h);
    }
    AttentionHead both_ways = head_of(T, 16, false);
    expect_right(with_dropout(both_ways, 0.1f));
    both_ways.slope = 0.25f;
    expect_right(both_ways);
  }
}

// Keys before the prefix are seen by all, the others by those after them.
TEST(Attention, APrefixIsSeenByEveryQuery) {
  for (const AttentionHead& h : heads_with_a_prefix()) expect_right(h);
}

TEST(Attention, TheReferenceShowsThePrefix) {
  AttentionHead h = head_of(4, 3);
  h.prefix = 3;
  AttentionCase c(h);
  const auto p = reference::attention(h, c.q.doubles(), c.k.doubles(), c.v.doubles()).pattern;
  for (size_t t = 0; t < 4; ++t)
    for (size_t j = 0; j < 4; ++j) EXPECT_EQ(p[t * 4 + j] > 0, j < 3 || j <= t) << t << " " << j;
}

// Queries from one side, keys from another: cross-attention.
TEST(Attention, FewerOrMoreKeysThanQueries) {
  for (int64_t S : {1, 17, 300}) {
    AttentionHead h = head_of(9, 16, false);
    h.S = S;
    expect_right(h);
  }
}

// Scores of many thousands, as an undivided head of width 1024 has them: one key takes all, and nothing overflows.
TEST(Attention, HugeScoresStayFinite) {
  AttentionHead h = head_of(300, 16);
  h.scale = 3000;
  AttentionCase c(h);
  for (float x : on_every_isa("huge", [&] { return outputs(c); })) ASSERT_TRUE(std::isfinite(x));
}

TEST(Attention, KeptPatternIsWhatIsRecomputed) {
  for (int64_t T : {1, 6, 7, 65, 130, 256}) {
    for (int mask = 0; mask < 3; ++mask) {
      AttentionHead h = with_dropout(head_of(T, 20, mask != 1, mask == 2 ? 9 : 0), mask == 0 ? 0.2f : 0.0f);
      h.slope = 0.1f;
      AttentionCase c(h);
      std::vector<float> got = on_every_isa(c.str(), [&] {
        AttentionRun run(c, true);
        Matrix panels = panels_of(c.k), again(T, T, T + 1);
        attention_pattern(h, c.q.data(), c.q.ld(), panels.data(), run.kept, again.data(), again.ld());
        EXPECT_TRUE(again.gaps_untouched());
        std::vector<float> kept;
        for (int64_t t = 0; t < T; ++t)  // a row beyond what its tile sees is not written
          for (int64_t j = 0; j < T; ++j) kept.push_back(h.causal && j > t ? 0.0f : run.pattern(t, j));
        expect_same_bits(kept, again.values(), c.str());
        expect_same_bits(outputs(c), run.values(), "with and without keeping");
        return again.values();
      });
      auto want = reference::attention(h, c.q.doubles(), c.k.doubles(), c.v.doubles());
      expect_close(got, want.pattern, 2 * kEps * (c.score_size() + 8), c.str());
    }
  }
}

TEST(Attention, PatternOfLongTexts) {
  for (int64_t window : {0, 90}) {
    AttentionHead h = head_of(530, 8, true, window);
    AttentionCase c(h);
    std::vector<float> got = on_every_isa(c.str(), [&] {
      AttentionRun run(c, false);
      Matrix panels = panels_of(c.k), p(h.T, h.S, h.S + 3);
      attention_pattern(h, c.q.data(), c.q.ld(), panels.data(), run.kept, p.data(), p.ld());
      EXPECT_TRUE(p.gaps_untouched());
      return p.values();
    });
    auto want = reference::attention(h, c.q.doubles(), c.k.doubles(), c.v.doubles());
    expect_close(got, want.pattern, 2 * kEps * (c.score_size() + 8), c.str());
    for (int64_t t = 0; t < h.T; ++t) {
      for (int64_t j = 0; j < h.S; ++j) {
        bool seen = j <= t && (window == 0 || j > t - window);
        ASSERT_TRUE(seen || got[static_cast<size_t>(t * h.S + j)] == 0) << t << " " << j;  // exactly nothing
      }
    }
  }
}

struct Variant {
  int64_t window;
  float slope, dropout;
};
const Variant kVariants[] = {{0, 0, 0}, {70, 0, 0}, {300, 0.05f, 0}, {0, 0.1f, 0.25f}};

AttentionHead variant_of(const Variant& v, int64_t T, int64_t D) {
  AttentionHead h = head_of(T, D, true, v.window);
  h.slope = v.slope;
  return v.dropout > 0 ? with_dropout(h, v.dropout) : h;
}

// Decoding: one query at its position over keys that were appended one by one.
TEST(Attention, ARowAloneHasTheBitsOfTheFullPass) {
  const int64_t T = kSlowBuild ? 270 : 600, D = 20;
  KeepIsa keep;
  for (const std::string& isa : available_isas()) {
    force_isa(isa);
    for (const Variant& v : kVariants) {
      AttentionCase c(variant_of(v, T, D));
      AttentionRun full(c, false);
      Matrix cache(1, key_panel_size(T, D));
      for (int64_t t = 0; t < T; ++t) {
        append_key(c.k.data() + t * c.k.ld(), t, D, cache.data());
        if (t % 41 && t % 64 > 1 && t % 256 < 254) continue;
        for (int64_t S : {t + 1, T}) {
          AttentionHead one = c.h;
          one.T = 1;
          one.first = t;
          one.S = S;
          Matrix out(1, D), all = panels_of(c.k);
          attention_forward(one, c.q.data() + t * c.q.ld(), c.q.ld(), S == T ? all.data() : cache.data(), c.v.data(),
                            c.v.ld(), out.data(), D, {});
          std::vector<float> want(full.out.data() + t * full.out.ld(), full.out.data() + t * full.out.ld() + D);
          expect_same_bits(out.values(), want, isa + " row " + std::to_string(t) + " of " + c.str());
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(Attention, ChunksOfAPromptHaveTheBitsOfTheFullPass) {
  const int64_t T = 333, D = 16;
  for (const Variant& v : kVariants) {
    AttentionCase c(variant_of(v, T, D));
    AttentionRun full(c, false);
    for (int64_t chunk : {1, 7, 64, 100}) {
      Matrix cache(1, key_panel_size(T, D)), out(T, D);
      for (int64_t t = 0; t < T; t += chunk) {
        AttentionHead part = c.h;
        part.first = t;
        part.T = std::min(chunk, T - t);
        part.S = t + part.T;
        for (int64_t i = t; i < part.S; ++i) append_key(c.k.data() + i * c.k.ld(), i, D, cache.data());
        attention_forward(part, c.q.data() + t * c.q.ld(), c.q.ld(), cache.data(), c.v.data(), c.v.ld(),
                          out.data() + t * D, D, {});
      }
      expect_same_bits(out.values(), full.out.values(), "chunks of " + std::to_string(chunk) + ", " + c.str());
    }
  }
}

TEST(Attention, LaterKeysChangeNotOneBit) {
  const int64_t T = 300, D = 20;
  for (const Variant& v : kVariants) {
    AttentionCase c(variant_of(v, T, D));
    std::vector<float> before = outputs(c);
    for (int64_t t : {0, 4, 5, 63, 255, 256, 298}) {
      AttentionCase changed(c.h);
      for (int64_t j = t + 1; j < T; ++j)
        for (int64_t d = 0; d < D; ++d) changed.k(j, d) *= -1e3f, changed.v(j, d) *= -1e30f;
      std::vector<float> after = outputs(changed);
      const size_t rows = static_cast<size_t>((t + 1) * D);
      expect_same_bits({after.begin(), after.begin() + static_cast<int64_t>(rows)},
                       {before.begin(), before.begin() + static_cast<int64_t>(rows)}, "up to row " + std::to_string(t));
    }
  }
}

TEST(Attention, PackAndAppendFillTheSamePanels) {
  for (int64_t S : {1, 15, 16, 17, 64, 65, 130}) {
    for (int64_t D : {1, 20}) {
      Matrix k = random_matrix(S, D, D + 1, 1);
      KeepIsa keep;
      for (const std::string& isa : available_isas()) {
        force_isa(isa);
        Matrix grown(1, key_panel_size(S, D));
        for (int64_t s = 0; s < S; ++s) append_key(k.data() + s * k.ld(), s, D, grown.data());
        expect_same_bits(grown.values(), panels_of(k).values(), isa);
      }
    }
  }
}

}  // namespace
}  // namespace bary::kernel
