// SPDX-License-Identifier: Apache-2.0
// A stream of Arrow's IPC format: its first batch is refused, or comes back
// equal from a batch of Rill's own.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "arrow/buffer.h"
#include "arrow/io/memory.h"
#include "arrow/ipc/reader.h"
#include "arrow/record_batch.h"
#include "rill/distributed/arrow/arrow_batch.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tools/fuzzing/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto reader = arrow::ipc::RecordBatchStreamReader::Open(
      std::make_shared<arrow::io::BufferReader>(arrow::Buffer::FromString(
          std::string(reinterpret_cast<const char*>(data), size))));
  std::shared_ptr<arrow::RecordBatch> batch;
  if (!reader.ok() || !(*reader)->ReadNext(&batch).ok() || batch == nullptr) {
    return 0;
  }
  const auto dict = rill::FromArrow(batch);
  if (!dict.ok()) {
    RILL_FUZZ_CHECK(absl::IsInvalidArgument(dict.status()));
    return 0;
  }
  const auto own = rill::ToArrow(*dict);
  if (!own.ok()) {
    // Lists in one another may be longer than one list.
    RILL_FUZZ_CHECK(
        absl::StrContains(own.status().message(), "elements a row"));
    return 0;
  }
  RILL_FUZZ_CHECK((*own)->ValidateFull().ok());
  const auto again = rill::FromArrow(*own);
  RILL_FUZZ_CHECK(again.ok());
  RILL_FUZZ_CHECK(again->CheckEqual(*dict).ok());
  return 0;
}
