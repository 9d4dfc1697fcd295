// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/sample_reader.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/replay/sample_origins.h"
#include "rill/tensordict/bound_rows.h"
#include "rill/tensordict/leaf_spec.h"

namespace rill::replay_internal {
namespace {

// Which pick a row of the plan belongs to.
int64_t PickOf(const SamplePlan& plan, int64_t row) {
  return plan.rows.empty() ? row : plan.segments[row];
}

absl::Status CheckPlan(const SamplePlan& plan) {
  const size_t rows = plan.rows.size();
  if (rows == 0) return absl::OkStatus();
  bool is_whole = plan.segments.size() == rows &&
                  plan.generations.size() == rows &&
                  (plan.mask.empty() || plan.mask.size() == rows);
  for (int64_t segment : plan.segments) {
    is_whole = is_whole && segment >= 0 &&
               segment < static_cast<int64_t>(plan.draws.size());
  }
  if (is_whole) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      "SampleReader::Read: plan: got ", rows, " rows, ", plan.segments.size(),
      " segments, ", plan.generations.size(), " generations and ",
      plan.mask.size(), " mask values over ", plan.draws.size(),
      " draws, want as many of each, segments of the draws"));
}

// The same elements of the same buffer.
bool IsSameView(const Tensor& a, const Tensor& b) {
  return a.raw_data() == b.raw_data() && a.buffer() == b.buffer() &&
         a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.is_contiguous() ? b.is_contiguous()
                            : a.strides_bytes() == b.strides_bytes());
}

}  // namespace

absl::StatusOr<TensorDictSpec> SampleReader::SampleSpec(
    const TensorDictSpec& rows) const {
  TensorDictSpec sample = rows;
  if (options_.unit != nullptr) {
    RILL_ASSIGN_OR_RETURN(sample, options_.unit->BatchSpec(rows));
  }
  std::vector<absl::string_view> keys = {kIndexKey, kGenerationKey};
  if (options_.is_weighted) keys.push_back(kWeightKey);
  for (absl::string_view key : keys) {
    if (rows.Find(key) != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("ReplayBuffer: rows: got a leaf \"", key,
                       "\", want none: a sample has its own; rename it"));
    }
    RILL_RETURN_IF_ERROR(sample.Set(
        key, LeafSpec::Unbounded(
                 key == kWeightKey ? DType::kFloat32 : DType::kInt64, {})));
  }
  return sample;
}

absl::Status SampleReader::Learn(const Storage& storage) {
  if (!spec_.empty()) return absl::OkStatus();
  const TensorDictSpec rows = storage.spec();
  if (rows.empty()) return absl::OkStatus();
  TensorDictSpec batch = rows;
  if (options_.unit != nullptr) {
    RILL_ASSIGN_OR_RETURN(reads_, options_.unit->PlanReads(rows));
    RILL_ASSIGN_OR_RETURN(batch, options_.unit->BatchSpec(rows));
  }
  TensorDictSpec sample = batch;
  for (absl::string_view key : {kIndexKey, kGenerationKey, kWeightKey}) {
    if (key == kWeightKey && !options_.is_weighted) continue;
    RILL_RETURN_IF_ERROR(
        sample.Set(key, LeafSpec::Unbounded(DType::kInt64, {})));
  }
  spec_ = std::move(batch);
  rows_tree_ = SpecTree(spec_);
  sample_tree_ = SpecTree(sample);
  return absl::OkStatus();
}

absl::Span<const Slot> SampleReader::SlotsOf(const SamplePlan& plan) {
  if (!plan.rows.empty()) return plan.rows;
  slots_.resize(plan.draws.size());
  std::transform(plan.draws.begin(), plan.draws.end(), slots_.begin(),
                 [](const Draw& draw) { return draw.slot; });
  return slots_;
}

// A mapped file is a storage's or the user's: a batch makes its own memory
// instead.
bool SampleReader::MayWrite(const Tensor& leaf, DType dtype, int64_t n,
                            const Shape& row_shape, const ReuseRules& rules) {
  return leaf.memory_kind() != MemoryKind::kMappedFile &&
         MayReuse(leaf, dtype, {n}, row_shape, rules) && IsAlone(leaf);
}

Tensor::Options SampleReader::RowMemory(const Storage& storage) const {
  const Device device = storage.device();
  return device.is_cpu() ? options_.memory
                         : Tensor::Options{device, MemoryKind::kDevice};
}

