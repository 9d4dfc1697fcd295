// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/episodes/vec_norm.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/specs/bound_rows.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/key.h"
#include "rill/tensors/dtype.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/memory/device_work.h"
#include "rill/transforms/memory/spare_tensors.h"
#include "rill/transforms/statistics/exact_norm.h"
#include "rill/transforms/statistics/vec_norm_kernels.h"
#include "rill/transforms/statistics/vec_norm_statistics.h"
#include "rill/transforms/statistics/vec_norm_sums.h"
#include "rill/transforms/steps/device_steps.h"
#include "rill/transforms/steps/masked_lanes.h"

namespace rill {
namespace {

using transforms_internal::AddRows;
using transforms_internal::AreSummable;
using transforms_internal::DeviceWork;
using transforms_internal::kMostVecNormRows;
using transforms_internal::kMostVecNormValue;
using transforms_internal::kVecNormBlock;
using transforms_internal::kVecNormRoom;
using transforms_internal::kVecNormWords;
using transforms_internal::NormaliseRows;
using transforms_internal::VecNormCall;
using transforms_internal::VecNormElement;
using transforms_internal::VecNormStatistics;
using transforms_internal::VecNormSumsView;

// Keeps the size of a state far from overflow.
constexpr int64_t kMaxElements = int64_t{1} << 40;  // Of a row.

// The lanes of a call: all, or those that are reset.
struct Lanes {
  int64_t count = 0;
  absl::Span<const uint8_t> mask = {};  // Empty: all.
  const size_t* lanes = nullptr;        // The first kVecNormRoom of the mask.
};

// Calls fn with up to kVecNormBlock lanes at a time.
template <typename Fn>
void ForBlocks(const Lanes& lanes, const Fn& fn) {
  size_t block[kVecNormBlock];
  size_t count = 0;
  const auto add = [&](size_t lane) {
    block[count++] = lane;
    if (count < kVecNormBlock) return;
    fn(absl::MakeConstSpan(block, count));
    count = 0;
  };
  if (lanes.mask.empty()) {
    for (size_t i = 0; i < static_cast<size_t>(lanes.count); ++i) add(i);
  } else {
    ForMaskedLanes(lanes.mask, add);
  }
  if (count > 0) fn(absl::MakeConstSpan(block, count));
}

// The first number that is too large or not finite, and where it lies, for
// errors; empty where there is none.
template <typename T>
std::string PlaceOf(const BoundLeaf& from, int64_t n, const Lanes& lanes) {
  std::string place;
  ForBlocks(lanes, [&](absl::Span<const size_t> rows) {
    for (const size_t row : rows) {
      const T* const in = reinterpret_cast<const T*>(from.data) + row * n;
      const T* const found = std::find_if_not(
          in, in + n, [](T x) { return std::abs(x) <= kMostVecNormValue; });
      if (found == in + n || !place.empty()) continue;
      place = absl::StrCat(" (", *found, " in lane ", row, ", element ",
                           found - in, ")");
    }
  });
  return place;
}

// Adds the lanes' rows of the leaf `key`. On an error the sums stay.
template <typename T>
absl::Status AddLanes(absl::string_view key, const BoundLeaf& from,
                      const Lanes& lanes, const VecNormSumsView& sums) {
  const T* const in = reinterpret_cast<const T*>(from.data);
  bool are_summable = true;
  ForBlocks(lanes, [&](absl::Span<const size_t> rows) {
    are_summable &= AreSummable(in, sums.n, rows);
  });
  if (!are_summable) {
    return InvalidArgument(
        "VecNorm: \"", key, "\": got a value that is not finite or beyond +-",
        kMostVecNormValue, PlaceOf<T>(from, sums.n, lanes),
        ", want smaller ones to learn from; the statistics stay");
  }
  if (lanes.count > kMostVecNormRows - *sums.rows) {
    return FailedPrecondition("VecNorm: \"", key, "\": got ", lanes.count,
                              " rows after ", *sums.rows, ", want at most ",
                              kMostVecNormRows,
                              " together with decay 1; the statistics stay");
  }
  ForBlocks(lanes, [&](absl::Span<const size_t> rows) {
    AddRows(in, sums.n, rows, sums.sums);
  });
  *sums.rows += lanes.count;
  return absl::OkStatus();
}

class VecNormTransform final : public StepTransform, public DeviceSteps {
 public:
  explicit VecNormTransform(const VecNorm::Options& options)
      : options_(options),
        spare_(2 * options.in_keys.size() + 8),
        device_work_(4 * options.in_keys.size()) {
    for (size_t i = 0; i < options.in_keys.size(); ++i) {
      state_shapes_.push_back({1 + (is_exact_ ? kVecNormWords : 2) *
                                       options.shapes[i].num_elements()});
      AddStepLeaf(i, "");
      if (!absl::StartsWith(options.in_keys[i], "next/")) {
        AddStepLeaf(i, "next/");
      }
    }
  }

