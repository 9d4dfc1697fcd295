// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/torchrl/torchrl.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "rill/base/status_macros.h"
#include "rill/replay/options/option_changes.h"
#include "rill/samplers/prioritized_sampler.h"
#include "rill/samplers/selectors/consuming_selector.h"
#include "rill/samplers/selectors/staleness_selector.h"
#include "rill/samplers/selectors/without_replacement.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/slots/slot.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/ops/shape_ops.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

constexpr int64_t kMaxCount = int64_t{1} << 40;

// Steps that were written and are gone, so that place p is position p of lanes
// with as many.
int64_t StepsBefore(const TorchRlReplayBuffer& saved, const Lanes& lanes) {
  if (!saved.is_full() || lanes.capacity != saved.capacity) return 0;
  // A count that contradicts the cursor is left aside: the cursor says where
  // the next write goes.
  const int64_t gone = saved.write_count - saved.capacity;
  const bool is_sound =
      gone >= 0 && gone <= kMaxCount && gone % saved.capacity == saved.cursor;
  return is_sound ? gone : saved.cursor;
}

// How old the row of a place is: 0 for the oldest.
int64_t AgeOf(const TorchRlReplayBuffer& saved, int64_t place) {
  return saved.is_full()
             ? (place - saved.cursor + saved.capacity) % saved.capacity
             : place;
}

// [steps, lanes ...] -> [lanes, steps], without the writer's index.
absl::StatusOr<TensorDict> LaneRows(const TorchRlReplayBuffer& saved) {
  TensorDict rows = saved.rows;
  const Tensor* index = rows.Find("index");
  if (index != nullptr && index->dtype() == DType::kInt64 &&
      index->shape() == rows.batch_shape()) {
    RILL_RETURN_IF_ERROR(rows.Delete("index"));
  }
  RILL_ASSIGN_OR_RETURN(rows, rows.Reshape({saved.steps(), saved.lanes()}));
  return ops::Transpose(rows, 0, 1);
}

// The first step, `times` over: what stood in places before.
absl::StatusOr<TensorDict> Repeated(const TensorDict& rows, int64_t times) {
  RILL_ASSIGN_OR_RETURN(const TensorDict first, rows.Slice(1, 0, 1));
  return ops::Expand(first, {rows.batch_shape()[0], times});
}

absl::Status CheckEmpty(const TorchRlReplayBuffer& saved,
                        const RowReader& storage) {
  for (const Cursor& cursor : storage.cursors()) {
    if (cursor.written == 0) continue;
    return FailedPrecondition("FillFromTorchRl: storage: got one with ",
                              cursor.written,
                              " steps written, want an empty one");
  }
  if (storage.lanes().count != saved.lanes()) {
    return FailedPrecondition(
        "FillFromTorchRl: lanes: got ", storage.lanes().count,
        " of the storage, want the saved ", saved.lanes());
  }
  return absl::OkStatus();
}

// --- Epochs ------------------------------------------------------------------

// In lanes of as many slots as there were places.
std::optional<WithoutReplacementOptions::Rest> RestOf(
    const TorchRlReplayBuffer& saved, const TorchRlEpoch& epoch) {
  if (!epoch.remaining.has_value()) return std::nullopt;
  const Lanes lanes = {.count = saved.lanes(), .capacity = saved.capacity};
  WithoutReplacementOptions::Rest rest = {.num_slots = epoch.num_rows};
  const int64_t* const rows = epoch.remaining->data<int64_t>();
  for (int64_t i = 0; i < epoch.remaining->num_elements(); ++i) {
    rest.slots.push_back(
        lanes.SlotOf(rows[i] % lanes.count, rows[i] / lanes.count));
  }
  return rest;
}

// --- Priorities --------------------------------------------------------------

absl::Status CheckValues(const Tensor& values, int64_t rows) {
  if (values.is_valid() && values.dtype() == DType::kFloat64 &&
      values.rank() == 1 && values.num_elements() >= rows &&
      values.is_contiguous() && values.device().is_cpu()) {
    return absl::OkStatus();
  }
  return InvalidArgument("OpenTorchRl: values of the sampler: got ",
                         values.DebugString(),
                         ", want contiguous float64 of rank 1 in host memory, ",
                         rows, " at least");
}

