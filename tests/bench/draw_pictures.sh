#!/usr/bin/env bash
# Draws the pictures of README.md from tests/bench/data with gnuplot:
#   tests/bench/draw_pictures.sh [svg|png] [FOLDER]
# rate_distortion: PSNR of all planes over bits per pixel, a panel a clip (rd.csv, and nvjpeg2000.csv where it is there);
# speed: frames a second of 1080p (speed.csv, peers.csv, gpu_codec.csv, nvjpeg2000.csv).
set -euo pipefail
cd "$(dirname "$0")/../.."
kind=${1:-svg}
out=${2:-docs/pictures}
data=tests/bench/data
mkdir -p "$out"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

rows() { [ ! -f "$data/$1.csv" ] || grep -v '^#' "$data/$1.csv" | tail -n +2; }
terminal() { # terminal WIDTH HEIGHT
  if [ "$kind" = png ]; then
    echo "set terminal pngcairo size $1,$2 background '#ffffff' font 'sans,11'"
  else
    echo "set terminal svg size $1,$2 dynamic background '#ffffff' font 'sans-serif,12' rounded"
  fi
}

# ------------------------------------------------------------------------------------------------------ rate, distortion
codecs=("trivelet --motion off;Trivelet --motion off;#c0392b;2.6;7" "x265-medium;x265 medium;#34495e;1.2;5" "x264-medium;x264 medium;#2e86c1;1.2;9"
  "x264-intra;x264 intra;#7fb3d5;1.2;11" "htj2k;nvJPEG2000 HT;#1e8449;1.2;13" "j2k;nvJPEG2000;#58d68d;1.2;13"
  "openjpeg;OpenJPEG;#b7950b;1.2;3")
{
  terminal 900 640
  echo "set output '$out/rate_distortion.$kind'"
  cat <<'PLOT'
set multiplot layout 2,2 margins 0.065,0.985,0.175,0.955 spacing 0.06,0.105
set grid lt 1 lc rgb '#d5d8dc' lw 0.5
set border 3 lc rgb '#808b96'
set tics nomirror textcolor rgb '#212f3c'
set logscale x 2
set xtics (0.1, 0.25, 0.5, 1, 2)
set xrange [0.08:2.3]
unset key
PLOT
  clips=$(rows rd | cut -d, -f1,2 | uniq)
  # The legend: coloured words below the panels, as long as there are curves of them.
  at=0.065
  for codec in "${codecs[@]}"; do
    IFS=';' read -r id title colour width point <<<"$codec"
    [ -n "$(rows rd | awk -F, -v k="$id" '$3 == k')$(rows nvjpeg2000 | awk -F, -v k="$id" '$2 == k')" ] || continue
    echo "set label '$title' at screen $at,0.03 left textcolor rgb '$colour' point lc rgb '$colour' pt $point ps 0.9 offset 0.9,0"
    at=$(awk "BEGIN { print $at + 0.034 + 0.0092 * ${#title} }")
  done
  panel=0
  for clip in $clips; do
    name=${clip%,*} frames=${clip#*,} panel=$((panel + 1))
    plots=()
    for codec in "${codecs[@]}"; do
      IFS=';' read -r id title colour width point <<<"$codec"
      file=$scratch/$name.$id
      { rows rd | awk -F, -v c="$name" -v k="$id" '$1 == c && $3 == k { print $6, $8 }'
        rows nvjpeg2000 | awk -F, -v c="$name" -v k="$id" '$1 == c && $2 == k { print $5, $6 }'; } | sort -n >"$file"
      [ -s "$file" ] || continue
      plots+=("'$file' using 1:2 with linespoints lc rgb '$colour' lw $width pt $point ps 0.55 title '$title'")
    done
    echo "set title '${name//_/ }, $frames frames' offset 0,-0.6 textcolor rgb '#212f3c' noenhanced"
    case $panel in
      1) echo "set ylabel 'PSNR of all planes, dB' offset 1.2 textcolor rgb '#212f3c'; unset xlabel" ;;
      3) echo "set ylabel 'PSNR of all planes, dB' offset 1.2; set xlabel 'bits per pixel' offset 0,0.4" ;;
      *) echo "unset ylabel" ;;
    esac
    (IFS=,; echo "plot ${plots[*]}")
    echo "unset label"
  done
  echo "unset multiplot"
} >"$scratch/rd.gp"
gnuplot "$scratch/rd.gp"

