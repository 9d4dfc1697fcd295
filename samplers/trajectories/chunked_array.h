// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_SAMPLERS_TRAJECTORIES_CHUNKED_ARRAY_H_
#define RILL_SAMPLERS_TRAJECTORIES_CHUNKED_ARRAY_H_

#include <cstddef>
#include <memory>
#include <vector>

namespace rill::samplers_internal {

// An array that grows at its end and moves nothing, so that no append is dear.
// A deque's list of blocks of 512 bytes is long enough to leave the caches, and
// is looked at for every element; this one's is short.
//
// Thread-safety: thread-compatible.
// Cost: O(1); memory in chunks of 1024.
template <typename T>
class ChunkedArray {
 public:
  size_t size() const { return size_; }
  T& operator[](size_t i) { return chunks_[i / kChunk][i % kChunk]; }
  const T& operator[](size_t i) const {
    return chunks_[i / kChunk][i % kChunk];
  }

  // Adds a T().
  void Grow() {
    if (size_ == chunks_.size() * kChunk) {
      chunks_.push_back(std::make_unique<T[]>(kChunk));
    }
    ++size_;
  }
  void clear() {
    chunks_.clear();
    size_ = 0;
  }

 private:
  static constexpr size_t kChunk = 1024;

  std::vector<std::unique_ptr<T[]>> chunks_;
  size_t size_ = 0;
};

}  // namespace rill::samplers_internal

#endif  // RILL_SAMPLERS_TRAJECTORIES_CHUNKED_ARRAY_H_
