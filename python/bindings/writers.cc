// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>

#include "nanobind/nanobind.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/options.h"
#include "rill/python/bindings/parts.h"
#include "rill/python/bindings/status.h"
#include "rill/replay/writers/removing_writer.h"
#include "rill/replay/writers/top_k_writer.h"
#include "rill/replay/writers/writer.h"
#include "rill/samplers/selectors/ordered_selector.h"
#include "rill/samplers/uniform_selector.h"

namespace rill::python {
namespace {

namespace nb = nanobind;

WriterPart TopK(const nb::dict& given) {
  TopKWriter::Options options;
  using Reduction = TopKWriter::Reduction;
  OptionReader::OfCopy("TensorDictMaxValueWriter", given)
      .Read("rank_key", &options.rank_key)
      .ReadEnum("reduction", &options.reduction,
                {"sum", "mean", "median", "min", "max"},
                {Reduction::kSum, Reduction::kMean, Reduction::kMedian,
                 Reduction::kMin, Reduction::kMax})
      .Read("k", &options.k)
      .CheckAllRead();
  return {Value(TopKWriter::Create(options))};
}

enum class Remover { kFifo, kLifo, kMin, kMax, kUniform };

std::unique_ptr<Selector> SelectorOf(Remover remover) {
  switch (remover) {
    case Remover::kFifo:
      return MakeFifoSelector();
    case Remover::kLifo:
      return MakeLifoSelector();
    case Remover::kMin:
      return Value(MakeMinHeapSelector());
    case Remover::kMax:
      return Value(MakeMaxHeapSelector());
    case Remover::kUniform:
      return MakeUniformSelector();
  }
  return nullptr;
}

// `sampler`: whose used-up rows go first; null: none do.
WriterPart Removing(const nb::dict& given, const SamplerPart* sampler) {
  Remover remover = Remover::kFifo;
  RemovingWriterOptions options;
  OptionReader::OfCopy("RemovingWriter", given)
      .ReadEnum("remover", &remover,
                {"fifo", "lifo", "min_heap", "max_heap", "uniform"},
                {Remover::kFifo, Remover::kLifo, Remover::kMin, Remover::kMax,
                 Remover::kUniform})
      .Read("seed", &options.seed)
      .CheckAllRead();
  options.remover = SelectorOf(remover);
  if (sampler != nullptr) options.used_up_by = sampler->sampler.get();
  return {MakeRemovingWriter(std::move(options))};
}

}  // namespace

void BindWriters(nb::module_& module) {
  nb::class_<WriterPart>(module, "Writer");
  module.def("round_robin_writer",
             [] { return WriterPart{MakeRoundRobinWriter()}; });
  module.def("immutable_writer",
             [] { return WriterPart{MakeImmutableWriter()}; });
  module.def("top_k_writer", &TopK, nb::arg("options"));
  module.def("removing_writer", &Removing, nb::arg("options"),
             nb::arg("sampler").none());
}

}  // namespace rill::python
