// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_TENSORDICT_TEST_STEPS_H_
#define RILL_TENSORDICT_TEST_STEPS_H_

#include <cstdint>
#include <utility>

#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

// Dictionaries for the tests of tensordict/, specs/ and flow/.
namespace rill {

// Steps as the rest of the library has them: float observation [rows, 4], int64
// action [rows], float next/reward [rows, 1], bool next/done [rows, 1]; values
// count up from `first`.
inline TensorDict MakeSteps(int64_t rows, int64_t first = 0) {
  TensorDict dict({rows});
  Tensor observation = *Tensor::Empty(DType::kFloat32, {rows, 4});
  Tensor action = *Tensor::Empty(DType::kInt64, {rows});
  Tensor reward = *Tensor::Empty(DType::kFloat32, {rows, 1});
  Tensor done = *Tensor::Empty(DType::kBool, {rows, 1});
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      observation.data<float>()[i * 4 + j] =
          static_cast<float>((first + i) * 10 + j);
    }
    action.data<int64_t>()[i] = first + i;
    reward.data<float>()[i] = static_cast<float>(first + i) / 2;
    done.data<bool>()[i] = (first + i) % 3 == 0;
  }
  dict.Set("observation", std::move(observation)).IgnoreError();
  dict.Set("action", std::move(action)).IgnoreError();
  dict.Set("next/reward", std::move(reward)).IgnoreError();
  dict.Set("next/done", std::move(done)).IgnoreError();
  return dict;
}

}  // namespace rill

#endif  // RILL_TENSORDICT_TEST_STEPS_H_
