// SPDX-License-Identifier: Apache-2.0
#include "rill/transforms/episodes/multi_step.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/tensordict/dtype.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/layout_difference.h"
#include "rill/tensordict/leaf_spec.h"
#include "rill/tensordict/shape.h"
#include "rill/tensordict/tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/transforms/leaves.h"

namespace rill {
namespace {

constexpr absl::string_view kInverse = "MultiStep::Inverse";
constexpr absl::string_view kHeld = "held";
constexpr absl::string_view kRows = "rows/";
constexpr int64_t kMaxSteps = int64_t{1} << 20;

// The rows of each lane: those held, then those of the batch.
struct Stream {
  int64_t lanes = 0;
  int64_t held = 0;
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

  const std::byte* At(int64_t lane, int64_t step) const {
    return step < stream.held
               ? held.raw_data() + (lane * stream.capacity + step) * width
               : fresh.raw_data() +
                     (lane * stream.fresh + step - stream.held) * width;
  }
};

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
        double sum = 0;
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

// Values that are no tensors, one for all rows, go along.
absl::Status CopyValues(const std::string& prefix, const TensorDict& from,
                        TensorDict* to) {
  absl::Status status;
  from.ForEachEntry([&](absl::string_view name, EntryKind kind) {
    if (!status.ok() || kind == EntryKind::kTensor) return;
    const std::string key = absl::StrCat(prefix, name);
    if (kind == EntryKind::kDict) {
      status = CopyValues(absl::StrCat(key, "/"), *from.FindDict(name), to);
    } else if (kind == EntryKind::kNonTensor) {
      status = to->Set(key, *from.GetNonTensor(name));
    } else {
      status = absl::InvalidArgumentError(absl::StrCat(
          kInverse, ": \"", key,
          "\": got values that differ from row to row, want tensors, or one "
          "value for all rows"));
    }
  });
  return status;
}

class MultiStepTransform final : public BatchTransform {
 public:
  explicit MultiStepTransform(const MultiStep::Options& options)
      : options_(options) {
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
    RILL_ASSIGN_OR_RETURN(Tensor none, Tensor::Zeros(DType::kInt64, {}));
    RILL_RETURN_IF_ERROR(state.Set(kHeld, std::move(none)));
    for (const TensorDictSpec::Leaf& leaf : options_.rows.leaves()) {
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
      return absl::InvalidArgumentError(absl::StrCat(
          "MultiStep::InverseSpec: ", difference, ", as Options::rows says"));
    }
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

  absl::Status Inverse(TensorDict* batch, TensorDict* state) const override {
    RILL_ASSIGN_OR_RETURN(Stream stream, Open(*batch, *state));
    std::vector<StreamLeaf> leaves;
    for (const TensorDictSpec::Leaf& leaf : options_.rows.leaves()) {
      RILL_ASSIGN_OR_RETURN(leaves.emplace_back(),
                            ReadLeaf(leaf, stream, *batch, *state));
    }
    if (batch->num_leaves() != static_cast<int64_t>(leaves.size())) {
      return absl::InvalidArgumentError(absl::StrCat(
          kInverse, ": got ", batch->num_leaves(), " leaves, want the ",
          leaves.size(), " of Options::rows"));
    }
    const std::vector<uint8_t> ends = FindEnds(stream, leaves);
    const int64_t out = CountWhole(stream, ends);
    const std::vector<int64_t> lasts = FindLasts(stream, ends, out);

    const Shape& shape = batch->batch_shape();
    const Shape out_shape = shape.WithSize(shape.rank() - 1, out);
    TensorDict made(out_shape);
    TensorDict kept;
    RILL_RETURN_IF_ERROR(SetHeld(stream.steps() - out, &kept));
    for (size_t i = 0; i < leaves.size(); ++i) {
      const TensorDictSpec::Leaf& leaf = options_.rows.leaves()[i];
      RILL_ASSIGN_OR_RETURN(
          Tensor rows,
          Tensor::Empty(leaf.spec.dtype, out_shape.Concat(leaf.spec.shape)));
      Emit(leaf, leaves[i], out, lasts, rows);
      RILL_RETURN_IF_ERROR(made.Set(leaf.key, std::move(rows)));
      RILL_ASSIGN_OR_RETURN(Tensor held, Hold(leaf.spec, leaves[i], out));
      RILL_RETURN_IF_ERROR(
          kept.Set(absl::StrCat(kRows, leaf.key), std::move(held)));
    }
    RILL_RETURN_IF_ERROR(SetSteps(out, lasts, &made));
    RILL_RETURN_IF_ERROR(CopyValues("", *batch, &made));
    if (!batch->dim_names().empty()) {
      RILL_RETURN_IF_ERROR(made.SetDimNames(batch->dim_names()));
    }
    *batch = std::move(made);
    *state = std::move(kept);
    return absl::OkStatus();
  }

 private:
  Shape HeldShape(const LeafSpec& leaf) const {
    return Shape({options_.lanes, options_.n_steps - 1}).Concat(leaf.shape);
  }

  static absl::Status SetHeld(int64_t held, TensorDict* state) {
    RILL_ASSIGN_OR_RETURN(Tensor count, Tensor::From<int64_t>({held}, Shape()));
    return state->Set(kHeld, std::move(count));
  }

  absl::StatusOr<Stream> Open(const TensorDict& batch,
                              const TensorDict& state) const {
    const Shape& shape = batch.batch_shape();
    const bool is_flat = shape.rank() == 1 && options_.lanes == 1;
    if (!is_flat && (shape.rank() != 2 || shape[0] != options_.lanes)) {
      return absl::InvalidArgumentError(absl::StrCat(
          kInverse, ": got batch shape ", shape.ToString(), ", want [",
          options_.lanes, ", T], all lanes that Options::lanes names"));
    }
    RILL_ASSIGN_OR_RETURN(const Tensor count, state.Get(kHeld));
    RILL_ASSIGN_OR_RETURN(const int64_t held, count.Item<int64_t>());
    if (held < 0 || held >= options_.n_steps) {
      return absl::FailedPreconditionError(
          absl::StrCat(kInverse, ": state: held: got ", held, ", want [0, ",
                       options_.n_steps, ")"));
    }
    return Stream{.lanes = options_.lanes,
                  .held = held,
                  .fresh = shape[shape.rank() - 1],
                  .capacity = options_.n_steps - 1};
  }

  absl::StatusOr<StreamLeaf> ReadLeaf(const TensorDictSpec::Leaf& leaf,
                                      const Stream& stream,
                                      const TensorDict& batch,
                                      const TensorDict& state) const {
    StreamLeaf result = {.stream = stream};
    RILL_ASSIGN_OR_RETURN(
        result.fresh, transforms_internal::ReadLeaf(
                          kInverse, leaf.key, leaf.spec.dtype,
                          batch.batch_shape().Concat(leaf.spec.shape), batch));
    RILL_ASSIGN_OR_RETURN(result.held,
                          transforms_internal::ReadLeaf(
                              kInverse, absl::StrCat(kRows, leaf.key),
                              leaf.spec.dtype, HeldShape(leaf.spec), state));
    result.width = leaf.spec.shape.num_elements() * DTypeSize(leaf.spec.dtype);
    return result;
  }

  bool IsEnd(absl::string_view key) const {
    return key == options_.done_key || key == options_.terminated_key;
  }

  // Of each lane's steps: whether a window ends there at the latest.
  std::vector<uint8_t> FindEnds(const Stream& stream,
                                const std::vector<StreamLeaf>& leaves) const {
    std::vector<uint8_t> ends(
        static_cast<size_t>(stream.lanes * stream.steps()));
    for (size_t i = 0; i < leaves.size(); ++i) {
      if (!IsEnd(options_.rows.leaves()[i].key)) continue;
      for (int64_t lane = 0; lane < stream.lanes; ++lane) {
        for (int64_t step = 0; step < stream.steps(); ++step) {
          ends[static_cast<size_t>(lane * stream.steps() + step)] |=
              static_cast<uint8_t>(*leaves[i].At(lane, step));
        }
      }
    }
    return ends;
  }

  // The steps whose windows are whole in every lane.
  int64_t CountWhole(const Stream& stream,
                     const std::vector<uint8_t>& ends) const {
    int64_t whole = stream.steps();
    for (int64_t lane = 0; lane < stream.lanes; ++lane) {
      const auto begin = ends.begin() + lane * stream.steps();
      int64_t own = stream.steps();
      while (own > 0 && begin[own - 1] == 0) --own;
      own = std::max(own, stream.steps() - options_.n_steps + 1);
      whole = std::min(whole, own);
    }
    return whole;
  }

  // Of each of the first `out` steps: the last of its window.
  std::vector<int64_t> FindLasts(const Stream& stream,
                                 const std::vector<uint8_t>& ends,
                                 int64_t out) const {
    std::vector<int64_t> lasts;
    for (int64_t lane = 0; lane < stream.lanes; ++lane) {
      for (int64_t step = 0; step < out; ++step) {
        int64_t last = step;
        while (last - step + 1 < options_.n_steps &&
               ends[static_cast<size_t>(lane * stream.steps() + last)] == 0) {
          ++last;
        }
        lasts.push_back(last);
      }
    }
    return lasts;
  }

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

  // The steps from `out` on, for the next batch.
  absl::StatusOr<Tensor> Hold(const LeafSpec& leaf, const StreamLeaf& rows,
                              int64_t out) const {
    RILL_ASSIGN_OR_RETURN(Tensor held,
                          Tensor::Zeros(leaf.dtype, HeldShape(leaf)));
    if (rows.width == 0) return held;
    for (int64_t lane = 0; lane < rows.stream.lanes; ++lane) {
      for (int64_t step = out; step < rows.stream.steps(); ++step) {
        std::memcpy(held.raw_data() +
                        (lane * rows.stream.capacity + step - out) * rows.width,
                    rows.At(lane, step), static_cast<size_t>(rows.width));
      }
    }
    return held;
  }

  absl::Status SetSteps(int64_t out, const std::vector<int64_t>& lasts,
                        TensorDict* made) const {
    const Shape shape = made->batch_shape().Concat({1});
    RILL_ASSIGN_OR_RETURN(Tensor steps, Tensor::Empty(DType::kInt64, shape));
    RILL_ASSIGN_OR_RETURN(Tensor gammas, Tensor::Empty(DType::kFloat32, shape));
    for (size_t i = 0; i < lasts.size(); ++i) {
      const int64_t count = lasts[i] - static_cast<int64_t>(i) % out + 1;
      steps.data<int64_t>()[i] = count;
      gammas.data<float>()[i] =
          static_cast<float>(powers_[static_cast<size_t>(count)]);
    }
    RILL_RETURN_IF_ERROR(made->Set(options_.steps_key, std::move(steps)));
    return made->Set(options_.gamma_key, std::move(gammas));
  }

  const MultiStep::Options options_;
  std::vector<double> powers_;  // gamma^0 ... gamma^n.
};

absl::Status CheckNumbers(const MultiStep::Options& options) {
  if (options.n_steps < 1 || options.n_steps > kMaxSteps) {
    return absl::InvalidArgumentError(
        absl::StrCat("MultiStep::Create: n_steps: got ", options.n_steps,
                     ", want [1, ", kMaxSteps, "]"));
  }
  if (!(options.gamma >= 0 && options.gamma <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "MultiStep::Create: gamma: got ", options.gamma, ", want [0, 1]"));
  }
  if (options.lanes < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "MultiStep::Create: lanes: got ", options.lanes, ", want > 0"));
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
    return absl::InvalidArgumentError(
        absl::StrCat("MultiStep::Create: keys: got \"", key,
                     "\", want a key of its own, which rows do not have"));
  }
  RILL_RETURN_IF_ERROR(transforms_internal::CheckIsFlag(
      kCreate, options.done_key, options.rows));
  if (options.rows.Find(options.terminated_key) != nullptr) {
    RILL_RETURN_IF_ERROR(transforms_internal::CheckIsFlag(
        kCreate, options.terminated_key, options.rows));
  }
  for (const TensorDictSpec::Leaf& leaf : options.rows.leaves()) {
    const absl::StatusOr<Shape> held =
        leaf.spec.FullShape({options.lanes, options.n_steps - 1});
    RILL_RETURN_IF_ERROR(held.status())
        << kCreate << ": \"" << leaf.key << "\", held for n_steps and lanes";
  }
  for (const std::string& key : options.reward_keys) {
    RILL_ASSIGN_OR_RETURN(
        const LeafSpec reward,
        transforms_internal::FindSpec(kCreate, key, options.rows));
    if (reward.dtype != DType::kFloat32 && reward.dtype != DType::kFloat64) {
      return absl::InvalidArgumentError(
          absl::StrCat(kCreate, ": \"", key, "\": got ", reward.ToString(),
                       ", want float32 or float64"));
    }
  }
  return std::make_unique<MultiStepTransform>(options);
}

}  // namespace rill
