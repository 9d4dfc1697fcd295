// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/file.h"
#include "rill/base/file_writer.h"
#include "rill/base/status_macros.h"
#include "rill/formats/consolidated.h"
#include "rill/formats/consolidated/consolidated_meta.h"
#include "rill/formats/consolidated/jagged.h"
#include "rill/formats/memmap/leaf_bytes.h"
#include "rill/formats/zip/little_endian.h"
#include "rill/tensordict/key.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_tensor.h"

namespace rill {
namespace {

using formats_internal::AppendLittle;
using formats_internal::ConsolidatedMeta;
using formats_internal::Jagged;
using formats_internal::kMaxConsolidatedJsonBytes;
using Entry = ConsolidatedMeta::Entry;
using Kind = ConsolidatedMeta::Kind;
using Type = ConsolidatedMeta::Type;

// Tensors start at a multiple of this, as TorchRL has it. It then cannot
// open its own file where a complex128 lies behind 8 bytes of something else.
constexpr int64_t kAlignment = 8;

// Where the leaves go, and which they are. All offsets are known before a byte
// is written. So the file is made with its space reserved, and a name or a
// shape that cannot be saved costs nothing.
class Layout {
 public:
  explicit Layout(int64_t alignment)
      : alignment_(alignment), widest_(alignment) {}

  // `is_locked`: what is around them is.
  absl::StatusOr<ConsolidatedMeta> Place(const TensorDict& dict,
                                         bool is_locked);
  absl::StatusOr<ConsolidatedMeta> Place(const LazyStack& stack,
                                         bool is_locked);
  int64_t data_bytes() const { return end_; }
  // The alignment that all leaves need.
  int64_t widest() const { return widest_; }
  const std::vector<Tensor>& leaves() const { return leaves_; }
  const std::vector<int64_t>& pads() const { return pads_; }

 private:
  void PlaceLeaf(const Tensor& leaf, Entry* entry);
  absl::StatusOr<Entry> PlaceEntry(const TensorDict& dict,
                                   const std::string& key, bool is_locked);
  absl::Status PlaceJagged(const TensorDict& dict, const std::string& key,
                           Entry* entry);

