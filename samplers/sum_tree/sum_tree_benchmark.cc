// SPDX-License-Identifier: Apache-2.0
// Finds and sets of 256 slots beside a plain binary tree that takes them one by
// one. Also beside the cost of memory alone: 256 loads that wait for one
// another.
//   bazel run --config=opt //samplers/sum_tree:sum_tree_benchmark
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "benchmark/benchmark.h"
#include "rill/base/rng.h"
#include "rill/samplers/sum_tree/sum_tree.h"
#include "rill/samplers/testing/dependent_loads.h"

namespace rill {
namespace {

using samplers_internal::SumTree;

constexpr int64_t kBatch = 256;
constexpr int64_t kBatches = 64;  // So that leaves are not in the cache again.

// Twice as many values as there are leaves, a node's children at 2 n, 2 n + 1.
class BinaryTree {
 public:
  explicit BinaryTree(int64_t size) {
    while (leaves_ < size) leaves_ *= 2;
    values_.resize(2 * leaves_);
  }
  double total() const { return values_[1]; }
  void Set(absl::Span<const int64_t> slots, absl::Span<const double> values) {
    for (size_t i = 0; i < slots.size(); ++i) {
      int64_t node = slots[i] + leaves_;
      values_[node] = values[i];
      for (node /= 2; node > 0; node /= 2) {
        values_[node] = values_[2 * node] + values_[2 * node + 1];
      }
    }
  }
  void Find(absl::Span<const double> targets, absl::Span<int64_t> slots) const {
    for (size_t i = 0; i < targets.size(); ++i) {
      double target = targets[i];
      int64_t node = 1;
      while (node < leaves_) {
        node *= 2;
        if (target < values_[node]) continue;
        target -= values_[node];
        ++node;
      }
      slots[i] = node - leaves_;
    }
  }

 private:
  int64_t leaves_ = 1;
  std::vector<double> values_;
};

template <typename Tree>
struct Setup {
  explicit Setup(int64_t size) : tree(size), slots(kBatch * kBatches) {
    std::vector<int64_t> all(size);
    std::vector<double> ones(size);
    for (int64_t i = 0; i < size; ++i) {
      all[i] = i;
      ones[i] = rng.UniformDouble(0, static_cast<uint32_t>(i));
    }
    tree.Set(all, ones);
    for (int64_t i = 0; i < kBatch * kBatches; ++i) {
      const auto draw = static_cast<uint32_t>(i);
      targets.push_back(tree.total() * rng.UniformDouble(1, draw));
      slots[i] = rng.UniformInt(2, draw, size);
      values.push_back(rng.UniformDouble(3, draw));
    }
  }
  int64_t Next() { return at = (at + kBatch) % (kBatch * kBatches); }

  const Rng rng{/*seed=*/1};
  Tree tree;
  int64_t at = 0;
  std::vector<double> targets, values;
  std::vector<int64_t> slots;
};

template <typename Tree>
void BM_Find(benchmark::State& state) {
  Setup<Tree> setup(state.range(0));
  std::vector<int64_t> found(kBatch);
  for (auto _ : state) {
    setup.tree.Find(
        absl::MakeConstSpan(setup.targets).subspan(setup.Next(), kBatch),
        absl::MakeSpan(found));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}

template <typename Tree>
void BM_Set(benchmark::State& state) {
  Setup<Tree> setup(state.range(0));
  for (auto _ : state) {
    const int64_t at = setup.Next();
    setup.tree.Set(absl::MakeConstSpan(setup.slots).subspan(at, kBatch),
                   absl::MakeConstSpan(setup.values).subspan(at, kBatch));
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}

void BM_DependentLoads(benchmark::State& state) {
  DependentLoads(state, state.range(0), kBatch);
}

#define RILL_SIZES_ Arg(1 << 14)->Arg(1000000)->Arg(10000000)
BENCHMARK(BM_Find<SumTree>)->RILL_SIZES_;
BENCHMARK(BM_Find<BinaryTree>)->RILL_SIZES_;
BENCHMARK(BM_Set<SumTree>)->RILL_SIZES_;
BENCHMARK(BM_Set<BinaryTree>)->RILL_SIZES_;
BENCHMARK(BM_DependentLoads)->RILL_SIZES_;

}  // namespace
}  // namespace rill
