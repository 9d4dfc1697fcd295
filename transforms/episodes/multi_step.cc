// SPDX-License-Identifier: Apache-2.0
// Held rows and the rows of the batch make one stream of steps for each lane of
// the batch (Stream). A call emits the first `out` steps, whose windows are
// whole in every lane, and holds the others for the next call. The held rows of
// other lanes stay.
//
// Make computes everything into new tensors and may fail; Show then puts them
// into batch and state and cannot. So a failed call leaves both as they were.
#include "rill/transforms/episodes/multi_step.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/specs/layout_difference.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/transforms/lane_transform.h"
#include "rill/transforms/leaves.h"
#include "rill/transforms/memory/spare_tensors.h"
#include "rill/transforms/rows/group_ends.h"

namespace rill {
namespace {

constexpr absl::string_view kInverse = "MultiStep::Inverse";
constexpr absl::string_view kCut = "MultiStep::CutLanes";
constexpr absl::string_view kTruncatedKey = "next/truncated";
constexpr absl::string_view kHeld = "held";
constexpr absl::string_view kRows = "rows/";
constexpr int64_t kMaxSteps = int64_t{1} << 20;

// The rows of each lane of the batch: those held, then those of the batch.
// Steps are counted from the first held row.
struct Stream {
  int64_t first_lane = 0;  // Of the state's lanes.
  int64_t lanes = 0;
  int64_t held = 0;  // Of each lane.
  int64_t fresh = 0;
  int64_t capacity = 0;  // Of the state, n - 1.
  int64_t steps() const { return held + fresh; }
};

// One leaf of a Stream.
struct StreamLeaf {
  Stream stream = {};
  Tensor held = {};
  Tensor fresh = {};
  int64_t width = 0;  // Bytes of a row.

  // The bytes of a row of the stream, in whichever of the two tensors it lies.
  const std::byte* At(int64_t lane, int64_t step) const {
    return step < stream.held
               ? held.raw_data() +
                     ((stream.first_lane + lane) * stream.capacity + step) *
                         width
               : fresh.raw_data() +
                     (lane * stream.fresh + step - stream.held) * width;
  }
};

// to[lane, step] = the sum of gamma^k r over the window that ends at `lasts`.
// The power is rounded to T, the product and the sum are in double, and the
// result is rounded once. NStepReturns computes it in the same way. This file
// is compiled without contraction, as the product of doubles is not exact.
template <typename T>
void SumWindows(const StreamLeaf& leaf, int64_t out,
                const std::vector<int64_t>& lasts,
                const std::vector<double>& powers, const Tensor& to) {
  const int64_t elements = leaf.width / static_cast<int64_t>(sizeof(T));
  T* at = to.data<T>();
  for (int64_t lane = 0; lane < leaf.stream.lanes; ++lane) {
    for (int64_t step = 0; step < out; ++step) {
      const int64_t last = lasts[static_cast<size_t>(lane * out + step)];
      for (int64_t e = 0; e < elements; ++e) {
        double sum = -0.0;  // 0 + -0 would be 0.
        for (int64_t i = step; i <= last; ++i) {
          T reward;
          std::memcpy(&reward,
                      leaf.At(lane, i) + e * static_cast<int64_t>(sizeof(T)),
                      sizeof(T));
          sum += static_cast<double>(
                     static_cast<T>(powers[static_cast<size_t>(i - step)])) *
                 static_cast<double>(reward);
        }
        *at++ = static_cast<T>(sum);
      }
    }
  }
}

// Values that are no tensors, one for all rows, go along; where `to` is null
// they are checked only.
absl::Status CopyValues(const std::string& prefix, const TensorDict& from,
                        TensorDict* to) {
  absl::Status status;
  from.ForEachEntry([&](absl::string_view name, EntryKind kind) {
    if (!status.ok() || kind == EntryKind::kTensor) return;
    const std::string key = absl::StrCat(prefix, name);
    if (kind == EntryKind::kDict) {
      status = CopyValues(absl::StrCat(key, "/"), *from.FindDict(name), to);
    } else if (kind != EntryKind::kNonTensor) {
      status = InvalidArgument(
          kInverse, ": \"", key,
          "\": got values that differ from row to row, want tensors, or one "
          "value for all rows");
    } else if (to != nullptr) {
      status = to->Set(key, *from.GetNonTensor(name));
    }
  });
  return status;
}

// All that a call makes, until it is whole. One a thread: the vectors keep
// their memory, and calls of several transforms on a thread follow one another.
struct Work {
  // Emptied at the start and at the end of a call. Tensors that stayed here
  // would look held, and spare_ could not use them again.
  static Work& OfThread() {
    thread_local Work work;
    work.Clear();
    return work;
  }
  void Clear() {
    leaves.clear();
    rows.clear();
    held.clear();
    counts = Tensor();
  }

