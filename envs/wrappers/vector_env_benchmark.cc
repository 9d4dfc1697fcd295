// SPDX-License-Identifier: Apache-2.0
// A step of 64 lanes of one environment, and of as many in parts.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "benchmark/benchmark.h"
#include "rill/base/status_macros.h"
#include "rill/envs/cart_pole.h"
#include "rill/envs/classic_control/acrobot.h"
#include "rill/envs/env.h"
#include "rill/envs/steps/step_driver.h"
#include "rill/envs/wrappers/vector_env.h"

namespace rill {
namespace {

constexpr int64_t kLanes = 64;

template <typename Options>
using Make = absl::StatusOr<std::unique_ptr<Env>> (*)(const Options&);

// Parts 0: the environment itself.
template <typename Options, Make<Options> kMake>
absl::StatusOr<std::unique_ptr<Env>> MakeParts(int64_t parts, int threads) {
  Options options;
  if (parts == 0) {
    options.lanes = kLanes;
    return kMake(options);
  }
  options.lanes = kLanes / parts;
  std::vector<std::unique_ptr<Env>> made;
  for (int64_t p = 0; p < parts; ++p) {
    options.seed = static_cast<uint64_t>(p);
    RILL_ASSIGN_OR_RETURN(made.emplace_back(), kMake(options));
  }
  return MakeVectorEnv(std::move(made), {.threads = threads});
}

// Actions stay 0: choosing them is not what is measured.
absl::Status Run(absl::StatusOr<std::unique_ptr<Env>> made,
                 benchmark::State& state) {
  RILL_ASSIGN_OR_RETURN(const auto env, std::move(made));
  RILL_ASSIGN_OR_RETURN(StepDriver driver, StepDriver::Create(env.get()));
  RILL_RETURN_IF_ERROR(driver.ResetAll());
  for (auto _ : state) {
    RILL_RETURN_IF_ERROR(driver.Step());
    RILL_RETURN_IF_ERROR(driver.Advance());
  }
  state.SetItemsProcessed(state.iterations() * kLanes);
  return absl::OkStatus();
}

template <typename Options, Make<Options> kMake>
void BM_Parts(benchmark::State& state) {
  const absl::Status status =
      Run(MakeParts<Options, kMake>(state.range(0),
                                    static_cast<int>(state.range(1))),
          state);
  if (!status.ok()) state.SkipWithError(status.ToString().c_str());
}

BENCHMARK(BM_Parts<CartPoleOptions, MakeCartPole>)
    ->Name("CartPole")
    ->ArgNames({"parts", "threads"})
    ->ArgsProduct({{0, 1, 4, 64}, {1}});
BENCHMARK(BM_Parts<AcrobotOptions, MakeAcrobot>)
    ->Name("Acrobot")
    ->ArgNames({"parts", "threads"})
    ->Args({0, 1})
    ->Args({4, 1})
    ->Args({4, 2})
    ->UseRealTime();

}  // namespace
}  // namespace rill
