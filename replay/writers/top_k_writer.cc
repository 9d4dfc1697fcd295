// SPDX-License-Identifier: Apache-2.0
// kept_ is a heap of the ranks of all stored rows, the lowest on top. A batch
// is planned on it first: each row takes a free slot, replaces the lowest kept
// row, or is dropped. Then the plan is carried out in at most two writes.
// Writes of others, and errors, make the heap unknown; it is then ranked anew
// from the storage.
#include "rill/replay/writers/top_k_writer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/slots/live_slots.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

using Reduction = TopKWriter::Reduction;

absl::string_view NameOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return "kSum";
    case Reduction::kMean:
      return "kMean";
    case Reduction::kMedian:
      return "kMedian";
    case Reduction::kMin:
      return "kMin";
    case Reduction::kMax:
      return "kMax";
  }
  return "";
}

// The order of rows. An integer becomes the nearest double and the rest that
// this lacks, so that integers beyond 2^53 stay distinct.
struct Rank {
  double value = 0;
  int64_t rest = 0;
  friend auto operator<=>(const Rank&, const Rank&) = default;
};

Rank RankOf(double value) { return {.value = value}; }
Rank RankOf(absl::int128 value) {
  const auto nearest = static_cast<double>(value);
  return {
      .value = nearest,
      .rest = static_cast<int64_t>(value - static_cast<absl::int128>(nearest))};
}

template <typename T>
Rank Reduce(Reduction reduction, absl::Span<T> values) {
  // Does not overflow.
  using Sum = std::conditional_t<std::is_integral_v<T>, absl::int128, double>;
  switch (reduction) {
    case Reduction::kMin:
      return RankOf(Sum{*std::min_element(values.begin(), values.end())});
    case Reduction::kMax:
      return RankOf(Sum{*std::max_element(values.begin(), values.end())});
    case Reduction::kMedian: {
      // The lower of two, as TorchRL's.
      const auto middle = values.begin() + (values.size() - 1) / 2;
      std::nth_element(values.begin(), middle, values.end());
      return RankOf(Sum{*middle});
    }
    case Reduction::kSum:
    case Reduction::kMean:
      break;
  }
  Sum sum = 0;
  for (const T value : values) sum += value;
  if (reduction == Reduction::kSum) return RankOf(sum);
  return RankOf(static_cast<double>(sum) / static_cast<double>(values.size()));
}

// The rank of each row of a host leaf, with `width` values a row. NaN: it has
// no rank.
template <typename T>
std::vector<Rank> ReduceRows(Reduction reduction, const Tensor& leaf,
                             int64_t width) {
  std::vector<T> values(leaf.data<T>(), leaf.data<T>() + leaf.num_elements());
  std::vector<Rank> ranks;
  for (int64_t first = 0; first < leaf.num_elements(); first += width) {
    const auto of_row = absl::MakeSpan(values).subspan(first, width);
    const bool has_nan = std::any_of(of_row.begin(), of_row.end(), [](T value) {
      return std::isnan(static_cast<double>(value));
    });
    ranks.push_back(has_nan ? RankOf(std::numeric_limits<double>::quiet_NaN())
                            : Reduce(reduction, of_row));
  }
  return ranks;
}

// Is notified of writes, and knows whether somebody else made them.
class Watch final : public WriteObserver {
 public:
  void OnAttach(const Lanes& lanes, absl::Span<const Cursor> cursors) override {
    absl::MutexLock lock(&mutex_);
    live_.OnAttach(lanes, cursors);
    Note();
  }
  void OnRetire(const WriteEvent& event) override {
    absl::MutexLock lock(&mutex_);
    live_.OnRetire(event);
    Note();
  }
  void OnWrite(const WriteEvent& event) override {
    absl::MutexLock lock(&mutex_);
    live_.OnWrite(event);
    Note();
  }
  void OnClear() override {
    absl::MutexLock lock(&mutex_);
    live_.OnClear();
    Note();
  }

  // Writes of this thread are the watcher's own until End.
  void Begin() {
    absl::MutexLock lock(&mutex_);
    // Storages notify on the thread that writes, which tells own events from
    // others'.
    own_thread_ = std::this_thread::get_id();
  }
  void End() {
    absl::MutexLock lock(&mutex_);
    own_thread_ = {};
  }
  // Whether others wrote since the last call; then `slots` are the live ones.
  bool TakeForeign(std::vector<Slot>* slots) {
    absl::MutexLock lock(&mutex_);
    if (!std::exchange(is_foreign_, false)) return false;
    slots->clear();
    for (int64_t i = 0; i < live_.size(); ++i) slots->push_back(live_.Nth(i));
    return true;
  }
  void SetForeign() {
    absl::MutexLock lock(&mutex_);
    is_foreign_ = true;
  }

