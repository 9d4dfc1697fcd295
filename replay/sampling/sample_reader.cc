// SPDX-License-Identifier: Apache-2.0
// A reader learns the rows once: which leaves go where, which the unit's
// arithmetic reads apart, and what a chain of transforms does on the way. After
// that a batch is bound, gathered and given its origins without look-ups or
// allocations.
//
// A UnitTransform names the leaves that it needs of each list of rows in a plan
// (slots/sample_plan.h), and just those are gathered. A list with one row for
// each of the batch goes straight into the batch. So n-step never reads the
// batch's own next observation, and that of the window's last row once.
#include "rill/replay/sampling/sample_reader.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/device/current_stream.h"
#include "rill/device/device.h"
#include "rill/replay/rows/sample_origins.h"
#include "rill/specs/leaf_spec.h"
#include "rill/tensordict/dim_names.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"

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
  return Internal("SampleReader::Read: plan: got ", rows, " rows, ",
                  plan.segments.size(), " segments, ", plan.generations.size(),
                  " generations and ", plan.mask.size(), " mask values over ",
                  plan.draws.size(),
                  " draws, want as many of each, segments of the draws");
}

// Rows of a part of a plan are to be in the second cache when they are mapped.
constexpr int64_t kPartBytes = 256 << 10;

// From this width on a storage fetches whole rows ahead while they are shown,
// and a copy of one would only be one more pass.
constexpr int64_t kShownBytes = 1 << 10;

// Rows and those beside them lie in the order of their draws.
absl::Status CheckOrder(const SamplePlan& plan) {
  bool is_sorted = absl::c_is_sorted(plan.segments);
  for (const SamplePlan::Context& list : plan.context) {
    is_sorted = is_sorted && list.segments.size() == list.rows.size() &&
                (list.mask.empty() || list.mask.size() == list.rows.size()) &&
                absl::c_is_sorted(list.segments);
  }
  if (is_sorted) return absl::OkStatus();
  return Internal(
      "SampleReader::Read: plan: got segments that do not ascend, or fewer of "
      "them than rows, want one a row, in the order of the draws");
}

// Nothing but tensors and dictionaries, on all levels.
bool HasOnlyLeaves(const TensorDict& dict) {
  bool has_only = true;
  dict.ForEachEntry([&](absl::string_view key, EntryKind kind) {
    has_only = has_only &&
               (kind == EntryKind::kDict ? HasOnlyLeaves(*dict.FindDict(key))
                                         : kind == EntryKind::kTensor);
  });
  return has_only;
}

int64_t FirstOf(const std::vector<int64_t>& segments, int64_t draw) {
  return std::lower_bound(segments.begin(), segments.end(), draw) -
         segments.begin();
}

template <typename T>
void CopyPart(const std::vector<T>& from, int64_t first, int64_t last,
              std::vector<T>* to) {
  to->clear();
  if (from.empty()) return;
  // Lists grow and shrink from batch to batch; few lengths are new.
  const auto size = static_cast<size_t>(last - first);
  if (size > to->capacity()) to->reserve(std::bit_ceil(size));
  to->assign(from.begin() + first, from.begin() + last);
}

void CopySegments(const std::vector<int64_t>& from, int64_t first, int64_t last,
                  int64_t begin, std::vector<int64_t>* to) {
  CopyPart(from, first, last, to);
  for (int64_t& segment : *to) segment -= begin;
}

// Draws [begin, end) of a plan as a plan of their own. Gives back the place of
// its first row in the whole.
int64_t TakePart(const SamplePlan& plan, int64_t begin, int64_t end,
                 SamplePlan* part) {
  CopyPart(plan.draws, begin, end, &part->draws);
  const bool has_rows = !plan.rows.empty();
  const int64_t first = has_rows ? FirstOf(plan.segments, begin) : begin;
  const int64_t last = has_rows ? FirstOf(plan.segments, end) : end;
  CopyPart(plan.rows, first, last, &part->rows);
  CopyPart(plan.generations, first, last, &part->generations);
  CopyPart(plan.mask, first, last, &part->mask);
  CopySegments(plan.segments, first, last, begin, &part->segments);
  part->context.resize(plan.context.size());
  for (size_t i = 0; i < plan.context.size(); ++i) {
    const SamplePlan::Context& from = plan.context[i];
    SamplePlan::Context& to = part->context[i];
    const int64_t head = FirstOf(from.segments, begin);
    const int64_t tail = FirstOf(from.segments, end);
    CopyPart(from.rows, head, tail, &to.rows);
    CopyPart(from.mask, head, tail, &to.mask);
    CopySegments(from.segments, head, tail, begin, &to.segments);
  }
  return first;
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
      return InvalidArgument("ReplayBuffer: rows: got a leaf \"", key,
                             "\", want none: a sample has its own; rename it");
    }
    RILL_RETURN_IF_ERROR(sample.Set(
        key, LeafSpec::Unbounded(
                 key == kWeightKey ? DType::kFloat32 : DType::kInt64, {})));
  }
  return sample;
}

