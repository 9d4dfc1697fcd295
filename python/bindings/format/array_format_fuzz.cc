// SPDX-License-Identifier: Apache-2.0
// The words of an exporter about an array: accepted elements have the size of
// their dtype, and all of them lie inside the bytes.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rill/python/bindings/format/array_format.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tools/fuzzing/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  rill::FuzzInput input(data, size);
  const int64_t item_bytes = input.TakeSmall(-1, 18);
  std::vector<int64_t> sizes(static_cast<size_t>(input.TakeSmall(0, 8)));
  for (int64_t& each : sizes) each = input.TakeHostile();
  const bool is_right = input.TakeSmall(0, 3) > 0;
  int64_t bytes = input.TakeHostile();
  if (is_right) {
    uint64_t product = static_cast<uint64_t>(item_bytes);
    for (const int64_t each : sizes) product *= static_cast<uint64_t>(each);
    bytes = static_cast<int64_t>(product);
  }
  std::string format;
  while (!input.is_empty()) format += input.Take<char>();

  const std::optional<rill::DType> dtype =
      rill::python::DTypeOfExport(format, item_bytes, sizes, bytes);
  if (!dtype.has_value()) return 0;
  RILL_FUZZ_CHECK(rill::DTypeSize(*dtype) == item_bytes);
  RILL_FUZZ_CHECK(!format.empty() && format.size() <= 3);
  const auto shape = rill::Shape::Create(sizes);
  // Rill has fewer dimensions than NumPy, and refuses the others by itself.
  if (sizes.size() > rill::Shape::kMaxRank) return 0;
  RILL_FUZZ_CHECK(!shape.ok() || shape->num_elements() * item_bytes == bytes);
  for (const int64_t each : sizes) RILL_FUZZ_CHECK(each >= 0);
  return 0;
}
