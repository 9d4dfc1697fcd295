// SPDX-License-Identifier: Apache-2.0
#include "rill/device/priorities/device_priorities.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/memory/memory.h"
#include "rill/base/status_macros.h"
#include "rill/device/backend.h"
#include "rill/device/has_ended.h"
#include "rill/device/kernels/kernel.h"
#include "rill/device/kernels/kernel_launch.h"

namespace rill {
namespace {

using device_internal::PriorityChangeKernel;
using device_internal::PriorityDrawKernel;
using device_internal::PriorityLevelKernel;
using device_internal::PriorityNumbers;
using device_internal::PriorityUpdateKernel;

// A write claims nodes between barriers, in whole warps of one block.
KernelGrid OneBlock(int64_t count) {
  constexpr int64_t kWarp = 32;
  return {.blocks = 1,
          .threads = static_cast<int>(std::clamp(
              (count + kWarp - 1) / kWarp * kWarp, kWarp, int64_t{1024}))};
}

absl::StatusOr<std::shared_ptr<Buffer>> HostMemory(int64_t bytes,
                                                   Device device) {
  return Buffer::Allocate(
      bytes, device,
      device.is_cpu() ? MemoryKind::kPageable : MemoryKind::kPinned);
}
absl::StatusOr<std::shared_ptr<Buffer>> DeviceMemory(int64_t bytes,
                                                     Device device) {
  return Buffer::Allocate(
      bytes, device,
      device.is_cpu() ? MemoryKind::kPageable : MemoryKind::kDevice);
}

template <typename T>
int64_t BytesOf(int64_t count) {
  return count * static_cast<int64_t>(sizeof(T));
}

std::optional<float> LargestOf(const PriorityNumbers& numbers) {
  if (numbers.max_ever == 0) return std::nullopt;
  return std::bit_cast<float>(static_cast<uint32_t>(numbers.max_ever - 1));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DevicePriorities>> DevicePriorities::Create(
    const Options& options) {
  // So that no shift and no count of bytes overflows.
  constexpr int64_t kMost = int64_t{1} << 56;
  if (options.size < 1 || options.size > kMost) {
    return InvalidArgument("DevicePriorities::Create: size: got ", options.size,
                           ", want [1, ", kMost, "]");
  }
  RILL_ASSIGN_OR_RETURN(Stream stream, Stream::Create(options.device));
  auto made =
      absl::WrapUnique(new DevicePriorities(options, std::move(stream)));
  RILL_RETURN_IF_ERROR(made->Allocate());
  RILL_RETURN_IF_ERROR(made->Clear());
  RILL_RETURN_IF_ERROR(made->stream_.Synchronize());
  return made;
}

DevicePriorities::DevicePriorities(const Options& options, Stream stream)
    : options_(options), stream_(std::move(stream)) {}

DevicePriorities::~DevicePriorities() { stream_.Synchronize().IgnoreError(); }

absl::Status DevicePriorities::Allocate() {
  tree_ = {.layout = device_internal::TreeLayoutOf(options_.size),
           .size = options_.size,
           .alpha = options_.alpha,
           .epsilon = options_.epsilon};
  const int64_t values = tree_.layout.num_values;
  const int64_t bytes = BytesOf<PriorityNumbers>(1) + BytesOf<double>(values) +
                        BytesOf<int64_t>(values + options_.size) +
                        BytesOf<uint32_t>(values);
  RILL_ASSIGN_OR_RETURN(memory_, DeviceMemory(bytes, options_.device));
  std::byte* at = memory_->data();
  const auto take = [&at]<typename T>(T*& array, int64_t count) {
    array = reinterpret_cast<T*>(at);
    at += BytesOf<T>(count);
  };
  take(tree_.numbers, 1);
  take(tree_.sums, values);
  take(tree_.claims, values);
  take(tree_.generations, options_.size);
  take(tree_.words, values);
  for (Page& page : pages_) {
    RILL_ASSIGN_OR_RETURN(
        page.host, HostMemory(BytesOf<Change>(kMostChanges), options_.device));
    RILL_ASSIGN_OR_RETURN(
        page.device,
        DeviceMemory(BytesOf<Change>(kMostChanges), options_.device));
  }
  return absl::OkStatus();
}

int64_t DevicePriorities::TakeNumbers(int64_t count) {
  const int64_t first = next_number_;
  next_number_ += count;
  return first;
}

absl::Status DevicePriorities::Apply(absl::Span<const Change> changes,
                                     const Largest& largest) {
  Page& page = pages_[next_page_];
  if (page.used.has_value()) {
    // An error is one of work before, which Check finds.
    page.used->Synchronize().IgnoreError();
    page.used.reset();
  }
  const auto count = static_cast<int64_t>(changes.size());
  if (count > 0) {
    std::memcpy(page.host->data(), changes.data(), BytesOf<Change>(count));
    RILL_RETURN_IF_ERROR(CopyAsync(page.device->data(), page.host->data(),
                                   BytesOf<Change>(count), stream_));
  }
  const PriorityChangeKernel kernel = {
      .tree = tree_,
      .changes = reinterpret_cast<const Change*>(page.device->data()),
      .count = count,
      .first_number = TakeNumbers(count),
      .max_ever = largest.bits,
      .replaces_max_ever = largest.replaces};
  // The page's copy may be under way also where this fails.
  const absl::Status status = LaunchKernel(kernel, OneBlock(count), stream_);
  if (status.ok()) ++num_writes_;
  absl::StatusOr<Event> used = Event::Record(stream_);
  if (used.ok()) {
    page.used = *std::move(used);
  } else {
    stream_.Synchronize().IgnoreError();
  }
  next_page_ = (next_page_ + 1) % kPages;
  return status;
}

void DevicePriorities::DropUsed() {
  while (!owners_.empty() &&
         device_internal::HasEnded(owners_.front().first).value_or(true)) {
    owners_.pop_front();
  }
}

absl::Status DevicePriorities::Update(const Rows& rows,
                                      std::shared_ptr<const void> owner,
                                      const Stream& stream) {
  if (stream.device() != options_.device || rows.count < 0) {
    return InvalidArgument("DevicePriorities::Update: got ", rows.count,
                           " rows on ", stream.device().ToString(),
                           ", want >= 0 on ", options_.device.ToString());
  }
  DropUsed();
  if (rows.count == 0) return absl::OkStatus();
  RILL_RETURN_IF_ERROR(stream.WaitFor(stream_));
  const PriorityUpdateKernel kernel = {.tree = tree_,
                                       .slots = rows.slots,
                                       .generations = rows.generations,
                                       .priorities = rows.priorities,
                                       .count = rows.count,
                                       .first_number = TakeNumbers(rows.count)};
  RILL_RETURN_IF_ERROR(LaunchKernel(kernel, OneBlock(rows.count), stream));
  ++num_writes_;
  absl::StatusOr<Event> after = Event::Record(stream);
  absl::Status status = after.status();
  if (status.ok()) status = stream_.WaitFor(*after);
  // Without the event nothing keeps the order but the host.
  if (!status.ok()) return stream.Synchronize();
  owners_.emplace_back(*std::move(after), std::move(owner));
  return absl::OkStatus();
}

absl::Status DevicePriorities::MakeLevels(bool turns_off) {
  for (int64_t level = 0; level < tree_.num_levels(); ++level) {
    const PriorityLevelKernel kernel = {
        .tree = tree_, .level = level, .turns_off = turns_off};
    RILL_RETURN_IF_ERROR(
        LaunchKernel(kernel, GridFor(kernel.num_nodes()), stream_));
  }
  ++num_writes_;
  return absl::OkStatus();
}

absl::Status DevicePriorities::SetAlpha(double alpha) {
  tree_.alpha = alpha;
  return MakeLevels(/*turns_off=*/false);
}

absl::Status DevicePriorities::TurnAllOff() {
  return MakeLevels(/*turns_off=*/true);
}

absl::Status DevicePriorities::Clear() {
  RILL_RETURN_IF_ERROR(
      stream_.backend()->Fill(options_.device.index, memory_->data(), 0,
                              memory_->size_bytes(), stream_.handle()));
  num_writes_ = 0;
  bad_ = {};
  return absl::OkStatus();
}

absl::Status DevicePriorities::Check(const PriorityNumbers& numbers) {
  bad_ = {.count = numbers.num_bad,
          .first_slot = numbers.bad_slot,
          .first_priority =
              std::bit_cast<float>(static_cast<uint32_t>(numbers.bad_bits))};
  if (numbers.writes == num_writes_) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "priorities on ", options_.device.ToString(), ": got ", numbers.writes,
      " writes there, want ", num_writes_,
      "; an error of the device has lost the others; clear, or load a state"));
}

absl::StatusOr<DevicePriorities::Drawn> DevicePriorities::Draw(
    const Request& request) {
  const int64_t count = request.count;
  const int64_t slots_at = BytesOf<PriorityDrawKernel::Header>(1);
  const int64_t importances_at = slots_at + BytesOf<int64_t>(count);
  const int64_t bytes = importances_at + BytesOf<float>(count);
  if (draws_ == nullptr || draws_->size_bytes() < bytes) {
    RILL_ASSIGN_OR_RETURN(draws_, HostMemory(bytes, options_.device));
  }
  std::byte* const to = draws_->data();
  const PriorityDrawKernel kernel = {
      .tree = tree_,
      .beta = request.beta,
      .seed = request.seed,
      .stream = static_cast<uint32_t>(RngStream::kSampler),
      .first_draw = request.first,
      .batch = request.batch,
      .stratified = request.stratified,
      .header = reinterpret_cast<PriorityDrawKernel::Header*>(to),
      .slots = reinterpret_cast<int64_t*>(to + slots_at),
      .importances = reinterpret_cast<float*>(to + importances_at),
      .count = count};
  RILL_RETURN_IF_ERROR(
      LaunchKernel(kernel, GridFor(count, /*threads=*/64), stream_));
  RILL_RETURN_IF_ERROR(stream_.Synchronize());
  RILL_RETURN_IF_ERROR(Check(kernel.header->numbers));
  Drawn drawn = {.total = kernel.header->total};
  if (drawn.total > 0) {
    const auto size = static_cast<size_t>(count);
    drawn.slots = {kernel.slots, size};
    drawn.importances = {kernel.importances, size};
  }
  return drawn;
}

absl::StatusOr<DevicePriorities::Contents> DevicePriorities::Read() {
  PriorityNumbers numbers;
  std::vector<uint32_t> words(options_.size);
  RILL_RETURN_IF_ERROR(
      CopyAsync(&numbers, tree_.numbers, sizeof(numbers), stream_));
  absl::Status status = CopyAsync(words.data(), tree_.words,
                                  BytesOf<uint32_t>(options_.size), stream_);
  // Before the memory goes.
  const absl::Status waited = stream_.Synchronize();
  RILL_RETURN_IF_ERROR(status);
  RILL_RETURN_IF_ERROR(waited);
  RILL_RETURN_IF_ERROR(Check(numbers));
  Contents contents = {.largest = LargestOf(numbers)};
  contents.priorities.reserve(words.size());
  for (const uint32_t word : words) {
    contents.priorities.push_back(
        std::bit_cast<float>(word & ~device_internal::PriorityTree::kOn));
  }
  return contents;
}

}  // namespace rill