  Tensor counts;  // Of the state: rows held of each lane.
  std::vector<StreamLeaf> leaves;
  std::vector<uint8_t> ends;   // Of each lane's steps: see FindEnds.
  std::vector<int64_t> lasts;  // See FindLasts.
  std::vector<Tensor> rows;  // Of the batch, one a leaf, then steps and gamma.
  std::vector<Tensor> held;  // Of the state, one a leaf, then their number.
};

class MultiStepTransform final : public LaneTransform {
 public:
  // Room for five tensors a leaf (of batch, state and those before them), and
  // of steps, gamma and the count of held rows.
  explicit MultiStepTransform(const MultiStep::Options& options)
      : options_(options),
        ends_(transforms_internal::EndsOf(options.done_key, options.rows)),
        spare_(5 * (options.rows.leaves().size() + 3)) {
    if (options.rows.Find(options.terminated_key) != nullptr) {
      ends_.push_back(options.terminated_key);
    }
    for (const TensorDictSpec::Leaf& leaf : options.rows.leaves()) {
      state_keys_.push_back(absl::StrCat(kRows, leaf.key));
    }
    // By repeated products, as NStepReturns computes them.
    double power = 1;
    for (int64_t i = 0; i <= options.n_steps; ++i) {
      powers_.push_back(power);
      power *= options.gamma;
    }
  }

  absl::string_view name() const override { return "MultiStep"; }
  OptionValues option_values() const override {
    return OptionValues()
        .Int("n_steps", options_.n_steps)
        .Double("gamma", options_.gamma)
        .Text("rows", options_.rows.ToString())
        .Int("lanes", options_.lanes)
        .Texts("reward_keys", options_.reward_keys)
        .Text("done_key", options_.done_key)
        .Text("terminated_key", options_.terminated_key)
        .Text("steps_key", options_.steps_key)
        .Text("gamma_key", options_.gamma_key);
  }

  bool is_stateful() const override { return true; }
  absl::StatusOr<TensorDict> InitialState() const override {
    TensorDict state;
    RILL_ASSIGN_OR_RETURN(Tensor none,
                          Tensor::Zeros(DType::kInt64, {options_.lanes}));
    RILL_RETURN_IF_ERROR(state.Set(kHeld, std::move(none)));
    for (const TensorDictSpec::Leaf& leaf : options_.rows.leaves()) {
      // Zeros and not garbage, so that a saved state is the same bytes every
      // time.
      RILL_ASSIGN_OR_RETURN(
          Tensor rows, Tensor::Zeros(leaf.spec.dtype, HeldShape(leaf.spec)));
      RILL_RETURN_IF_ERROR(
          state.Set(absl::StrCat(kRows, leaf.key), std::move(rows)));
    }
    return state;
  }

