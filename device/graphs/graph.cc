// SPDX-License-Identifier: Apache-2.0
#include "rill/device/graphs/graph.h"

#include <array>
#include <atomic>
#include <cstddef>

#include "absl/base/attributes.h"
#include "absl/cleanup/cleanup.h"
#include "rill/base/status_macros.h"
#include "rill/device/capturing.h"

namespace rill {
namespace {

constexpr size_t kTypes = 3;

// By type of device; none for the CPU. Never destroyed: graphs may outlive
// main.
ABSL_CONST_INIT std::array<std::atomic<GraphBackend*>, kTypes> backends{};

}  // namespace

void RegisterGraphBackend(Device::Type type,
                          std::unique_ptr<GraphBackend> backend) {
  delete backends[static_cast<size_t>(type)].exchange(
      backend.release(), std::memory_order_acq_rel);
}

absl::StatusOr<Graph> Graph::Capture(
    const Stream& stream, absl::FunctionRef<absl::Status()> enqueue) {
  RILL_RETURN_IF_ERROR(device_internal::CheckNotCapturing("Graph::Capture"));
  const Device device = stream.device();
  GraphBackend* const backend = backends[static_cast<size_t>(device.type)].load(
      std::memory_order_acquire);
  if (backend == nullptr) {
    return FailedPrecondition("Graph::Capture: device: got ", device.ToString(),
                              ", of whose work nothing makes graphs");
  }
  if (stream.handle().value == nullptr) {
    return InvalidArgument(
        "Graph::Capture: stream: got the default one of ", device.ToString(),
        ", want one that others do not use; Stream::Create makes one");
  }
  RILL_RETURN_IF_ERROR(backend->BeginCapture(device.index, stream.handle()));
  Graph graph;
  absl::Status enqueued, ended;
  {
    // Whatever `enqueue` does, the stream works on.
    const absl::Cleanup end = [&] {
      const absl::StatusOr<GraphHandle> handle =
          backend->EndCapture(device.index, stream.handle());
      ended = handle.status();
      if (!handle.ok()) return;
      graph.backend_ = backend;
      graph.device_ = device;
      graph.handle_ = *handle;
    };
    const device_internal::Capturing capturing;
    enqueued = enqueue();
  }
  RILL_RETURN_IF_ERROR(enqueued);
  RILL_RETURN_IF_ERROR(ended);
  return graph;
}

Graph::~Graph() {
  if (backend_ != nullptr) backend_->Destroy(device_.index, handle_);
}

// Exchanged: what this one owned is destroyed with `other`.
Graph& Graph::operator=(Graph&& other) noexcept {
  std::swap(backend_, other.backend_);
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  return *this;
}

absl::Status Graph::Launch(const Stream& stream) const {
  if (stream.device() != device_) {
    return InvalidArgument("Graph::Launch: stream: got one of ",
                           stream.device().ToString(), ", want one of ",
                           device_.ToString(), ", whose graph this is");
  }
  return backend_->Launch(device_.index, handle_, stream.handle());
}

}  // namespace rill
