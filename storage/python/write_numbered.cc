// SPDX-License-Identifier: Apache-2.0
// A storage directory, made or opened, that rill_reader_test.py reads while it
// is written.
//
// usage: write_numbered DIRECTORY rows|columns lane_major|time_major LANES
//                       LANE_CAPACITY [HOLD_TIMEOUT]
//
// Every element of "observation" and "next/id" of a row is its number: the
// step, the lane from bit 40 on, the clears and patches so far from bit 52 on.
// A leaf of each dtype holds the number modulo 100, bool whether that is not 0.
// Each line of its input is a command, answered by a line with the steps of
// each lane:
//
//   extend FIRST COUNT STEPS   appends to lanes [FIRST, FIRST + COUNT); the
//                              answer is -1 where readers hold rows
//   patch                      writes all rows of lane 0 in place
//   clear | save | back        Clear, SavePosition, LoadPosition
//   run N                      N random appends as fast as they go
//   mix N                      the same with clears and patches
//   die FIRST COUNT STEPS      ends the process where the append has begun
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/flow/sink.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/specs/spec.h"
#include "rill/storage/memmap_storage.h"
#include "rill/storage/storage.h"
#include "rill/storage/storage_layout.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

constexpr int64_t kWidth = 512;  // So that a copy is likely to meet a write.
constexpr DType kDTypes[] = {
    DType::kBool,    DType::kUInt8,     DType::kInt8,      DType::kInt16,
    DType::kInt32,   DType::kInt64,     DType::kFloat16,   DType::kBFloat16,
    DType::kFloat32, DType::kFloat64,   DType::kUInt16,    DType::kUInt32,
    DType::kUInt64,  DType::kComplex64, DType::kComplex128};

// Keys whose components are no names of files.
std::string KeyOf(DType dtype) {
  return absl::StrCat("next/a b:", DTypeName(dtype));
}

absl::StatusOr<TensorDictSpec> Spec() {
  TensorDictSpec spec;
  RILL_RETURN_IF_ERROR(spec.Set(
      "observation", LeafSpec{.dtype = DType::kInt64, .shape = {kWidth}}));
  RILL_RETURN_IF_ERROR(
      spec.Set("next/id", LeafSpec{.dtype = DType::kInt64, .shape = {1}}));
  RILL_RETURN_IF_ERROR(spec.Set(
      "next/reward", LeafSpec{.dtype = DType::kFloat32, .shape = {1}}));
  RILL_RETURN_IF_ERROR(
      spec.Set("none", LeafSpec{.dtype = DType::kFloat32, .shape = {0, 2}}));
  for (const DType dtype : kDTypes) {
    RILL_RETURN_IF_ERROR(
        spec.Set(KeyOf(dtype), LeafSpec{.dtype = dtype, .shape = {3}}));
  }
  return spec;
}

// Fills element `at` of each `apart` ones of T with a value of `from`.
template <typename T>
void Fill(const Tensor& from, int64_t apart, int64_t at, Tensor* to) {
  T* const elements = reinterpret_cast<T*>(to->raw_data());
  for (int64_t i = 0; i < from.num_elements(); ++i) {
    elements[apart * i + at] = static_cast<T>(from.data<int64_t>()[i]);
  }
}

// `values`, int64, in another dtype, also in those without arithmetic: real
// ones of complex64, imaginary ones of complex128.
absl::StatusOr<Tensor> Leaf(const Tensor& values, DType dtype) {
  RILL_ASSIGN_OR_RETURN(Tensor leaf, Tensor::Zeros(dtype, values.shape()));
  switch (dtype) {
    case DType::kUInt16:
      Fill<uint16_t>(values, 1, 0, &leaf);
      return leaf;
    case DType::kUInt32:
      Fill<uint32_t>(values, 1, 0, &leaf);
      return leaf;
    case DType::kUInt64:
      Fill<uint64_t>(values, 1, 0, &leaf);
      return leaf;
    case DType::kComplex64:
      Fill<float>(values, 2, 0, &leaf);
      return leaf;
    case DType::kComplex128:
      Fill<double>(values, 2, 1, &leaf);
      return leaf;
    default:
      return Cast(values, dtype);
  }
}

