// SPDX-License-Identifier: Apache-2.0
#ifndef RILL_DEVICE_GRAPHS_GRAPH_H_
#define RILL_DEVICE_GRAPHS_GRAPH_H_

#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/device/backend.h"
#include "rill/device/device.h"
#include "rill/device/stream.h"

namespace rill {

// Opaque to everybody but the backend that made it.
struct GraphHandle {
  void* value = nullptr;
};

// Captures and launches graphs on a kind of device: beside its Backend, and
// registered with it. Handles are of device `index`; no stream is the default
// one.
// Thread-safety: thread-safe; one thread begins and ends a capture, and nobody
//   else uses its stream meanwhile.
// device/conformance tests it through Graph.
class GraphBackend {
 public:
  virtual ~GraphBackend() = default;

  // Launches, copies and fills that are given to `stream` from here on are
  // recorded and do not run.
  virtual absl::Status BeginCapture(int index, StreamHandle stream) = 0;
  // The recorded work. The stream works as before, also after an error.
  virtual absl::StatusOr<GraphHandle> EndCapture(int index,
                                                 StreamHandle stream) = 0;
  // Enqueues all of it, in its order.
  virtual absl::Status Launch(int index, GraphHandle graph,
                              StreamHandle stream) = 0;
  // Launches that are under way go on.
  virtual void Destroy(int index, GraphHandle graph) = 0;
};

// A second one of a type replaces the first, whose graphs are gone.
void RegisterGraphBackend(Device::Type type,
                          std::unique_ptr<GraphBackend> backend);

// Work on a device that is given to a stream once and launched many times, each
// time for the cost of one launch. Each launch does what was captured, with the
// same addresses and numbers, on the values that memory has then.
//
// Thread-safety: thread-safe. Launches on one stream keep their order; of two
//   streams the caller orders them.
// Device/Stream: the caller keeps all memory that the work uses, unchanged in
//   place, until the last launch is done.
//
// Example (GraphTest.Example runs it):
//   const Scale kernel = {.values = values, .count = n, .factor = 2};
//   const auto enqueue = [&] {
//     return LaunchKernel(kernel, GridFor(n), stream);
//   };
//   RILL_ASSIGN_OR_RETURN(const Graph graph, Graph::Capture(stream, enqueue));
//   for (int i = 0; i < 3; ++i) RILL_RETURN_IF_ERROR(graph.Launch(stream));
class Graph {
 public:
  // Calls `enqueue`, whose work on `stream` becomes the graph and does not run.
  // The stream is none of the default ones. A graph cannot hold memory of a
  // device or pinned for one, events, waits, row copies, and values of the host
  // (StreamUploads::Send). They are FAILED_PRECONDITION in `enqueue`. Its error
  // is the result, and the stream works on.
  // FAILED_PRECONDITION where nothing makes graphs of such a device.
  static absl::StatusOr<Graph> Capture(
      const Stream& stream, absl::FunctionRef<absl::Status()> enqueue);

  ~Graph();
  Graph(Graph&& other) noexcept { *this = std::move(other); }
  Graph& operator=(Graph&& other) noexcept;

  // Enqueues the work on a stream of its device.
  absl::Status Launch(const Stream& stream) const;

 private:
  Graph() = default;

  GraphBackend* backend_ = nullptr;
  Device device_;
  GraphHandle handle_;
};

}  // namespace rill

#endif  // RILL_DEVICE_GRAPHS_GRAPH_H_
