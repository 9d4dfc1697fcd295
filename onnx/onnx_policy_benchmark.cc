// SPDX-License-Identifier: Apache-2.0
// The cost of an OnnxPolicy above the library's run, with 64 lanes.
#include <cstdint>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "onnxruntime_c_api.h"
#include "rill/envs/policies/network_actions.h"
#include "rill/envs/policies/policy.h"
#include "rill/onnx/onnx_model.h"
#include "rill/onnx/onnx_policy.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

constexpr int64_t kLanes = 64;
constexpr char kPath[] = "testing/fixtures/onnx/cart_pole.onnx";

// The library alone, over tensors that are there.
void BM_Session(benchmark::State& state) {
  const OrtApi& api = *OrtGetApiBase()->GetApi(ORT_API_VERSION);
  std::vector<float> observation(kLanes * 4), logits(kLanes * 2);
  const int64_t observation_sizes[] = {kLanes, 4};
  const int64_t logits_sizes[] = {kLanes, 2};
  OrtEnv* env = nullptr;
  OrtSessionOptions* options = nullptr;
  OrtSession* session = nullptr;
  OrtMemoryInfo* host = nullptr;
  OrtValue *input = nullptr, *output = nullptr;
  const auto value = [&](std::vector<float>& data, const int64_t* sizes,
                         OrtValue** to) {
    return api.CreateTensorWithDataAsOrtValue(
        host, data.data(), data.size() * sizeof(float), sizes, 2,
        ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, to);
  };
  if (api.CreateEnv(ORT_LOGGING_LEVEL_FATAL, "bare", &env) != nullptr ||
      api.CreateSessionOptions(&options) != nullptr ||
      api.SetIntraOpNumThreads(options, 1) != nullptr ||
      api.CreateSession(env, kPath, options, &session) != nullptr ||
      api.CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &host) !=
          nullptr ||
      value(observation, observation_sizes, &input) != nullptr ||
      value(logits, logits_sizes, &output) != nullptr) {
    state.SkipWithError("no session");
    return;
  }
  const char* const input_name = "observation";
  const char* const output_name = "logits";
  for (auto _ : state) {
    if (api.Run(session, nullptr, &input_name, &input, 1, &output_name, 1,
                &output) != nullptr) {
      state.SkipWithError("no logits");
      return;
    }
  }
  api.ReleaseValue(output);
  api.ReleaseValue(input);
  api.ReleaseMemoryInfo(host);
  api.ReleaseSession(session);
  api.ReleaseSessionOptions(options);
  api.ReleaseEnv(env);
}
BENCHMARK(BM_Session);

void BM_OnnxPolicy(benchmark::State& state) {
  auto model = OnnxModel::Load(kPath);
  if (!model.ok()) {
    state.SkipWithError("no model");
    return;
  }
  auto policy =
      OnnxPolicy::Create({.model = *std::move(model),
                          .actions = static_cast<ActionKind>(state.range(0))});
  TensorDict root({kLanes}), step({kLanes});
  const bool is_made =
      policy.ok() &&
      root.Set("observation", *Tensor::Zeros(DType::kFloat32, {kLanes, 4}))
          .ok() &&
      step.Set("action", *Tensor::Zeros(DType::kInt64, {kLanes})).ok() &&
      step.Set("log_prob", *Tensor::Zeros(DType::kFloat32, {kLanes, 1})).ok();
  if (!is_made) {
    state.SkipWithError("no policy");
    return;
  }
  int64_t i = 0;
  for (auto _ : state) {
    if (!(*policy)->Act(root, {.step = ++i}, &step).ok()) {
      state.SkipWithError("no action");
      return;
    }
  }
}
BENCHMARK(BM_OnnxPolicy)
    ->ArgName("actions")
    ->Arg(static_cast<int>(ActionKind::kGreedy))
    ->Arg(static_cast<int>(ActionKind::kCategorical));

}  // namespace
}  // namespace rill