SampleReader::Gather SampleReader::GatherOf(absl::Span<const std::string> keys,
                                            const TensorDictSpec& rows,
                                            const TensorDictSpec& batch) const {
  Gather gather;
  for (const std::string& key : keys) {
    if (device_gather_ != nullptr) {
      const auto& outputs = device_gather_->outputs();
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (outputs[i].from != key) continue;
        const size_t leaf = NumberOf(rows, key);
        if (!outputs[i].is_made && !outputs[i].maps.empty()) {
          gather.mapped.push_back({.leaf = leaf, .read = {.output = i}});
          continue;
        }
        gather.leaves.push_back(leaf);
        gather.into.push_back(NumberOf(batch, outputs[i].key));
      }
      continue;
    }
    const LeafSpec* const from = rows.Find(key);
    const LeafSpec* const to = batch.Find(key);
    if (is_ragged_ || from == nullptr || to == nullptr ||
        from->dtype != to->dtype || !(from->shape == to->shape)) {
      // Such a leaf is read into a tensor of its own, from which the arithmetic
      // makes the batch's.
      gather.keys.push_back(key);
      continue;
    }
    gather.leaves.push_back(NumberOf(rows, key));
    gather.into.push_back(NumberOf(batch, key));
  }
  return gather;
}

std::vector<BoundRows::Leaf> SampleReader::LeavesOf(
    const TensorDictSpec& batch) const {
  std::vector<BoundRows::Leaf> leaves;
  if (!is_ragged_) {
    for (const TensorDictSpec::Leaf& leaf : batch.leaves()) {
      leaves.push_back(
          {leaf.key, leaf.spec.dtype, leaf.spec.shape, LeafUse::kWrite});
    }
  }
  for (absl::string_view key : {kIndexKey, kGenerationKey, kWeightKey}) {
    const bool is_weight = key == kWeightKey;
    if (is_weight && !options_.is_weighted) continue;
    leaves.push_back(
        {std::string(key),
         is_weight ? DType::kFloat32 : DType::kInt64,
         {},
         LeafUse::kWrite,
         ReuseRules{
             .memory = memory_, .is_passed_in = true, .keep_files = true}});
  }
  return leaves;
}

void SampleReader::SetChain(std::shared_ptr<const GatherPlan> chain) {
  // The leaves of a batch change with the chain, so they are learned anew.
  if (chain == chain_) return;
  chain_ = std::move(chain);
  is_learned_ = false;
}

absl::StatusOr<std::vector<FusedGather::Shown>> SampleReader::FindShown(
    const RowReader& storage, const TensorDictSpec& rows) {
  const auto& leaves = rows.leaves();
  std::vector<FusedGather::Shown> shown;
  const auto nothing = [](size_t, const std::byte*) {
    return absl::OkStatus();
  };
  joined_.clear();
  std::vector<UnitTransform::Joined> joined;
  if (options_.unit != nullptr) {
    joined = options_.unit->JoinedLeaves(rows);
  } else {
    for (const auto& leaf : leaves) joined.push_back({leaf.key, {leaf.key}});
  }
  for (const UnitTransform::Joined& each : joined) {
    FusedGather::Shown& leaf = shown.emplace_back();
    leaf.key = each.key;
    bool is_shown =
        FusedGather::IsShowable(*chain_, each.key, each.parts.size());
    for (const std::string& key : each.parts) {
      const LeafSpec& part = *rows.Find(key);
      const int64_t bytes = part.shape.num_elements() * DTypeSize(part.dtype);
      if (!is_shown || bytes < kShownBytes) {
        is_shown = false;
        break;
      }
      leaf.parts.push_back(NumberOf(rows, key));
      // A call without slots says whether the storage shows the leaf.
      RILL_ASSIGN_OR_RETURN(is_shown,
                            storage.ShowRows({}, leaf.parts.back(), nothing));
    }
    if (is_shown) continue;
    shown.pop_back();
    // A unit leaves out all that are joined or none.
    if (options_.unit != nullptr) return std::vector<FusedGather::Shown>();
  }
  if (options_.unit != nullptr) joined_ = std::move(joined);
  return shown;
}

