// SPDX-License-Identifier: Apache-2.0
#include "rill/tools/programs/inspect/json_report.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "rill/base/status_macros.h"
#include "rill/formats/memmap_options.h"
#include "rill/tensordict/non_tensor.h"
#include "rill/tensordict/ragged_shape.h"
#include "rill/tensordict/ragged_tensor.h"
#include "rill/tensors/dtype.h"
#include "rill/tensors/tensor.h"
#include "rill/tools/programs/inspect/element_text.h"
#include "rill/tools/programs/inspect/facts.h"

namespace rill::inspect {
namespace {

std::string ShapeJson(const RaggedShape& shape) {
  return absl::StrCat("[", absl::StrJoin(shape.sizes(), ","), "]");
}

// Dimensions without a name are null.
std::string NamesJson(absl::Span<const std::string> names) {
  std::string json = "[";
  for (const std::string& name : names) {
    if (json.size() > 1) json.push_back(',');
    if (name.empty()) {
      json.append("null");
    } else {
      AppendJsonString(name, &json);
    }
  }
  return json + "]";
}

// A JSON object's members, one after the other.
class Members {
 public:
  // Starts a member; what follows in text() is its value.
  void Name(absl::string_view name) {
    if (!text_.empty()) text_.push_back(',');
    AppendJsonString(name, &text_);
    text_.push_back(':');
  }
  void Add(absl::string_view name, absl::string_view json) {
    Name(name);
    text_.append(json);
  }
  void AddText(absl::string_view name, absl::string_view value) {
    Name(name);
    AppendJsonString(value, &text_);
  }
  void AddObject(absl::string_view name, const Members& members) {
    Name(name);
    absl::StrAppend(&text_, "{", members.text_, "}");
  }
  std::string* text() { return &text_; }
  bool empty() const { return text_.empty(); }
  std::string Object() const { return absl::StrCat("{", text_, "}"); }

 private:
  std::string text_;
};

// One dictionary with all that is nested in it.
class DictReport {
 public:
  explicit DictReport(const JsonOptions& options) : options_(options) {}

  absl::StatusOr<Members> Write(const TensorDict& dict) {
    RILL_RETURN_IF_ERROR(Level(dict, ""));
    Members members;
    members.Add("batch_shape", ShapeJson(dict.batch_shape()));
    members.AddObject("leaves", leaves_);
    if (!dict.dim_names().empty()) {
      members.Add("dim_names", NamesJson(dict.dim_names()));
    }
    // Only what there is: most dictionaries have leaves alone.
    for (const auto& [name, entries] :
         {std::pair("dicts", &dicts_), std::pair("non_tensors", &non_tensors_),
          std::pair("stacks", &stacks_),
          std::pair("lazy_stacks", &lazy_stacks_),
          std::pair("ragged", &ragged_)}) {
      if (!entries->empty()) members.AddObject(name, *entries);
    }
    return members;
  }

 private:
  absl::Status Level(const TensorDict& dict, const std::string& prefix) {
    for (const std::string& name : dict.Keys()) {
      RILL_RETURN_IF_ERROR(Entry(dict, name, absl::StrCat(prefix, name)));
    }
    return absl::OkStatus();
  }

  absl::Status Entry(const TensorDict& dict, const std::string& name,
                     const std::string& key) {
    switch (*dict.Kind(name)) {
      case EntryKind::kTensor:
        return Leaf(key, *dict.Find(name));
      case EntryKind::kDict: {
        const TensorDict& inner = *dict.FindDict(name);
        // Else the leaves say it all.
        if (inner.empty() || inner.batch_shape() != dict.batch_shape()) {
          dicts_.Add(key, ShapeJson(inner.batch_shape()));
        }
        return Level(inner, absl::StrCat(key, "/"));
      }
      case EntryKind::kNonTensor: {
        RILL_ASSIGN_OR_RETURN(const NonTensor value, dict.GetNonTensor(name));
        // A non-tensor is JSON already.
        non_tensors_.Add(key, value.json);
        return absl::OkStatus();
      }
      case EntryKind::kNonTensorStack: {
        RILL_ASSIGN_OR_RETURN(const NonTensorStack stack,
                              dict.GetNonTensorStack(name));
        Members members;
        members.Add("shape", ShapeJson(stack.shape()));
        members.Add("values",
                    absl::StrCat("[", absl::StrJoin(stack.values(), ","), "]"));
        stacks_.AddObject(key, members);
        return absl::OkStatus();
      }
      case EntryKind::kLazyStack: {
        RILL_ASSIGN_OR_RETURN(const LazyStack stack, dict.GetLazyStack(name));
        RILL_ASSIGN_OR_RETURN(const std::string json,
                              JsonReport(stack, options_));
        lazy_stacks_.Add(key, json);
        return absl::OkStatus();
      }
      case EntryKind::kRagged:
        break;
    }
    RILL_ASSIGN_OR_RETURN(const RaggedTensor rows, dict.GetRagged(name));
    return Ragged(key, rows);
  }