# ---------------------------------------------------------------------------------------------------------------- speed
# A line: group;name;encode;decode. Frames a second; the peers' Msamples a second are of 1080p, 4:2:0.
per_frame=3.1104
{
  rows peers | awk -F, -v n=$per_frame '{
    split("x264-medium x264-intra x265-medium openjpeg", id, " ")
    split("x264 medium;x264 medium, intra;x265 medium;OpenJPEG", name, ";")
    if (!($3 in best) || ($6 - 0.4) ^ 2 < best[$3]) { best[$3] = ($6 - 0.4) ^ 2; enc[$3] = $11 / n; dec[$3] = $12 / n }
  } END { for (i = 4; i; --i) if (id[i] in enc) printf "cpu;%s;%s;%s\n", name[i], enc[id[i]], dec[id[i]] }'
  rows speed | awk -F, '$2 == "-q 60" { print ($1 == "fast" ? "cpu;Trivelet, fast;" : "cpu;Trivelet;") $5 ";" $6 }' | sort -r
  rows nvjpeg2000 | awk -F, '$1 == "bbb" {
    d = ($5 - 0.4) ^ 2; if (!($2 in best) || d < best[$2]) { best[$2] = d; enc[$2] = $8; dec[$2] = $9 }
  } END { if ("j2k" in enc) print "gpu;nvJPEG2000, J2K;" enc["j2k"] ";" dec["j2k"]
          if ("htj2k" in enc) print "gpu;nvJPEG2000, HTJ2K;" enc["htj2k"] ";" dec["htj2k"] }'
  for profile in dense fast; do
    rows gpu_codec | awk -F, -v p=$profile '$1 == p && $2 == "-q 60" && $6 > best[$4] { best[$4] = $6 }
      END { if (best["encode"]) print "gpu;" (p == "fast" ? "Trivelet, fast;" : "Trivelet;") best["encode"] ";" best["decode"] }'
  done
} >"$scratch/bars"
awk -F';' '{
  if (NR > 1 && $1 != group) y += 0.7
  group = $1
  printf "%g;%s;%s;%s;%s\n", y, $2, $3, $4, ($1 == "gpu" ? "on an H200" : "on a CPU core")
  ++y
}' "$scratch/bars" >"$scratch/placed"
count=$(tail -n 1 "$scratch/placed" | cut -d';' -f1)
{
  terminal 900 $((150 + 40 * $(wc -l <"$scratch/placed")))
  echo "set output '$out/speed.$kind'"
  cat <<'PLOT'
set datafile separator ';'
set border 1 lc rgb '#808b96'
set grid xtics lt 1 lc rgb '#d5d8dc' lw 0.5
set tics nomirror textcolor rgb '#212f3c'
set logscale x
set xrange [0.5:60000]
set xtics ('1' 1, '10' 10, '100' 100, '1,000' 1000, '10,000' 10000)
set ytics scale 0
set style fill solid 1 noborder
set key outside top center horizontal samplen 2
set lmargin 32
set xlabel 'frames a second of 1080p, 4:2:0, 8 bits'
PLOT
  echo "set yrange [-0.7:$count + 0.7]"
  echo "f(x) = x < 10 ? sprintf('%.1f', x) : x < 1000 ? sprintf('%.0f', x) : sprintf('%d,%03d', int(x / 1000), int(x) % 1000)"
  echo "plot '$scratch/placed' using (0.5):(\$1 + 0.19):(0.5):3:(\$1 + 0.02):(\$1 + 0.36):ytic(sprintf('%s, %s', strcol(2), strcol(5))) with boxxyerror lc rgb '#c0392b' title 'encode', \\"
  echo "  '' using (0.5):(\$1 - 0.19):(0.5):4:(\$1 - 0.36):(\$1 - 0.02) with boxxyerror lc rgb '#2e86c1' title 'decode', \\"
  echo "  '' using 3:(\$1 + 0.19):(f(\$3)) with labels left offset 0.5,0 font ',10' textcolor rgb '#212f3c' notitle, \\"
  echo "  '' using 4:(\$1 - 0.19):(f(\$4)) with labels left offset 0.5,0 font ',10' textcolor rgb '#212f3c' notitle"
} >"$scratch/speed.gp"
gnuplot "$scratch/speed.gp"

# gnuplot opens and closes many groups with nothing in them.
if [ "$kind" = svg ]; then
  python3 - "$out/rate_distortion.svg" "$out/speed.svg" <<'PYTHON'
import re, sys
for path in sys.argv[1:]:
    text, count = open(path).read(), 1
    while count:
        text, count = re.subn(r"<g [^>]*>\s*</g>\s*", "", text)
    text = re.sub(r"\t?<title>gnuplot_plot[^<]*</title>\s*|<filter.*?</filter>\s*| class=\"gridline\" ", "", text, flags=re.S)
    text = re.sub(r"<tspan[^>]*>([^<]*)</tspan>", r"\1", text).replace(' stroke-linecap="round" stroke-linejoin="round"', "")
    open(path, "w").write(re.sub(r"\n\s*\n+", "\n", text))
PYTHON
fi
ls -l "$out"/*."$kind"