// `batch` becomes what the chain makes of it.
absl::Status SampleReader::LearnChain(const RowReader& storage,
                                      const TensorDictSpec& rows,
                                      TensorDictSpec* batch) {
  fused_.reset();
  // Work of the batches before may use its memory, which it then waits for.
  device_gather_ = nullptr;
  if (chain_ == nullptr || rows.empty()) return absl::OkStatus();
  if (!storage.device().is_cpu()) {
    RILL_ASSIGN_OR_RETURN(
        device_gather_,
        DeviceGather::Create(*chain_, rows, options_.unit, *batch));
    *batch = device_gather_->spec();
    MapJoined(*batch);
    return absl::OkStatus();
  }
  RILL_ASSIGN_OR_RETURN(std::vector<FusedGather::Shown> shown,
                        FindShown(storage, rows));
  RILL_ASSIGN_OR_RETURN(fused_,
                        FusedGather::Create(*chain_, *batch, std::move(shown)));
  TensorDictSpec part = *batch;
  if (options_.unit != nullptr) {
    Options options = options_;
    // Joined leaves come straight from the storage, so the unit of a part
    // leaves them out.
    part_unit_ = joined_.empty() ? nullptr : options_.unit->WithoutJoined();
    if (part_unit_ != nullptr) {
      options.unit = part_unit_.get();
      RILL_ASSIGN_OR_RETURN(part, part_unit_->BatchSpec(rows));
    }
    // A reader of its own makes a few draws at a time, whose rows fit the
    // second cache, for the chain to map.
    part_ = std::make_unique<SampleReader>(options);
  }
  part_bytes_ = 0;
  for (const TensorDictSpec::Leaf& leaf : part.leaves()) {
    part_bytes_ += leaf.spec.shape.num_elements() * DTypeSize(leaf.spec.dtype);
  }
  *batch = fused_->spec();
  return absl::OkStatus();
}

absl::Status SampleReader::Learn(const RowReader& storage) {
  if (is_learned_) return absl::OkStatus();
  const TensorDictSpec rows = storage.spec();
  TensorDictSpec batch = rows;
  std::vector<std::string> keys;
  for (const TensorDictSpec::Leaf& leaf : rows.leaves()) {
    keys.push_back(leaf.key);
  }
  if (options_.unit != nullptr && !rows.empty()) {
    RILL_ASSIGN_OR_RETURN(batch, options_.unit->BatchSpec(rows));
    RILL_RETURN_IF_ERROR(LearnJoined(storage.device(), rows, batch));
    RILL_ASSIGN_OR_RETURN(reads_, work_unit().PlanReads(rows));
    keys = reads_.rows.batch;
  }
  is_ragged_ = storage.traits().ragged_leaves;
  RILL_RETURN_IF_ERROR(LearnChain(storage, rows, &batch));
  const Device device = storage.device();
  memory_ = device.is_cpu() ? options_.memory
                            : Tensor::Options{device, MemoryKind::kDevice};
  has_mask_ = batch.Find(kMaskKey) != nullptr;
  num_rows_leaves_ = is_ragged_ ? 0 : batch.leaves().size();
  std::vector<BoundRows::Leaf> leaves = LeavesOf(batch);
  batch_keys_.clear();
  for (const BoundRows::Leaf& leaf : leaves) batch_keys_.push_back(leaf.key);
  const ReuseRules rules = {
      .memory = memory_,
      .is_passed_in = true,
      // Storages write rows at any distance; arithmetic wants flat leaves.
      .allow_strides = options_.unit == nullptr,
      // A mapped file is a storage's or the user's.
      .keep_files = true};
  for (size_t i = 0; fused_ && i < num_rows_leaves_; ++i) {
    if (!fused_->IsMapped(i)) continue;
    leaves[i].rules = rules;
    leaves[i].rules->allow_strides = false;
  }
  RILL_ASSIGN_OR_RETURN(batch_, BoundRows::Create("SampleReader::Read",
                                                  std::move(leaves), rules));
  rows_ = fused_ ? Gather() : GatherOf(keys, rows, batch);
  context_gathers_.clear();
  context_aparts_.clear();
  const Tensor::Options apart_memory =
      device.is_cpu() ? Tensor::Options() : memory_;
  for (const UnitTransform::Reads::List& list : reads_.context) {
    context_gathers_.push_back(GatherOf(list.batch, rows, batch));
    if (is_ragged_) continue;
    RILL_ASSIGN_OR_RETURN(context_aparts_.emplace_back(),
                          ApartOf(list.apart, rows, apart_memory));
  }
  if (!device.is_cpu()) {
    RILL_ASSIGN_OR_RETURN(rows_apart_,
                          ApartOf(reads_.rows.apart, rows, apart_memory));
    if (uploads_ == nullptr) {
      uploads_ = std::make_unique<StreamUploads>(device);
    }
  }
  // Before the first write a storage may not know its rows; the next Read asks
  // again.
  is_learned_ = !rows.empty();
  return absl::OkStatus();
}