  int64_t alignment_;
  int64_t widest_;
  int64_t end_ = 0;
  std::vector<Tensor> leaves_;
  std::vector<int64_t> pads_;
};

void Layout::PlaceLeaf(const Tensor& leaf, Entry* entry) {
  widest_ = std::max(widest_, DTypeSize(leaf.dtype()));
  entry->dtype = leaf.dtype();
  entry->shape = leaf.shape();
  // Behind the leaf, and part of its range: that is where TorchRL counts it.
  entry->pad = (alignment_ - leaf.size_bytes() % alignment_) % alignment_;
  entry->start = end_;
  // The next leaf begins where this one's padding ends, so starts are aligned
  // by induction from 0.
  entry->stop = end_ += leaf.size_bytes() + entry->pad;
  leaves_.push_back(leaf);
  pads_.push_back(entry->pad);
}

absl::Status Layout::PlaceJagged(const TensorDict& dict, const std::string& key,
                                 Entry* entry) {
  RILL_ASSIGN_OR_RETURN(const RaggedTensor rows, dict.GetRagged(key));
  const absl::StatusOr<Jagged> jagged = formats_internal::ToJagged(rows);
  if (!jagged.ok()) {
    return InvalidArgument("SaveConsolidated: ragged tensor \"", key,
                           "\": ", jagged.status().message(),
                           "; use SaveTdz or SaveMemmapDirectory");
  }
  entry->kind = Kind::kJagged;
  entry->ragged_dim = jagged->ragged_dim;
  PlaceLeaf(jagged->values, entry);
  PlaceLeaf(jagged->offsets, &entry->parts.emplace_back());
  return absl::OkStatus();
}

// The values of rows as stacks in one another, one a dimension.
ConsolidatedMeta PlaceValues(absl::Span<const std::string> values,
                             absl::Span<const int64_t> sizes, bool is_locked) {
  ConsolidatedMeta meta{.type = Type::kValueStack, .is_locked = is_locked};
  const int64_t step = sizes[0] == 0 ? 0 : values.size() / sizes[0];
  for (int64_t row = 0; row < sizes[0]; ++row) {
    Entry entry{.name = absl::StrCat(row), .kind = Kind::kValue};
    if (sizes.size() == 1) {
      entry.json = values[row];
    } else {
      entry.kind = Kind::kInner;
      entry.inner.push_back(PlaceValues(values.subspan(row * step, step),
                                        sizes.subspan(1), is_locked));
    }
    meta.entries.push_back(std::move(entry));
  }
  return meta;
}

absl::StatusOr<Entry> Layout::PlaceEntry(const TensorDict& dict,
                                         const std::string& key,
                                         bool is_locked) {
  RILL_ASSIGN_OR_RETURN(const std::vector<std::string> parts, SplitKey(key));
  Entry entry{.name = parts[0], .kind = Kind::kInner};
  switch (*dict.Kind(key)) {
    case EntryKind::kTensor:
      entry.kind = Kind::kLeaf;
      PlaceLeaf(*dict.Find(key), &entry);
      break;
    case EntryKind::kDict: {
      RILL_ASSIGN_OR_RETURN(entry.inner.emplace_back(),
                            Place(*dict.FindDict(key), is_locked));
      break;
    }
    case EntryKind::kLazyStack: {
      RILL_ASSIGN_OR_RETURN(const LazyStack stack, dict.GetLazyStack(key));
      RILL_ASSIGN_OR_RETURN(entry.inner.emplace_back(),
                            Place(stack, is_locked));
      break;
    }
    case EntryKind::kNonTensorStack: {
      RILL_ASSIGN_OR_RETURN(const NonTensorStack values,
                            dict.GetNonTensorStack(key));
      const std::vector<std::string> texts = values.values();
      if (values.shape().rank() > 0) {
        entry.inner.push_back(
            PlaceValues(texts, values.shape().sizes(), is_locked));
        break;
      }
      entry.kind = Kind::kValue;  // One row has no stack.
      entry.json = texts[0];
      break;
    }
    case EntryKind::kNonTensor: {
      RILL_ASSIGN_OR_RETURN(NonTensor value, dict.GetNonTensor(key));
      entry.kind = Kind::kValue;
      entry.json = std::move(value.json);
      break;
    }
    case EntryKind::kRagged:
      RILL_RETURN_IF_ERROR(PlaceJagged(dict, key, &entry));
      break;
  }
  return entry;
}

absl::StatusOr<ConsolidatedMeta> Layout::Place(const TensorDict& dict,
                                               bool is_locked) {
  ConsolidatedMeta meta{.batch_shape = dict.batch_shape(),
                        .dim_names = dict.dim_names(),
                        .is_locked = is_locked || dict.is_locked()};
  for (const std::string& key : dict.Keys()) {
    RILL_ASSIGN_OR_RETURN(Entry entry, PlaceEntry(dict, key, meta.is_locked));
    meta.entries.push_back(std::move(entry));
  }
  return meta;
}

absl::StatusOr<ConsolidatedMeta> Layout::Place(const LazyStack& stack,
                                               bool is_locked) {
  ConsolidatedMeta meta{.type = Type::kLazyStack,
                        .stack_dim = stack.stack_dim(),
                        .is_locked = is_locked || stack.is_locked()};
  for (const TensorDict& member : stack.members()) {
    Entry entry{.name = absl::StrCat(meta.entries.size()),
                .kind = Kind::kInner};
    RILL_ASSIGN_OR_RETURN(entry.inner.emplace_back(),
                          Place(member, meta.is_locked));
    meta.entries.push_back(std::move(entry));
  }
  return meta;
}

// The leaves, each with its padding, then the JSON and its length.
absl::Status WriteAll(const Layout& layout, absl::string_view json,
                      const std::string& path) {
  std::string tail(json);
  AppendLittle<int64_t>(static_cast<int64_t>(json.size()), &tail);
  RILL_ASSIGN_OR_RETURN(
      const std::unique_ptr<FileWriter> writer,
      FileWriter::Create(
          path, layout.data_bytes() + static_cast<int64_t>(tail.size())));
  for (size_t i = 0; i < layout.leaves().size(); ++i) {
    RILL_RETURN_IF_ERROR(formats_internal::ForEachPiece(
        layout.leaves()[i],
        [&](absl::string_view piece) { return writer->Append(piece); }));
    RILL_RETURN_IF_ERROR(writer->Append(std::string(layout.pads()[i], '\0')));
  }
  return writer->Append(tail);
}

// A TensorDict or a LazyStack.
template <typename T>
absl::Status Save(absl::string_view caller, const T& saved,
                  const std::string& path) {
  Layout layout(kAlignment);
  RILL_ASSIGN_OR_RETURN(ConsolidatedMeta meta,
                        layout.Place(saved, /*is_locked=*/false));
  // A wider element was met on the way, and offsets before it depend on it too:
  // once more from the start.
  if (layout.widest() > kAlignment) {
    layout = Layout(layout.widest());
    RILL_ASSIGN_OR_RETURN(meta, layout.Place(saved, /*is_locked=*/false));
  }
  RILL_ASSIGN_OR_RETURN(const std::string json,
                        formats_internal::FormatConsolidatedMeta(caller, meta));
  if (static_cast<int64_t>(json.size()) > kMaxConsolidatedJsonBytes) {
    return InvalidArgument(
        caller, ": keys and values: got ", json.size(),
        " bytes of JSON, want <= ", kMaxConsolidatedJsonBytes);
  }
  return ReplaceFile(path, [&](const std::string& fresh) {
    return WriteAll(layout, json, fresh);
  });
}

}  // namespace

absl::Status SaveConsolidated(const TensorDict& dict, const std::string& path) {
  return Save("SaveConsolidated", dict, path);
}

absl::Status SaveConsolidatedLazyStack(const LazyStack& stack,
                                       const std::string& path) {
  return Save("SaveConsolidatedLazyStack", stack, path);
}

}  // namespace rill