  absl::string_view name() const override { return "VecNorm"; }
  OptionValues option_values() const override {
    OptionValues values;
    values.Texts("in_keys", options_.in_keys);
    values.Texts("out_keys", options_.out_keys);
    std::vector<std::string> shapes;
    for (const Shape& shape : options_.shapes) {
      shapes.push_back(shape.ToString());
    }
    values.Texts("shapes", shapes);
    values.Double("decay", options_.decay).Double("eps", options_.eps);
    return values.Bool("frozen", options_.frozen);
  }

  absl::StatusOr<TensorDict> InitialState(int64_t /*lanes*/) const override {
    TensorDict state;
    for (size_t i = 0; i < options_.in_keys.size(); ++i) {
      RILL_ASSIGN_OR_RETURN(Tensor zeros,
                            Tensor::Zeros(state_dtype(), state_shapes_[i]));
      RILL_RETURN_IF_ERROR(state.Set(options_.in_keys[i], std::move(zeros)));
    }
    return state;
  }

  absl::StatusOr<StepPlan> PlanSteps(
      const TensorDictSpec& step) const override {
    constexpr absl::string_view kPlan = "VecNorm::PlanSteps";
    StepPlan plan = {.spec = step, .statistics = options_.in_keys};
    for (const StepLeaf& leaf : step_leaves_) {
      RILL_ASSIGN_OR_RETURN(
          const LeafSpec before,
          transforms_internal::FindSpec(kPlan, leaf.in, step));
      const Shape& want = options_.shapes[leaf.key];
      const bool is_float =
          before.dtype == DType::kFloat32 || before.dtype == DType::kFloat64;
      if (!is_float || before.shape != want) {
        return InvalidArgument(kPlan, ": \"", leaf.in, "\": got ",
                               before.ToString(), ", want float32 or float64",
                               want.ToString(),
                               ", the shape that Options::shapes says");
      }
      RILL_RETURN_IF_ERROR(plan.spec.Set(
          leaf.out, LeafSpec::Unbounded(before.dtype, before.shape)));
      plan.leaves.push_back(
          {.key = leaf.in,
           .dtype = before.dtype,
           .shape = before.shape,
           .use = leaf.from == leaf.to ? LeafUse::kUpdate : LeafUse::kRead});
      if (leaf.from == leaf.to) continue;
      plan.leaves.push_back({.key = leaf.out,
                             .dtype = before.dtype,
                             .shape = before.shape,
                             .use = LeafUse::kWrite});
    }
    VecNorm::Options frozen = options_;
    frozen.frozen = true;
    plan.frozen = std::make_shared<VecNormTransform>(frozen);
    return plan;
  }

  absl::Status OnReset(absl::Span<const uint8_t> mask, Leaves leaves,
                       TensorDict* state) const override {
    size_t lanes[kVecNormRoom];
    size_t count = 0;
    ForMaskedLanes(mask, [&](size_t lane) {
      if (count < kVecNormRoom) lanes[count] = lane;
      ++count;
    });
    return MapLeaves(
        /*is_next=*/false,
        {.count = static_cast<int64_t>(count), .mask = mask, .lanes = lanes},
        leaves, state);
  }

  absl::Status OnStep(Leaves leaves, TensorDict* state) const override {
    return MapLeaves(/*is_next=*/true, {.count = leaves[0].rows}, leaves,
                     state);
  }

