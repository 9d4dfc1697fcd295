// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "rill/device/backend.h"
#include "rill/device/conformance/backend_conformance.h"
#include "rill/device/device.h"
#include "rill/device/graphs/graph.h"
#include "rill/device/row_copy.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/testing/wrong_parts.h"

namespace rill {
namespace {

INSTANTIATE_BACKEND_CONFORMANCE(Fake0, {Device::Fake(0)});
INSTANTIATE_BACKEND_CONFORMANCE(Fake1, {Device::Fake(1)});

// --- Backends that break a promise -------------------------------------------

// A FakeBackend, changed.
class WrongBackend : public Backend {
 public:
  Device::Type type() const override { return Device::Type::kFake; }
  absl::StatusOr<int> NumDevices() override { return right_.NumDevices(); }
  absl::StatusOr<void*> Allocate(int index, MemoryKind kind,
                                 int64_t bytes) override {
    return right_.Allocate(index, kind, bytes);
  }
  void Free(int index, MemoryKind kind, void* data, int64_t bytes) override {
    right_.Free(index, kind, data, bytes);
  }
  absl::StatusOr<StreamHandle> CreateStream(int index) override {
    return right_.CreateStream(index);
  }
  void DestroyStream(int index, StreamHandle stream) override {
    right_.DestroyStream(index, stream);
  }
  absl::StatusOr<EventHandle> CreateEvent(int index) override {
    return right_.CreateEvent(index);
  }
  void DestroyEvent(int index, EventHandle event) override {
    right_.DestroyEvent(index, event);
  }
  absl::StatusOr<bool> ReachesPeer(int index, int peer) override {
    return right_.ReachesPeer(index, peer);
  }
  absl::Status Copy(int index, void* to, const void* from, int64_t bytes,
                    StreamHandle stream) override {
    return right_.Copy(index, to, from, bytes, stream);
  }
  absl::Status Fill(int index, void* to, uint8_t value, int64_t bytes,
                    StreamHandle stream) override {
    return right_.Fill(index, to, value, bytes, stream);
  }
  absl::Status GatherRows(int index, absl::Span<const RowColumn> columns,
                          absl::Span<const int64_t> rows,
                          StreamHandle stream) override {
    return right_.GatherRows(index, columns, rows, stream);
  }
  absl::Status ScatterRows(int index, absl::Span<const RowColumn> columns,
                           absl::Span<const int64_t> rows,
                           StreamHandle stream) override {
    return right_.ScatterRows(index, columns, rows, stream);
  }
  absl::Status Record(int index, EventHandle event,
                      StreamHandle stream) override {
    return right_.Record(index, event, stream);
  }
  absl::Status Wait(int index, StreamHandle stream,
                    EventHandle event) override {
    return right_.Wait(index, stream, event);
  }
  absl::Status SynchronizeStream(int index, StreamHandle stream) override {
    return right_.SynchronizeStream(index, stream);
  }
  absl::Status SynchronizeEvent(int index, EventHandle event) override {
    return right_.SynchronizeEvent(index, event);
  }
  absl::StatusOr<bool> IsComplete(int index, EventHandle event) override {
    return right_.IsComplete(index, event);
  }

 protected:
  FakeBackend& right() { return right_; }

 private:
  FakeBackend right_{{}};
};

struct AlignsTo8Bytes final : WrongBackend {
  absl::StatusOr<void*> Allocate(int index, MemoryKind kind,
                                 int64_t bytes) override {
    auto data = right().Allocate(index, kind, bytes + 8);
    if (!data.ok()) return data;
    return static_cast<std::byte*>(*data) + 8;
  }
  void Free(int index, MemoryKind kind, void* data, int64_t bytes) override {
    right().Free(index, kind, static_cast<std::byte*>(data) - 8, bytes + 8);
  }
};
struct CopiesWholeWordsOnly final : WrongBackend {
  absl::Status Copy(int index, void* to, const void* from, int64_t bytes,
                    StreamHandle stream) override {
    const int64_t whole = bytes > 8 ? bytes / 8 * 8 : bytes;
    return right().Copy(index, to, from, whole, stream);
  }
};
struct FillsAByteTooMany final : WrongBackend {
  absl::Status Fill(int index, void* to, uint8_t value, int64_t bytes,
                    StreamHandle stream) override {
    return right().Fill(index, to, value, bytes + 1, stream);
  }
};
// As it is right where no row comes twice.
struct ScatterKeepsTheFirstPlace final : WrongBackend {
  absl::Status ScatterRows(int index, absl::Span<const RowColumn> columns,
                           absl::Span<const int64_t> rows,
                           StreamHandle stream) override {
    const bool are_equal =
        std::all_of(rows.begin(), rows.end(),
                    [&](int64_t row) { return row == rows.front(); });
    if (are_equal && !rows.empty()) rows = rows.first(1);
    return right().ScatterRows(index, columns, rows, stream);
  }
};
struct ReadsTheRowListLater final : WrongBackend {
  absl::Status GatherRows(int index, absl::Span<const RowColumn> columns,
                          absl::Span<const int64_t> rows,
                          StreamHandle stream) override {
    if (columns.size() != 1 || columns[0].width != 1) {
      return right().GatherRows(index, columns, rows, stream);
    }
    const auto size = static_cast<int64_t>(rows.size());
    return right().Launch(index, stream,
                          {{columns[0].table, size}, {columns[0].batch, size}},
                          [rows](absl::Span<std::byte* const> at) {
                            for (size_t i = 0; i < rows.size(); ++i)
                              at[1][i] = at[0][rows[i]];
                          });
  }
};
struct StreamsDoNotWaitForEvents final : WrongBackend {
  absl::Status Wait(int, StreamHandle, EventHandle) override {
    return absl::OkStatus();
  }
};
struct WaitsForItsOwnEventsOnly final : WrongBackend {
  absl::Status Record(int index, EventHandle event,
                      StreamHandle stream) override {
    device_of[event.value] = index;
    return right().Record(index, event, stream);
  }
  absl::Status Wait(int index, StreamHandle stream,
                    EventHandle event) override {
    return device_of[event.value] == index ? right().Wait(index, stream, event)
                                           : absl::OkStatus();
  }

