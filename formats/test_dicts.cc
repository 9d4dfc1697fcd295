// SPDX-License-Identifier: Apache-2.0
#include "rill/formats/test_dicts.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "rill/base/fault_point.h"
#include "rill/base/file.h"
#include "rill/formats/file_tree.h"
#include "rill/formats/zip/little_endian.h"
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

std::string WriteConsolidated(absl::string_view name, absl::string_view data,
                              absl::string_view json) {
  const std::string path = FreshPath(name);
  std::string bytes = absl::StrCat(data, json);
  AppendLittle<int64_t>(static_cast<int64_t>(json.size()), &bytes);
  WriteInPlace(path, bytes);
  return path;
}

void ExpectEveryFaultIsReturned(absl::FunctionRef<absl::Status()> save) {
  for (const absl::string_view point :
       {"file.open", "file.reserve", "file.write", "file.sync",
        "file.rename"}) {
    const ScopedFaultHook hook(point,
                               absl::ResourceExhaustedError("disk full"));
    EXPECT_THAT(save(), IsResourceExhausted()) << point;
  }
}

void ExpectSameFiles(const std::string& ours, const std::string& peers) {
  EXPECT_EQ(ListFiles(ours), ListFiles(peers));
  for (const std::string& file : ListFiles(peers)) {
    RILL_ASSERT_OK_AND_ASSIGN(const std::string want,
                              ReadFile(JoinPath(peers, file)));
    EXPECT_THAT(ReadFile(JoinPath(ours, file)), IsOkAndHolds(want)) << file;
  }
}

std::string WithRandomEdits(std::string text, const std::string& alphabet,
                            const Rng& rng, uint64_t round) {
  const int64_t edits = 1 + rng.UniformInt(round, 0, 3);
  for (uint32_t edit = 0; edit < edits; ++edit) {
    const size_t at = rng.UniformInt(round, 3 * edit + 1, text.size());
    const char by =
        alphabet[rng.UniformInt(round, 3 * edit + 2, alphabet.size())];
    switch (rng.UniformInt(round, 3 * edit + 3, 3)) {
      case 0:
        text[at] = by;
        break;
      case 1:
        text.insert(at, 1, by);
        break;
      default:
        text.erase(at, 1);
    }
  }
  return text;
}

std::string WithRandomByte(std::string bytes, const Rng& rng, uint64_t round) {
  const size_t at = rng.UniformInt(round, 0, bytes.size());
  bytes[at] = static_cast<char>(rng.UniformInt(round, 1, 256));
  return bytes;
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