  // With another decay the bits depend on the order of rows.
  bool works_on_device() const override {
    return is_exact_ &&
           std::all_of(
               options_.shapes.begin(), options_.shapes.end(),
               [](const Shape& shape) { return shape.num_elements() > 0; });
  }
  bool has_faults() const override { return true; }
  absl::Status FaultOf(int64_t fault) const override {
    return transforms_internal::NormError(name(), fault);
  }

  absl::Status OnDeviceReset(const Call& call, Tensors leaves,
                             TensorDict* state) const override {
    const auto count = static_cast<int64_t>(
        std::count_if(call.lanes.begin(), call.lanes.end(),
                      [](uint8_t lane) { return lane != 0; }));
    return MapOnDevice(/*is_next=*/false, count, call, leaves, state);
  }

  absl::Status OnDeviceStep(const Call& call, Tensors leaves,
                            TensorDict* state) const override {
    return MapOnDevice(/*is_next=*/true, leaves[0].shape()[0], call, leaves,
                       state);
  }

 private:
  struct StepLeaf {
    size_t key = 0;
    std::string in;
    std::string out;
    bool is_next = false;
    size_t from = 0;  // Places among the leaves of a call.
    size_t to = 0;
  };

  // A leaf of the root stands for the one below next too; both share the
  // statistics of `key`.
  void AddStepLeaf(size_t key, absl::string_view prefix) {
    const std::string& in = options_.in_keys[key];
    const std::string& out =
        options_.out_keys.empty() ? in : options_.out_keys[key];
    const size_t from = step_leaves_.empty() ? 0 : step_leaves_.back().to + 1;
    step_leaves_.push_back(
        {.key = key,
         .in = absl::StrCat(prefix, in),
         .out = absl::StrCat(prefix, out),
         .is_next = !prefix.empty() || absl::StartsWith(in, "next/"),
         .from = from,
         .to = in == out ? from : from + 1});
  }

  absl::Status MapLeaves(bool is_next, const Lanes& lanes, Leaves leaves,
                         TensorDict* state) const {
    if (lanes.count == 0) return absl::OkStatus();
    for (const StepLeaf& leaf : step_leaves_) {
      if (leaf.is_next != is_next) continue;
      const BoundLeaf& from = leaves[leaf.from];
      const BoundLeaf& to = leaves[leaf.to];
      const std::string& key = options_.in_keys[leaf.key];
      const Tensor* const before = state->Find(key);
      const Shape& shape = state_shapes_[leaf.key];
      // The layout is checked at each call: a state may come from a file.
      if (before == nullptr || !before->is_host() ||
          before->dtype() != state_dtype() || !before->is_contiguous() ||
          before->shape() != shape) {
        return FailedPrecondition("VecNorm: state: \"", key,
                                  "\": want contiguous ",
                                  DTypeName(state_dtype()), shape.ToString(),
                                  " in host memory, the layout for decay ",
                                  options_.decay, "; start with InitialState");
      }
      if (!LooksSound(*before)) return Unsound(key);
      if (is_exact_) {
        RILL_RETURN_IF_ERROR(MapExactly(leaf, lanes, from, to, *before, state));
        continue;
      }
      // On an error the caller keeps the old statistics. So new ones are
      // written over a tensor that nobody else holds when all are known, or
      // they are in a tensor of their own.
      const int64_t n = shape[0] / 2;
      double* const statistics = before->data<double>();
      if (options_.frozen || (n <= kVecNormRoom &&
                              MayOverwrite(*before, /*is_passed_in=*/false))) {
        RILL_RETURN_IF_ERROR(
            MapLeaf(leaf, n, lanes, from, to, *before, statistics));
        continue;
      }
      RILL_ASSIGN_OR_RETURN(Tensor after, spare_.Take(DType::kFloat64, shape));
      RILL_RETURN_IF_ERROR(
          MapLeaf(leaf, n, lanes, from, to, *before, after.data<double>()));
      RILL_RETURN_IF_ERROR(state->Set(key, std::move(after)));
    }
    return absl::OkStatus();
  }

