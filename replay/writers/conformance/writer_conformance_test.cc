// SPDX-License-Identifier: Apache-2.0
#include "rill/replay/writers/conformance/writer_conformance.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "rill/flow/sink.h"
#include "rill/replay/writers/removing_writer.h"
#include "rill/replay/writers/top_k_writer.h"
#include "rill/replay/writers/writer.h"
#include "rill/slots/slot.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/testing/status_matchers.h"
#include "rill/testing/wrong_parts.h"

namespace rill {
namespace {

INSTANTIATE_TEST_SUITE_P(RoundRobin, WriterConformanceTest,
                         ::testing::Values(MakeRoundRobinWriter));
INSTANTIATE_TEST_SUITE_P(Immutable, WriterConformanceTest,
                         ::testing::Values(MakeImmutableWriter));
INSTANTIATE_TEST_SUITE_P(Removing, WriterConformanceTest, ::testing::Values([] {
                           return MakeRemovingWriter();
                         }));
INSTANTIATE_TEST_SUITE_P(TopK, WriterConformanceTest, ::testing::Values([] {
                           return *TopKWriter::Create({.rank_key = "step"});
                         }));

// --- Writers that break a promise --------------------------------------------

// Another writer, changed.
class WrongWriter : public Writer {
 public:
  explicit WrongWriter(std::unique_ptr<Writer> right)
      : Writer(right->traits()), right_(std::move(right)) {}

  absl::Status Attach(std::shared_ptr<Storage> storage) override {
    storage_ = storage;
    return right_->Attach(std::move(storage));
  }
  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info) override {
    return right_->Extend(batch, info);
  }
  absl::Status WriteInPlace(absl::Span<const Slot> slots,
                            const TensorDict& rows, InPlace kind) override {
    return right_->WriteInPlace(slots, rows, kind);
  }
  absl::StatusOr<std::string> SaveState() const override {
    return right_->SaveState();
  }
  absl::Status LoadState(absl::string_view state,
                         absl::Span<const std::string> changed) override {
    return right_->LoadState(state, changed);
  }

 protected:
  Writer& right() { return *right_; }
  Storage& storage() { return *storage_; }

 private:
  const std::unique_ptr<Writer> right_;
  std::shared_ptr<Storage> storage_;
};

struct AttachesAgain final : WrongWriter {
  using WrongWriter::WrongWriter;
  absl::Status Attach(std::shared_ptr<Storage> storage) override {
    const absl::Status status = WrongWriter::Attach(std::move(storage));
    return absl::IsFailedPrecondition(status) ? absl::OkStatus() : status;
  }
};
struct LosesTheLastOfFourRows final : WrongWriter {
  using WrongWriter::WrongWriter;
  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info) override {
    const int64_t rows = batch.batch_shape()[0];
    if (rows < 4) return right().Extend(batch, info);
    auto result = right().Extend(*batch.Slice(0, 0, rows - 1), info);
    if (result.ok()) ++result->rows_written;
    return result;
  }
};
struct CountsNothingAsWritten final : WrongWriter {
  using WrongWriter::WrongWriter;
  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info) override {
    auto result = right().Extend(batch, info);
    if (result.ok()) *result = {.rows_dropped = batch.batch_shape()[0]};
    return result;
  }
};
struct TurnsABatchRound final : WrongWriter {
  using WrongWriter::WrongWriter;
  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info) override {
    std::vector<int64_t> order;
    for (int64_t i = batch.batch_shape()[0]; i > 0; --i) order.push_back(i - 1);
    return right().Extend(*batch.Gather(order), info);
  }
};
struct LeavesRowsOfARefusedBatch final : WrongWriter {
  using WrongWriter::WrongWriter;
  absl::StatusOr<ExtendResult> Extend(const TensorDict& batch,
                                      const WriteInfo& info) override {
    auto result = right().Extend(batch, info);
    if (result.ok()) {
      last = batch;
    } else if (!last.empty()) {
      RILL_EXPECT_OK(storage().Extend(last));
    }
    return result;
  }
  TensorDict last;
};
struct ReplacesWhatItShallPatch final : WrongWriter {
  using WrongWriter::WrongWriter;
  absl::Status WriteInPlace(absl::Span<const Slot> slots,
                            const TensorDict& rows, InPlace) override {
    return right().WriteInPlace(slots, rows, InPlace::kReplace);
  }
};
struct WritesBehindTheLiveRows final : WrongWriter {
  using WrongWriter::WrongWriter;
  absl::Status WriteInPlace(absl::Span<const Slot> slots,
                            const TensorDict& rows, InPlace kind) override {
    const absl::Status status = right().WriteInPlace(slots, rows, kind);
    return absl::IsOutOfRange(status) ? absl::OkStatus() : status;
  }
};
struct TakesHalfAState final : WrongWriter {
  using WrongWriter::WrongWriter;
  absl::Status LoadState(absl::string_view state,
                         absl::Span<const std::string> changed) override {
    const absl::Status status = right().LoadState(state, changed);
    return absl::IsDataLoss(status) ? absl::OkStatus() : status;
  }
};
struct ForgetsItsState final : WrongWriter {
  using WrongWriter::WrongWriter;
  absl::StatusOr<std::string> SaveState() const override {
    return std::string();
  }
  absl::Status LoadState(absl::string_view,
                         absl::Span<const std::string>) override {
    return absl::OkStatus();
  }
};

template <typename T>
std::unique_ptr<Writer> OverRoundRobin() {
  return std::make_unique<T>(MakeRoundRobinWriter());
}
template <typename T>
std::unique_ptr<Writer> OverTopK() {
  return std::make_unique<T>(*TopKWriter::Create({.rank_key = "step"}));
}
template <typename T>
std::unique_ptr<Writer> OverRemoving() {
  return std::make_unique<T>(MakeRemovingWriter());
}

std::vector<WrongPart<WriterConformanceTest>> WrongWriters() {
  const std::string counts = "EveryRowIsStoredOrCountedAsDropped";
  const std::string in_place = "LiveRowsAreWrittenInPlace";
  const std::string loaded = "ALoadedWriterGoesOnAsTheSavedOne";
  return {
      {"AttachesAgain", "BelongsToOneStorage", "Actual: OK",
       OverRoundRobin<AttachesAgain>},
      {"LosesTheLastOfFourRows", counts, "result->rows_written",
       OverRoundRobin<LosesTheLastOfFourRows>},
      {"CountsNothingAsWritten", counts, "result->rows_dropped",
       OverTopK<CountsNothingAsWritten>},
      {"TurnsABatchRound", "WhoAppendsAllIsTheStoragesOwnExtend",
       "Value of: attached.Rows()", OverRoundRobin<TurnsABatchRound>},
      {"LeavesRowsOfARefusedBatch", "ARefusedBatchLeavesNothing",
       "Value of: attached.Rows()", OverRoundRobin<LeavesRowsOfARefusedBatch>},
      {"ReplacesWhatItShallPatch", in_place, "the same row",
       OverTopK<ReplacesWhatItShallPatch>},
      {"WritesBehindTheLiveRows", in_place, "Actual: OK",
       OverRoundRobin<WritesBehindTheLiveRows>},
      {"TakesHalfAState", loaded, "state.size() / 2",
       OverRemoving<TakesHalfAState>},
      {"ForgetsItsState", loaded, "loaded.Rows()",
       OverRemoving<ForgetsItsState>},
  };
}
RILL_REFUSES_WRONG_PARTS(WriterConformanceTest, WrongWriters);

}  // namespace
}  // namespace rill
