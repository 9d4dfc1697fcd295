// SPDX-License-Identifier: Apache-2.0
#ifndef ROVER_STORAGE_RING_H_
#define ROVER_STORAGE_RING_H_

#include <array>
#include <cstdint>

namespace rover {

struct Pose {
  float x = 0;
  float y = 0;
};

// The last kCapacity poses: a storage that knows nothing of Rill.
class Ring {
 public:
  static constexpr int64_t kCapacity = 8;

  // Appends a pose, over the oldest one where the ring is full.
  void Add(Pose pose) { poses_[written_++ % kCapacity] = pose; }

  int64_t written() const { return written_; }
  const Pose& at(int64_t slot) const { return poses_[slot]; }

 private:
  std::array<Pose, kCapacity> poses_;
  int64_t written_ = 0;
};

}  // namespace rover

#endif  // ROVER_STORAGE_RING_H_
