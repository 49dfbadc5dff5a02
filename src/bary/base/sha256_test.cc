// SPDX-License-Identifier: Apache-2.0
#include "bary/base/sha256.h"

#include <gtest/gtest.h>

namespace bary {
namespace {

TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Every length around the padding's edges, cut at every place.
TEST(Sha256, CutsDoNotMatter) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += static_cast<char>(i * 7);
  for (size_t size : {0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 128, 200}) {
    const std::string_view whole = std::string_view(text).substr(0, size);
    for (size_t cut = 0; cut <= size; ++cut) {
      Sha256 hash;
      hash.update(whole.substr(0, cut));
      hash.digest();  // looking does not change it
      hash.update(whole.substr(cut));
      ASSERT_EQ(hash.hex(), sha256_hex(whole)) << size << " cut at " << cut;
    }
  }
}

}  // namespace
}  // namespace bary