absl::StatusOr<SampleReader::Apart> SampleReader::ApartOf(
    absl::Span<const std::string> keys, const TensorDictSpec& rows,
    const Tensor::Options& memory) const {
  Apart apart;
  std::vector<BoundRows::Leaf> room;
  for (const std::string& key : keys) {
    apart.leaves.push_back(NumberOf(rows, key));
    const LeafSpec& leaf = rows.leaves()[apart.leaves.back()].spec;
    room.push_back({key, leaf.dtype, leaf.shape, LeafUse::kWrite});
  }
  RILL_ASSIGN_OR_RETURN(apart.room,
                        BoundRows::Create("SampleReader::Read", std::move(room),
                                          {.memory = memory}));
  return apart;
}

absl::Span<const Slot> SampleReader::SlotsOf(const SamplePlan& plan) {
  if (!plan.rows.empty()) return plan.rows;
  slots_.resize(plan.draws.size());
  std::transform(plan.draws.begin(), plan.draws.end(), slots_.begin(),
                 [](const Draw& draw) { return draw.slot; });
  return slots_;
}

absl::Status SampleReader::BindBatch(int64_t n, TensorDict* out) {
  if (!(out->batch_shape() == Shape({n})) || out->is_locked()) {
    *out = TensorDict({n});
  }
  // SetDevice may have named the place of an earlier batch.
  out->ClearDevice();
  // Leaves that transforms added to an earlier batch go first: a sample has
  // just its own.
  bool are_there = !others_.empty();
  for (const std::string& key : others_) {
    are_there = are_there && out->Find(key) != nullptr;
    if (out->Find(key) == nullptr) continue;
    RILL_RETURN_IF_ERROR(out->Delete(key));
  }
  RILL_RETURN_IF_ERROR(batch_.Bind(out));
  // Others are noted when they are met first, and the batch is made anew
  // without them.
  if (!batch_.has_others()) return absl::OkStatus();
  // A batch of before: dictionaries that its transforms made are empty now, and
  // are filled again.
  if (are_there &&
      out->num_leaves() == static_cast<int64_t>(batch_keys_.size()) &&
      HasOnlyLeaves(*out)) {
    return absl::OkStatus();
  }
  others_ = out->LeafKeys();
  std::erase_if(others_, [this](const std::string& key) {
    return absl::c_linear_search(batch_keys_, key);
  });
  TensorDict just({n});
  for (const std::string& key : batch_keys_) {
    RILL_RETURN_IF_ERROR(just.Set(key, *out->Find(key)));
  }
  *out = std::move(just);
  return absl::OkStatus();
}

absl::Status SampleReader::ReadPlaces(const RowReader& storage,
                                      absl::Span<const Slot> slots,
                                      absl::Span<const size_t> leaves,
                                      absl::Span<const BoundLeaf> places) {
  if (uploads_ == nullptr) return storage.ReadInto(slots, leaves, places);
  if (!leaves.empty()) noted_.push_back({slots, leaves, places});
  return absl::OkStatus();
}