// No leaf that was asked for before lies over the same bytes.
bool SampleReader::IsAlone(const Tensor& leaf) {
  const ByteExtent extent = ByteExtent::Of(leaf, 1);
  for (const ByteExtent& other : taken_) {
    if (extent.Overlaps(other)) return false;
  }
  taken_.push_back(extent);
  return true;
}

// The leaves that were given are those of the batch before, which fitted.
bool SampleReader::IsBatchBefore() {
  for (size_t i = 0; i < row_leaves_.size(); ++i) {
    if (given_[i] == nullptr || !IsSameView(*row_leaves_[i], *given_[i])) {
      return false;
    }
  }
  // Their extents were taken then.
  taken_.resize(row_leaves_.size());
  return true;
}

// Makes rows_ of the leaves that were given; false where they do not fit.
bool SampleReader::Adopt(const Storage& storage, int64_t n) {
  const bool holds_rows = rows_.batch_shape() == Shape({n}) &&
                          rows_tree_.Find(rows_, &row_leaves_) &&
                          std::find(row_leaves_.begin(), row_leaves_.end(),
                                    nullptr) == row_leaves_.end();
  if (holds_rows && IsBatchBefore()) return true;
  if (!holds_rows) rows_ = TensorDict({n});
  const std::vector<TensorDictSpec::Leaf>& leaves = spec_.leaves();
  // Storages write rows at any distance; arithmetic wants flat leaves.
  const ReuseRules rules = {.memory = RowMemory(storage),
                            .is_passed_in = true,
                            .allow_strides = options_.unit == nullptr};
  taken_.clear();
  for (size_t i = 0; i < leaves.size(); ++i) {
    const LeafSpec& want = leaves[i].spec;
    if (given_[i] == nullptr ||
        !MayWrite(*given_[i], want.dtype, n, want.shape, rules) ||
        !rows_.Set(leaves[i].key, *given_[i]).ok()) {
      rows_ = TensorDict();
      return false;
    }
  }
  return true;
}

// The leaves that were given are those that were read into: the storage may
// have had a reason to make new tensors.
bool SampleReader::HoldsWhatWasRead() {
  rows_tree_.Find(rows_, &row_leaves_);
  for (size_t i = 0; i < row_leaves_.size(); ++i) {
    if (row_leaves_[i] == nullptr ||
        row_leaves_[i]->raw_data() != given_[i]->raw_data()) {
      return false;
    }
  }
  return true;
}

absl::Status SampleReader::MakeRows(const Storage& storage, int64_t n) {
  RILL_ASSIGN_OR_RETURN(rows_, spec_.Empty({n}, RowMemory(storage)));
  return absl::OkStatus();
}

// Reads leaves of rows into those of the same names in rows_.
absl::Status SampleReader::ReadInto(const Storage& storage,
                                    absl::Span<const Slot> slots,
                                    absl::Span<const std::string> keys) {
  if (keys.empty()) return absl::OkStatus();
  TensorDict part(rows_.batch_shape());
  for (const std::string& key : keys) {
    const Tensor* place = rows_.Find(key);
    if (place != nullptr) {
      RILL_RETURN_IF_ERROR(part.Set(key, *place));
    }
  }
  RILL_RETURN_IF_ERROR(storage.ReadLeaves(slots, keys, &part));
  for (const std::string& key : keys) {
    RILL_RETURN_IF_ERROR(rows_.Set(key, *part.Find(key)));
  }
  return absl::OkStatus();
}

absl::Status SampleReader::ReadForUnit(const Storage& storage,
                                       absl::Span<const Slot> slots,
                                       const SamplePlan& plan) {
  if (plan.context.size() != reads_.context.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ReplayBuffer: arithmetic of the unit: got ", options_.unit->name(),
        ", which wants ", reads_.context.size(),
        " lists of rows beside the batch's, want one for the unit of ",
        options_.sampler, ", which makes ", plan.context.size()));
  }
  context_.resize(plan.context.size());
  RILL_RETURN_IF_ERROR(ReadInto(storage, slots, reads_.rows.batch));
  RILL_RETURN_IF_ERROR(storage.ReadLeaves(slots, reads_.rows.apart, &apart_));
  for (size_t i = 0; i < plan.context.size(); ++i) {
    const std::vector<Slot>& rows = plan.context[i].rows;
    if (!reads_.context[i].batch.empty() && rows.size() != slots.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "ReplayBuffer: arithmetic of the unit: got ", options_.unit->name(),
          ", which wants one row for each of the batch's ", slots.size(),
          " in list ", i, ", want one for the unit of ", options_.sampler,
          ", which makes ", rows.size()));
    }
    RILL_RETURN_IF_ERROR(ReadInto(storage, rows, reads_.context[i].batch));
    RILL_RETURN_IF_ERROR(
        storage.ReadLeaves(rows, reads_.context[i].apart, &context_[i]));
  }
  return absl::OkStatus();
}

