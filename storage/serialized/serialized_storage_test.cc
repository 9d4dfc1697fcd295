// SPDX-License-Identifier: Apache-2.0
#include "rill/storage/serialized/serialized_storage.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rill/base/fault_point.h"
#include "rill/slots/slot.h"
#include "rill/slots/write_observer.h"
#include "rill/storage/compressed/compressed_storage.h"
#include "rill/storage/list/list_storage.h"
#include "rill/storage/storage.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/tensor.h"
#include "rill/testing/status_matchers.h"

namespace rill {
namespace {

using ::testing::ElementsAre;

class Watch final : public WriteObserver {
 public:
  void OnAttach(const Lanes&, absl::Span<const Cursor>) override { ++calls; }
  void OnRetire(const WriteEvent& event) override {
    ++calls;
    EXPECT_TRUE(event.ends.empty());
  }
  void OnWrite(const WriteEvent& event) override {
    ++calls;
    ends.assign(event.ends.begin(), event.ends.end());
    versions.assign(event.policy_versions.begin(), event.policy_versions.end());
  }
  void OnClear() override { ++calls; }

  int calls = 0;
  std::vector<int> ends;
  std::vector<int64_t> versions;
};

TensorDict Rows(const std::vector<bool>& done,
                const std::vector<int64_t>& versions) {
  const auto n = static_cast<int64_t>(done.size());
  TensorDict rows({n});
  RILL_EXPECT_OK(rows.Set("next/done", *Tensor::From(done, {n, 1})));
  RILL_EXPECT_OK(rows.Set("policy_version", *Tensor::From(versions, {n, 1})));
  return rows;
}

// Whichever allocation of a write in place fails, nothing has changed. Row 1
// lies in a sealed block; the end flags of the event also need "stop", which is
// not written.
TEST(SerializedStorageTest, AWriteWhoseEventFindsNoMemoryChangesNothing) {
  const EventKeys event_keys = {.ends = {"next/done", "stop"}};
  std::vector<std::unique_ptr<Storage>> storages;
  RILL_ASSERT_OK_AND_ASSIGN(
      auto compressed,
      CompressedStorage::Create(
          {.capacity = 8, .event_keys = event_keys, .block_rows = 4}));
  RILL_ASSERT_OK_AND_ASSIGN(
      auto list,
      ListStorage::Create({.capacity = 8, .event_keys = event_keys}));
  storages.push_back(std::move(compressed));
  storages.push_back(std::move(list));
  for (const std::unique_ptr<Storage>& storage : storages) {
    TensorDict before = Rows(std::vector<bool>(6, false), {0, 1, 2, 3, 4, 5});
    RILL_ASSERT_OK(
        before.Set("stop", *Tensor::From<bool>({0, 0, 0, 0, 0, 1}, {6, 1})));
    RILL_ASSERT_OK(storage->Extend(before));
    Watch watch;
    RILL_ASSERT_OK(storage->AddObserver(&watch));
    const int attached = watch.calls;
    const std::vector<Slot> slots = {1, 5, 2, 1};
    const TensorDict rows = Rows({false, false, false, true}, {7, 8, 9, 10});
    int failures = 0;
    for (int fail_at = 0; failures == fail_at; ++fail_at) {
      int allocations = 0;
      absl::Status status;
      {
        ScopedFaultHook hook([&](absl::string_view point, absl::string_view) {
          return point == "host.allocate" && allocations++ == fail_at
                     ? absl::ResourceExhaustedError("injected")
                     : absl::OkStatus();
        });
        status = storage->WriteAt(slots, rows);
      }
      if (status.ok()) break;
      ++failures;
      TensorDict now;
      RILL_ASSERT_OK(storage->Read({0, 1, 2, 3, 4, 5}, &now));
      RILL_EXPECT_OK(now.CheckEqual(before)) << fail_at;
      EXPECT_EQ(watch.calls, attached) << fail_at;
    }
    EXPECT_GT(failures, 0);
    EXPECT_EQ(watch.calls, attached + 2);
    // Both values of row 1, which is named twice, are those that stay.
    EXPECT_THAT(watch.ends, ElementsAre(1, 1, 0, 1));
    EXPECT_THAT(watch.versions, ElementsAre(10, 8, 9, 10));
    storage->RemoveObserver(&watch);
  }
}

}  // namespace
}  // namespace rill
