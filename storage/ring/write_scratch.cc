// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/ring/write_scratch.h"

#include <utility>

namespace rill::storage_internal {
namespace {

// More than one where an observer of a storage writes to another.
std::vector<std::unique_ptr<WriteScratch>>& Spare() {
  thread_local std::vector<std::unique_ptr<WriteScratch>> spare;
  return spare;
}

}  // namespace

ThreadWriteScratch::ThreadWriteScratch() {
  auto& spare = Spare();
  if (spare.empty()) {
    scratch_ = std::make_unique<WriteScratch>();
  } else {
    scratch_ = std::move(spare.back());
    spare.pop_back();
  }
}

ThreadWriteScratch::~ThreadWriteScratch() {
  // The caller's tensors and copies of them go at once, other memory stays.
  scratch_->leaves.Clear();
  scratch_->has_failed = false;
  Spare().push_back(std::move(scratch_));
}

}  // namespace rill::storage_internal