absl::Status SampleReader::ReadGather(const RowReader& storage,
                                      absl::Span<const Slot> slots,
                                      Gather* gather, TensorDict* out) {
  if (!gather->leaves.empty()) {
    gather->places.clear();
    for (const size_t leaf : gather->into) {
      gather->places.push_back(batch_[leaf]);
    }
    RILL_RETURN_IF_ERROR(
        ReadPlaces(storage, slots, gather->leaves, gather->places));
  }
  for (Mapped& mapped : gather->mapped) NoteMapped(slots, &mapped);
  if (gather->keys.empty()) return absl::OkStatus();
  if (uploads_ != nullptr) {
    return FailedPrecondition(
        "ReplayBuffer: arithmetic of the unit: got ", options_.unit->name(),
        ", whose batch has \"", gather->keys.front(),
        "\" of another dtype or shape than the rows on ",
        storage.device().ToString(),
        ", want it named in UnitTransform::Reads::List::apart");
  }
  TensorDict part;
  RILL_RETURN_IF_ERROR(storage.ReadLeaves(slots, gather->keys, &part));
  for (const std::string& key : gather->keys) {
    RILL_RETURN_IF_ERROR(out->Set(key, *part.Find(key)));
  }
  return absl::OkStatus();
}

// Lists grow and shrink from batch to batch: `out` has room for the longest so
// far, and more.
absl::Status SampleReader::ReadApart(const RowReader& storage,
                                     absl::Span<const Slot> slots, Apart* apart,
                                     TensorDict* out) {
  const auto n = static_cast<int64_t>(slots.size());
  if (apart->leaves.empty() && uploads_ != nullptr) {
    *out = TensorDict({n});
    return absl::OkStatus();
  }
  if (out->batch_shape().rank() != 1 || out->batch_shape()[0] < n) {
    // Enqueued work may still use those.
    if (uploads_ != nullptr) {
      out->ForEachLeaf([this](absl::string_view, const Tensor& leaf) {
        uploads_->Keep(leaf.buffer());
      });
    }
    *out = TensorDict({static_cast<int64_t>(std::bit_ceil(slots.size()))});
  }
  RILL_RETURN_IF_ERROR(apart->room.Bind(out));
  // The room is larger than the list, so only its first rows are read into.
  apart->places.assign(apart->room.leaves().begin(),
                       apart->room.leaves().end());
  for (BoundLeaf& place : apart->places) place.rows = n;
  return ReadPlaces(storage, slots, apart->leaves, apart->places);
}

absl::Status SampleReader::ReadForUnit(const RowReader& storage,
                                       absl::Span<const Slot> slots,
                                       const SamplePlan& plan,
                                       TensorDict* out) {
  if (plan.context.size() != reads_.context.size()) {
    return InvalidArgument(
        "ReplayBuffer: arithmetic of the unit: got ", options_.unit->name(),
        ", which wants ", reads_.context.size(),
        " lists of rows beside the batch's, want one for the unit of ",
        options_.sampler, ", which makes ", plan.context.size());
  }
  context_.resize(plan.context.size());
  RILL_RETURN_IF_ERROR(ReadGather(storage, slots, &rows_, out));
  RILL_RETURN_IF_ERROR(
      uploads_ == nullptr
          ? storage.ReadLeaves(slots, reads_.rows.apart, &apart_)
          : ReadApart(storage, slots, &rows_apart_, &apart_));
  for (size_t i = 0; i < plan.context.size(); ++i) {
    absl::Span<const Slot> rows = plan.context[i].rows;
    if (rows_of_lists_.has_value() && !slots.empty()) {
      rows = FixedList(i, rows, slots[0]);
    }
    if (!reads_.context[i].batch.empty() && rows.size() != slots.size()) {
      return InvalidArgument(
          "ReplayBuffer: arithmetic of the unit: got ", options_.unit->name(),
          ", which wants one row for each of the batch's ", slots.size(),
          " in list ", i, ", want one for the unit of ", options_.sampler,
          ", which makes ", rows.size());
    }
    RILL_RETURN_IF_ERROR(ReadGather(storage, rows, &context_gathers_[i], out));
    RILL_RETURN_IF_ERROR(
        is_ragged_
            ? storage.ReadLeaves(rows, reads_.context[i].apart, &context_[i])
            : ReadApart(storage, rows, &context_aparts_[i], &context_[i]));
  }
  return absl::OkStatus();
}

