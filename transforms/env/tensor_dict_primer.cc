// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/env/tensor_dict_primer.h"

#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/env/lane_draws.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/memory/device_work.h"
#include "rill/transforms/memory/spare_tensors.h"
#include "rill/transforms/steps/device_steps.h"
#include "rill/transforms/steps/lane_work.h"

namespace rill {
namespace {

using transforms_internal::DrawStream;
using transforms_internal::LaneCopy;
using transforms_internal::LaneDraws;

constexpr absl::string_view kCreate = "TensorDictPrimer::Create";
constexpr absl::string_view kOnReset = "TensorDictPrimer::OnReset";

class TensorDictPrimerTransform final : public StepTransform,
                                        public DeviceSteps {
 public:
  // `row` holds the default values, [1]; empty where values are drawn or made
  // by the function.
  TensorDictPrimerTransform(TensorDictPrimer::Options options, TensorDict row)
      : options_(std::move(options)), row_(std::move(row)) {}

  absl::string_view name() const override { return "TensorDictPrimer"; }
  OptionValues option_values() const override {
    OptionValues values;
    values.Text("primers", options_.primers.ToString())
        .Bool("random", options_.random)
        .Unsigned("seed", options_.seed)
        .Double("default_value", options_.default_value);
    for (const auto& [key, value] : options_.default_values) {
      values.Double(absl::StrCat("default_values/", key), value);
    }
    return values.Function("single_default_value",
                           options_.single_default_value != nullptr);
  }

  // For each primer the leaf of the root, then that below next.
  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    StepPlan plan = {.spec = step};
    for (const TensorDictSpec::Leaf& leaf : options_.primers.leaves()) {
      for (const absl::string_view prefix : {"", "next/"}) {
        RILL_RETURN_IF_ERROR(transforms_internal::AddNew(
            "TensorDictPrimer::PlanSteps", absl::StrCat(prefix, leaf.key),
            leaf.spec, &plan));
      }
    }
    return plan;
  }

  absl::StatusOr<TensorDict> InitialState(int64_t lanes) const override {
    if (!options_.random) return TensorDict();
    return LaneDraws::InitialState(lanes);
  }

  absl::Status OnSeed(uint64_t seed, TensorDict* state) const override {
    return options_.random ? LaneDraws::Restart(seed, state) : absl::OkStatus();
  }

  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* state) const override {
    if (options_.random) return FillRandomly(mask, leaves, state);
    // One row serves for all lanes; the user's function makes a row for each.
    const bool is_row = options_.single_default_value == nullptr;
    TensorDict made;
    if (!is_row) {
      RILL_ASSIGN_OR_RETURN(made, MakeValues(mask));
    }
    const TensorDict& values = is_row ? row_ : made;
    for (size_t lane = 0; lane < mask.size(); ++lane) {
      if (mask[lane] != 0) CopyRow(values, is_row ? 0 : lane, lane, leaves);
    }
    return absl::OkStatus();
  }

  // The value stays until the next reset, so next is a copy of the root.
  absl::Status OnStep(Leaves leaves, TensorDict* /*state*/) const override {
    for (size_t i = 0; i < leaves.size(); i += 2) {
      const auto bytes = static_cast<size_t>(leaves[i].rows * leaves[i].width);
      if (bytes > 0) std::memcpy(leaves[i + 1].data, leaves[i].data, bytes);
    }
    return absl::OkStatus();
  }