 private:
  void Note() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    is_foreign_ = is_foreign_ || own_thread_ != std::this_thread::get_id();
  }

  absl::Mutex mutex_;
  LiveSlots live_ ABSL_GUARDED_BY(mutex_);
  std::thread::id own_thread_ ABSL_GUARDED_BY(mutex_);
  bool is_foreign_ ABSL_GUARDED_BY(mutex_) = true;
};

class TopKWriterImpl final : public Writer {
 public:
  explicit TopKWriterImpl(const TopKWriter::Options& options)
      : Writer({.name = "TopKWriter",
                .options = OptionValues()
                               .Text("rank_key", options.rank_key)
                               .Choice("reduction", NameOf(options.reduction))
                               .Int("k", options.k),
                .keeps_order = false}),
        options_(options) {}
  ~TopKWriterImpl() override { Detach(&watch_); }

  absl::Status Attach(std::shared_ptr<Storage> storage) override;
  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info) override;

 private:
  struct Kept {
    Rank rank;
    Slot slot = 0;
    friend auto operator<=>(const Kept&, const Kept&) = default;
  };
  // Which rows of a batch go where: those that are appended in the order of
  // their steps, the others in that of their slots.
  struct Plan {
    std::vector<int64_t> appended;
    std::vector<Slot> slots;
    std::vector<int64_t> replacing;
  };

  absl::StatusOr<std::vector<Rank>> RanksOf(const TensorDict& rows) const;
  absl::Status RankStored(Storage* storage)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Plan PlanOf(absl::Span<const Rank> ranks, int64_t written)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Carry(const Plan& plan, const TensorDict& rows,
                     const WriteInfo& info, Storage* storage)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TopKWriter::Options options_;
  Watch watch_;

  absl::Mutex mutex_;
  std::vector<Kept> kept_ ABSL_GUARDED_BY(mutex_);  // A heap, lowest first.
  std::vector<Slot> live_ ABSL_GUARDED_BY(mutex_);
};

absl::Status TopKWriterImpl::Attach(std::shared_ptr<Storage> storage) {
  if (storage != nullptr && options_.k > storage->capacity()) {
    return InvalidArgument("TopKWriter::Attach: storage: got a capacity of ",
                           storage->capacity(), ", want >= k = ", options_.k);
  }
  return AttachOneLane(std::move(storage), &watch_);
}

absl::StatusOr<std::vector<Rank>> TopKWriterImpl::RanksOf(
    const TensorDict& rows) const {
  absl::StatusOr<Tensor> leaf = rows.Get(options_.rank_key);
  RILL_RETURN_IF_ERROR(leaf.status()) << "TopKWriter::Extend: rank_key";
  RILL_ASSIGN_OR_RETURN(leaf, leaf->To(Device::Cpu()));
  RILL_ASSIGN_OR_RETURN(leaf, leaf->Contiguous());
  const bool is_real = IsFloatingPoint(leaf->dtype());
  leaf = Cast(*leaf, is_real ? DType::kFloat64 : DType::kInt64);
  RILL_RETURN_IF_ERROR(leaf.status())
      << "TopKWriter::Extend: rank_key \"" << options_.rank_key << "\"";
  const int64_t n = rows.batch_shape()[0];
  if (n == 0) return std::vector<Rank>();
  const int64_t width = leaf->num_elements() / n;
  if (width == 0) {
    return InvalidArgument("TopKWriter::Extend: rank_key \"", options_.rank_key,
                           "\": got ", leaf->shape().ToString(),
                           ", want a value a row at least");
  }
  return is_real ? ReduceRows<double>(options_.reduction, *leaf, width)
                 : ReduceRows<int64_t>(options_.reduction, *leaf, width);
}

absl::Status TopKWriterImpl::RankStored(Storage* storage) {
  if (!watch_.TakeForeign(&live_)) return absl::OkStatus();
  kept_.clear();
  absl::Status status;
  std::vector<Rank> ranks;
  if (!live_.empty()) {
    TensorDict rows;
    status = storage->ReadLeaves(live_, {options_.rank_key}, &rows);
    if (status.ok()) {
      auto found = RanksOf(rows);
      status = found.status();
      if (found.ok()) ranks = *std::move(found);
    }
  }
  if (!status.ok()) {
    watch_.SetForeign();
    return status;
  }
  for (size_t i = 0; i < ranks.size(); ++i) {
    // A row that others stored without a rank goes first.
    const Rank rank = std::isnan(ranks[i].value)
                          ? RankOf(-std::numeric_limits<double>::infinity())
                          : ranks[i];
    kept_.push_back({rank, live_[i]});
  }
  std::make_heap(kept_.begin(), kept_.end(), std::greater<>());
  return absl::OkStatus();
}