  absl::StatusOr<TensorDictSpec> InverseSpec(
      const TensorDictSpec& spec) const override {
    const std::string difference = LayoutDifference(spec, options_.rows);
    if (!difference.empty()) {
      return InvalidArgument("MultiStep::InverseSpec: ", difference,
                             ", as Options::rows says");
    }
    RILL_RETURN_IF_ERROR(transforms_internal::CheckOnHost(
        "MultiStep::InverseSpec", spec.leaves().front().key, spec));
    TensorDictSpec after = spec;
    for (const std::string& key : options_.reward_keys) {
      const LeafSpec& reward = *spec.Find(key);
      RILL_RETURN_IF_ERROR(
          after.Set(key, LeafSpec::Unbounded(reward.dtype, reward.shape)));
    }
    RILL_RETURN_IF_ERROR(
        after.Set(options_.steps_key,
                  LeafSpec::Bounded(DType::kInt64, {1}, 1,
                                    static_cast<double>(options_.n_steps))));
    RILL_RETURN_IF_ERROR(after.Set(
        options_.gamma_key, LeafSpec::Bounded(DType::kFloat32, {1}, 0, 1)));
    return after;
  }

  absl::Status InverseAt(int64_t first_lane, TensorDict* batch,
                         TensorDict* state) const override {
    Work& work = Work::OfThread();
    const absl::Status status = Make(first_lane, *batch, *state, &work);
    if (status.ok()) Show(&work, batch, state);
    work.Clear();
    return status;
  }

  // The newest held row of a lane ends its trajectory from now on, unless it
  // does so already.
  absl::Status CutLanes(int64_t first, int64_t count,
                        TensorDict* state) const override {
    RILL_ASSIGN_OR_RETURN(const Tensor counts, ReadCounts(kCut, *state));
    std::vector<int64_t> open;  // Places of rows in the state.
    for (int64_t lane = 0; lane < options_.lanes; ++lane) {
      const int64_t held = counts.data<int64_t>()[lane];
      if (lane < first || lane - first >= count || held == 0) continue;
      open.push_back(lane * (options_.n_steps - 1) + held - 1);
    }
    TensorDict marked;
    for (size_t i = 0; i < state_keys_.size(); ++i) {
      const TensorDictSpec::Leaf& leaf = options_.rows.leaves()[i];
      const bool is_truncated =
          leaf.spec.dtype == DType::kBool &&
          (leaf.key == kTruncatedKey ||
           (IsEnd(leaf.key) && absl::EndsWith(leaf.key, "/truncated")));
      if (!IsEnd(leaf.key) && !is_truncated) continue;
      RILL_ASSIGN_OR_RETURN(const Tensor flags,
                            ReadHeld(kCut, i, leaf.spec, *state));
      if (IsEnd(leaf.key)) {
        std::erase_if(open, [&](int64_t row) {
          return flags.raw_data()[row] != std::byte{0};
        });
      }
      if (leaf.key != options_.done_key && !is_truncated) continue;
      RILL_RETURN_IF_ERROR(marked.Set(state_keys_[i], flags));
    }
    if (open.empty()) return absl::OkStatus();
    for (const std::string& key : marked.LeafKeys()) {
      RILL_ASSIGN_OR_RETURN(Tensor flags, spare_.Copy(*marked.Find(key)));
      const int64_t width =
          flags.size_bytes() / (options_.lanes * (options_.n_steps - 1));
      for (const int64_t row : open) {
        std::memset(flags.raw_data() + row * width, 1,
                    static_cast<size_t>(width));
      }
      RILL_RETURN_IF_ERROR(state->Set(key, std::move(flags)));
    }
    return absl::OkStatus();
  }

  // Older states have one count, that of all lanes.
  absl::Status Upgrade(TensorDict* state) const override {
    const Tensor* const held = state->Find(kHeld);
    if (held == nullptr || held->shape().rank() != 0) return absl::OkStatus();
    RILL_ASSIGN_OR_RETURN(const Tensor each, held->Expand({options_.lanes}));
    RILL_ASSIGN_OR_RETURN(Tensor counts, each.Contiguous());
    return state->Set(kHeld, std::move(counts));
  }

