// SPDX-License-Identifier: Apache-2.0
// The simulator on a device that docs/environments.md shows, as it stands
// there, with the fake device for its library.
#include "rill/docs/doc_examples/own_device_simulator.h"

#include <cmath>
#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "rill/base/rng.h"
#include "rill/device/stream.h"
#include "rill/device/testing/fake_backend.h"
#include "rill/envs/conformance/env_conformance.h"

namespace slide {
namespace {

rill::Tensor NewArray(rill::DType dtype, const rill::Shape& shape) {
  return *rill::Tensor::Empty(dtype, shape, {.device = rill::Device::Fake()});
}

}  // namespace

// A block on a line that the action pushes.
struct World {
  explicit World(int64_t num_lanes)
      : lanes(num_lanes),
        x(num_lanes),
        steps(num_lanes),
        episode(num_lanes),
        obs_buf(NewArray(rill::DType::kFloat32, {num_lanes, 2})),
        rew_buf(NewArray(rill::DType::kFloat32, {num_lanes})),
        reset_buf(NewArray(rill::DType::kInt64, {num_lanes})),
        time_out_buf(NewArray(rill::DType::kInt64, {num_lanes})) {}

  void Launch(std::vector<rill::FakeBackend::Range> ranges,
              rill::FakeBackend::Kernel kernel) {
    auto* const fake = static_cast<rill::FakeBackend*>(stream.backend());
    fake->Launch(0, stream.handle(), std::move(ranges), std::move(kernel))
        .IgnoreError();
  }
  void Observe(int64_t lane, float* obs) const {
    obs[2 * lane] = x[lane];
    obs[2 * lane + 1] = static_cast<float>(steps[lane]);
  }

  const int64_t lanes;
  uint64_t seed = 0;
  std::vector<float> x;
  std::vector<int64_t> steps;
  std::vector<uint64_t> episode;
  rill::Tensor obs_buf, rew_buf, reset_buf, time_out_buf;
  rill::Stream stream = *rill::Stream::Create(rill::Device::Fake());
};

void DeleteWorld::operator()(World* world) const { delete world; }
WorldPtr MakeWorld(int64_t lanes) { return WorldPtr(new World(lanes)); }
void* Stream(World* world) { return world->stream.handle().value; }

void Seed(World* world, uint64_t seed) {
  world->Launch({}, [world, seed](absl::Span<std::byte* const>) {
    world->seed = seed;
    world->episode.assign(world->lanes, 0);
  });
}

void ResetLanes(World* world, const uint8_t* mask) {
  const rill::Tensor& obs = world->obs_buf;
  world->Launch(
      {{obs.raw_data(), obs.size_bytes()}},
      [world, lanes = std::vector<uint8_t>(mask, mask + world->lanes)](
          absl::Span<std::byte* const> at) {
        const rill::Rng rng(world->seed);
        for (int64_t lane = 0; lane < world->lanes; ++lane) {
          if (lanes[lane] == 0) continue;
          world->x[lane] = rng.UniformFloat(world->episode[lane]++,
                                            static_cast<uint32_t>(lane)) -
                           0.5f;
          world->steps[lane] = 0;
          world->Observe(lane, reinterpret_cast<float*>(at[0]));
        }
      });
}

void Step(World* world, const float* action) {
  std::vector<rill::FakeBackend::Range> ranges = {
      {action, world->lanes * static_cast<int64_t>(sizeof(float))}};
  for (const rill::Tensor& array : {world->obs_buf, world->rew_buf,
                                    world->reset_buf, world->time_out_buf}) {
    ranges.push_back({array.raw_data(), array.size_bytes()});
  }
  world->Launch(std::move(ranges), [world](absl::Span<std::byte* const> at) {
    for (int64_t lane = 0; lane < world->lanes; ++lane) {
      float& x = world->x[lane];
      x += 0.5f * reinterpret_cast<const float*>(at[0])[lane];
      const bool timed_out = ++world->steps[lane] >= 20;
      world->Observe(lane, reinterpret_cast<float*>(at[1]));
      reinterpret_cast<float*>(at[2])[lane] = -std::abs(x);
      reinterpret_cast<int64_t*>(at[3])[lane] = timed_out || std::abs(x) > 2;
      reinterpret_cast<int64_t*>(at[4])[lane] = timed_out;
    }
  });
}

rill::DLManagedTensor* ToDLPack(World* world, absl::string_view array) {
  return *rill::ToDLPack(array == "obs_buf"     ? world->obs_buf
                         : array == "rew_buf"   ? world->rew_buf
                         : array == "reset_buf" ? world->reset_buf
                                                : world->time_out_buf);
}

}  // namespace slide

namespace rill {

INSTANTIATE_TEST_SUITE_P(Slide, EnvConformanceTest, ::testing::Values([] {
                           return MakeSlide(3, Device::Fake());
                         }));

}  // namespace rill