  std::map<void*, int> device_of;
};
struct EventsAreReachedAtOnce final : WrongBackend {
  absl::Status SynchronizeEvent(int, EventHandle) override {
    return absl::OkStatus();
  }
  absl::StatusOr<bool> IsComplete(int, EventHandle) override { return true; }
};

// --- Graphs that break a promise ---------------------------------------------

// Those of a FakeBackend that each part installs, changed.
class WrongGraphs : public GraphBackend {
 public:
  absl::Status BeginCapture(int index, StreamHandle stream) override {
    return right_.BeginCapture(index, stream);
  }
  absl::StatusOr<GraphHandle> EndCapture(int index,
                                         StreamHandle stream) override {
    return right_.EndCapture(index, stream);
  }
  absl::Status Launch(int index, GraphHandle graph,
                      StreamHandle stream) override {
    return right_.LaunchGraph(index, graph, stream);
  }
  void Destroy(int index, GraphHandle graph) override {
    right_.DestroyGraph(index, graph);
  }

 protected:
  FakeBackend& right() { return right_; }

 private:
  FakeBackend& right_ = *FakeBackend::Install({});
};

struct RunsWhatItCaptures final : WrongGraphs {
  absl::Status BeginCapture(int, StreamHandle) override {
    return absl::OkStatus();
  }
  absl::StatusOr<GraphHandle> EndCapture(int index,
                                         StreamHandle stream) override {
    const absl::Status begun = right().BeginCapture(index, stream);
    if (!begun.ok()) return begun;
    return right().EndCapture(index, stream);
  }
};
struct LaunchesOnce final : WrongGraphs {
  absl::Status Launch(int index, GraphHandle graph,
                      StreamHandle stream) override {
    if (launches++ > 0) return absl::OkStatus();
    return right().LaunchGraph(index, graph, stream);
  }

  int launches = 0;
};
struct CapturesForEver final : WrongGraphs {
  absl::StatusOr<GraphHandle> EndCapture(int index,
                                         StreamHandle stream) override {
    auto graph = right().EndCapture(index, stream);
    const absl::Status begun = right().BeginCapture(index, stream);
    if (!begun.ok()) return begun;
    return graph;
  }
};

template <typename T>
WrongPart<BackendConformanceTest> WrongGraph(std::string name, std::string test,
                                             std::string says) {
  const auto install = [] {
    RegisterGraphBackend(Device::Type::kFake, std::make_unique<T>());
    return std::string();
  };
  return {std::move(name), std::move(test), std::move(says),
          BackendCase{Device::Fake(0), install}};
}

// The suite asks for the reason to skip before it asks for the backend.
template <typename T>
WrongPart<BackendConformanceTest> Wrong(std::string name, std::string test,
                                        std::string says) {
  const auto install = [] {
    RegisterBackend(std::make_unique<T>());
    return std::string();
  };
  return {std::move(name), std::move(test), std::move(says),
          BackendCase{Device::Fake(0), install}};
}

std::vector<WrongPart<BackendConformanceTest>> WrongBackends() {
  return {
      Wrong<AlignsTo8Bytes>("AlignsTo8Bytes", "MemoryIsAlignedTo64Bytes",
                            "% 64"),
      Wrong<CopiesWholeWordsOnly>("CopiesWholeWordsOnly",
                                  "CopiesThereAroundAndBack",
                                  "Download(b->data(), bytes)"),
      Wrong<FillsAByteTooMany>("FillsAByteTooMany", "FillSetsItsRangeOnly",
                               "Download(a->data(), 100)"),
      Wrong<ScatterKeepsTheFirstPlace>(
          "ScatterKeepsTheFirstPlace",
          "ScatterOfOneRowManyTimesKeepsTheLastPlace", "n - 1"),
      Wrong<ReadsTheRowListLater>("ReadsTheRowListLater",
                                  "RowListMayBeReusedWhenTheCallReturns",
                                  "Download(batch->data(), 4)"),
      Wrong<StreamsDoNotWaitForEvents>("StreamsDoNotWaitForEvents",
                                       "EventOrdersWorkOfTwoStreams",
                                       "Value of: back"),
      Wrong<WaitsForItsOwnEventsOnly>("WaitsForItsOwnEventsOnly",
                                      "CopiesToAPeerAndBackBehindItsEvents",
                                      "kBytes / 2"),
      Wrong<EventsAreReachedAtOnce>("EventsAreReachedAtOnce",
                                    "SynchronizedEventIsComplete",
                                    "Download(a->data(), kBytes)"),
      WrongGraph<RunsWhatItCaptures>("RunsWhatItCaptures",
                                     "AGraphDoesItsWorkAtEachLaunchAlone",
                                     "Download(a->data(), kBytes)"),
      WrongGraph<LaunchesOnce>("LaunchesOnce",
                               "AGraphDoesItsWorkAtEachLaunchAlone",
                               "Download(b->data(), kBytes)"),
      WrongGraph<CapturesForEver>("CapturesForEver",
                                  "AStreamWorksOnAfterACaptureThatFailed",
                                  "captured"),
  };
}
RILL_REFUSES_WRONG_PARTS(BackendConformanceTest, WrongBackends);

}  // namespace
}  // namespace rill