 private:
  Shape HeldShape(const LeafSpec& leaf) const {
    return Shape({options_.lanes, options_.n_steps - 1}).Concat(leaf.shape);
  }

  // All that may fail.
  absl::Status Make(int64_t first_lane, const TensorDict& batch,
                    const TensorDict& state, Work* work) const {
    RILL_ASSIGN_OR_RETURN(const Stream stream,
                          Open(first_lane, batch, state, work));
    for (size_t i = 0; i < state_keys_.size(); ++i) {
      RILL_ASSIGN_OR_RETURN(work->leaves.emplace_back(),
                            ReadLeaf(i, stream, batch, state));
    }
    if (batch.num_leaves() != static_cast<int64_t>(work->leaves.size())) {
      return InvalidArgument(kInverse, ": got ", batch.num_leaves(),
                             " leaves, want the ", work->leaves.size(),
                             " of Options::rows");
    }
    // Values that differ from row to row cannot be held; that is found before
    // any work.
    RILL_RETURN_IF_ERROR(CopyValues("", batch, nullptr));
    FindEnds(stream, work);
    const int64_t out = CountWhole(stream, work->ends);
    // Behind this all windows are known, and each leaf is copied without a
    // further decision.
    FindLasts(stream, out, work);
    const Shape& shape = batch.batch_shape();
    const Shape out_shape = shape.WithSize(shape.rank() - 1, out);
    for (size_t i = 0; i < work->leaves.size(); ++i) {
      const TensorDictSpec::Leaf& leaf = options_.rows.leaves()[i];
      RILL_ASSIGN_OR_RETURN(
          work->rows.emplace_back(),
          spare_.Take(leaf.spec.dtype, out_shape.Concat(leaf.spec.shape)));
      Emit(leaf, work->leaves[i], out, work->lasts, work->rows.back());
      RILL_ASSIGN_OR_RETURN(work->held.emplace_back(),
                            Hold(leaf.spec, work->leaves[i], out));
    }
    RILL_RETURN_IF_ERROR(MakeSteps(out_shape, work));
    RILL_ASSIGN_OR_RETURN(work->held.emplace_back(), spare_.Copy(work->counts));
    std::fill_n(work->held.back().data<int64_t>() + first_lane, stream.lanes,
                stream.steps() - out);
    return absl::OkStatus();
  }

  // Into the dictionaries that are there, where the batch has as many rows.
  void Show(Work* work, TensorDict* batch, TensorDict* state) const {
    const auto& leaves = options_.rows.leaves();
    const Shape& shape = batch->batch_shape();
    const Shape out_shape = work->rows.back().shape().Prefix(shape.rank());
    // The batch's dictionary serves again where shape and lock allow it. Make
    // has refused all that CopyValues and Set could.
    if (!(out_shape == shape) || batch->is_locked()) {
      TensorDict made(out_shape);
      CopyValues("", *batch, &made).IgnoreError();
      if (!batch->dim_names().empty()) {
        made.SetDimNames(batch->dim_names()).IgnoreError();
      }
      *batch = std::move(made);
    }
    const auto set = [](absl::string_view key, Tensor& tensor,
                        TensorDict* dict) {
      dict->Set(key, std::move(tensor)).IgnoreError();
    };
    for (size_t i = 0; i < leaves.size(); ++i) {
      set(leaves[i].key, work->rows[i], batch);
      set(state_keys_[i], work->held[i], state);
    }
    set(options_.steps_key, work->rows[leaves.size()], batch);
    set(options_.gamma_key, work->rows[leaves.size() + 1], batch);
    set(kHeld, work->held[leaves.size()], state);
  }