absl::Status SampleReader::Read(const RowReader& storage,
                                const SamplePlan& plan, TensorDict* out) {
  RILL_RETURN_IF_ERROR(CheckPlan(plan));
  RILL_RETURN_IF_ERROR(Learn(storage));
  if (uploads_ != nullptr) {
    RILL_ASSIGN_OR_RETURN(const Stream stream, CurrentStream(storage.device()));
    RILL_RETURN_IF_ERROR(uploads_->Begin(stream));
    for (const Tensor& tensor : kept_) uploads_->Keep(tensor.buffer());
    kept_.clear();
  }
  const absl::Span<const Slot> slots = SlotsOf(plan);
  const int64_t n = static_cast<int64_t>(slots.size());
  if (is_ragged_ && options_.unit == nullptr) {
    // Beside its leaves the batch gets masks, which the storage names.
    RILL_RETURN_IF_ERROR(storage.Read(slots, out));
    RILL_RETURN_IF_ERROR(batch_.Bind(out));
    RILL_RETURN_IF_ERROR(NameRows(out));
    return WriteOrigins(plan, slots, out);
  }
  if (is_ragged_) *out = TensorDict({n});
  if (uploads_ != nullptr) {
    RILL_RETURN_IF_ERROR(BindBatchAndKeep(n, out));
    // All values of the host go in one launch, the unit's among them.
    RILL_RETURN_IF_ERROR(WriteOrigins(plan, slots, out));
    RILL_RETURN_IF_ERROR(ReadRows(storage, slots, plan, out));
    RILL_RETURN_IF_ERROR(uploads_->Send());
    return NameRows(out);
  }
  RILL_RETURN_IF_ERROR(BindBatch(n, out));
  RILL_RETURN_IF_ERROR(fused_ ? ReadFused(storage, slots, plan)
                              : ReadRows(storage, slots, plan, out));
  RILL_RETURN_IF_ERROR(NameRows(out));
  return WriteOrigins(plan, slots, out);
}

absl::Status SampleReader::NameRows(TensorDict* out) const {
  const bool is_time =
      options_.unit != nullptr && options_.unit->traits().marks_pieces;
  const absl::string_view name = is_time ? kTimeName : kRowsName;
  const std::vector<std::string>& names = out->dim_names();
  if (names.size() == 1 && names[0] == name) return absl::OkStatus();
  return out->SetDimNames({std::string(name)});
}

absl::Status SampleReader::ReadRows(const RowReader& storage,
                                    absl::Span<const Slot> slots,
                                    const SamplePlan& plan, TensorDict* out) {
  noted_.clear();
  noted_maps_.clear();
  if (options_.unit == nullptr) {
    RILL_RETURN_IF_ERROR(
        device_gather_ != nullptr
            ? ReadGather(storage, slots, &rows_, out)
            : ReadPlaces(storage, slots, rows_.leaves,
                         batch_.leaves().first(num_rows_leaves_)));
    return uploads_ == nullptr ? absl::OkStatus() : ReadNoted(storage, *out);
  }
  RILL_RETURN_IF_ERROR(ReadForUnit(storage, slots, plan, out));
  if (uploads_ == nullptr) return RunUnit(plan, out);
  RILL_RETURN_IF_ERROR(ReadJoined(storage, plan));
  if (work_unit().traits().leaves_launches) {
    // All values go in one launch, and a graph holds the unit's too.
    RILL_RETURN_IF_ERROR(RunUnit(plan, out));
    return ReadNoted(storage, *out, /*leaves_launches=*/true);
  }
  RILL_RETURN_IF_ERROR(ReadNoted(storage, *out));
  RILL_RETURN_IF_ERROR(RunUnit(plan, out));
  return EnqueueMade(storage.device(), *out);
}

absl::Status SampleReader::RunUnit(const SamplePlan& plan, TensorDict* out) {
  RILL_RETURN_IF_ERROR(
      uploads_ == nullptr
          ? options_.unit->Apply(plan, apart_, context_, out)
          : work_unit().Enqueue(plan, apart_, context_, uploads_.get(), out))
      << "ReplayBuffer: arithmetic of the unit of " << options_.sampler;
  return absl::OkStatus();
}

