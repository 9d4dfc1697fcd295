// SPDX-License-Identifier: Apache-2.0
// Texts as meta.json: what is read can be written and reads the same. Texts as
// values and names: what is written can be read.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "absl/strings/string_view.h"
#include "rill/formats/memmap/memmap_key.h"
#include "rill/formats/memmap/memmap_meta.h"
#include "rill/tensors/shape.h"
#include "rill/tools/fuzzing/fuzz_input.h"

namespace rill::formats_internal {
namespace {

using Kind = MemmapMeta::Kind;

void CheckSame(const MemmapMeta& a, const MemmapMeta& b) {
  RILL_FUZZ_CHECK(a.kind == b.kind);
  RILL_FUZZ_CHECK(a.batch_shape == b.batch_shape);
  RILL_FUZZ_CHECK(a.stack_dim == b.stack_dim);
  RILL_FUZZ_CHECK(a.json == b.json);
  RILL_FUZZ_CHECK(a.entries.size() == b.entries.size());
  for (size_t i = 0; i < a.entries.size(); ++i) {
    const MemmapMeta::Entry& x = a.entries[i];
    const MemmapMeta::Entry& y = b.entries[i];
    RILL_FUZZ_CHECK(x.name == y.name);
    RILL_FUZZ_CHECK(x.is_leaf == y.is_leaf);
    if (!x.is_leaf) continue;
    RILL_FUZZ_CHECK(x.shape == y.shape);
    RILL_FUZZ_CHECK(x.is_ragged == y.is_ragged);
    if (x.refusal.empty()) RILL_FUZZ_CHECK(x.dtype == y.dtype);
  }
}

void TryFile(absl::string_view text) {
  const auto meta = ParseMemmapMeta("meta.json", text);
  if (!meta.ok()) return;
  std::set<std::string> names;
  for (const MemmapMeta::Entry& entry : meta->entries) {
    RILL_FUZZ_CHECK(names.insert(entry.name).second);
    RILL_FUZZ_CHECK(!entry.is_ragged || entry.shape.rank() == 2);
  }
  const auto written = FormatMemmapMeta("Fuzz", *meta);
  if (meta->kind == Kind::kOther || !meta->pickle.empty()) return;
  // A few entries more may be read than are written.
  if (meta->entries.size() > kMaxMemmapEntries) return;
  RILL_FUZZ_CHECK(written.ok());
  const auto again = ParseMemmapMeta("meta.json", *written);
  RILL_FUZZ_CHECK(again.ok());
  CheckSame(*meta, *again);
}

void TryValue(Kind kind, absl::string_view json) {
  MemmapMeta meta;
  meta.kind = kind;
  meta.json = std::string(json);
  const auto written = FormatMemmapMeta("Fuzz", meta);
  if (!written.ok()) return;
  const auto again = ParseMemmapMeta("meta.json", *written);
  // A stack's is a list, or names a pickle.
  const bool is_odd_stack = kind == Kind::kValueStack && json.find('[') != 0;
  RILL_FUZZ_CHECK(is_odd_stack || (again.ok() && again->kind == kind));
}

void TryName(absl::string_view name) {
  MemmapMeta meta;
  meta.entries.push_back({.name = std::string(name), .shape = Shape({2})});
  const auto written = FormatMemmapMeta("Fuzz", meta);
  if (!written.ok() || IsReservedMemmapName(name)) return;
  const auto again = ParseMemmapMeta("meta.json", *written);
  RILL_FUZZ_CHECK(again.ok());
  CheckSame(meta, *again);
}

}  // namespace
}  // namespace rill::formats_internal

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rill::formats_internal;  // NOLINT: the target's only user.
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  TryFile(text);
  TryValue(MemmapMeta::Kind::kValue, text);
  TryValue(MemmapMeta::Kind::kValueStack, text);
  TryName(text.substr(0, 64));
  return 0;
}