TopKWriterImpl::Plan TopKWriterImpl::PlanOf(absl::Span<const Rank> ranks,
                                            int64_t written) {
  const int64_t capacity = (*AttachedStorage())->capacity();
  const int64_t k = options_.k == 0 ? capacity : options_.k;
  // Behind the cursor, also in a ring that went round and then grew (a Load
  // that accepts another capacity) or lost rows to a killed writer.
  const int64_t room =
      std::max<int64_t>(k - static_cast<int64_t>(kept_.size()), 0);
  // A later row of the batch may replace an earlier one, so only the last one
  // of each slot is written.
  std::map<Slot, int64_t> rows;
  int64_t appended = 0;
  for (size_t row = 0; row < ranks.size(); ++row) {
    Slot slot = 0;
    if (appended < room) {
      slot = (written + appended++) % capacity;
    } else if (!kept_.empty() && ranks[row] > kept_.front().rank) {
      slot = kept_.front().slot;
      std::pop_heap(kept_.begin(), kept_.end(), std::greater<>());
      kept_.pop_back();
    } else {
      continue;
    }
    kept_.push_back({ranks[row], slot});
    std::push_heap(kept_.begin(), kept_.end(), std::greater<>());
    rows[slot] = static_cast<int64_t>(row);
  }
  Plan plan;
  for (int64_t i = 0; i < appended; ++i) {
    // Appended slots follow the cursor, so they are written in this order.
    plan.appended.push_back(rows.extract((written + i) % capacity).mapped());
  }
  for (const auto& [slot, row] : rows) {
    plan.slots.push_back(slot);
    plan.replacing.push_back(row);
  }
  return plan;
}

absl::Status TopKWriterImpl::Carry(const Plan& plan, const TensorDict& rows,
                                   const WriteInfo& info, Storage* storage) {
  // Rows that do not fit are an error, of whatever rank.
  RILL_ASSIGN_OR_RETURN(const TensorDict none, rows.Slice(0, 0, 0));
  RILL_RETURN_IF_ERROR(storage->Extend(none, info).status());
  if (!plan.appended.empty()) {
    RILL_ASSIGN_OR_RETURN(const TensorDict some, rows.Gather(plan.appended));
    RILL_RETURN_IF_ERROR(storage->Extend(some, info).status());
  }
  if (plan.slots.empty()) return absl::OkStatus();
  RILL_ASSIGN_OR_RETURN(const TensorDict some, rows.Gather(plan.replacing));
  return storage->WriteAt(plan.slots, some);
}

absl::StatusOr<ExtendResult> TopKWriterImpl::Extend(const TensorDict& batch,
                                                    const WriteInfo& info) {
  RILL_ASSIGN_OR_RETURN(Storage* const storage, AttachedStorage());
  RILL_ASSIGN_OR_RETURN(const TensorDict rows, RowsOf(batch));
  absl::MutexLock lock(&mutex_);
  RILL_ASSIGN_OR_RETURN(const std::vector<Rank> ranks, RanksOf(rows));
  const auto nan =
      std::find_if(ranks.begin(), ranks.end(),
                   [](const Rank& rank) { return std::isnan(rank.value); });
  if (nan != ranks.end()) {
    return InvalidArgument("TopKWriter::Extend: rank_key \"", options_.rank_key,
                           "\": got NaN in "
                           "row ",
                           nan - ranks.begin(), ", want numbers");
  }
  RILL_RETURN_IF_ERROR(RankStored(storage));
  const Plan plan = PlanOf(ranks, storage->cursors()[0].written);
  watch_.Begin();
  const absl::Status status = Carry(plan, rows, info, storage);
  watch_.End();
  if (!status.ok()) {
    watch_.SetForeign();  // kept_ tells what was to be.
    return status;
  }
  const auto stayed =
      static_cast<int64_t>(plan.appended.size() + plan.slots.size());
  return ExtendResult{
      .rows_written = stayed,
      .rows_dropped = static_cast<int64_t>(ranks.size()) - stayed};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Writer>> TopKWriter::Create(
    const Options& options) {
  if (options.k < 0) {
    return InvalidArgument("TopKWriter::Create: Options::k: got ", options.k,
                           ", want >= 0");
  }
  if (options.rank_key.empty()) {
    return InvalidArgument(
        "TopKWriter::Create: Options::rank_key: got \"\", want a key");
  }
  return std::make_unique<TopKWriterImpl>(options);
}

}  // namespace rill
