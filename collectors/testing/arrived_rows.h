// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_COLLECTORS_TESTING_ARRIVED_ROWS_H_
#define RILL_COLLECTORS_TESTING_ARRIVED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/log/check.h"
#include "absl/types/span.h"
#include "rill/specs/bound_rows.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/transforms/episodes/vec_norm.h"
#include "rill/transforms/step_transform.h"

namespace rill {

// The statistics that one VecNorm with decay 1 has of "observation" float32
// [width], from the rows that a collector has handed out. The collector's keeps
// these as they are: its out_keys are others.
class ArrivedRows {
 public:
  explicit ArrivedRows(int64_t width) : width_(width) {}

  // A batch [lanes, time], each lane's in the order of time.
  void Add(const TensorDict& batch) {
    const auto ids = *batch.Flat<int64_t>("collector/traj_ids");
    const auto roots = *batch.Flat<float>("observation");
    const auto nexts = *batch.Flat<float>("next/observation");
    for (size_t row = 0; row < ids.size(); ++row) {
      // The root of another row is the next of the one before.
      if (ids_.insert(ids[row]).second) Append(roots, row);
      Append(nexts, row);
    }
  }

  int64_t count() const { return static_cast<int64_t>(rows_.size()) / width_; }

  // Of a VecNorm: `observation`.
  TensorDict State() const {
    auto norm = VecNorm::Create({.shapes = {{width_}}, .decay = 1});
    CHECK_OK(norm);
    TensorDict state = *(*norm)->InitialState(1);
    std::vector<float> rows = rows_;
    const BoundLeaf leaf = {
        .data = reinterpret_cast<std::byte*>(rows.data()),
        .width = width_ * static_cast<int64_t>(sizeof(float)),
        .dtype = DType::kFloat32,
        .rows = count(),
        .shape = {width_}};
    CHECK_OK((*norm)->OnStep({leaf, leaf}, &state));
    return state;
  }

 private:
  void Append(absl::Span<const float> values, size_t row) {
    const auto own = values.subspan(row * static_cast<size_t>(width_),
                                    static_cast<size_t>(width_));
    rows_.insert(rows_.end(), own.begin(), own.end());
  }

  int64_t width_;
  std::set<int64_t> ids_;
  std::vector<float> rows_;
};

}  // namespace rill

#endif  // RILL_COLLECTORS_TESTING_ARRIVED_ROWS_H_
