// The table of examples and of options of other programs.

#include "apps/cli/usage.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace trivelet::cli {

namespace {

const std::array kUsages = {
    Usage{"encode",
          {{"film.mp4 film.mkv", "a film with its sound and subtitles"},
           {"scan.nii.gz scan.tvl", "a volume, exact"},
           {"film.mov film.tvl --size 200MB", "a file of that size"},
           {"archive --recursive --out-dir coded --lossless --verify --report coded.json", "all files of a folder"}},
          {"--quality", "--lossless", "--preset", "--size", "--bitrate", "--psnr", "--max-error", "--frames",
           "--verify", "--out-dir", "--overwrite"}},
    Usage{"decode",
          {{"film.tvl film.mkv", "whole, in FFV1"},
           {"film.tvl half.mp4 --reduce 1 --frames 10s:20s", "half the size, ten seconds"},
           {"scan.tvl part.nii --region 40,40,10,64,64,20", "a box of a volume"}},
          {"--reduce", "--temporal-reduce", "--frames", "--region", "--max-layers", "--format", "--pix-fmt", "--codec",
           "--keep-partial", "--out-dir", "--overwrite"}},
    Usage{"info",
          {{"film.tvl", "what the stream holds"}, {"scan.tvl --json", "the same for programs"}},
          {"--json", "--verbose"}},
    Usage{"truncate",
          {{"film.tvl small.tvl --size 20MB", "the best file of that size"},
           {"film.tvl small.tvl --bitrate 8Mbps", "for a connection"}},
          {"--size", "--bpp", "--bitrate", "--layers", "--psnr", "--overwrite"}},
    Usage{"extract",
          {{"film.tvl proxy.tvl --reduce 1 --temporal-reduce 1", "half the size and frame rate"},
           {"film.tvl cut.tvl --frames 10s:20s", "the GOPs of ten seconds"}},
          {"--reduce", "--temporal-reduce", "--frames", "--overwrite"}},
    Usage{"join",
          {{"part1.tvl part2.tvl -o film.tvl", "parts of 'encode --joinable'"},
           {"part*.tvl -o film.mkv --tracks-from film.mp4", "with the sound of the original"}},
          {"--output", "--tracks-from", "--overwrite"}},
    Usage{"play",
          {{"film.mkv", "a film"}, {"film.mkv --compare small.tvl", "two streams on one screen"}},
          {"--seek", "--compare", "--fullscreen", "--no-budget", "--loop"}},
    Usage{"thumbnail",
          {{"film.mkv film.png", "at most 256 pixels wide and high"},
           {"film.tvl frame.jpg --size 512 --frame 100", "of frame 100"},
           {"brain.tvl brain.png", "the middle slice of a volume"}},
          {"--size", "--frame", "--overwrite"}},
    Usage{"mux",
          {{"film.tvl film.mkv --tracks-from film.mp4", "with the sound of film.mp4"},
           {"film.tvl film.mkv", "pictures only"}},
          {"--tracks-from", "--audio", "--overwrite"}},
    Usage{"demux",
          {{"film.mkv film.tvl", "the stream alone"}, {"film.mkv - | trivelet info -", "into a pipe"}},
          {"--overwrite"}},
    Usage{"plan",
          {{"film.tvl --reduce 2", "bytes for a quarter of width and height"},
           {"scan.tvl --region 40,40,10,64,64,20 --json", "bytes for a box"}},
          {"--reduce", "--frames", "--region", "--max-layers", "--json"}},
    Usage{"verify",
          {{"film.tvl", "looks for damage"},
           {"coded --recursive", "the same in all streams of a folder"},
           {"film.tvl --against film.mov", "compares with the original"}},
          {"--against", "--recursive", "--json"}},
    Usage{"compare",
          {{"film.mov film.tvl", "PSNR and SSIM"}, {"film.mov film.tvl --frames-csv frames.csv", "of each frame"}},
          {"--json", "--frames-csv"}},
    Usage{"bench",
          {{"film.y4m --preset fast -q 60", "the time of each stage"}, {"gpu film.y4m --profile fast", "on a GPU"}},
          {"--frames", "--repeat", "--preset", "--quality", "--json"}},
    Usage{"view",
          {{"scan.tvl -o slice.png --slice z=40", "a slice"},
           {"scan.nii.gz -o planes.png --montage --window -160:240", "three planes of a CT"}},
          {"--output", "--slice", "--montage", "--window"}},
    Usage{"still", {{"encode picture.pgm picture.c122", "exact"}, {"decode picture.c122 back.png", "and back"}}, {}},
    Usage{"ccsds", {{"encode picture.pgm picture.c122", "exact"}, {"decode picture.c122 back.pgm", "and back"}}, {}},
    Usage{"still encode",
          {{"picture.pgm picture.c122", "exact, by CCSDS 122.0"}, {"photo.png photo.tvs --effort fast", "vstc, lossy"}},
          {}},
    Usage{"still decode", {{"picture.c122 back.png", "a picture"}, {"picture.tvs - | display", "into a pipe"}}, {}},
    Usage{"still info", {{"picture.tvs", "what the file holds"}, {"picture.tvs --json", "the same for programs"}}, {}},
    Usage{"ccsds encode", {{"picture.pgm picture.c122", "exact"}, {"*.png coded", "many files into a folder"}}, {}},
    Usage{"ccsds decode", {{"picture.c122 back.png", "a picture"}, {"*.c122 decoded", "many files into a folder"}}, {}},
    Usage{
        "ccsds info", {{"picture.c122", "segments and headers"}, {"picture.c122 --json", "the same for programs"}}, {}},
    Usage{"ccsds compare", {{"picture.pgm picture.c122", "PSNR"}, {"a.pgm b.pgm --json", "the same for programs"}}, {}},
    Usage{"ccsds bench",
          {{"picture.pgm", "the time of each stage"}, {"--side 2048 --repeat 3", "a picture made for it"}},
          {}},
    Usage{"bench gpu",
          {{"--csv gpu.csv --plot gpu.gp", "figures, and a script that draws them"},
           {"--codec-only", "without the transforms"}},
          {}},
    Usage{"bench dwt2d",
          {{"--sizes 512x512 --repeat 1", "one size"}, {"--device gpu --csv", "on a GPU, for a program"}},
          {}},
    Usage{"bench dct2d", {{"--sizes 256 --repeat 1", "one size"}, {"--keep 0.25 -q 30", "fewer coefficients"}}, {}},
    Usage{"bench papers", {{"--side 512 --repeat 1", "a small picture"}, {"--device gpu", "on a GPU"}}, {}},
    Usage{"bench ccsds",
          {{"picture.pgm", "the time of each stage"}, {"--side 2048 --repeat 3", "a picture made for it"}},
          {}},
};

/// Options of FFmpeg, x264, x265, OpenJPEG, and what does the same here. VALUE stands for the word behind the option.
constexpr std::pair<std::string_view, std::string_view> kForeign[] = {
    {"-i", "the input stands without an option"},
    {"--input", "the input stands without an option"},
    {"-b:v", "use --bitrate VALUE"},
    {"-b", "use --bitrate VALUE"},
    {"-vb", "use --bitrate VALUE"},
    {"-maxrate", "use --max-rate VALUE"},
    {"-bufsize", "use --max-rate with --rate-window, its seconds"},
    {"--vbv-maxrate", "use --max-rate VALUE in bits, 8000k for 8000"},
    {"--vbv-bufsize", "use --max-rate with --rate-window, its seconds"},
    {"-fs", "use --size VALUE"},
    {"-c:v", "encode writes Trivelet, decode takes --codec"},
    {"-vcodec", "encode writes Trivelet, decode takes --codec"},
    {"-preset", "use --preset fast, medium or slow"},
    {"-tune", "use --tune psnr or visual"},
    {"-q:v", "use -q, 0 to 100 and the higher the better"},
    {"-qscale:v", "use -q, 0 to 100 and the higher the better"},
    {"-qp", "use --step, the step of the quantiser"},
    {"--qp", "use --step, the step of the quantiser"},
    {"-lossless", "use --lossless"},
    {"-r", "use --fps VALUE for the frame rate"},
    {"-s", "use --size VALUE"},
    {"-s:v", "use --size VALUE"},
    {"--input-res", "use --size VALUE"},
    {"-pix_fmt", "use --pix-fmt VALUE"},
    {"--pix_fmt", "use --pix-fmt VALUE"},
    {"--input-csp", "use --pix-fmt"},
    {"-g", "use --gop VALUE"},
    {"--keyframe", "use --gop VALUE"},
    {"-ss", "use --frames A:B; A and B may be times, such as 10s:20s"},
    {"-t:v", "use --frames A:B; A and B may be times, such as 10s:20s"},
    {"-to", "use --frames A:B; A and B may be times, such as 10s:20s"},
    {"-frames:v", "use --frames :VALUE"},
    {"--seek", "use --frames VALUE:"},
    {"-an", "use --audio none"},
    {"-map", "use --map VALUE"},
    {"-c:a", "use --audio copy, none, opus or flac"},
    {"-acodec", "use --audio copy, none, opus or flac"},
    {"-threads", "use --threads VALUE"},
    {"-f", "use --format VALUE"},
    {"-vf", "filter with ffmpeg, and encode its output from a pipe"},
    {"-filter:v", "filter with ffmpeg, and encode its output from a pipe"},
    {"--ratio", "use --bpp, the bits of a pixel"},
    {"--distance", "use -q, 0 to 100, or --psnr"},
};

}  // namespace

