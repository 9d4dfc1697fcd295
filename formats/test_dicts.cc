// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/test_dicts.h"

#include <cstdint>

#include "rill/base/file.h"
#include "rill/formats/file_tree.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/testing/fresh_path.h"
#include "rill/testing/status_matchers.h"

namespace rill::formats_internal {

std::string Fixture(absl::string_view name) {
  static const std::string copy = [] {
    const std::string path = FreshPath("fixtures");
    RILL_EXPECT_OK(CopyTree("formats/testdata/tensordict", path));
    return path;
  }();
  return JoinPath(copy, name);
}

TensorDict Sample() {
  TensorDict dict({2});
  RILL_EXPECT_OK(dict.Set("obs", Floats({0, 1, 2, 3}, {2, 2})));
  RILL_EXPECT_OK(dict.Set("next/reward", Floats({5, 6}, {2, 1})));
  RILL_EXPECT_OK(dict.Set("next/deep/u8", Values<uint8_t>({9, 8}, {2})));
  RILL_EXPECT_OK(dict.Set("a\\/b \xC3\xA9", Values<double>({7, 8}, {2})));
  RILL_EXPECT_OK(dict.Set("empty", Floats({}, {2, 0})));
  RILL_EXPECT_OK(dict.Set("note", NonTensor{R"(["x",{"y":null}])"}));
  return dict;
}

}  // namespace rill::formats_internal