  // Draws of a spec, and values of the user's, are made in host memory.
  bool works_on_device() const override {
    return !options_.random && options_.single_default_value == nullptr;
  }
  absl::Status OnDeviceReset(const Call& call, Tensors leaves,
                             TensorDict* /*state*/) const override {
    transforms_internal::DeviceWork::Call work(&device_work_);
    RILL_RETURN_IF_ERROR(work.Begin(call.stream.device()));
    absl::InlinedVector<LaneCopy, 8> copies;
    for (size_t i = 0; i < leaves.size(); i += 2) {
      const Tensor& row = *row_.Find(options_.primers.leaves()[i / 2].key);
      const int64_t width = row.size_bytes();
      if (width == 0) continue;
      RILL_ASSIGN_OR_RETURN(const std::byte* const from,
                            work.Copy(absl::MakeConstSpan(
                                row.raw_data(), static_cast<size_t>(width))));
      copies.push_back({.from = from,
                        .to = leaves[i].raw_data(),
                        .width = width,
                        .repeats = true});
    }
    RILL_RETURN_IF_ERROR(transforms_internal::CopyLanes(
        copies, leaves[0].shape()[0], call.mask, call.stream));
    return work.End();
  }
  absl::Status OnDeviceStep(const Call& call, Tensors leaves,
                            TensorDict* /*state*/) const override {
    absl::InlinedVector<LaneCopy, 8> copies;
    const int64_t lanes = leaves[0].shape()[0];
    for (size_t i = 0; i < leaves.size(); i += 2) {
      copies.push_back({.from = leaves[i].raw_data(),
                        .to = leaves[i + 1].raw_data(),
                        .width = leaves[i].size_bytes() / lanes});
    }
    return transforms_internal::CopyLanes(copies, lanes, nullptr, call.stream);
  }

 private:
  // A lane at a time: a draw is a function of the lane's own count. One row of
  // memory is drawn into and copied from.
  absl::Status FillRandomly(absl::Span<const uint8_t> mask, Leaves leaves,
                            TensorDict* state) const {
    RILL_ASSIGN_OR_RETURN(
        LaneDraws draws,
        LaneDraws::Create(kOnReset, DrawStream::kTensorDictPrimer,
                          options_.seed, static_cast<int64_t>(mask.size()),
                          &spare_, state));
    // Taken out of the list, as several environments may call at once; put back
    // at the end. An error drops it.
    TensorDict values = TakeRow();
    for (size_t lane = 0; lane < mask.size(); ++lane) {
      if (mask[lane] == 0) continue;
      RILL_RETURN_IF_ERROR(options_.primers.RandomInto(
          {1}, draws.rng(), draws.Next(lane), &values))
          << kOnReset;
      CopyRow(values, 0, lane, leaves);
    }
    absl::MutexLock lock(&mutex_);
    spare_rows_.push_back(std::move(values));
    return absl::OkStatus();
  }

  // A dictionary that no other call has.
  TensorDict TakeRow() const {
    absl::MutexLock lock(&mutex_);
    if (spare_rows_.empty()) return TensorDict({1});
    TensorDict row = std::move(spare_rows_.back());
    spare_rows_.pop_back();
    return row;
  }

  // The user's values as dense host tensors of the primers' layout, which
  // CopyRow takes without a further check.
  absl::StatusOr<TensorDict> MakeValues(absl::Span<const uint8_t> mask) const {
    RILL_ASSIGN_OR_RETURN(const TensorDict made,
                          options_.single_default_value(mask));
    const Shape lanes = {static_cast<int64_t>(mask.size())};
    if (!(made.batch_shape() == lanes)) {
      return InvalidArgument(
          kOnReset, ": single_default_value: got batch shape ",
          made.batch_shape().ToString(), ", want ", lanes.ToString());
    }
    RILL_RETURN_IF_ERROR(options_.primers.CheckLayout(kOnReset, made))
        << "of single_default_value";
    TensorDict values(lanes);
    for (const TensorDictSpec::Leaf& leaf : options_.primers.leaves()) {
      RILL_ASSIGN_OR_RETURN(const Tensor rows,
                            made.Find(leaf.key)->To(Device::Cpu()));
      RILL_ASSIGN_OR_RETURN(const Tensor dense, rows.Contiguous());
      RILL_RETURN_IF_ERROR(values.Set(leaf.key, dense));
    }
    return values;
  }