absl::StatusOr<float> PriorityOf(const TorchRlPriorities& priorities,
                                 int64_t row) {
  const double value = priorities.values.data<double>()[row];
  // alpha 0: all values are 1, whatever was given.
  const double priority =
      priorities.alpha == 0
          ? 1
          : std::max(std::pow(value, 1 / priorities.alpha) - priorities.epsilon,
                     0.0);
  if (value >= 0 && priority <= std::numeric_limits<float>::max()) {
    return static_cast<float>(priority);
  }
  return DataLoss("OpenTorchRl: value of row ", row, ": got ", value,
                  ", want (priority + ", priorities.epsilon, ") ^ ",
                  priorities.alpha);
}

absl::Status SetPriorities(const std::vector<int64_t>& slots,
                           const std::vector<float>& priorities,
                           ReplayBuffer* buffer) {
  const Shape shape = {static_cast<int64_t>(slots.size())};
  TensorDict batch(shape);
  RILL_ASSIGN_OR_RETURN(Tensor index, Tensor::From<int64_t>(slots, shape));
  RILL_RETURN_IF_ERROR(batch.Set("index", std::move(index)));
  // The rows are the first that the sampler saw.
  RILL_ASSIGN_OR_RETURN(Tensor zeros, Tensor::Zeros(DType::kInt64, shape));
  RILL_RETURN_IF_ERROR(batch.Set("index_generation", std::move(zeros)));
  return buffer->UpdatePriorities(batch, priorities);
}

absl::Status GivePriorities(const TorchRlReplayBuffer& saved,
                            const TorchRlPriorities& priorities,
                            ReplayBuffer* buffer) {
  const Lanes lanes = buffer->storage().lanes();
  const int64_t before = StepsBefore(saved, lanes);
  const int64_t gone = std::max<int64_t>(saved.steps() - lanes.capacity, 0);
  std::vector<int64_t> slots;
  std::vector<float> given;
  for (int64_t row = 0; row < saved.steps() * saved.lanes(); ++row) {
    const int64_t age = AgeOf(saved, row / saved.lanes());
    // Checked for every row, also for those that a smaller storage does not
    // take.
    RILL_ASSIGN_OR_RETURN(const float priority, PriorityOf(priorities, row));
    if (age < gone) continue;
    slots.push_back(
        lanes.SlotOf(row % saved.lanes(), (before + age) % lanes.capacity));
    given.push_back(priority);
  }
  if (slots.empty()) return absl::OkStatus();
  // The row with the largest may be gone; the largest itself stays.
  if (priorities.max_priority) {
    const double max = std::min<double>(*priorities.max_priority,
                                        std::numeric_limits<float>::max());
    RILL_RETURN_IF_ERROR(
        SetPriorities({slots[0]}, {static_cast<float>(max)}, buffer));
  }
  return SetPriorities(slots, given, buffer);
}

// Once `options` are sound and their storage is empty.
absl::StatusOr<std::unique_ptr<ReplayBuffer>> Filled(
    const TorchRlReplayBuffer& saved, ReplayBuffer::Options options) {
  RILL_RETURN_IF_ERROR(FillFromTorchRl(saved, options.storage.get()));
  RILL_ASSIGN_OR_RETURN(std::unique_ptr<ReplayBuffer> buffer,
                        ReplayBuffer::Create(std::move(options)));
  if (const auto* given = std::get_if<TorchRlPriorities>(&saved.sampler)) {
    RILL_RETURN_IF_ERROR(GivePriorities(saved, *given, buffer.get()));
  }
  return buffer;
}

absl::StatusOr<TorchRlPriorities> PrioritiesOf(
    const Lanes& lanes, int64_t steps, const PrioritizedSelector& selector) {
  const std::vector<float> given = selector.Priorities();
  TorchRlPriorities priorities = {.alpha = selector.alpha(),
                                  .beta = selector.beta(),
                                  .epsilon = selector.epsilon(),
                                  .max_priority = selector.DefaultPriority()};
  RILL_ASSIGN_OR_RETURN(priorities.values,
                        Tensor::Zeros(DType::kFloat64, {lanes.num_slots()}));
  if (static_cast<int64_t>(given.size()) != lanes.num_slots()) {
    return FailedPrecondition("ToTorchRl: selector: got one of ", given.size(),
                              " slots, want that of a storage of ",
                              lanes.num_slots());
  }
  for (int64_t row = 0; row < steps * lanes.count; ++row) {
    const float priority =
        given[lanes.SlotOf(row % lanes.count, row / lanes.count)];
    if (priority == *priorities.max_priority) priorities.max_row = row;
    priorities.values.data<double>()[row] =
        std::pow(priority + priorities.epsilon, priorities.alpha);
  }
  return priorities;
}

}  // namespace

