// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/dedup/next_pairs.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/tensors/dtype.h"

namespace rill::storage_internal {
namespace {

constexpr absl::string_view kNext = "next/";
constexpr int64_t kIndexBytes = 4;

bool IsFlagOrReward(absl::string_view key) {
  const absl::string_view name = key.substr(key.rfind('/') + 1);
  return name == "done" || name == "terminated" || name == "truncated" ||
         name == "reward";
}

bool IsWide(const LeafSpec& leaf) {
  // Too many bytes are somebody else's error.
  int64_t bytes = DTypeSize(leaf.dtype);
  for (const int64_t size : leaf.shape.sizes()) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) return true;
  }
  return bytes > kIndexBytes;
}

}  // namespace

std::vector<NextPair> FindNextPairs(const TensorDictSpec& spec,
                                    absl::Span<const size_t> kept) {
  const auto& leaves = spec.leaves();
  std::vector<NextPair> pairs;
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const auto& [key, own] = leaves[leaf];
    // A leaf that is somebody's next is not stored, so nobody can share it.
    if (absl::StartsWith(key, kNext) || IsFlagOrReward(key) || !IsWide(own)) {
      continue;
    }
    const auto found = std::find_if(
        leaves.begin(), leaves.end(),
        [name = absl::StrCat(kNext, key)](const TensorDictSpec::Leaf& other) {
          return other.key == name;
        });
    if (found == leaves.end() || found->spec.dtype != own.dtype ||
        !(found->spec.shape == own.shape)) {
      continue;
    }
    const size_t next = static_cast<size_t>(found - leaves.begin());
    if (std::find(kept.begin(), kept.end(), next) != kept.end()) continue;
    pairs.push_back({leaf, next});
  }
  return pairs;
}

}  // namespace rill::storage_internal