  // Row `from` of `values` to the root's row of the lane; both are dense.
  void CopyRow(const TensorDict& values, size_t from, size_t lane,
               Leaves leaves) const {
    for (size_t i = 0; i < options_.primers.leaves().size(); ++i) {
      const BoundLeaf& to = leaves[2 * i];
      const Tensor& rows = *values.Find(options_.primers.leaves()[i].key);
      if (to.width == 0) continue;
      std::memcpy(to.data + static_cast<int64_t>(lane) * to.width,
                  rows.raw_data() + static_cast<int64_t>(from) * to.width,
                  static_cast<size_t>(to.width));
    }
  }

  const TensorDictPrimer::Options options_;
  mutable transforms_internal::SpareTensors spare_{4};
  const TensorDict row_;
  mutable transforms_internal::DeviceWork device_work_{1};
  mutable absl::Mutex mutex_;
  mutable std::vector<TensorDict> spare_rows_ ABSL_GUARDED_BY(mutex_);
};

absl::Status CheckOptions(const TensorDictPrimer::Options& options) {
  if (options.primers.leaves().empty()) {
    return InvalidArgument(kCreate,
                           ": primers: got none, want at least one leaf");
  }
  for (const TensorDictSpec::Leaf& leaf : options.primers.leaves()) {
    if (leaf.key != "action" && !absl::StartsWith(leaf.key, "next/")) continue;
    return InvalidArgument(kCreate, ": primers: got \"", leaf.key,
                           "\", want keys of the root that are not the action");
  }
  for (const auto& [key, value] : options.default_values) {
    if (options.primers.Find(key) != nullptr) continue;
    return InvalidArgument(kCreate, ": default_values: got \"", key,
                           "\", want keys of primers");
  }
  // The three ways exclude one another. default_value = 0 is the same as none.
  const bool has_value =
      options.default_value != 0 || !options.default_values.empty();
  const int ways = (options.random ? 1 : 0) + (has_value ? 1 : 0) +
                   (options.single_default_value != nullptr ? 1 : 0);
  if (ways <= 1) return absl::OkStatus();
  return InvalidArgument(
      kCreate,
      ": random, default_value, single_default_value: got more than one, want "
      "one of them");
}

// The default values are checked against their specs once, here, and a reset
// copies bytes only.
absl::StatusOr<TensorDict> DefaultRow(
    const TensorDictPrimer::Options& options) {
  TensorDict row({1});
  for (const TensorDictSpec::Leaf& leaf : options.primers.leaves()) {
    const auto own = options.default_values.find(leaf.key);
    const double value = own == options.default_values.end()
                             ? options.default_value
                             : own->second;
    RILL_ASSIGN_OR_RETURN(Tensor filled,
                          Tensor::From<double>({value}, Shape({})));
    RILL_ASSIGN_OR_RETURN(filled, Cast(filled, leaf.spec.dtype));
    RILL_ASSIGN_OR_RETURN(const Shape shape, leaf.spec.FullShape({1}));
    RILL_ASSIGN_OR_RETURN(filled, filled.Expand(shape));
    RILL_ASSIGN_OR_RETURN(filled, filled.Contiguous());
    RILL_RETURN_IF_ERROR(leaf.spec.CheckValues(leaf.key, {1}, filled))
        << kCreate << ": default_value; set one that is inside, or random";
    RILL_RETURN_IF_ERROR(row.Set(leaf.key, filled));
  }
  return row;
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepTransform>> TensorDictPrimer::Create(
    Options options) {
  RILL_RETURN_IF_ERROR(CheckOptions(options));
  TensorDict row({1});
  if (options.random) {
    // Primers that cannot be drawn are found now.
    RILL_RETURN_IF_ERROR(
        options.primers.Random({1}, Rng(options.seed), 0).status())
        << kCreate << ": primers, random";
  } else if (options.single_default_value == nullptr) {
    RILL_ASSIGN_OR_RETURN(row, DefaultRow(options));
  }
  return std::make_unique<TensorDictPrimerTransform>(std::move(options),
                                                     std::move(row));
}

}  // namespace rill