  absl::StatusOr<Stream> Open(int64_t first_lane, const TensorDict& batch,
                              const TensorDict& state, Work* work) const {
    // Without a lanes dimension only one lane is possible.
    const Shape& shape = batch.batch_shape();
    const bool is_flat = shape.rank() == 1 && options_.lanes == 1;
    const int64_t lanes = shape.rank() == 2 ? shape[0] : 1;
    if ((!is_flat && shape.rank() != 2) || lanes < 1 || first_lane < 0 ||
        first_lane >= options_.lanes || lanes > options_.lanes - first_lane) {
      return InvalidArgument(kInverse, ": got batch shape ", shape.ToString(),
                             " from lane ", first_lane,
                             " on, want [lanes, T] of lanes in [0, ",
                             options_.lanes, "), those of Options::lanes");
    }
    RILL_ASSIGN_OR_RETURN(work->counts, ReadCounts(kInverse, state));
    const int64_t* const counts = work->counts.data<int64_t>() + first_lane;
    // Lanes of a batch are written equally far: more rows of one lane than of
    // another could be neither written nor held.
    const auto [least, most] = std::minmax_element(counts, counts + lanes);
    if (*least != *most) {
      return InvalidArgument(
          kInverse, ": got lanes [", first_lane, ", ", first_lane + lanes,
          ") in one batch, which hold ", *least, " to ", *most,
          " rows, want equally many; write lanes one by one that were so "
          "written before");
    }
    return Stream{.first_lane = first_lane,
                  .lanes = lanes,
                  .held = *least,
                  .fresh = shape[shape.rank() - 1],
                  .capacity = options_.n_steps - 1};
  }

  absl::StatusOr<Tensor> ReadCounts(absl::string_view caller,
                                    const TensorDict& state) const {
    RILL_ASSIGN_OR_RETURN(Tensor counts, transforms_internal::ReadLeaf(
                                             caller, kHeld, DType::kInt64,
                                             {options_.lanes}, state));
    for (int64_t lane = 0; lane < options_.lanes; ++lane) {
      const int64_t held = counts.data<int64_t>()[lane];
      if (held >= 0 && held < options_.n_steps) continue;
      return FailedPrecondition(caller, ": state: held: got ", held,
                                ", want [0, ", options_.n_steps, ")");
    }
    return counts;
  }

  absl::StatusOr<Tensor> ReadHeld(absl::string_view caller, size_t i,
                                  const LeafSpec& leaf,
                                  const TensorDict& state) const {
    return transforms_internal::ReadLeaf(caller, state_keys_[i], leaf.dtype,
                                         HeldShape(leaf), state);
  }

  absl::StatusOr<StreamLeaf> ReadLeaf(size_t i, const Stream& stream,
                                      const TensorDict& batch,
                                      const TensorDict& state) const {
    const TensorDictSpec::Leaf& leaf = options_.rows.leaves()[i];
    StreamLeaf result = {.stream = stream};
    RILL_ASSIGN_OR_RETURN(
        result.fresh, transforms_internal::ReadLeaf(
                          kInverse, leaf.key, leaf.spec.dtype,
                          batch.batch_shape().Concat(leaf.spec.shape), batch));
    RILL_ASSIGN_OR_RETURN(result.held, ReadHeld(kInverse, i, leaf.spec, state));
    result.width = leaf.spec.shape.num_elements() * DTypeSize(leaf.spec.dtype);
    return result;
  }

  bool IsEnd(absl::string_view key) const {
    return std::find(ends_.begin(), ends_.end(), key) != ends_.end();
  }

  // For each of the lane's steps: whether a window ends there at the latest.
  void FindEnds(const Stream& stream, Work* work) const {
    const std::vector<StreamLeaf>& leaves = work->leaves;
    std::vector<uint8_t>& ends = work->ends;
    ends.assign(static_cast<size_t>(stream.lanes * stream.steps()), 0);
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (!IsEnd(options_.rows.leaves()[i].key)) continue;
      for (int64_t lane = 0; lane < stream.lanes; ++lane) {
        // done and terminated both end a window; rows may have one of them
        // only.
        for (int64_t step = 0; step < stream.steps(); ++step) {
          ends[static_cast<size_t>(lane * stream.steps() + step)] |=
              static_cast<uint8_t>(*leaves[i].At(lane, step));
        }
      }
    }
  }

