// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TRANSFORMS_VALUES_HASH_H_
#define RILL_TRANSFORMS_VALUES_HASH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "rill/tensors/dtype.h"
#include "rill/transforms/rows/rowwise_transform.h"

namespace rill {

// 64 bits for each row that are equal where the rows' bytes are: to count or
// find states. SipHash-2-4, the same on every machine. TorchRL's Hash, which
// makes SHA-256 of texts.
//
// Shapes: any dtype and shape; the result is int64[1] or uint8[8], the lowest
//   byte first. 0.0 and -0.0 are other bytes.
// Thread-safety: immutable.
// Cost: one pass over the bytes.
//
// Example (HashTest.Example runs it):
//   RILL_ASSIGN_OR_RETURN(auto hash,
//                         Hash::Create({.in_keys = {"observation"},
//                                       .out_keys = {"state_hash"}}));
struct Hash {
  struct Options {
    std::vector<std::string> in_keys = {};
    std::vector<std::string> out_keys = {};  // Empty: in_keys.
    uint64_t seed = 0;                       // Other seeds, other hashes.
    DType dtype = DType::kInt64;             // Or kUInt8.
  };

  // INVALID_ARGUMENT names the option.
  static absl::StatusOr<std::unique_ptr<RowwiseTransform>> Create(
      const Options& options);
};

}  // namespace rill

#endif  // RILL_TRANSFORMS_VALUES_HASH_H_
