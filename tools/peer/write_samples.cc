// SPDX-License-Identifier: Apache-2.0
//
// write_samples FOLDER: what Rill makes from nothing, for tensordict to read.
// samples.py knows what each holds.

#include <complex>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "rill/base/file.h"
#include "rill/base/status_macros.h"
#include "rill/collectors/sync_collector.h"
#include "rill/envs/cart_pole.h"
#include "rill/formats/consolidated.h"
#include "rill/formats/memmap_directory.h"
#include "rill/formats/tdz_archive.h"
#include "rill/replay/replay_buffer.h"
#include "rill/samplers/uniform_sampler.h"
#include "rill/specs/spec.h"
#include "rill/storage/dense_storage.h"
#include "rill/tensordict/lazy_stack.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/half.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill {
namespace {

// Element i of the tensor is `element(i)`.
template <typename T, typename Fn>
absl::StatusOr<Tensor> Counted(const Shape& shape, Fn element) {
  RILL_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Empty(DTypeOf<T>, shape));
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    tensor.data<T>()[i] = element(i);
  }
  return tensor;
}

template <typename T>
absl::Status SetCounted(TensorDict* dict) {
  RILL_ASSIGN_OR_RETURN(Tensor tensor, Counted<T>({3, 2}, [](int64_t i) {
                          return static_cast<T>(i);
                        }));
  return dict->Set(DTypeName(DTypeOf<T>), std::move(tensor));
}

absl::StatusOr<TensorDict> EveryDType() {
  TensorDict dict({3});
  RILL_RETURN_IF_ERROR(SetCounted<uint8_t>(&dict));
  RILL_RETURN_IF_ERROR(SetCounted<int8_t>(&dict));
  RILL_RETURN_IF_ERROR(SetCounted<int16_t>(&dict));
  RILL_RETURN_IF_ERROR(SetCounted<int32_t>(&dict));
  RILL_RETURN_IF_ERROR(SetCounted<int64_t>(&dict));
  RILL_RETURN_IF_ERROR(SetCounted<uint16_t>(&dict));
  RILL_RETURN_IF_ERROR(SetCounted<uint32_t>(&dict));
  RILL_RETURN_IF_ERROR(SetCounted<uint64_t>(&dict));
  RILL_RETURN_IF_ERROR(SetCounted<float>(&dict));
  RILL_RETURN_IF_ERROR(SetCounted<double>(&dict));
  RILL_RETURN_IF_ERROR(SetCounted<std::complex<float>>(&dict));
  RILL_RETURN_IF_ERROR(SetCounted<std::complex<double>>(&dict));
  RILL_ASSIGN_OR_RETURN(Tensor flags, Counted<bool>({3, 2}, [](int64_t i) {
                          return i % 2 == 1;
                        }));
  RILL_RETURN_IF_ERROR(dict.Set("bool", std::move(flags)));
  RILL_ASSIGN_OR_RETURN(Tensor half, Counted<Float16>({3, 2}, [](int64_t i) {
                          return ToFloat16(static_cast<double>(i));
                        }));
  RILL_RETURN_IF_ERROR(dict.Set("float16", std::move(half)));
  RILL_ASSIGN_OR_RETURN(Tensor brain, Counted<BFloat16>({3, 2}, [](int64_t i) {
                          return ToBFloat16(static_cast<double>(i));
                        }));
  RILL_RETURN_IF_ERROR(dict.Set("bfloat16", std::move(brain)));
  return dict;
}

absl::StatusOr<TensorDict> Nested() {
  const auto count = [](int64_t i) { return static_cast<float>(i); };
  TensorDict dict({2, 2});
  RILL_ASSIGN_OR_RETURN(Tensor x, Counted<float>({2, 2, 3}, count));
  RILL_ASSIGN_OR_RETURN(const Tensor transposed, x.Permute({1, 0, 2}));
  RILL_RETURN_IF_ERROR(dict.Set("observation", x));
  // Strides that are not row-major.
  RILL_RETURN_IF_ERROR(dict.Set("next/observation", transposed));
  // Components with a slash, a blank and a dot, which file names encode or
  // keep.
  RILL_RETURN_IF_ERROR(dict.Set("a\\/b c/d.e", x));
  RILL_RETURN_IF_ERROR(dict.Set("none", TensorDict({2, 2, 5})));
  RILL_ASSIGN_OR_RETURN(Tensor empty, Tensor::Zeros(DType::kInt64, {2, 2, 0}));
  RILL_RETURN_IF_ERROR(dict.Set("empty", std::move(empty)));
  RILL_RETURN_IF_ERROR(
      dict.Set("info/task", NonTensor{R"({"name":"reach","ids":[1,null]})"}));
  return dict;
}

absl::StatusOr<LazyStack> Episodes() {
  const auto count = [](int64_t i) { return static_cast<float>(i); };
  std::vector<TensorDict> episodes;
  for (const int64_t length : {2, 3}) {
    RILL_ASSIGN_OR_RETURN(Tensor x, Counted<float>({length}, count));
    TensorDict episode;
    RILL_RETURN_IF_ERROR(episode.Set("next/x", std::move(x)));
    episodes.push_back(std::move(episode));
  }
  return LazyStack::Create(std::move(episodes));
}