absl::Status FillFromTorchRl(const TorchRlReplayBuffer& saved,
                             Storage* storage) {
  RILL_RETURN_IF_ERROR(CheckEmpty(saved, *storage));
  if (saved.steps() == 0) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(const TensorDict rows, LaneRows(saved));
  const int64_t before = StepsBefore(saved, storage->lanes());
  // Rows of earlier rounds are not saved. The first step stands in for them, so
  // that cursors and positions are TorchRL's; the saved rows overwrite all of
  // them.
  if (before > 0) {
    RILL_ASSIGN_OR_RETURN(const TensorDict gone, Repeated(rows, before));
    RILL_RETURN_IF_ERROR(storage->Extend(gone).status());
  }
  // In a full ring the oldest row is at the cursor, so rows come in two runs.
  const int64_t oldest = saved.is_full() ? saved.cursor : 0;
  const std::pair<int64_t, int64_t> runs[] = {{oldest, saved.steps()},
                                              {0, oldest}};
  for (const auto& [begin, end] : runs) {
    if (begin == end) continue;
    RILL_ASSIGN_OR_RETURN(const TensorDict run, rows.Slice(1, begin, end));
    RILL_RETURN_IF_ERROR(storage->Extend(run).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Sampler>> MakeTorchRlSampler(
    const TorchRlReplayBuffer& saved, PrioritizedSelector** selector) {
  if (selector != nullptr) *selector = nullptr;
  if (const auto* priorities = std::get_if<TorchRlPriorities>(&saved.sampler)) {
    return MakePrioritizedSampler({.alpha = priorities->alpha,
                                   .beta = priorities->beta,
                                   .epsilon = priorities->epsilon},
                                  selector);
  }
  if (const auto* epoch = std::get_if<TorchRlEpoch>(&saved.sampler)) {
    return MakeSamplerWithoutReplacement(
        {.drop_last = epoch->drop_last, .first_epoch = RestOf(saved, *epoch)});
  }
  if (const auto* staleness = std::get_if<TorchRlStaleness>(&saved.sampler)) {
    return MakeStalenessAwareSampler(
        {.max_staleness = staleness->max_staleness});
  }
  if (saved.consume_after_n_samples) {
    return MakeConsumingSampler(
        {.max_times_sampled = *saved.consume_after_n_samples});
  }
  return MakeUniformSampler();
}

namespace {

// The saved options of a sampler of this kind have the values of this one.
absl::Status CheckSampler(const TorchRlReplayBuffer& saved,
                          const Sampler& sampler,
                          const ReplayBuffer::OpenOptions& open_options) {
  static constexpr absl::string_view kSaved[] = {
      "selector.alpha",         "selector.beta",
      "selector.epsilon",       "selector.drop_last",
      "selector.max_staleness", "selector.max_times_sampled"};
  RILL_ASSIGN_OR_RETURN(const auto theirs, MakeTorchRlSampler(saved));
  if (theirs->name() != sampler.name()) return absl::OkStatus();
  const OptionValues& values = sampler.traits().options;
  const OptionValues& saved_values = theirs->traits().options;
  std::vector<OptionChange> changes;
  std::string kind;
  for (const OptionValues::Value& was : saved_values.values()) {
    if (was.name == "selector") kind = was.text;
    if (std::find(std::begin(kSaved), std::end(kSaved), was.name) ==
        std::end(kSaved)) {
      continue;
    }
    for (const OptionValues::Value& is : values.values()) {
      if (is.name != was.name || is.text == was.text) continue;
      changes.push_back({.option = absl::StrCat("sampler.", is.name),
                         .kind = kind,
                         .saved = was.text,
                         .opened = is.text});
    }
  }
  if (open_options.changed_options != nullptr) {
    *open_options.changed_options = changes;
  }
  return replay_internal::CheckChanges("OpenTorchRl", changes, {},
                                       open_options.accept_options);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ReplayBuffer>> OpenTorchRl(
    const TorchRlReplayBuffer& saved, ReplayBuffer::Options options,
    const ReplayBuffer::OpenOptions& open_options) {
  if (options.sampler != nullptr) {
    RILL_RETURN_IF_ERROR(CheckSampler(saved, *options.sampler, open_options));
  }
  const auto* priorities = std::get_if<TorchRlPriorities>(&saved.sampler);
  if (priorities != nullptr) {
    RILL_RETURN_IF_ERROR(CheckValues(priorities->values,
                                     saved.rows.batch_shape().num_elements()));
  }
  if (options.storage == nullptr) {
    RILL_ASSIGN_OR_RETURN(
        options.storage,
        DenseStorage::Create({.capacity = saved.capacity * saved.lanes(),
                              .lanes = saved.lanes()}));
  }
  if (options.sampler == nullptr) {
    RILL_ASSIGN_OR_RETURN(options.sampler, MakeTorchRlSampler(saved));
    const auto* const epoch = std::get_if<TorchRlEpoch>(&saved.sampler);
    if (epoch != nullptr &&
        options.storage->lanes().capacity != saved.capacity) {
      // Its places are not those of the rows.
      options.sampler =
          MakeSamplerWithoutReplacement({.drop_last = epoch->drop_last});
    }
  }
  if (options.batch_size == 0)
    options.batch_size = saved.batch_size.value_or(0);
  RILL_RETURN_IF_ERROR(ReplayBuffer::CheckOptions(options));
  RILL_RETURN_IF_ERROR(CheckEmpty(saved, *options.storage));
  const std::shared_ptr<Storage> storage = options.storage;
  auto buffer = Filled(saved, std::move(options));
  // The storage outlives a buffer that could not be made, and is to be empty as
  // before.
  if (!buffer.ok()) storage->Clear().IgnoreError();
  return buffer;
}

absl::StatusOr<TorchRlReplayBuffer> ToTorchRl(const ReplayBuffer& buffer,
                                              const ToTorchRlOptions& options) {
  ToTorchRlOptions completed = options;
  if (options.batch_size == 0) completed.batch_size = buffer.batch_size();
  return ToTorchRl(buffer.storage(), completed);
}

absl::StatusOr<TorchRlReplayBuffer> ToTorchRl(const RowReader& storage,
                                              const ToTorchRlOptions& options) {
  if (options.batch_size <= 0) {
    return InvalidArgument(
        "ToTorchRl: Options::batch_size: got ", options.batch_size,
        ", want > 0, what TorchRL's sample() is to give; name one, or give the "
        "ReplayBuffer one");
  }
  const Lanes lanes = storage.lanes();
  const std::vector<Cursor> cursors = storage.cursors();
  for (const Cursor& cursor : cursors) {
    if (cursor.written > 0 && cursor == cursors[0]) continue;
    return FailedPrecondition("ToTorchRl: steps of a lane: got ",
                              cursor.written, " and ", cursors[0].written,
                              ", want as many in each, and some");
  }
  TorchRlReplayBuffer saved;
  saved.batch_size = options.batch_size;
  saved.capacity = lanes.capacity;
  saved.write_count = cursors[0].written;
  saved.cursor = saved.write_count % saved.capacity;
  const int64_t steps = std::min(saved.write_count, saved.capacity);
  if (storage.size() != steps * lanes.count) {
    return FailedPrecondition(
        "ToTorchRl: live rows: got ", storage.size(), ", want ",
        steps * lanes.count,
        ", all that the ring has room for by its cursors; ",
        "write on, or load the rows into a storage of this capacity");
  }
  std::vector<Slot> slots;
  slots.reserve(steps * lanes.count);
  for (int64_t step = 0; step < steps; ++step) {
    for (int64_t lane = 0; lane < lanes.count; ++lane) {
      slots.push_back(lanes.SlotOf(lane, step));
    }
  }
  RILL_RETURN_IF_ERROR(storage.Read(slots, &saved.rows));
  if (lanes.count > 1) {
    RILL_ASSIGN_OR_RETURN(saved.rows, saved.rows.Reshape({steps, lanes.count}));
  }
  if (options.selector != nullptr) {
    RILL_ASSIGN_OR_RETURN(saved.sampler,
                          PrioritiesOf(lanes, steps, *options.selector));
  }
  return saved;
}

}  // namespace rill
