// SPDX-License-Identifier: Apache-2.0
// ExtendCrc32 beside zlib's crc32, which gives the same values.
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "benchmark/benchmark.h"
#include "rill/formats/zip/crc32.h"
#include "zlib.h"

namespace rill::formats_internal {
namespace {

uint32_t Zlib(uint32_t crc, absl::string_view bytes) {
  return static_cast<uint32_t>(
      crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()),
            static_cast<uInt>(bytes.size())));
}

template <uint32_t (*kExtend)(uint32_t, absl::string_view)>
void BM_Crc32(benchmark::State& state) {
  const std::string bytes(static_cast<size_t>(state.range(0)), 'r');
  uint32_t crc = 0;
  for (auto _ : state) {
    crc = kExtend(crc, bytes);
    benchmark::DoNotOptimize(crc);
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Crc32<Zlib>)->Arg(64)->Arg(4096)->Arg(1 << 20);
BENCHMARK(BM_Crc32<ExtendCrc32>)->Arg(64)->Arg(4096)->Arg(1 << 20);

}  // namespace
}  // namespace rill::formats_internal
