// SPDX-License-Identifier: Apache-2.0
// Views with sizes, strides, offsets and indices from outside: accepted just
// where wide arithmetic says that all elements lie in the buffer, and so stay
// all views of views.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "rill/device/buffer.h"
#include "rill/device/device.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill {
namespace {

using Wide = __int128;

constexpr int64_t kMaxCopied = 1 << 12;  // Elements; Expand makes many.

// Where the elements lie from the first one on: [low, high) in bytes. The
// products of sizes and strides fit in 127 bits.
void WideReach(absl::Span<const int64_t> sizes,
               absl::Span<const int64_t> strides, int64_t item, Wide* low,
               Wide* high) {
  *low = 0;
  *high = item;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const Wide reach = (Wide{sizes[d]} - 1) * strides[d];
    (reach < 0 ? *low : *high) += reach;
  }
}

int64_t Alignment(DType dtype) {
  const bool is_complex =
      dtype == DType::kComplex64 || dtype == DType::kComplex128;
  return is_complex ? DTypeSize(dtype) / 2 : DTypeSize(dtype);
}

// Reads the corners, and all elements where there are not too many.
void CheckInside(const Tensor& t) {
  RILL_FUZZ_CHECK(t.is_valid());
  if (t.num_elements() == 0) return;
  const int64_t item = DTypeSize(t.dtype());
  Wide low;
  Wide high;
  WideReach(t.shape().sizes(), t.strides_bytes(), item, &low, &high);
  const int64_t at = t.raw_data() - t.buffer()->data();
  RILL_FUZZ_CHECK(at + low >= 0);
  RILL_FUZZ_CHECK(at + high <= t.buffer()->size_bytes());
  RILL_FUZZ_CHECK((at + reinterpret_cast<uintptr_t>(t.buffer()->data())) %
                      Alignment(t.dtype()) ==
                  0);
  if (t.num_elements() > kMaxCopied) return;
  const auto copy = t.Contiguous();
  RILL_FUZZ_CHECK(copy.ok() && copy->is_contiguous());
  RILL_FUZZ_CHECK(copy->shape() == t.shape());
  const auto same = copy->BitEquals(t);
  RILL_FUZZ_CHECK(same.ok() && *same);
  (void)t.DebugString();
}

void TryShape(absl::Span<const int64_t> sizes) {
  Wide product = 1;
  bool fits = sizes.size() <= Shape::kMaxRank;
  for (const int64_t size : sizes) {
    fits = fits && size >= 0;
    // Zeros do not excuse the others.
    if (fits && size > 0) product *= size;
    fits = fits && product <= INT64_MAX;
  }
  const auto shape = Shape::Create(sizes);
  if (shape.ok()) RILL_FUZZ_CHECK(shape->sizes() == sizes);
  // Where one size is 0, others may be large: either answer is right.
  const bool has_zero = std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
  if (!has_zero) RILL_FUZZ_CHECK(shape.ok() == fits);
}

// A view by one of the calls that take numbers.
absl::StatusOr<Tensor> NextView(const Tensor& t, FuzzInput* input) {
  const int dim = static_cast<int>(input->TakeSmall(-2, 9));
  switch (input->TakeSmall(0, 8)) {
    case 0:
      return t.Index(input->TakeHostile());
    case 1:
      return t.Select(dim, input->TakeHostile());
    case 2: {
      const int64_t begin = input->TakeHostile();
      const int64_t end = input->TakeHostile();
      return t.Slice(dim, begin, end, input->TakeHostile());
    }
    case 3:
      return t.Squeeze(dim);
    case 4:
      return t.Unsqueeze(dim);
    case 5: {
      std::vector<int> dims(input->TakeSmall(0, 9));
      for (int& d : dims) d = static_cast<int>(input->TakeSmall(-1, 8));
      return t.Permute(dims);
    }
    default: {
      std::vector<int64_t> sizes(input->TakeSmall(0, 9));
      for (int64_t& size : sizes) size = input->TakeHostile();
      const auto shape = Shape::Create(sizes);
      if (!shape.ok()) return shape.status();
      if (input->TakeSmall(0, 1) == 0) return t.Expand(*shape);
      return t.ViewAs(*shape);
    }
  }
}

void TryView(FuzzInput* input) {
  const int64_t bytes = input->TakeSmall(0, 255);
  const DType dtype = static_cast<DType>(input->TakeSmall(0, kNumDTypes - 1));
  std::vector<int64_t> sizes(input->TakeSmall(0, 9));
  std::vector<int64_t> strides(sizes.size());
  for (int64_t& size : sizes) size = input->TakeHostile();
  for (int64_t& stride : strides) stride = input->TakeHostile();
  TryShape(sizes);
  const auto shape = Shape::Create(sizes);
  if (!shape.ok()) return;
  const int64_t offset = input->TakeHostile();
  // Just that many bytes on the heap, so that a sanitizer sees one too far.
  const auto memory = std::make_shared<std::vector<std::byte>>(bytes);
  const auto buffer = Buffer::Wrap(memory->data(), bytes, Device::Cpu(),
                                   MemoryKind::kPageable, memory);

  const auto view = Tensor::View(buffer, dtype, *shape, offset, strides);
  const int64_t item = DTypeSize(dtype);
  if (shape->num_elements() > 0) {
    Wide low;
    Wide high;
    WideReach(sizes, strides, item, &low, &high);
    bool fits = offset >= 0 && offset + low >= 0 && offset + high <= bytes &&
                Wide{shape->num_elements()} * item <= INT64_MAX;
    bool aligned = (reinterpret_cast<uintptr_t>(memory->data()) + offset) %
                       Alignment(dtype) ==
                   0;
    for (size_t d = 0; d < sizes.size(); ++d) {
      aligned =
          aligned && (sizes[d] == 1 || strides[d] % Alignment(dtype) == 0);
    }
    RILL_FUZZ_CHECK(view.ok() == (fits && aligned));
  }
  if (!view.ok()) return;
  CheckInside(*view);
  Tensor t = *view;
  for (int step = 0; step < 8 && !input->is_empty(); ++step) {
    const auto next = NextView(t, input);
    if (!next.ok()) continue;
    t = *next;
    CheckInside(t);
  }
}

}  // namespace
}  // namespace rill

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rill::FuzzInput input(data, size);
  rill::TryView(&input);
  return 0;
}