// The same of batch shapes [3], [1] and [4].
absl::StatusOr<LazyStack> UnevenEpisodes() {
  std::vector<TensorDict> episodes;
  for (const int64_t length : {3, 1, 4}) {
    RILL_ASSIGN_OR_RETURN(Tensor x, Counted<float>({length, 2}, [](int64_t i) {
                            return static_cast<float>(i);
                          }));
    TensorDict episode({length});
    RILL_RETURN_IF_ERROR(episode.Set("next/x", std::move(x)));
    episodes.push_back(std::move(episode));
  }
  return LazyStack::Create(std::move(episodes));
}

// Each kind of entry that is neither a tensor nor a dictionary.
absl::StatusOr<TensorDict> RareEntries() {
  TensorDict dict({2});
  RILL_ASSIGN_OR_RETURN(
      NonTensorStack names,
      NonTensorStack::Create({2}, {"\"left\"", R"({"a":[1,null]})"}));
  RILL_RETURN_IF_ERROR(dict.Set("names", std::move(names)));
  RILL_ASSIGN_OR_RETURN(LazyStack episodes, Episodes());
  RILL_RETURN_IF_ERROR(dict.Set("in/episodes", std::move(episodes)));
  const auto count = [](int64_t i) { return static_cast<int32_t>(i); };
  RILL_ASSIGN_OR_RETURN(const Tensor two, Counted<int32_t>({2, 3}, count));
  RILL_ASSIGN_OR_RETURN(const Tensor one, Counted<int32_t>({1, 3}, count));
  RILL_ASSIGN_OR_RETURN(RaggedTensor rows, RaggedTensor::FromRows({two, one}));
  RILL_RETURN_IF_ERROR(dict.Set("rows", std::move(rows)));
  return dict;
}

absl::Status SaveStack(const LazyStack& episodes, const std::string& path) {
  RILL_RETURN_IF_ERROR(SaveMemmapLazyStack(episodes, path));
  RILL_RETURN_IF_ERROR(SaveTdzLazyStack(episodes, absl::StrCat(path, ".tdz")));
  return SaveConsolidatedLazyStack(episodes, absl::StrCat(path, ".bin"));
}

absl::Status SaveEverywhere(const TensorDict& dict, const std::string& path) {
  RILL_RETURN_IF_ERROR(SaveMemmapDirectory(dict, path));
  RILL_RETURN_IF_ERROR(SaveTdz(dict, absl::StrCat(path, ".tdz")));
  return SaveConsolidated(dict, absl::StrCat(path, ".bin"));
}

absl::Status SaveReplay(const std::string& path) {
  RILL_ASSIGN_OR_RETURN(auto storage,
                        DenseStorage::Create({.capacity = 64, .lanes = 4}));
  RILL_ASSIGN_OR_RETURN(auto buffer,
                        ReplayBuffer::Create({.storage = std::move(storage),
                                              .sampler = MakeUniformSampler(),
                                              .batch_size = 4}));
  RILL_ASSIGN_OR_RETURN(auto env, MakeCartPole({.lanes = 4}));
  RILL_ASSIGN_OR_RETURN(
      auto collector,
      SyncCollector::Create({.env = std::move(env), .frames_per_batch = 32}));
  RILL_RETURN_IF_ERROR(collector->CollectInto(*buffer));
  return buffer->Save(path);
}

absl::Status WriteAll(const std::string& folder) {
  RILL_RETURN_IF_ERROR(CreateDirectories(folder));
  RILL_ASSIGN_OR_RETURN(const TensorDict dtypes, EveryDType());
  RILL_RETURN_IF_ERROR(SaveEverywhere(dtypes, JoinPath(folder, "dtypes")));
  RILL_ASSIGN_OR_RETURN(const TensorDict nested, Nested());
  RILL_RETURN_IF_ERROR(SaveEverywhere(nested, JoinPath(folder, "nested")));
  RILL_RETURN_IF_ERROR(
      SaveEverywhere(TensorDict({4}), JoinPath(folder, "nothing")));
  RILL_ASSIGN_OR_RETURN(const TensorDict rare, RareEntries());
  RILL_RETURN_IF_ERROR(SaveEverywhere(rare, JoinPath(folder, "rare")));
  RILL_ASSIGN_OR_RETURN(const LazyStack episodes, Episodes());
  RILL_RETURN_IF_ERROR(SaveStack(episodes, JoinPath(folder, "episodes")));
  RILL_ASSIGN_OR_RETURN(const LazyStack uneven, UnevenEpisodes());
  RILL_RETURN_IF_ERROR(SaveStack(uneven, JoinPath(folder, "uneven")));
  TensorDict below({3});
  RILL_RETURN_IF_ERROR(below.Set("data/episodes", uneven));
  RILL_RETURN_IF_ERROR(SaveEverywhere(below, JoinPath(folder, "below")));
  TensorDictSpec spec;
  RILL_RETURN_IF_ERROR(spec.Set("x", LeafSpec::Unbounded(DType::kInt16, {2})));
  RILL_RETURN_IF_ERROR(
      spec.Set("next/y", LeafSpec::Unbounded(DType::kBool, {})));
  RILL_RETURN_IF_ERROR(
      CreateMemmapDirectory(spec, {5}, JoinPath(folder, "created")).status());
  return SaveReplay(JoinPath(folder, "replay"));
}

}  // namespace
}  // namespace rill

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_samples FOLDER\n", stderr);
    return 1;
  }
  const absl::Status status = rill::WriteAll(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
