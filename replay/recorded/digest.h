// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_REPLAY_RECORDED_DIGEST_H_
#define RILL_REPLAY_RECORDED_DIGEST_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {

// FNV-1a of everything that a batch holds, in the order of its keys.
class Digest {
 public:
  void Add(const void* data, int64_t bytes) {
    const auto* at = static_cast<const unsigned char*>(data);
    for (int64_t i = 0; i < bytes; ++i) {
      hash_ = (hash_ ^ at[i]) * 0x100000001B3u;
    }
  }
  void Add(absl::string_view text) {
    Add(text.data(), static_cast<int64_t>(text.size()));
  }
  void Add(const TensorDict& batch) {
    std::map<std::string, Tensor> leaves;
    batch.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
      leaves.emplace(std::string(key), leaf);
    });
    for (const auto& [key, leaf] : leaves) {
      Add(key);
      Add(DTypeName(leaf.dtype()));
      Add(leaf.shape().ToString());
      auto rows = leaf.Contiguous();
      RILL_ASSERT_OK(rows);
      Add(rows->raw_data(), rows->size_bytes());
    }
  }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xCBF29CE484222325u;
};

}  // namespace rill

#endif  // RILL_REPLAY_RECORDED_DIGEST_H_
