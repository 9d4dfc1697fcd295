// SPDX-License-Identifier: Apache-2.0
#include "rill/python/bindings/arguments.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "nanobind/nanobind.h"
#include "rill/base/status_macros.h"
#include "rill/python/bindings/array.h"
#include "rill/python/bindings/status.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill::python {
namespace {

namespace nb = nanobind;

constexpr absl::string_view kUpdate = "ReplayBuffer::update_priority";

absl::Span<const int64_t> Numbers(absl::string_view caller,
                                  const ArrayBytes& array,
                                  absl::string_view key) {
  if (array.dtype() != DType::kInt64) {
    throw StatusError{InvalidArgument(caller, ": ", key, ": dtype: got ",
                                      DTypeName(array.dtype()),
                                      ", want int64")};
  }
  return {reinterpret_cast<const int64_t*>(array.data()),
          array.size_bytes() / sizeof(int64_t)};
}

std::vector<float> Floats(const ArrayBytes& bytes) {
  if (bytes.dtype() == DType::kFloat32) {
    const auto* from = reinterpret_cast<const float*>(bytes.data());
    return {from, from + bytes.size_bytes() / sizeof(float)};
  }
  if (bytes.dtype() == DType::kFloat64) {
    const auto* from = reinterpret_cast<const double*>(bytes.data());
    return {from, from + bytes.size_bytes() / sizeof(double)};
  }
  throw StatusError{InvalidArgument(kUpdate, ": priority: dtype: got ",
                                    DTypeName(bytes.dtype()),
                                    ", want float32 or float64")};
}

std::vector<float> PrioritiesOf(nb::handle object, size_t rows,
                                PriorityReduction reduction) {
  ArrayBytes bytes;
  bytes.Take(object.ptr(), "priority", DType::kFloat32);
  std::vector<float> values = Floats(bytes);
  if (values.size() == 1) {
    values.resize(rows, values[0]);
  } else if (bytes.rank() > 1 && values.size() > rows && rows > 0 &&
             static_cast<size_t>(bytes.size(0)) == rows) {
    std::vector<float> reduced(rows);
    Check(ReducePriorities(values, reduction, absl::MakeSpan(reduced)));
    return reduced;
  }
  return values;
}

// The generations of a batch that was made.
absl::Span<const int64_t> GenerationsOf(const OutputBatch* batch, size_t rows) {
  const Tensor* tensor =
      batch == nullptr ? nullptr : batch->rows.Find("index_generation");
  if (tensor == nullptr) {
    throw StatusError{FailedPrecondition(
        kUpdate,
        ": index: got one of none of the last batches, want that of a batch; "
        "or pass the batch itself, which tells rows from those that have "
        "overwritten them")};
  }
  if (tensor->dtype() != DType::kInt64 || !tensor->is_contiguous() ||
      static_cast<size_t>(tensor->num_elements()) != rows) {
    throw StatusError{
        InvalidArgument(kUpdate, ": index_generation: got ",
                        DTypeName(tensor->dtype()), tensor->shape().ToString(),
                        " from the transforms, want int64[", rows, "]")};
  }
  return {tensor->data<int64_t>(), rows};
}

}  // namespace

std::vector<Slot> SlotsOf(absl::string_view caller, nb::handle index) {
  ArrayBytes array;
  array.Take(index.ptr(), "index", DType::kInt64);
  const absl::Span<const int64_t> numbers = Numbers(caller, array, "index");
  return {numbers.begin(), numbers.end()};
}

PriorityUpdate ReadPriorities(nb::handle index, nb::handle generation,
                              nb::handle priority, PriorityReduction reduction,
                              const OutputMaker& made) {
  ArrayBytes slots;
  slots.Take(index.ptr(), "index", DType::kInt64);
  const size_t rows = slots.size_bytes() / sizeof(int64_t);
  ArrayBytes given;
  std::shared_ptr<OutputBatch> batch;
  absl::Span<const int64_t> generations;
  if (generation.is_none()) {
    batch = made.WithNumbers("index", slots);
    generations = GenerationsOf(batch.get(), rows);
  } else {
    given.Take(generation.ptr(), "index_generation", DType::kInt64);
    generations = Numbers(kUpdate, given, "index_generation");
    if (generations.size() != rows) {
      throw StatusError{InvalidArgument(kUpdate, ": index_generation: got ",
                                        generations.size(), " numbers for ",
                                        rows, " rows, want as many")};
    }
  }
  const absl::Span<const int64_t> slot = Numbers(kUpdate, slots, "index");
  PriorityUpdate update;
  update.draws.resize(rows);
  for (size_t i = 0; i < rows; ++i) {
    update.draws[i] = {.slot = slot[i], .generation = generations[i]};
  }
  update.priorities = PrioritiesOf(priority, rows, reduction);
  return update;
}

absl::Status CheckPlaces(const TensorDict& places, const TensorDict& batch) {
  absl::Status status;
  places.ForEachLeaf([&](absl::string_view key, const Tensor& /*place*/) {
    if (!status.ok() || batch.Find(key) != nullptr) return;
    status = InvalidArgument("ReplayBuffer::sample: out: got \"", key,
                             "\", want leaves of the batch alone");
  });
  return status;
}

absl::Status FillPlaces(const TensorDict& batch, const TensorDict& places) {
  absl::Status status;
  batch.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    const Tensor* place = places.Find(key);
    if (!status.ok() ||
        (place != nullptr && place->raw_data() == leaf.raw_data())) {
      return;
    }
    if (place == nullptr) {
      status = InvalidArgument("ReplayBuffer::sample: out: got none of \"", key,
                               "\", want all leaves of the batch");
    } else if (absl::Status copied = place->CopyFrom(leaf); !copied.ok()) {
      status = InvalidArgument("ReplayBuffer::sample: out: \"", key,
                               "\": ", copied.message());
    }
  });
  return status;
}

}  // namespace rill::python