  // How many steps can be emitted: those whose windows are whole in every lane.
  // A window is whole if it has n steps, or an end at or behind its first step.
  // If that holds of a step, it holds of all steps before it, so a prefix is
  // emitted.
  int64_t CountWhole(const Stream& stream,
                     const std::vector<uint8_t>& ends) const {
    int64_t whole = stream.steps();
    for (int64_t lane = 0; lane < stream.lanes; ++lane) {
      const auto begin = ends.begin() + lane * stream.steps();
      int64_t own = stream.steps();
      // All steps up to the lane's last end flag are whole, and so are those
      // with n - 1 steps behind them.
      while (own > 0 && begin[own - 1] == 0) --own;
      own = std::max(own, stream.steps() - options_.n_steps + 1);
      whole = std::min(whole, own);
    }
    return whole;
  }

  // For each of the first `out` steps: the last of its window. O(out x n), as
  // the sums are.
  void FindLasts(const Stream& stream, int64_t out, Work* work) const {
    const std::vector<uint8_t>& ends = work->ends;
    work->lasts.clear();
    for (int64_t lane = 0; lane < stream.lanes; ++lane) {
      for (int64_t step = 0; step < out; ++step) {
        int64_t last = step;
        while (last - step + 1 < options_.n_steps &&
               ends[static_cast<size_t>(lane * stream.steps() + last)] == 0) {
          ++last;
        }
        work->lasts.push_back(last);
      }
    }
  }

  // Rewards are summed. Leaves below next come from the window's last step, all
  // others from its first.
  void Emit(const TensorDictSpec::Leaf& leaf, const StreamLeaf& rows,
            int64_t out, const std::vector<int64_t>& lasts,
            const Tensor& to) const {
    if (std::find(options_.reward_keys.begin(), options_.reward_keys.end(),
                  leaf.key) != options_.reward_keys.end()) {
      if (leaf.spec.dtype == DType::kFloat32) {
        SumWindows<float>(rows, out, lasts, powers_, to);
      } else {
        SumWindows<double>(rows, out, lasts, powers_, to);
      }
      return;
    }
    if (rows.width == 0) return;
    const bool is_next = absl::StartsWith(leaf.key, "next/");
    std::byte* at = to.raw_data();
    for (int64_t lane = 0; lane < rows.stream.lanes; ++lane) {
      for (int64_t step = 0; step < out; ++step, at += rows.width) {
        const int64_t from =
            is_next ? lasts[static_cast<size_t>(lane * out + step)] : step;
        std::memcpy(at, rows.At(lane, from), static_cast<size_t>(rows.width));
      }
    }
  }

  // The steps from `out` on, for the next batch, and what other lanes hold.
  // There are at most n - 1 of a lane: a step with n steps from it on is always
  // emitted.
  absl::StatusOr<Tensor> Hold(const LeafSpec& leaf, const StreamLeaf& rows,
                              int64_t out) const {
    // A new tensor: the held rows of before are still being read from.
    RILL_ASSIGN_OR_RETURN(Tensor held,
                          spare_.Take(leaf.dtype, HeldShape(leaf)));
    if (held.size_bytes() == 0) return held;
    const Stream& stream = rows.stream;
    if (stream.lanes != options_.lanes) {
      std::memcpy(held.raw_data(), rows.held.raw_data(),
                  static_cast<size_t>(held.size_bytes()));
    }
    const int64_t lane_bytes = stream.capacity * rows.width;
    std::byte* const own = held.raw_data() + stream.first_lane * lane_bytes;
    std::memset(own, 0, static_cast<size_t>(stream.lanes * lane_bytes));
    for (int64_t lane = 0; lane < stream.lanes; ++lane) {
      for (int64_t step = out; step < stream.steps(); ++step) {
        std::memcpy(own + lane * lane_bytes + (step - out) * rows.width,
                    rows.At(lane, step), static_cast<size_t>(rows.width));
      }
    }
    return held;
  }

