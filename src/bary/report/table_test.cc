// SPDX-License-Identifier: Apache-2.0
#include "bary/report/table.h"

#include <gtest/gtest.h>

#include "bary/base/error.h"

namespace bary {
namespace {

TEST(Table, AlignsAndLeavesNoSpaceAtTheEnd) {
  Table table({{"tensor"}, {"values", Align::right}, {"note"}});
  table.row({"wte", "38,597,376", "tied"}).row({"Zürich", "7"}).rule().row({"sum", "38,597,383"});
  EXPECT_EQ(table.text(),
            "tensor      values  note\n"
            "------  ----------  ----\n"
            "wte     38,597,376  tied\n"
            "Zürich           7\n"
            "------  ----------  ----\n"
            "sum     38,597,383\n");
}

TEST(Table, EmptyAndWide) {
  EXPECT_EQ(Table({{"a"}, {"b"}}).text(), "a  b\n-  -\n");
  EXPECT_EQ(Table({{"a"}, {"b"}}).row({"日本", "x"}).row({"abcd", "y"}).text(), "a     b\n----  -\n日本  x\nabcd  y\n");
}

TEST(Table, RefusesRowsOfAnotherWidth) {
  Table table({{"a"}});
  EXPECT_THROW(table.row({"1", "2"}), Error);
  EXPECT_THROW(table.row({}), Error);
}

}  // namespace
}  // namespace bary
