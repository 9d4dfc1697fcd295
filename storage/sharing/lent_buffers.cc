// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/sharing/lent_buffers.h"

#include <algorithm>

#include "absl/strings/string_view.h"
#include "rill/tensors/tensor.h"

namespace rill::storage_internal {
namespace {

// Addresses are compared, never followed: a buffer may be gone. One that was
// made at the same address costs a copy, nothing else.
bool Has(const std::vector<const Buffer*>& buffers, const Tensor& leaf) {
  return std::find(buffers.begin(), buffers.end(), leaf.buffer().get()) !=
         buffers.end();
}

}  // namespace

void LentBuffers::Add(const TensorDict& rows) {
  std::vector<const Buffer*> added;  // The rows are walked without the lock.
  rows.ForEachLeaf([&](absl::string_view, const Tensor& leaf) {
    if (leaf.is_valid() && !Has(added, leaf)) {
      added.push_back(leaf.buffer().get());
    }
  });
  absl::MutexLock lock(&mutex_);
  for (const Buffer* buffer : added) {
    if (std::find(buffers_.begin(), buffers_.end(), buffer) == buffers_.end()) {
      buffers_.push_back(buffer);
    }
  }
}

absl::StatusOr<TensorDict> LentBuffers::OwnRows(const TensorDict& rows) const {
  std::vector<const Buffer*> buffers;
  {
    absl::ReaderMutexLock lock(&mutex_);
    buffers = buffers_;
  }
  bool is_lent = false;
  if (!buffers.empty()) {
    rows.ForEachLeaf([&](absl::string_view, const Tensor& leaf) {
      is_lent = is_lent || Has(buffers, leaf);
    });
  }
  if (is_lent) return rows.Clone();
  return rows;
}

}  // namespace rill::storage_internal