absl::Status SampleReader::ReadFused(const RowReader& storage,
                                     absl::Span<const Slot> slots,
                                     const SamplePlan& plan) {
  const auto places = batch_.leaves().first(num_rows_leaves_);
  if (options_.unit == nullptr) {
    RILL_RETURN_IF_ERROR(fused_->Read(storage, slots, places));
    FusedGather::EndStreams();
    return absl::OkStatus();
  }
  RILL_RETURN_IF_ERROR(CheckOrder(plan));
  const auto draws = static_cast<int64_t>(plan.draws.size());
  const auto rows = static_cast<int64_t>(slots.size());
  // As many draws as fit the second cache, one at least.
  const int64_t draw_bytes = part_bytes_ * (rows / std::max<int64_t>(1, draws));
  const int64_t step =
      std::max<int64_t>(1, kPartBytes / std::max<int64_t>(1, draw_bytes));
  for (int64_t draw = 0; draw < draws; draw += step) {
    // The last part repeats some draws, so that all have one size and memory.
    const int64_t begin = std::max<int64_t>(0, std::min(draw, draws - step));
    const int64_t end = std::min(begin + step, draws);
    const int64_t first_row = TakePart(plan, begin, end, &part_plan_);
    if (part_plan_.rows.empty() && !plan.rows.empty()) continue;
    RILL_RETURN_IF_ERROR(part_->Read(storage, part_plan_, &part_rows_));
    RILL_RETURN_IF_ERROR(fused_->Map(part_rows_, first_row, places));
  }
  for (const UnitTransform::Joined& joined : joined_) {
    RILL_RETURN_IF_ERROR(
        options_.unit->JoinedSlots(plan, joined, &joined_slots_));
    RILL_RETURN_IF_ERROR(
        fused_->ReadShown(storage, joined.key, joined_slots_, places));
  }
  // Stores past the caches are fenced once, behind the whole batch.
  FusedGather::EndStreams();
  return absl::OkStatus();
}

template <typename T>
absl::StatusOr<T*> SampleReader::RoomFor(std::byte* to, int64_t count) {
  T* const values = reinterpret_cast<T*>(to);
  if (uploads_ == nullptr) return values;
  return uploads_->Room(count, values);
}

absl::Status SampleReader::WriteOrigins(const SamplePlan& plan,
                                        absl::Span<const Slot> slots,
                                        TensorDict* out) {
  const int64_t n = static_cast<int64_t>(slots.size());
  RILL_ASSIGN_OR_RETURN(int64_t* const index,
                        RoomFor<int64_t>(batch_[num_rows_leaves_].data, n));
  RILL_ASSIGN_OR_RETURN(int64_t* const generations,
                        RoomFor<int64_t>(batch_[num_rows_leaves_ + 1].data, n));
  std::copy(slots.begin(), slots.end(), index);
  if (plan.rows.empty()) {
    std::transform(plan.draws.begin(), plan.draws.end(), generations,
                   [](const Draw& draw) { return draw.generation; });
  } else {
    std::copy(plan.generations.begin(), plan.generations.end(), generations);
  }
  if (options_.is_weighted) {
    RILL_ASSIGN_OR_RETURN(float* const weights,
                          RoomFor<float>(batch_[num_rows_leaves_ + 2].data, n));
    for (int64_t i = 0; i < n; ++i) {
      // All rows of a pick have its weight.
      weights[i] = plan.draws[PickOf(plan, i)].weight;
    }
  }
  const bool has_mask = fixes_mask_ || !plan.mask.empty();
  return has_mask ? WriteMask(plan, n, out) : absl::OkStatus();
}

absl::Status SampleReader::WriteMask(const SamplePlan& plan, int64_t n,
                                     TensorDict* out) {
  if (has_mask_) {
    return InvalidArgument(
        "ReplayBuffer: rows: got a leaf \"", kMaskKey,
        "\", want none where the sampler pads: a sample has its "
        "own; rename it");
  }
  // The batch before has given it up, or it has another one.
  if (fixes_mask_ ? !(mask_.shape() == Shape({n}))
                  : !mask_.is_valid() || !MayReuse(mask_, DType::kBool, {n}, {},
                                                   {.memory = memory_})) {
    if (uploads_ != nullptr && mask_.is_valid()) uploads_->Keep(mask_.buffer());
    RILL_ASSIGN_OR_RETURN(mask_, Tensor::Empty(DType::kBool, {n}, memory_));
  }
  RILL_ASSIGN_OR_RETURN(bool* const mask, RoomFor<bool>(mask_.raw_data(), n));
  for (int64_t i = 0; i < n; ++i) mask[i] = plan.mask.empty() || plan.mask[i];
  return out->Set(kMaskKey, mask_);
}

}  // namespace rill::replay_internal
