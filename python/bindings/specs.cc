// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "nanobind/nanobind.h"
#include "nanobind/stl/optional.h"
#include "nanobind/stl/pair.h"
#include "nanobind/stl/string.h"
#include "nanobind/stl/vector.h"
#include "rill/base/rng.h"
#include "rill/base/status_macros.h"
#include "rill/python/bindings/array.h"
#include "rill/python/bindings/batch.h"
#include "rill/python/bindings/bindings.h"
#include "rill/python/bindings/objects.h"
#include "rill/python/bindings/options.h"
#include "rill/python/bindings/status.h"
#include "rill/specs/leaf_spec.h"
#include "rill/specs/spec.h"
#include "rill/tensordict/tensor_dict.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/shape.h"
#include "rill/tensors/tensor.h"

namespace rill::python {
namespace {

namespace nb = nanobind;
using nb::literals::operator""_a;
using Sizes = std::vector<int64_t>;

// By LeafSpec::Domain: the names of the classes in rill/specs.py.
constexpr const char* kDomains[] = {"Unbounded",  "Bounded", "Categorical",
                                    "Binary",     "OneHot",  "MultiCategorical",
                                    "MultiOneHot"};

Shape ShapeOf(const Sizes& sizes) { return Value(Shape::Create(sizes)); }

nb::object TupleOf(const Shape& shape) {
  return nb::tuple(nb::cast(Sizes(shape.sizes().begin(), shape.sizes().end())));
}

// `shape` is the whole one, but for the choices' own dimension of OneHot and
// the Multi domains.
LeafSpec MakeLeaf(const std::string& domain, const nb::dict& given) {
  DType dtype = DType::kFloat32;
  Sizes shape;
  int64_t n = 0;
  Sizes nvec;
  nb::object low = nb::none(), high = nb::none(), mask = nb::none();
  OptionReader options(domain, given);
  options.Read("dtype", &dtype)
      .Read("shape", &shape)
      .Read("n", &n)
      .Read("nvec", &nvec)
      .Read("low", &low)
      .Read("high", &high)
      .Read("mask", &mask)
      .CheckAllRead();
  const Shape lead = ShapeOf(shape);
  LeafSpec spec;
  if (domain == "Unbounded") spec = LeafSpec::Unbounded(dtype, lead);
  if (domain == "Bounded") {
    spec =
        Value(LeafSpec::Bounded(TensorOf(low, "low"), TensorOf(high, "high")));
  }
  if (domain == "Categorical") spec = LeafSpec::Categorical(n, dtype, lead);
  if (domain == "Binary") spec = LeafSpec::Binary(lead, dtype);
  if (domain == "OneHot") spec = LeafSpec::OneHot(n, dtype, lead);
  if (domain == "MultiCategorical") {
    spec = LeafSpec::MultiCategorical(nvec, dtype, lead);
  }
  if (domain == "MultiOneHot") spec = LeafSpec::MultiOneHot(nvec, dtype, lead);
  Check(spec.CheckDomain());
  if (!mask.is_none()) spec = Value(spec.WithMask(TensorOf(mask, "mask")));
  return spec;
}

// The bounds of all elements, as an array of dtype and shape; None of others.
nb::object Bound(const LeafSpec& spec, bool is_low) {
  if (spec.domain != LeafSpec::Domain::kBounded) return nb::none();
  const Tensor* each = is_low ? spec.lows() : spec.highs();
  if (each != nullptr) return ArrayOf(Value(each->Clone()), "bound");
  const double all = is_low ? spec.low : spec.high;
  // Nearly all bounds are whole numbers of a double. The largest int64 is not:
  // 2^63 stands for it.
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const bool is_most =
      spec.dtype == DType::kInt64 && all >= static_cast<double>(kMost);
  Tensor bound = is_most ? Value(Tensor::From<int64_t>({kMost}, {}))
                         : Value(Tensor::From<double>({all}, {}));
  bound = Value(Cast(bound, spec.dtype));
  return ArrayOf(Value(Value(bound.Expand(spec.shape)).Clone()), "bound");
}

nb::object Mask(const LeafSpec& spec) {
  if (spec.mask() == nullptr) return nb::none();
  return ArrayOf(Value(spec.mask()->Clone()), "mask");
}

// Throws INVALID_ARGUMENT of a value outside, of any leading dimensions.
void CheckLeaf(const LeafSpec& spec, const nb::object& value) {
  const Tensor tensor = TensorOf(value, "value", spec.dtype);
  const int rank = tensor.rank() - spec.shape.rank();
  Check(spec.CheckValues("value", tensor.shape().Prefix(rank), tensor));
}

void BindValues(nb::class_<LeafSpec>* leaf) {
  (*leaf)
      .def(
          "rand",
          [](const LeafSpec& spec, const Sizes& batch, uint64_t seed) {
            return ArrayOf(Value(spec.Random(ShapeOf(batch), Rng(seed), 0)),
                           "value");
          },
          "batch"_a, "seed"_a)
      .def(
          "zero",
          [](const LeafSpec& spec, const Sizes& batch) {
            return ArrayOf(Value(spec.Zero(ShapeOf(batch))), "value");
          },
          "batch"_a)
      .def(
          "one",
          [](const LeafSpec& spec, const Sizes& batch) {
            return ArrayOf(Value(spec.One(ShapeOf(batch))), "value");
          },
          "batch"_a)
      .def("check", &CheckLeaf, "value"_a)
      .def(
          "project",
          [](const LeafSpec& spec, const nb::object& value) {
            const Tensor tensor = TensorOf(value, "value", spec.dtype);
            return ArrayOf(Value(spec.Project(tensor)), "value");
          },
          "value"_a)
      .def("enumerate",
           [](const LeafSpec& spec) {
             return ArrayOf(Value(spec.Enumerate()), "value");
           })
      .def(
          "expand",
          [](const LeafSpec& spec, const Sizes& shape) {
            return Value(spec.Expand(ShapeOf(shape)));
          },
          "shape"_a)
      .def(
          "index",
          [](const LeafSpec& spec, int64_t index) {
            return Value(spec.Index(index));
          },
          "index"_a)
      .def("to_one_hot_spec",
           [](const LeafSpec& spec) { return Value(spec.ToOneHotSpec()); })
      .def("to_categorical_spec",
           [](const LeafSpec& spec) { return Value(spec.ToCategoricalSpec()); })
      .def(
          "to_one_hot",
          [](const LeafSpec& spec, const nb::object& value) {
            const Tensor tensor = TensorOf(value, "value", spec.dtype);
            return ArrayOf(Value(spec.ToOneHot(tensor)), "value");
          },
          "value"_a)
      .def(
          "to_categorical",
          [](const LeafSpec& spec, const nb::object& value) {
            const Tensor tensor = TensorOf(value, "value", spec.dtype);
            return ArrayOf(Value(spec.ToCategorical(tensor)), "value");
          },
          "value"_a);
}

void BindLeaf(nb::module_& module) {
  nb::class_<LeafSpec> leaf(module, "LeafSpec");
  leaf.def(nb::new_(&MakeLeaf), "domain"_a, "options"_a)
      .def_prop_ro("domain",
                   [](const LeafSpec& spec) {
                     return kDomains[static_cast<int>(spec.domain)];
                   })
      .def_prop_ro("dtype",
                   [](const LeafSpec& spec) {
                     return std::string(DTypeName(spec.dtype));
                   })
      .def_prop_ro("shape",
                   [](const LeafSpec& spec) { return TupleOf(spec.shape); })
      .def_ro("n", &LeafSpec::num_categories)
      .def_prop_ro("nvec",
                   [](const LeafSpec& spec) {
                     return Sizes(spec.nvec().begin(), spec.nvec().end());
                   })
      .def_prop_ro("low",
                   [](const LeafSpec& spec) { return Bound(spec, true); })
      .def_prop_ro("high",
                   [](const LeafSpec& spec) { return Bound(spec, false); })
      .def_prop_ro("mask", &Mask)
      .def("cardinality", &LeafSpec::Cardinality)
      .def(
          "equals", [](const LeafSpec& a, const LeafSpec& b) { return a == b; },
          "other"_a)
      .def("__str__", &LeafSpec::ToString);
  BindValues(&leaf);
}

// --- Dictionaries ------------------------------------------------------------

TensorDictSpec MakeDict(
    const std::vector<std::pair<std::string, LeafSpec>>& leaves) {
  TensorDictSpec spec;
  for (const auto& [key, leaf] : leaves) Check(spec.Set(key, leaf));
  return spec;
}

// `dict` with the batch shape that its first leaf of the spec shows.
TensorDict Read(const TensorDictSpec& spec, const nb::object& dict) {
  InputReader reader(/*batch_rank=*/0);
  reader.Expect(spec);
  const TensorDict given = reader.Read(dict.ptr(), /*is_step=*/false)->rows;
  Shape batch;
  for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
    const Tensor* tensor = given.Find(leaf.key);
    if (tensor == nullptr) continue;
    batch = tensor->shape().Prefix(tensor->rank() - leaf.spec.shape.rank());
    break;
  }
  TensorDict result(batch);
  absl::Status status;
  given.ForEachLeaf([&](absl::string_view key, const Tensor& leaf) {
    if (status.ok()) status = result.Set(key, leaf);
  });
  Check(status);
  return result;
}

nb::object DictOf(TensorDict rows) {
  const auto batch = std::make_shared<OutputBatch>();
  batch->rows = std::move(rows);
  OutputMaker maker;
  return maker.Make(batch);
}

void BindDict(nb::module_& module) {
  nb::class_<TensorDictSpec>(module, "SpecDict")
      .def(nb::new_(&MakeDict), "leaves"_a)
      .def("leaves",
           [](const TensorDictSpec& spec) {
             std::vector<std::pair<std::string, LeafSpec>> leaves;
             for (const TensorDictSpec::Leaf& leaf : spec.leaves()) {
               leaves.emplace_back(leaf.key, leaf.spec);
             }
             return leaves;
           })
      .def(
          "rand",
          [](const TensorDictSpec& spec, const Sizes& batch, uint64_t seed) {
            return DictOf(Value(spec.Random(ShapeOf(batch), Rng(seed), 0)));
          },
          "batch"_a, "seed"_a)
      .def(
          "zero",
          [](const TensorDictSpec& spec, const Sizes& batch) {
            return DictOf(Value(spec.Zero(ShapeOf(batch))));
          },
          "batch"_a)
      .def(
          "one",
          [](const TensorDictSpec& spec, const Sizes& batch) {
            return DictOf(Value(spec.One(ShapeOf(batch))));
          },
          "batch"_a)
      .def(
          "check",
          [](const TensorDictSpec& spec, const nb::object& value) {
            Check(
                spec.CheckValues("Composite::assert_is_in", Read(spec, value)));
          },
          "value"_a)
      .def(
          "project",
          [](const TensorDictSpec& spec, const nb::object& value) {
            return DictOf(Value(spec.Project(Read(spec, value))));
          },
          "value"_a)
      .def("cardinality", &TensorDictSpec::Cardinality);
}

}  // namespace

void BindSpecs(nb::module_& module) {
  BindLeaf(module);
  BindDict(module);
}

}  // namespace rill::python
