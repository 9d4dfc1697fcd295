// SPDX-License-Identifier: Apache-2.0
// LeafSpec of another shape. All work on the lead, the dimensions before a
// row's; bounds are tensors of the lead, a mask one of batch + lead + options.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "rill/base/status_macros.h"
#include "rill/specs/domains/choice_domain.h"
#include "rill/specs/domains/domain.h"
#include "rill/specs/leaf_spec.h"

namespace rill {
namespace {

using tensor_internal::ChoiceSizes;
using tensor_internal::DomainOf;
using tensor_internal::ExpandsTo;
using tensor_internal::HasChoices;
using tensor_internal::HasRowDim;
using tensor_internal::LeadOf;
using tensor_internal::ShapeWithLead;

// A view of `tensor` whose lead, which stands from dimension `at` on, is
// another.
using Relayout =
    absl::FunctionRef<absl::StatusOr<Tensor>(const Tensor& tensor, int at)>;

Shape Joined(const Shape& a, const Shape& b, const Shape& c) {
  return a.Concat(b).Concat(c);
}

// The batch dimensions of the mask.
Shape MaskBatch(const LeafSpec& spec) {
  const Tensor* mask = spec.mask();
  if (mask == nullptr) return {};
  const int rank = mask->rank() - 1 - LeadOf(spec).rank();
  return mask->shape().Prefix(std::max(rank, 0));
}

// `spec` with these bounds or this mask, if any.
absl::StatusOr<LeafSpec> WithParts(const LeafSpec& spec,
                                   absl::Span<const Tensor> parts) {
  if (parts.empty()) return spec;
  return parts.size() == 1 ? spec.WithMask(parts[0])
                           : LeafSpec::Bounded(parts[0], parts[1]);
}

// `spec` with another lead, its tensors taken along by `fn`.
absl::StatusOr<LeafSpec> WithLead(const LeafSpec& spec, const Shape& lead,
                                  Relayout fn) {
  LeafSpec result = spec.WithoutMask();
  result.shape = ShapeWithLead(spec, lead);
  const Tensor* const mask = spec.mask();
  // Bounds of all elements, and a mask of one row, are of every lead.
  if (spec.lows() == nullptr && mask == nullptr) return result;
  if (mask != nullptr && mask->rank() == 1) return result.WithMask(*mask);
  const Shape batch = MaskBatch(spec);
  RILL_ASSIGN_OR_RETURN(std::vector<Tensor> parts,
                        DomainOf(spec).Parts(spec, batch));
  for (Tensor& part : parts) {
    RILL_ASSIGN_OR_RETURN(part, fn(part, batch.rank()));
  }
  // Finds out anew whether they are all the same.
  return WithParts(result, parts);
}

// The dimensions of the lead can be changed; that of a row's choices cannot.
absl::Status CheckDim(absl::string_view caller, const LeafSpec& spec, int dim,
                      int end) {
  RILL_RETURN_IF_ERROR(spec.CheckDomain());
  if (dim >= 0 && dim < end) return absl::OkStatus();
  return InvalidArgument(
      caller, ": dimension of ", spec.ToString(), ": got ", dim,
      ", want one of ", end,
      HasRowDim(spec.domain) ? " (the last one holds choices)" : "");
}

// The lead of a wanted trailing shape.
absl::StatusOr<Shape> LeadFrom(absl::string_view caller, const LeafSpec& spec,
                               const Shape& to) {
  RILL_RETURN_IF_ERROR(spec.CheckDomain());
  RILL_RETURN_IF_ERROR(Shape::Create(to.sizes()).status());
  if (!HasRowDim(spec.domain)) return to;
  const int rank = to.rank();
  const int64_t width = spec.shape[spec.shape.rank() - 1];
  if (rank > 0 && to[rank - 1] == width) return to.Prefix(rank - 1);
  return InvalidArgument(caller, ": shape of ", spec.ToString(), ": got ",
                         to.ToString(), ", want a last size of ", width);
}

// Specs may differ in bounds and masks, which become tensors; not in the rest.
absl::Status CheckAlike(absl::Span<const LeafSpec> specs, int dim) {
  constexpr absl::string_view kCaller = "LeafSpec::Stack";
  if (specs.empty()) {
    return InvalidArgument(kCaller, ": number of specs: got 0, want some");
  }
  const LeafSpec& first = specs[0];
  RILL_RETURN_IF_ERROR(CheckDim(kCaller, first, dim, LeadOf(first).rank() + 1));
  RILL_RETURN_IF_ERROR(first.FullShape({1}).status()) << "in " << kCaller;
  for (const LeafSpec& spec : specs) {
    RILL_RETURN_IF_ERROR(spec.CheckDomain()) << "in " << kCaller;
    if (spec.dtype == first.dtype && spec.shape == first.shape &&
        spec.domain == first.domain &&
        (!HasChoices(spec.domain) || ChoiceSizes(spec) == ChoiceSizes(first))) {
      continue;
    }
    return InvalidArgument(kCaller, ": got ", spec.ToString(), " beside ",
                           first.ToString(),
                           ", want specs that differ in bounds and masks only");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LeafSpec> LeafSpec::Index(int64_t index) const {
  constexpr absl::string_view kCaller = "LeafSpec::Index";
  const Shape lead = LeadOf(*this);
  RILL_RETURN_IF_ERROR(CheckDim(kCaller, *this, 0, lead.rank()));
  if (index < 0 || index >= lead[0]) {
    return OutOfRange(kCaller, ": index of ", ToString(), ": got ", index,
                      ", want one in [0, ", lead[0], ")");
  }
  return WithLead(*this, lead.Suffix(1),
                  [&](const Tensor& t, int at) { return t.Select(at, index); });
}

absl::StatusOr<LeafSpec> LeafSpec::Unsqueeze(int dim) const {
  constexpr absl::string_view kCaller = "LeafSpec::Unsqueeze";
  const Shape lead = LeadOf(*this);
  RILL_RETURN_IF_ERROR(CheckDim(kCaller, *this, dim, lead.rank() + 1));
  RILL_RETURN_IF_ERROR(FullShape({1}).status()) << "in " << kCaller;
  return Reshape(ShapeWithLead(*this, lead.WithDim(dim, 1)));
}

absl::StatusOr<LeafSpec> LeafSpec::Expand(const Shape& to) const {
  constexpr absl::string_view kCaller = "LeafSpec::Expand";
  RILL_ASSIGN_OR_RETURN(const Shape lead, LeadFrom(kCaller, *this, to));
  const Shape from = LeadOf(*this);
  if (!ExpandsTo(from, lead)) {
    return InvalidArgument(
        kCaller, ": shape of ", ToString(), ": got ", to.ToString(),
        ", want one whose last sizes are the same where not 1");
  }
  return WithLead(
      *this, lead, [&](const Tensor& t, int at) -> absl::StatusOr<Tensor> {
        // Expand aligns to the right. New dimensions of size 1 go in behind the
        // batch's, so that these are not taken for new ones.
        Tensor wider = t;
        for (int d = from.rank(); d < lead.rank(); ++d) {
          RILL_ASSIGN_OR_RETURN(wider, wider.Unsqueeze(at));
        }
        return wider.Expand(Joined(t.shape().Prefix(at), lead,
                                   t.shape().Suffix(at + from.rank())));
      });
}

absl::StatusOr<LeafSpec> LeafSpec::Reshape(const Shape& to) const {
  constexpr absl::string_view kCaller = "LeafSpec::Reshape";
  RILL_ASSIGN_OR_RETURN(const Shape lead, LeadFrom(kCaller, *this, to));
  const Shape from = LeadOf(*this);
  if (lead.num_elements() != from.num_elements()) {
    return InvalidArgument(kCaller, ": shape of ", ToString(), ": got ",
                           to.ToString(), ", want one of ",
                           shape.num_elements(), " elements");
  }
  // By views where strides allow it; a mask that repeats is copied.
  return WithLead(*this, lead, [&](const Tensor& t, int at) {
    return t.Reshape(
        Joined(t.shape().Prefix(at), lead, t.shape().Suffix(at + from.rank())));
  });
}

absl::StatusOr<LeafSpec> LeafSpec::Stack(absl::Span<const LeafSpec> specs,
                                         int dim) {
  RILL_RETURN_IF_ERROR(CheckAlike(specs, dim));
  const LeafSpec& first = specs[0];
  const int64_t size = static_cast<int64_t>(specs.size());
  const Shape lead = LeadOf(first).WithDim(dim, size);
  // All specs are equal: no tensors need to be made.
  if (std::all_of(specs.begin(), specs.end(),
                  [&](const LeafSpec& spec) { return spec == first; })) {
    RILL_ASSIGN_OR_RETURN(const LeafSpec wider, first.Unsqueeze(dim));
    return wider.Expand(ShapeWithLead(first, lead));
  }
  // Bounds or masks differ. Masks are brought to the largest batch shape that
  // one of them has.
  Shape batch;
  for (const LeafSpec& spec : specs) {
    const Shape other = MaskBatch(spec);
    if (other.rank() > batch.rank()) batch = other;
  }
  std::vector<std::vector<Tensor>> parts;  // Of each kind, those of the specs.
  for (const LeafSpec& spec : specs) {
    const absl::StatusOr<std::vector<Tensor>> own =
        DomainOf(spec).Parts(spec, batch);
    if (!own.ok()) {
      return absl::Status(
          own.status().code(),
          absl::StrCat("LeafSpec::Stack: ", own.status().message()));
    }
    parts.resize(own->size());
    for (size_t i = 0; i < own->size(); ++i) parts[i].push_back((*own)[i]);
  }
  std::vector<Tensor> stacked;
  for (const std::vector<Tensor>& of_specs : parts) {
    RILL_ASSIGN_OR_RETURN(stacked.emplace_back(),
                          StackLeaves(of_specs, batch.rank() + dim));
  }
  LeafSpec result = first.WithoutMask();
  result.shape = ShapeWithLead(first, lead);
  return WithParts(result, stacked);
}

}  // namespace rill