// Rows of `shape` with these numbers.
absl::StatusOr<TensorDict> Rows(const Shape& shape,
                                const std::vector<int64_t>& numbers) {
  TensorDict batch(shape);
  RILL_ASSIGN_OR_RETURN(Tensor observation,
                        Tensor::Empty(DType::kInt64, shape.Concat({kWidth})));
  RILL_ASSIGN_OR_RETURN(Tensor id,
                        Tensor::Empty(DType::kInt64, shape.Concat({1})));
  RILL_ASSIGN_OR_RETURN(Tensor none,
                        Tensor::Zeros(DType::kFloat32, shape.Concat({0, 2})));
  RILL_ASSIGN_OR_RETURN(Tensor small,
                        Tensor::Empty(DType::kInt64, shape.Concat({3})));
  for (size_t row = 0; row < numbers.size(); ++row) {
    std::fill_n(observation.data<int64_t>() + row * kWidth, kWidth,
                numbers[row]);
    id.data<int64_t>()[row] = numbers[row];
    std::fill_n(small.data<int64_t>() + row * 3, 3, numbers[row] % 100);
  }
  RILL_RETURN_IF_ERROR(batch.Set("observation", std::move(observation)));
  RILL_RETURN_IF_ERROR(batch.Set("next/id", std::move(id)));
  RILL_ASSIGN_OR_RETURN(const Tensor first, small.Slice(shape.rank(), 0, 1));
  RILL_ASSIGN_OR_RETURN(Tensor reward, Cast(first, DType::kFloat32));
  RILL_RETURN_IF_ERROR(batch.Set("next/reward", std::move(reward)));
  RILL_RETURN_IF_ERROR(batch.Set("none", std::move(none)));
  for (const DType dtype : kDTypes) {
    RILL_ASSIGN_OR_RETURN(Tensor leaf, Leaf(small, dtype));
    RILL_RETURN_IF_ERROR(batch.Set(KeyOf(dtype), std::move(leaf)));
  }
  return batch;
}

// Ends the process where an append has been announced and no byte has changed.
class DiesOnRetire final : public WriteObserver {
 public:
  void OnAttach(const Lanes&, absl::Span<const Cursor>) override {}
  void OnRetire(const WriteEvent&) override { _exit(7); }
  void OnWrite(const WriteEvent&) override {}
  void OnClear() override {}
};

class Writer {
 public:
  explicit Writer(Storage* storage) : storage_(*storage) {}