  absl::Status Leaf(const std::string& key, const Tensor& leaf) {
    Members members;
    members.AddText("dtype", DTypeName(leaf.dtype()));
    members.Add("shape", ShapeJson(leaf.shape()));
    RILL_RETURN_IF_ERROR(AddValues(leaf, &members));
    leaves_.AddObject(key, members);
    return absl::OkStatus();
  }

  absl::Status Ragged(const std::string& key, const RaggedTensor& rows) {
    Members members;
    members.AddText("dtype", DTypeName(rows.dtype()));
    members.Name("shapes");
    members.text()->push_back('[');
    for (int64_t i = 0; i < rows.num_rows(); ++i) {
      RILL_ASSIGN_OR_RETURN(const Tensor row, rows.Row(i));
      absl::StrAppend(members.text(), i == 0 ? "" : ",",
                      ShapeJson(row.shape()));
    }
    members.text()->push_back(']');
    RILL_RETURN_IF_ERROR(AddValues(rows.values(), &members));
    ragged_.AddObject(key, members);
    return absl::OkStatus();
  }

  absl::Status AddValues(const Tensor& tensor, Members* members) {
    if (!options_.values) return absl::OkStatus();
    members->Name("values");
    return AppendJsonValues(tensor, members->text());
  }

  const JsonOptions& options_;
  // Entries of one kind are one flat object by whole key, however deep they are
  // nested: a reader needs no recursion.
  Members leaves_, dicts_, non_tensors_, stacks_, lazy_stacks_, ragged_;
};

absl::StatusOr<Members> StackReport(const LazyStack& stack,
                                    const JsonOptions& options) {
  Members members;
  members.Add("batch_shape", ShapeJson(stack.batch_shape()));
  members.Add("stack_dim", absl::StrCat(stack.stack_dim()));
  std::string list;
  for (const TensorDict& member : stack.members()) {
    RILL_ASSIGN_OR_RETURN(const std::string json, JsonReport(member, options));
    absl::StrAppend(&list, list.empty() ? "" : ",", json);
  }
  members.Add("members", absl::StrCat("[", list, "]"));
  return members;
}

absl::StatusOr<Members> RillReport(const Saved& saved,
                                   const JsonOptions& options) {
  Members fields, files, parts, manifest, members;
  for (const auto& [name, value] : saved.manifest.fields) {
    fields.AddText(name, value);
  }
  for (const auto& [name, bytes] : saved.files) {
    files.Add(name, absl::StrCat(bytes));
  }
  for (const auto& [name, part] : saved.parts) {
    RILL_ASSIGN_OR_RETURN(const std::string json, JsonReport(part, options));
    parts.Add(name, json);
  }
  manifest.AddText("kind", saved.manifest.kind);
  manifest.Add("version", absl::StrCat(saved.manifest.version));
  manifest.AddObject("fields", fields);
  members.AddObject("manifest", manifest);
  members.AddObject("files", files);
  members.AddObject("parts", parts);
  return members;
}

std::string Number(double value) {
  std::string json;
  AppendJsonNumber(value, &json);
  return json;
}

std::string List(absl::Span<const int64_t> values) {
  return absl::StrCat("[", absl::StrJoin(values, ","), "]");
}

// Without numbers where there are none of them.
Members SpreadReport(const Spread& spread) {
  Members members;
  members.Add("count", absl::StrCat(spread.count));
  if (spread.count == 0) return members;
  members.Add("min", Number(spread.min));
  members.Add("mean", Number(spread.mean()));
  members.Add("max", Number(spread.max));
  return members;
}

void AddFactsReport(const Facts& facts, Members* members) {
  Members rows, age;
  if (!facts.written.empty()) rows.Add("live", absl::StrCat(facts.live()));
  // 0 where only counts are known (AddDamagedTorchRl).
  if (facts.lanes.capacity > 0) {
    rows.Add("slots", absl::StrCat(facts.lanes.num_slots()));
    rows.Add("lanes", absl::StrCat(facts.lanes.count));
  }
  if (!facts.written.empty()) {
    rows.Add("cursors", List(facts.written));
    rows.Add("oldest", List(facts.oldest));
  }
  rows.Add("read", absl::StrCat(facts.rows_read));
  members->AddObject("rows", rows);
  if (facts.episodes) {
    Members episodes;
    episodes.Add("complete", absl::StrCat(facts.episodes->lengths.count));
    episodes.Add("partial", absl::StrCat(facts.episodes->partial));
    episodes.AddObject("lengths", SpreadReport(facts.episodes->lengths));
    if (facts.episodes->returns) {
      episodes.AddObject("returns", SpreadReport(*facts.episodes->returns));
    }
    members->AddObject("episodes", episodes);
  }
  if (facts.priorities) {
    Members priorities = SpreadReport(*facts.priorities);
    priorities.Add("total", Number(facts.priorities->total));
    members->AddObject("priorities", priorities);
  }
  if (!facts.written.empty()) age.Add("steps", absl::StrCat(facts.age()));
  if (facts.policy_versions) {
    age.Add("policy_versions", List({facts.policy_versions->first,
                                     facts.policy_versions->second}));
  }
  if (!age.empty()) members->AddObject("age", age);
  if (!facts.writer.empty()) members->AddText("writer", facts.writer);
}

void AddTorchRlReport(const TorchRlReplayBuffer& buffer, Members* members) {
  Members torchrl;
  torchrl.Add("capacity", absl::StrCat(buffer.capacity));
  torchrl.Add("cursor", absl::StrCat(buffer.cursor));
  torchrl.Add("write_count", absl::StrCat(buffer.write_count));
  torchrl.Add("batch_size", buffer.batch_size ? absl::StrCat(*buffer.batch_size)
                                              : std::string("null"));
  torchrl.AddText("sampler", SamplerText(buffer));
  members->AddObject("torchrl", torchrl);
}

}  // namespace

absl::StatusOr<std::string> JsonReport(const Saved& saved,
                                       const JsonOptions& options) {
  absl::StatusOr<Members> members =
      saved.form == Form::kRill ? RillReport(saved, options)
      : saved.stack             ? StackReport(*saved.stack, options)
                                : DictReport(options).Write(saved.dict);
  if (!members.ok()) return members.status();
  if (saved.torchrl) AddTorchRlReport(*saved.torchrl, &*members);
  if (saved.facts) AddFactsReport(*saved.facts, &*members);
  if (!saved.damage.empty()) {
    members->Name("damage");
    for (const std::string& text : saved.damage) {
      // The first opens the list.
      members->text()->push_back(&text == &saved.damage[0] ? '[' : ',');
      AppendJsonString(text, members->text());
    }
    members->text()->push_back(']');
  }
  if (!saved.refused.empty()) {
    Members refused;
    for (const RefusedEntry& entry : saved.refused) {
      refused.AddText(entry.key, entry.reason);
    }
    members->AddObject("refused", refused);
  }
  return members->Object();
}

absl::StatusOr<std::string> JsonReport(const TensorDict& dict,
                                       const JsonOptions& options) {
  RILL_ASSIGN_OR_RETURN(const Members members, DictReport(options).Write(dict));
  return members.Object();
}

absl::StatusOr<std::string> JsonReport(const LazyStack& stack,
                                       const JsonOptions& options) {
  RILL_ASSIGN_OR_RETURN(const Members members, StackReport(stack, options));
  return members.Object();
}

}  // namespace rill::inspect
