// SPDX-License-Identifier: Apache-2.0
// A storage that somebody else looks at while it is written.
// usage: write_live DIRECTORY lane_major|time_major LANES
// Makes a memmap storage of 100 steps a lane there, columns. For every number N
// on a line of its input it appends N steps to each lane and prints how many a
// lane has got so far. Row s of lane l has 1000 l + s.
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "rill/base/status_macros.h"
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

absl::Status Append(Storage& storage, int64_t steps) {
  const int64_t lanes = storage.lanes().count;
  RILL_ASSIGN_OR_RETURN(Tensor id,
                        Tensor::Empty(DType::kInt64, Shape({lanes, steps, 1})));
  RILL_ASSIGN_OR_RETURN(
      Tensor next, Tensor::Empty(DType::kFloat32, Shape({lanes, steps, 3})));
  for (int64_t lane = 0; lane < lanes; ++lane) {
    const int64_t first = storage.cursors()[lane].written;
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t row = lane * steps + step;
      const int64_t value = 1000 * lane + first + step;
      id.data<int64_t>()[row] = value;
      for (int64_t i = 0; i < 3; ++i) {
        next.data<float>()[3 * row + i] = static_cast<float>(value + i);
      }
    }
  }
  TensorDict batch({lanes, steps});
  RILL_RETURN_IF_ERROR(batch.Set("id", id));
  RILL_RETURN_IF_ERROR(batch.Set("next/a b", next));
  return storage.Extend(batch).status();
}

absl::Status Run(const std::string& directory, const std::string& order,
                 int64_t lanes) {
  TensorDictSpec spec;
  RILL_RETURN_IF_ERROR(
      spec.Set("id", LeafSpec{.dtype = DType::kInt64, .shape = {1}}));
  RILL_RETURN_IF_ERROR(
      spec.Set("next/a b", LeafSpec{.dtype = DType::kFloat32, .shape = {3}}));
  RILL_ASSIGN_OR_RETURN(
      const std::unique_ptr<Storage> storage,
      MemmapStorage::Create({.directory = directory,
                             .capacity = 100 * lanes,
                             .lanes = lanes,
                             .layout = StorageLayout::kColumns,
                             .order = order == "time_major"
                                          ? StorageOrder::kTimeMajor
                                          : StorageOrder::kLaneMajor,
                             .spec = spec}));
  // Into a pipe, stdout would be buffered, and the reader wait for its line.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::printf("0\n");
  for (int64_t steps; std::scanf("%" SCNd64, &steps) == 1;) {
    RILL_RETURN_IF_ERROR(Append(*storage, steps));
    std::printf("%" PRId64 "\n", storage->cursors()[0].written);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  int64_t lanes = 0;
  if (argc != 4 || !absl::SimpleAtoi(argv[3], &lanes)) {
    std::fprintf(stderr,
                 "usage: write_live DIRECTORY lane_major|time_major LANES\n");
    return 2;
  }
  const absl::Status status = rill::Run(argv[1], argv[2], lanes);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