  absl::Status Do(absl::string_view line) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    std::vector<int64_t> numbers(3);
    for (size_t i = 1; i < words.size() && i <= 3; ++i) {
      if (!absl::SimpleAtoi(words[i], &numbers[i - 1])) {
        return InvalidArgument(line);
      }
    }
    const absl::string_view what = words.empty() ? "" : words[0];
    if (what == "extend") return Extend(numbers[0], numbers[1], numbers[2]);
    if (what == "patch") return Patch();
    if (what == "clear") return Clear();
    if (what == "run") return Run(numbers[0], /*mixed=*/false);
    if (what == "mix") return Run(numbers[0], /*mixed=*/true);
    if (what == "save") {
      RILL_ASSIGN_OR_RETURN(position_, storage_.SavePosition());
      return absl::OkStatus();
    }
    if (what == "back") {
      return storage_.LoadPosition(
          position_, /*accept_newer=*/false,
          [](const PositionRows&) { return absl::OkStatus(); });
    }
    if (what == "die") {
      DiesOnRetire observer;
      RILL_RETURN_IF_ERROR(storage_.AddObserver(&observer));
      return Extend(numbers[0], numbers[1], numbers[2]);
    }
    return InvalidArgument(line);
  }

 private:
  int64_t NumberOf(int64_t lane, int64_t step) const {
    return (changes_ << 52) + (lane << 40) + step;
  }

  absl::Status Extend(int64_t first, int64_t count, int64_t steps) {
    const std::vector<Cursor> cursors = storage_.cursors();
    std::vector<int64_t> numbers;
    for (int64_t lane = first; lane < first + count; ++lane) {
      for (int64_t step = 0; step < steps; ++step) {
        numbers.push_back(NumberOf(lane, cursors[lane].written + step));
      }
    }
    RILL_ASSIGN_OR_RETURN(const TensorDict batch,
                          Rows({count, steps}, numbers));
    return storage_.Extend(batch, {.first_lane = first}).status();
  }

  absl::Status Patch() {
    ++changes_;
    const Lanes lanes = storage_.lanes();
    const int64_t written = storage_.cursors()[0].written;
    std::vector<Slot> slots;
    std::vector<int64_t> numbers;
    for (int64_t step = std::max<int64_t>(written - lanes.capacity, 0);
         step < written; ++step) {
      slots.push_back(lanes.SlotOf(0, step % lanes.capacity));
      numbers.push_back(NumberOf(0, step));
    }
    RILL_ASSIGN_OR_RETURN(const TensorDict rows,
                          Rows({static_cast<int64_t>(slots.size())}, numbers));
    return storage_.WriteAt(slots, rows);
  }

  absl::Status Clear() {
    ++changes_;
    return storage_.Clear();
  }

  absl::Status Run(int64_t appends, bool mixed) {
    const Lanes lanes = storage_.lanes();
    const Rng rng(7);
    for (int64_t i = 0; i < appends; ++i) {
      if (mixed && i % 64 == 0) {
        RILL_RETURN_IF_ERROR(Clear());
      }
      if (mixed && i % 16 == 0) {
        RILL_RETURN_IF_ERROR(Patch());
      }
      const int64_t first = rng.UniformInt(i, 0, lanes.count);
      const int64_t count = 1 + rng.UniformInt(i, 1, lanes.count - first);
      RILL_RETURN_IF_ERROR(Extend(first, count, 1 + rng.UniformInt(i, 2, 12)));
    }
    return absl::OkStatus();
  }

  Storage& storage_;
  std::string position_;
  int64_t changes_ = 0;
};

absl::Status Run(const MemmapStorage::Options& options) {
  auto made = MemmapStorage::Open(options);
  if (absl::IsNotFound(made.status())) made = MemmapStorage::Create(options);
  RILL_ASSIGN_OR_RETURN(const std::unique_ptr<Storage> storage,
                        std::move(made));
  Writer writer(storage.get());
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::printf("made\n");
  char line[100];
  while (std::fgets(line, sizeof(line), stdin) != nullptr) {
    const absl::Status done =
        writer.Do(absl::StripSuffix(absl::string_view(line), "\n"));
    if (absl::IsDeadlineExceeded(done)) {
      std::printf("-1\n");
      continue;
    }
    RILL_RETURN_IF_ERROR(done);
    std::string cursors;
    for (const Cursor& cursor : storage->cursors()) {
      absl::StrAppend(&cursors, cursors.empty() ? "" : " ", cursor.written);
    }
    std::printf("%s\n", cursors.c_str());
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  int64_t lanes = 0;
  int64_t lane_capacity = 0;
  absl::Duration hold_timeout;
  if (argc < 6 || argc > 7 || !absl::SimpleAtoi(argv[4], &lanes) ||
      !absl::SimpleAtoi(argv[5], &lane_capacity) ||
      (argc == 7 && !absl::ParseDuration(argv[6], &hold_timeout))) {
    std::fprintf(stderr,
                 "usage: write_numbered DIRECTORY rows|columns "
                 "lane_major|time_major LANES LANE_CAPACITY [HOLD_TIMEOUT]\n");
    return 2;
  }
  auto spec = rill::Spec();
  absl::Status status = spec.status();
  if (status.ok()) {
    status = rill::Run({.directory = argv[1],
                        .capacity = lanes * lane_capacity,
                        .lanes = lanes,
                        .layout = absl::string_view(argv[2]) == "rows"
                                      ? rill::StorageLayout::kRows
                                      : rill::StorageLayout::kColumns,
                        .order = absl::string_view(argv[3]) == "time_major"
                                     ? rill::StorageOrder::kTimeMajor
                                     : rill::StorageOrder::kLaneMajor,
                        .spec = *std::move(spec),
                        .hold_timeout = argc == 7 ? std::optional(hold_timeout)
                                                  : std::nullopt});
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