  // The kernel that learns finds what else is wrong with the statistics of some
  // rows, and then has changed none of a single block of elements. So it takes
  // no look at each number beforehand.
  bool LooksSound(const Tensor& state) const {
    if (is_exact_) return VecNormSumsView(state).IsSound();
    const VecNormStatistics statistics(state);
    const bool is_found_later = !options_.frozen && statistics.weight() > 0 &&
                                statistics.n <= kVecNormRoom;
    return is_found_later || statistics.IsSound();
  }
  static absl::Status Unsound(absl::string_view key) {
    return FailedPrecondition(
        "VecNorm: state: \"", key,
        "\": got numbers that no rows have, want the counts and finite "
        "statistics of some; start with InitialState");
  }

  absl::Status MapLeaf(const StepLeaf& leaf, int64_t n, const Lanes& lanes,
                       const BoundLeaf& from, const BoundLeaf& to,
                       const Tensor& before, double* after) const {
    if (Normalise(CallOf(n, lanes, before.data<double>(), after), from, to)) {
      return absl::OkStatus();
    }
    if (!VecNormStatistics(before).IsSound()) {
      return Unsound(options_.in_keys[leaf.key]);
    }
    return InvalidArgument(
        "VecNorm: \"", leaf.in, "\": got a value that is not finite",
        from.dtype == DType::kFloat32 ? PlaceOf<float>(from, n, lanes)
                                      : PlaceOf<double>(from, n, lanes),
        ", want finite ones to learn from; the statistics stay");
  }

  VecNormCall CallOf(int64_t n, const Lanes& lanes, const double* before,
                     double* after) const {
    const bool is_listed =
        !lanes.mask.empty() &&
        lanes.count * std::max<int64_t>(1, n) <= kVecNormRoom;
    const bool is_masked = !lanes.mask.empty() && !is_listed;
    // Made at once and passed by reference: a copy would wait for the stores.
    return {.n = n,
            .rows = lanes.count,
            .mask = is_masked ? lanes.mask : absl::Span<const uint8_t>(),
            .first = is_masked ? static_cast<int64_t>(lanes.lanes[0]) : 0,
            .lanes = is_listed ? lanes.lanes : nullptr,
            .decay = options_.decay,
            .eps = options_.eps,
            .frozen = options_.frozen || is_exact_,
            .before = before,
            .after = after};
  }

  // False where moments are not finite.
  static bool Normalise(const VecNormCall& call, const BoundLeaf& from,
                        const BoundLeaf& to) {
    return from.dtype == DType::kFloat32 ? Normalise<float>(call, from, to)
                                         : Normalise<double>(call, from, to);
  }
  template <typename T>
  static bool Normalise(const VecNormCall& call, const BoundLeaf& from,
                        const BoundLeaf& to) {
    return NormaliseRows(call, reinterpret_cast<const T*>(from.data),
                         reinterpret_cast<T*>(to.data));
  }

  // Adds the rows to the sums, and normalises by what these then say.
  absl::Status MapExactly(const StepLeaf& leaf, const Lanes& lanes,
                          const BoundLeaf& from, const BoundLeaf& to,
                          const Tensor& before, TensorDict* state) const {
    const bool stays =
        options_.frozen || MayOverwrite(before, /*is_passed_in=*/false);
    Tensor after = before;
    if (!stays) {
      RILL_ASSIGN_OR_RETURN(after, spare_.Copy(before));
    }
    const VecNormSumsView sums(after);
    if (!options_.frozen) {
      RILL_RETURN_IF_ERROR(from.dtype == DType::kFloat32
                               ? AddLanes<float>(leaf.in, from, lanes, sums)
                               : AddLanes<double>(leaf.in, from, lanes, sums));
    }
    double few[1 + 2 * kVecNormRoom];
    double* numbers = few;
    Tensor many;
    if (sums.n > kVecNormRoom) {
      RILL_ASSIGN_OR_RETURN(many,
                            spare_.Take(DType::kFloat64, {1 + 2 * sums.n}));
      numbers = many.data<double>();
    }
    numbers[0] = static_cast<double>(*sums.rows);
    for (int64_t i = 0; i < sums.n; ++i) {
      const VecNormElement element = sums.At(i);
      numbers[1 + i] = element.mean;
      numbers[1 + sums.n + i] = element.squares;
    }
    Normalise(CallOf(sums.n, lanes, numbers, numbers), from, to);
    if (stays) return absl::OkStatus();
    return state->Set(options_.in_keys[leaf.key], std::move(after));
  }

