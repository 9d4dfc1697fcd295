// SPDX-License-Identifier: Apache-2.0
// Graphs of CUDA devices, by capture of a stream.
#include <cuda_runtime_api.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rill/base/status_macros.h"
#include "rill/device/cuda/cuda_start.h"
#include "rill/device/cuda/cuda_status.h"
#include "rill/device/graphs/graph.h"

namespace rill {
namespace {

using cuda_internal::ScopedDevice;

cudaStream_t Native(StreamHandle stream) {
  return static_cast<cudaStream_t>(stream.value);
}
cudaGraphExec_t Native(GraphHandle graph) {
  return static_cast<cudaGraphExec_t>(graph.value);
}

class CudaGraphs final : public GraphBackend {
 public:
  // Relaxed: other modes make calls of other threads (cudaMalloc,
  // cudaEventQuery) errors. Graph::Capture refuses work
  // that must not be captured.
  absl::Status BeginCapture(int index, StreamHandle stream) override {
    ScopedDevice device;
    RILL_RETURN_IF_ERROR(device.Enter(index));
    RILL_CUDA_RETURN_IF_ERROR(
        "BeginCapture",
        cudaStreamBeginCapture(Native(stream), cudaStreamCaptureModeRelaxed));
    return absl::OkStatus();
  }

  absl::StatusOr<GraphHandle> EndCapture(int index,
                                         StreamHandle stream) override {
    ScopedDevice device;
    RILL_RETURN_IF_ERROR(device.Enter(index));
    cudaGraph_t graph = nullptr;
    RILL_CUDA_RETURN_IF_ERROR("EndCapture",
                              cudaStreamEndCapture(Native(stream), &graph));
    cudaGraphExec_t launchable = nullptr;
    const cudaError_t error = cudaGraphInstantiate(&launchable, graph, 0);
    cudaGraphDestroy(graph);
    RILL_CUDA_RETURN_IF_ERROR("EndCapture", error);
    return GraphHandle{launchable};
  }

  absl::Status Launch(int index, GraphHandle graph,
                      StreamHandle stream) override {
    ScopedDevice device;
    RILL_RETURN_IF_ERROR(device.Enter(index));
    RILL_CUDA_RETURN_IF_ERROR("LaunchGraph",
                              cudaGraphLaunch(Native(graph), Native(stream)));
    return absl::OkStatus();
  }

  // The driver keeps a graph that is under way until it has run.
  void Destroy(int index, GraphHandle graph) override {
    ScopedDevice device;
    if (device.Enter(index).ok()) cudaGraphExecDestroy(Native(graph));
  }
};

// Calls nothing of the runtime, as cuda_backend.cc has it.
[[maybe_unused]] const bool registered = [] {
  RegisterGraphBackend(Device::Type::kCuda, std::make_unique<CudaGraphs>());
  return true;
}();

}  // namespace
}  // namespace rill