  absl::Status MakeSteps(const Shape& out_shape, Work* work) const {
    const Shape shape = out_shape.Concat({1});
    const int64_t out = out_shape[out_shape.rank() - 1];
    RILL_ASSIGN_OR_RETURN(const Tensor steps,
                          spare_.Take(DType::kInt64, shape));
    RILL_ASSIGN_OR_RETURN(const Tensor gammas,
                          spare_.Take(DType::kFloat32, shape));
    for (size_t i = 0; i < work->lasts.size(); ++i) {
      const int64_t count = work->lasts[i] - static_cast<int64_t>(i) % out + 1;
      steps.data<int64_t>()[i] = count;
      gammas.data<float>()[i] =
          static_cast<float>(powers_[static_cast<size_t>(count)]);
    }
    work->rows.push_back(steps);
    work->rows.push_back(gammas);
    return absl::OkStatus();
  }

  const MultiStep::Options options_;
  std::vector<std::string> ends_;        // Flags that end windows.
  std::vector<double> powers_;           // gamma^0 ... gamma^n.
  std::vector<std::string> state_keys_;  // One a leaf of the rows.
  mutable transforms_internal::SpareTensors spare_;
};

absl::Status CheckNumbers(const MultiStep::Options& options) {
  if (options.n_steps < 1 || options.n_steps > kMaxSteps) {
    return InvalidArgument("MultiStep::Create: n_steps: got ", options.n_steps,
                           ", want [1, ", kMaxSteps, "]");
  }
  if (!(options.gamma >= 0 && options.gamma <= 1)) {
    return InvalidArgument("MultiStep::Create: gamma: got ", options.gamma,
                           ", want [0, 1]");
  }
  if (options.lanes < 1) {
    return InvalidArgument("MultiStep::Create: lanes: got ", options.lanes,
                           ", want > 0");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<BatchTransform>> MultiStep::Create(
    const Options& options) {
  constexpr absl::string_view kCreate = "MultiStep::Create: rows";
  RILL_RETURN_IF_ERROR(CheckNumbers(options));
  std::set<std::string> seen;
  for (const std::string& key : {options.steps_key, options.gamma_key}) {
    RILL_RETURN_IF_ERROR(CheckKey(key)) << "MultiStep::Create: keys";
    if (seen.insert(key).second && options.rows.Find(key) == nullptr) continue;
    return InvalidArgument("MultiStep::Create: keys: got \"", key,
                           "\", want a key of its own, which rows do not have");
  }
  std::vector<std::string> ends =
      transforms_internal::EndsOf(options.done_key, options.rows);
  // Says which leaves there are.
  if (ends.empty()) ends = {options.done_key};
  for (const std::string& key : ends) {
    RILL_RETURN_IF_ERROR(
        transforms_internal::CheckIsFlag(kCreate, key, options.rows));
  }
  if (options.rows.Find(options.terminated_key) != nullptr) {
    RILL_RETURN_IF_ERROR(transforms_internal::CheckIsFlag(
        kCreate, options.terminated_key, options.rows));
  }
  // The state is [lanes, n - 1, ...]: that has to be a shape too.
  for (const TensorDictSpec::Leaf& leaf : options.rows.leaves()) {
    const absl::StatusOr<Shape> held =
        leaf.spec.FullShape({options.lanes, options.n_steps - 1});
    RILL_RETURN_IF_ERROR(held.status())
        << kCreate << ": \"" << leaf.key << "\", held for n_steps and lanes";
  }
  for (const std::string& key : options.reward_keys) {
    RILL_RETURN_IF_ERROR(
        transforms_internal::FindFloat(kCreate, key, options.rows).status());
    RILL_RETURN_IF_ERROR(transforms_internal::CheckStopsAtGroupEnds(
        kCreate, key, options.done_key, options.rows));
  }
  return std::make_unique<MultiStepTransform>(options);
}

}  // namespace rill