absl::Status SampleReader::Read(const Storage& storage, const SamplePlan& plan,
                                TensorDict* out) {
  RILL_RETURN_IF_ERROR(CheckPlan(plan));
  RILL_RETURN_IF_ERROR(Learn(storage));
  const absl::Span<const Slot> slots = SlotsOf(plan);
  const int64_t n = static_cast<int64_t>(slots.size());
  const bool holds_just_these = sample_tree_.Find(*out, &given_);
  const bool is_adopted = out->batch_shape() == Shape({n}) &&
                          !out->is_locked() && Adopt(storage, n);
  if (!is_adopted) {
    RILL_RETURN_IF_ERROR(MakeRows(storage, n));
  }
  RILL_RETURN_IF_ERROR(options_.unit == nullptr
                           ? storage.Read(slots, &rows_)
                           : ReadForUnit(storage, slots, plan));
  if (!is_adopted || !holds_just_these || !HoldsWhatWasRead()) {
    *out = std::move(rows_);
    rows_ = TensorDict();
    taken_.clear();
  }
  // What SetDevice said of an earlier batch.
  out->ClearDevice();
  RILL_RETURN_IF_ERROR(WriteOrigins(plan, slots, out));
  if (options_.unit == nullptr) return absl::OkStatus();
  const absl::Status status = options_.unit->Apply(plan, apart_, context_, out);
  if (!absl::IsInternal(status)) return status;
  return absl::InvalidArgumentError(absl::StrCat(
      "ReplayBuffer: arithmetic of the unit: got ", options_.unit->name(),
      ", want one for the unit of ", options_.sampler, ": ", status.message()));
}

template <typename T>
absl::StatusOr<absl::Span<T>> SampleReader::OwnLeaf(absl::string_view key,
                                                    int64_t n,
                                                    TensorDict* out) {
  const Tensor* leaf = out->Find(key);
  const bool fits = leaf != nullptr &&
                    MayWrite(*leaf, DTypeOf<T>, n, {},
                             {.memory = options_.memory, .is_passed_in = true});
  if (fits) return leaf->Flat<T>();
  RILL_ASSIGN_OR_RETURN(Tensor made,
                        Tensor::Empty(DTypeOf<T>, {n}, options_.memory));
  RILL_RETURN_IF_ERROR(out->Set(key, made));
  return made.Flat<T>();
}

absl::Status SampleReader::WriteOrigins(const SamplePlan& plan,
                                        absl::Span<const Slot> slots,
                                        TensorDict* out) {
  const int64_t n = static_cast<int64_t>(slots.size());
  RILL_ASSIGN_OR_RETURN(absl::Span<int64_t> index,
                        OwnLeaf<int64_t>(kIndexKey, n, out));
  RILL_ASSIGN_OR_RETURN(absl::Span<int64_t> generations,
                        OwnLeaf<int64_t>(kGenerationKey, n, out));
  std::copy(slots.begin(), slots.end(), index.begin());
  if (plan.rows.empty()) {
    std::transform(plan.draws.begin(), plan.draws.end(), generations.begin(),
                   [](const Draw& draw) { return draw.generation; });
  } else {
    std::copy(plan.generations.begin(), plan.generations.end(),
              generations.begin());
  }
  if (options_.is_weighted) {
    RILL_ASSIGN_OR_RETURN(absl::Span<float> weights,
                          OwnLeaf<float>(kWeightKey, n, out));
    for (int64_t i = 0; i < n; ++i) {
      weights[i] = plan.draws[PickOf(plan, i)].weight;
    }
  }
  if (plan.mask.empty()) return absl::OkStatus();
  if (spec_.Find(kMaskKey) != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("ReplayBuffer: rows: got a leaf \"", kMaskKey,
                     "\", want none where the sampler pads: a sample has its "
                     "own; rename it"));
  }
  RILL_ASSIGN_OR_RETURN(Tensor mask,
                        Tensor::Empty(DType::kBool, {n}, options_.memory));
  for (int64_t i = 0; i < n; ++i) mask.data<bool>()[i] = plan.mask[i] != 0;
  return out->Set(kMaskKey, mask);
}

}  // namespace rill::replay_internal