  absl::Status MapOnDevice(bool is_next, int64_t count, const Call& call,
                           Tensors leaves, TensorDict* state) const {
    DeviceWork::Call work(&device_work_);
    RILL_RETURN_IF_ERROR(work.Begin(call.stream.device()));
    absl::InlinedVector<transforms_internal::ExactNormLeaf, 8> norms;
    for (const StepLeaf& leaf : step_leaves_) {
      if (leaf.is_next != is_next) continue;
      const std::string& key = options_.in_keys[leaf.key];
      RILL_ASSIGN_OR_RETURN(Tensor before, state->Get(key));
      work.Keep(before);
      norms.push_back({.from = leaves[leaf.from],
                       .to = leaves[leaf.to],
                       .before = std::move(before)});
      if (options_.frozen) continue;
      RILL_ASSIGN_OR_RETURN(norms.back().after,
                            work.Take(state_dtype(), state_shapes_[leaf.key]));
      RILL_RETURN_IF_ERROR(state->Set(key, norms.back().after));
    }
    RILL_RETURN_IF_ERROR(transforms_internal::NormaliseExactly(
        norms, count, options_.eps, call));
    return work.End();
  }

  DType state_dtype() const {
    return is_exact_ ? DType::kInt64 : DType::kFloat64;
  }

  const VecNorm::Options options_;
  const bool is_exact_ = options_.decay == 1;
  std::vector<StepLeaf> step_leaves_;
  std::vector<Shape> state_shapes_;  // Of each of in_keys.
  mutable transforms_internal::SpareTensors spare_;
  mutable DeviceWork device_work_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StepTransform>> VecNorm::Create(
    const Options& options) {
  constexpr absl::string_view kCreate = "VecNorm::Create";
  const size_t keys = options.in_keys.size();
  if (keys == 0 || options.shapes.size() != keys ||
      (!options.out_keys.empty() && options.out_keys.size() != keys)) {
    return InvalidArgument(
        kCreate, ": in_keys, shapes, out_keys: got ", keys, ", ",
        options.shapes.size(), " and ", options.out_keys.size(),
        ", want a shape for each key, at least one, and no or as many "
        "out_keys");
  }
  // Both lists obey the same rule: a key of the root may not be mapped to one
  // below next.
  for (const auto* list : {&options.in_keys, &options.out_keys}) {
    std::set<std::string> seen;
    for (size_t i = 0; i < list->size(); ++i) {
      const std::string& key = (*list)[i];
      RILL_RETURN_IF_ERROR(CheckKey(key)) << kCreate << ": keys";
      if (!seen.insert(key).second ||
          absl::StartsWith(key, "next/") !=
              absl::StartsWith(options.in_keys[i], "next/")) {
        return InvalidArgument(
            kCreate, ": keys: got \"", key, "\" for \"", options.in_keys[i],
            "\", want each once, and both below next/ or both at the root");
      }
    }
  }
  // A key of the root stands for the one below next, which so may not be listed
  // itself.
  for (const auto* list : {&options.in_keys, &options.out_keys}) {
    const std::set<std::string> keys_of(list->begin(), list->end());
    for (const std::string& key : *list) {
      const std::string next = absl::StrCat("next/", key);
      if (keys_of.count(next) == 0) continue;
      return InvalidArgument(kCreate, ": keys: got \"", key, "\" and \"", next,
                             "\", want the first alone: it stands for both");
    }
  }
  for (const Shape& shape : options.shapes) {
    if (shape.num_elements() <= kMaxElements) continue;
    return InvalidArgument(kCreate, ": shapes: got ", shape.ToString(),
                           ", want at most 2^40 elements");
  }
  if (!(options.decay > 0 && options.decay <= 1)) {
    return InvalidArgument(kCreate, ": decay: got ", options.decay,
                           ", want (0, 1]");
  }
  if (!(options.eps > 0) || !std::isfinite(options.eps)) {
    return InvalidArgument(kCreate, ": eps: got ", options.eps, ", want > 0");
  }
  return std::make_unique<VecNormTransform>(options);
}

}  // namespace rill
