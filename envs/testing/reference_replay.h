// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_ENVS_TESTING_REFERENCE_REPLAY_H_
#define RILL_ENVS_TESTING_REFERENCE_REPLAY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "rill/envs/env.h"

namespace rill {

// The steps of an environment of the real gymnasium package, recorded: each
// vector has the rows of all steps, one behind the other.
struct ReferenceTrajectory {
  int64_t state_size = 0;
  int64_t observation_size = 0;
  std::vector<int64_t> episode_start;
  std::vector<double> initial_state;
  std::vector<float> initial_observation;  // Empty where a file has none.
  std::vector<double> state;
  std::vector<double> reward;
  std::vector<float> observation;
  std::vector<uint8_t> choice;  // One of these two is empty.
  std::vector<float> force;
  std::vector<uint8_t> terminated;
  std::vector<uint8_t> truncated;

  int64_t num_steps() const { return static_cast<int64_t>(reward.size()); }
};

// Takes a column of `count` values off a file's bytes, which have them there.
template <typename T>
void TakeColumn(const std::string& bytes, int64_t count, size_t* offset,
                std::vector<T>* column) {
  column->resize(count);
  std::memcpy(column->data(), bytes.data() + *offset, count * sizeof(T));
  *offset += count * sizeof(T);
}

// Runs lane l of `env` along trajectories[l], all at once, and expects every
// field of every step, bit for bit. A lane at the end of its trajectory begins
// it anew.
void ExpectStepsOf(const std::vector<ReferenceTrajectory>& trajectories,
                   Env* env);

}  // namespace rill

#endif  // RILL_ENVS_TESTING_REFERENCE_REPLAY_H_