const Usage* usage_of(std::string_view command) {
  const auto found = std::find_if(kUsages.begin(), kUsages.end(), [&](const Usage& u) { return u.command == command; });
  return found == kUsages.end() ? nullptr : &*found;
}

std::vector<std::pair<const char*, const char*>> environment() {
  return {{"NO_COLOR", "Messages have no colours if it is set and not empty."},
          {"TMPDIR", "Folder of the temporary file that an encoder with a target may need [/tmp]."},
          {"CUDA_VISIBLE_DEVICES", "GPUs that --device can choose from; see CUDA's manual."},
          {"SDL_VIDEODRIVER", "Screen of 'trivelet play'; see SDL's manual."}};
}

namespace {

/// -q with about the PSNR of x264's --crf (docs/COMMANDS.md has the table).
std::string quality_for_crf(const std::string& value) {
  double crf = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, crf);
  if (error != std::errc() || stop != end || crf < 0 || crf > 63) return "use -q, 0 to 100 and the higher the better";
  if (crf == 0) return "use --lossless";
  constexpr double kAt23 = 37.5;
  constexpr double kPerCrf = 1.87;
  const int quality = static_cast<int>(std::lround(std::clamp(kAt23 + kPerCrf * (23 - crf), 0.0, 100.0)));
  return "use -q " + std::to_string(quality) + ", which has about the PSNR of x264's --crf " + value;
}

}  // namespace

std::string foreign_option(const std::string& word, const std::string& value) {
  if (word == "--crf" || word == "-crf") return quality_for_crf(value);
  for (const auto& [option, answer] : kForeign) {
    if (word != option) continue;
    std::string text(answer);
    constexpr std::string_view kValue = "VALUE";
    if (const std::size_t at = text.find(kValue); at != std::string::npos && !value.empty() && value.front() != '-')
      text.replace(at, kValue.size(), value);
    return text;
  }
  return "";
}

}  // namespace trivelet::cli
