#!/usr/bin/env bash
# The table of docs/VOLUMES.md "Lossless presets": the three presets on volumes, beside CharLS, OpenJPEG, FFV1 and zstd:
#   tests/bench/volume_presets.sh TRIVELET VOLUME_PEERS VOLUME...
# TRIVELET and VOLUME_PEERS are the programs of the build (apps/trivelet, tests/bench/volume_peers), VOLUMEs integers of
# at most 16 bits, or floats in NAME_WxHxD_f32.raw, which only zstd also codes and no mean includes. All codecs get the same
# samples, with as many bits as their range needs, and one thread. Ours reads and writes them as raw volumes, so that no
# other packing is counted. Speeds are megabytes of these samples for each second of processor time, the least of three
# runs: whole processes without verification for us, FFV1 and zstd; the coder alone in memory for CharLS and OpenJPEG. MB:
# the most memory that encoding or decoding had. HTJ2K is OpenJPH by imagecodecs, slice by slice, where $PYTHON (python3)
# has it. Prints rows of a table, then geometric means.
set -euo pipefail
[ $# -ge 3 ] || { sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 2; }
trivelet=$1 peers=$2 python=${PYTHON:-python3}
shift 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# run COMMAND...: sets cpu (seconds) and, to what it was or more, memory (MB)
run() {
  cpu=1e9
  for _ in 1 2 3; do
    /usr/bin/time -f '%U %S %M' -o "$scratch/time" "$@" >/dev/null 2>"$scratch/errors" ||
      { cat "$scratch/errors" >&2; return 1; }
    read -r user system kib <"$scratch/time"
    cpu=$(awk "BEGIN { now = $user + $system; print (now < $cpu ? now : $cpu) }")
    memory=$(awk "BEGIN { now = int($kib * 1.024e-3 + 0.5); print (now > $memory ? now : $memory) }")
  done
}
# Bytes of OpenJPH, slice by slice; - where it is not installed.
htj2k() {
  "$python" - "$scratch/v.raw" "$width" "$height" "$bits" <<'END' 2>/dev/null || echo -
import sys
import imagecodecs, numpy
path, width, height, bits = sys.argv[1], *map(int, sys.argv[2:])
voxels = numpy.fromfile(path, numpy.uint8 if bits <= 8 else numpy.uint16).reshape(-1, height, width)
print(sum(len(imagecodecs.htj2k_encode(s, reversible=True)) for s in voxels))
END
}
speed() { awk "BEGIN { printf \"%.0f\", $bytes / ($1 + 1e-9) / 1e6 }"; }

echo '| | `fast` | enc, dec, MB | `medium` | enc, dec, MB | `slow` | enc, dec, MB | CharLS | enc, dec | HTJ2K | OpenJPEG | FFV1 | zstd -19 |'
echo '|-|-|-|-|-|-|-|-|-|-|-|-|-|'
for volume in "$@"; do
  if [[ $volume =~ _([0-9]+)x([0-9]+)x[0-9]+_f32\.raw$ ]]; then
    width=${BASH_REMATCH[1]} height=${BASH_REMATCH[2]} bits=32 type=f32
    cp "$volume" "$scratch/v.raw"
  else
    read -r width height bits < <("$peers" "$volume" --raw "$scratch/v.raw")
    type=u8 format=gray
    if [ "$bits" -gt 8 ]; then type=u16 format=gray16le; fi
  fi
  bytes=$(stat -c %s "$scratch/v.raw")
  slices=$((bytes / width / height / (bits > 16 ? 4 : bits > 8 ? 2 : 1)))
  row="$(basename "$volume")"
  sizes=
  for preset in fast medium slow; do
    memory=0
    run "$trivelet" encode "$scratch/v.raw" "$scratch/v.tvl" -y --quiet --no-verify -t 1 --format raw --preset $preset \
      --size "${width}x${height}x$slices" --type $type
    encode=$(speed "$cpu")
    run "$trivelet" decode "$scratch/v.tvl" "$scratch/back.raw" -y --quiet -t 1
    cmp -s "$scratch/v.raw" "$scratch/back.raw" || { echo "$volume: preset $preset does not give it back" >&2; exit 1; }
    size=$(stat -c %s "$scratch/v.tvl")
    row+=" | $size | $encode, $(speed "$cpu"), $memory"
    sizes+=" $size $encode $(speed "$cpu")"
  done
  zstd -q -19 -T1 -f "$scratch/v.raw" -o "$scratch/v.zst"
  zst=$(stat -c %s "$scratch/v.zst")
  if [ "$bits" = 32 ]; then
    echo "| $row | - | - | - | - | - | $zst |"
    continue
  fi
  "$peers" "$volume" >"$scratch/peers"
  if grep -q DIFFERS "$scratch/peers"; then cat "$scratch/peers" >&2; exit 1; fi
  read -r _ ls ls_encode ls_decode < <(grep jpegls "$scratch/peers")
  read -r _ j2 _ _ < <(grep openjpeg "$scratch/peers")
  ht=$(htj2k)
  ffmpeg -v error -y -f rawvideo -pix_fmt $format -s "${width}x$height" -i "$scratch/v.raw" -c:v ffv1 -level 3 \
    -coder 1 -context 1 -slices 4 -f nut "$scratch/v.nut"
  ffv1=$(stat -c %s "$scratch/v.nut")
  echo "| $row | $ls | $(speed "$ls_encode"), $(speed "$ls_decode") | $ht | $j2 | $ffv1 | $zst |"
  echo "$sizes $ls $(speed "$ls_encode") $(speed "$ls_decode") ${ht/-/0} $j2 $ffv1 $zst" >>"$scratch/all"
done
awk '{ for (i = 1; i <= NF; ++i) sum[i] += log($i) }
END {
  for (i = 1; i <= NF; ++i) mean[i] = exp(sum[i] / NR)
  printf "| geometric mean, sizes over those of CharLS"
  for (i = 1; i <= 10; i += 3) printf " | %.3f | %.0f, %.0f", mean[i] / mean[10], mean[i + 1], mean[i + 2]
  for (i = 13; i <= 16; ++i) printf (mean[i] > 0 ? " | %.3f" : " | -"), mean[i] / mean[10]
  print " |"
}' "$scratch/all"
