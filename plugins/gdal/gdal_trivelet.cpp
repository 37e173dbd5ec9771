// A raster driver for GDAL: volumes (multispectral and hyperspectral stacks, elevation models) by the C interface. GDAL
// finds it in the folder that GDAL_DRIVER_PATH names. QGIS, rasterio and others read through GDAL.
//
//   gdalinfo stack.tvl
//   gdal_translate -of Trivelet -co MAX_ERROR=2 stack.tif stack.tvl
//
// Bands are the slices of a volume, and each of them all channels of a voxel; of several volumes one after the other.
// Where the transform leaves slices apart, its smaller sizes are overviews. Georeference, statistics and the like stand
// in a file .aux.xml beside the stream, as GDAL has it for formats that have no place for them. Files are read through
// GDAL, also /vsicurl/ ones, of which only the bytes that a window needs are asked for.

#include <gdal_pam.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "trivelet/trivelet.h"

extern "C" __attribute__((visibility("default"))) void GDALRegister_Trivelet();

namespace {

constexpr std::array<std::uint8_t, 8> kSignature = {0x89, 'T', 'V', 'L', '\r', '\n', 0x1A, '\n'};
// Blocks of the stream are 128 wide unless they were asked for otherwise; four of them share the cost of a window.
constexpr int kBlock = 256;
constexpr std::uint64_t kMostBands = 65536;

GDALDataType to_gdal(int type) {
  switch (type) {
    case TVL_U8: return GDT_Byte;
    case TVL_U16: return GDT_UInt16;
    case TVL_I16: return GDT_Int16;
    case TVL_U32: return GDT_UInt32;
    case TVL_I32: return GDT_Int32;
    case TVL_U64: return GDT_UInt64;
    case TVL_I64: return GDT_Int64;
    case TVL_F32: return GDT_Float32;
    case TVL_F64: return GDT_Float64;
    default: return GDT_Unknown;  // signed bytes, which GDAL has since 3.7
  }
}

int to_trivelet(GDALDataType type) {
  switch (type) {
    case GDT_Byte: return TVL_U8;
    case GDT_UInt16: return TVL_U16;
    case GDT_Int16: return TVL_I16;
    case GDT_UInt32: return TVL_U32;
    case GDT_Int32: return TVL_I32;
    case GDT_UInt64: return TVL_U64;
    case GDT_Int64: return TVL_I64;
    case GDT_Float32: return TVL_F32;
    case GDT_Float64: return TVL_F64;
    default: return -1;
  }
}

CPLErr complain(const std::string& name, const std::string& text) {
  CPLError(CE_Failure, CPLE_AppDefined, "%s: %s", name.c_str(), text.c_str());
  return CE_Failure;
}

std::int64_t read_file(void* user, void* data, std::uint64_t size) {
  return static_cast<std::int64_t>(VSIFReadL(data, 1, static_cast<std::size_t>(size), static_cast<VSILFILE*>(user)));
}

int seek_file(void* user, std::uint64_t position) {
  return VSIFSeekL(static_cast<VSILFILE*>(user), position, SEEK_SET);
}

int write_file(void* user, const void* data, std::uint64_t size) {
  return VSIFWriteL(data, 1, static_cast<std::size_t>(size), static_cast<VSILFILE*>(user)) == size ? 0 : 1;
}

/// A stream, open through GDAL's files. Datasets are used by one thread at a time, and so is this.
class Stream {
 public:
  Stream(std::string name, VSILFILE* file) : name_(std::move(name)), file_(file), decoder_(tvl_decoder_new()) {
    VSIFSeekL(file_, 0, SEEK_END);
    size_ = VSIFTellL(file_);
  }
  ~Stream() {
    tvl_decoder_free(decoder_);
    VSIFCloseL(file_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Opens a box; `whole`, `part` and `info` are those of it.
  bool open(const tvl_volume_decode_params& params, bool quiet = false) {
    tvl_source source;
    tvl_source_init(&source, sizeof source);
    source.read = read_file, source.seek = seek_file, source.user = file_, source.size = size_;
    tvl_volume_init(&whole, sizeof whole);
    tvl_volume_init(&part, sizeof part);
    tvl_volume_info_init(&info, sizeof info);
    tvl_stream_info_init(&stream, sizeof stream);
    VSIFSeekL(file_, 0, SEEK_SET);
    if (tvl_decoder_open_volume(decoder_, &source, &params) == TVL_OK &&
        tvl_decoder_volume(decoder_, &whole, &part, &info) == TVL_OK && tvl_decoder_stream(decoder_, &stream) == TVL_OK)
      return true;
    if (!quiet) complain(name_, tvl_decoder_error(decoder_));
    return false;
  }

  /// Reads all voxels of the open box.
  bool read(std::vector<std::byte>& voxels) {
    voxels.resize(static_cast<std::size_t>(tvl_volume_bytes(&part)));
    const std::uint64_t slices = part.slices * part.volumes;
    const std::uint64_t slice_bytes = voxels.size() / slices;
    std::uint64_t count = 1;
    for (std::uint64_t at = 0; at < slices; at += count) {
      const tvl_voxels into = {voxels.data() + at * slice_bytes, 0, 0, 0};
      if (tvl_decoder_read_slices(decoder_, &into, slices - at, &count) != TVL_OK || count == 0) {
        complain(name_, count == 0 ? "the stream ends early" : tvl_decoder_error(decoder_));
        return false;
      }
    }
    return true;
  }

  const std::string& name() const { return name_; }

  tvl_volume whole{}, part{};
  tvl_volume_info info{};
  tvl_stream_info stream{};

 private:
  std::string name_;
  VSILFILE* file_;
  std::uint64_t size_ = 0;
  tvl_decoder* decoder_;
};

class Band;

/// A volume, or a smaller size of it.
class Dataset final : public GDALPamDataset {
 public:
  static int identify(GDALOpenInfo* info);
  static GDALDataset* open(GDALOpenInfo* info);
  static GDALDataset* create_copy(const char* name, GDALDataset* from, int strict, char** options,
                                  GDALProgressFunc progress, void* progress_data);

 private:
  friend class Band;
  bool begin(std::shared_ptr<Stream> stream, int reduce);

  std::shared_ptr<Stream> stream_;
  int reduce_ = 0;
  std::uint64_t run_ = 1;  // slices that are transformed together: to decode one of them decodes all
  std::vector<std::unique_ptr<Dataset>> overviews_;
};

class Band final : public GDALPamRasterBand {
 public:
  Band(Dataset* of, int number, GDALDataType type) {
    poDS = of;
    nBand = number;
    eDataType = type;
    nBlockXSize = std::min(kBlock, of->GetRasterXSize());
    nBlockYSize = std::min(kBlock, of->GetRasterYSize());
  }
  int GetOverviewCount() override {
    const auto count = static_cast<int>(dataset().overviews_.size());
    return count > 0 ? count : GDALPamRasterBand::GetOverviewCount();
  }
  GDALRasterBand* GetOverview(int i) override {
    if (dataset().overviews_.empty()) return GDALPamRasterBand::GetOverview(i);
    if (i < 0 || i >= GetOverviewCount()) return nullptr;
    return dataset().overviews_[static_cast<std::size_t>(i)]->GetRasterBand(nBand);
  }
  CPLErr IReadBlock(int x, int y, void* image) override;

 private:
  Dataset& dataset() { return *static_cast<Dataset*>(poDS); }
  void take(const std::vector<std::byte>& voxels, int band, std::uint64_t slice, void* image) const;
};

/// One band of decoded voxels into a block, whose missing columns and rows stay 0.
void Band::take(const std::vector<std::byte>& voxels, int band, std::uint64_t slice, void* image) const {
  const Stream& s = *static_cast<Dataset*>(poDS)->stream_;
  const auto size = static_cast<std::size_t>(GDALGetDataTypeSizeBytes(eDataType));
  const auto channels = static_cast<std::size_t>(s.part.channels);
  const auto width = static_cast<std::size_t>(s.part.width), height = static_cast<std::size_t>(s.part.height);
  const std::size_t channel = static_cast<std::size_t>(band - 1) % channels;
  std::memset(image, 0, size * static_cast<std::size_t>(nBlockXSize) * static_cast<std::size_t>(nBlockYSize));
  for (std::size_t row = 0; row < height; ++row) {
    const std::byte* from = voxels.data() + ((slice * height + row) * width * channels + channel) * size;
    auto* to = static_cast<std::byte*>(image) + row * static_cast<std::size_t>(nBlockXSize) * size;
    for (std::size_t column = 0; column < width; ++column)
      std::memcpy(to + column * size, from + column * channels * size, size);
  }
#ifdef CPL_LSB
  const bool swap = s.part.big_endian != 0;
#else
  const bool swap = s.part.big_endian == 0;
#endif
  if (swap && size > 1) GDALSwapWords(image, static_cast<int>(size), nBlockXSize * nBlockYSize, static_cast<int>(size));
}

/// A block of this band, and those of the bands that are decoded with it, which GDAL keeps until they are asked for.
CPLErr Band::IReadBlock(int x, int y, void* image) {
  Dataset& d = dataset();
  Stream& s = *d.stream_;
  const auto channels = static_cast<std::uint64_t>(s.whole.channels);
  const std::uint64_t number = static_cast<std::uint64_t>(nBand - 1) / channels;
  const std::uint64_t slice = number % s.whole.slices, first = slice / d.run_ * d.run_;
  tvl_volume_decode_params p;
  tvl_volume_decode_params_init(&p, sizeof p);
  p.reduce = d.reduce_;
  const std::uint64_t left = static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(nBlockXSize);
  const std::uint64_t top = static_cast<std::uint64_t>(y) * static_cast<std::uint64_t>(nBlockYSize);
  const auto scale = [&d](std::uint64_t value) { return value << d.reduce_; };
  p.x = scale(left), p.y = scale(top), p.z = first;
  p.width =
      std::min(scale(left + static_cast<std::uint64_t>(nBlockXSize)), static_cast<std::uint64_t>(s.whole.width)) - p.x;
  p.height =
      std::min(scale(top + static_cast<std::uint64_t>(nBlockYSize)), static_cast<std::uint64_t>(s.whole.height)) - p.y;
  p.depth = std::min(d.run_, s.whole.slices - first);
  p.first_volume = number / s.whole.slices, p.volumes = 1;
  std::vector<std::byte> voxels;
  if (!s.open(p) || !s.read(voxels)) return CE_Failure;
  if (s.part.width > nBlockXSize || s.part.height > nBlockYSize || s.part.slices != p.depth)
    return complain(s.name(), "a window of another size than was asked for");
  take(voxels, nBand, slice - first, image);
  for (std::uint64_t i = 0; i < p.depth; ++i)
    for (std::uint64_t c = 0; c < channels; ++c) {
      const auto other = static_cast<int>((p.first_volume * s.whole.slices + first + i) * channels + c + 1);
      if (other == nBand) continue;
      auto* band = static_cast<Band*>(d.GetRasterBand(other));
      GDALRasterBlock* block = band->TryGetLockedBlockRef(x, y);
      if (!block) {
        block = band->GetLockedBlockRef(x, y, TRUE);
        if (!block) return CE_None;  // the cache is full: it is decoded once more when it is asked for
        band->take(voxels, other, i, block->GetDataRef());
      }
      block->DropLock();
    }
  return CE_None;
}

int Dataset::identify(GDALOpenInfo* info) {
  return info->nHeaderBytes >= static_cast<int>(kSignature.size()) &&
         std::memcmp(info->pabyHeader, kSignature.data(), kSignature.size()) == 0;
}

bool Dataset::begin(std::shared_ptr<Stream> stream, int reduce) {
  stream_ = std::move(stream);
  reduce_ = reduce;
  const Stream& s = *stream_;
  nRasterXSize = s.part.width;
  nRasterYSize = s.part.height;
  run_ = s.stream.gop_frames > 0 ? static_cast<std::uint64_t>(s.stream.gop_frames) : 1;
  const GDALDataType type = to_gdal(s.whole.type);
  if (type == GDT_Unknown) {
    complain(s.name(), "its voxels are signed bytes, for which this version of GDAL has no type");
    return false;
  }
  const std::uint64_t most = kMostBands / static_cast<std::uint64_t>(s.whole.channels);
  if (s.whole.slices > most || s.whole.volumes > most / s.whole.slices) {
    complain(s.name(), "it has more than " + std::to_string(kMostBands) + " bands");
    return false;
  }
  const std::uint64_t bands = s.whole.slices * s.whole.volumes * static_cast<std::uint64_t>(s.whole.channels);
  for (int i = 1; i <= static_cast<int>(bands); ++i) SetBand(i, new Band(this, i, type));
  GDALMajorObject::SetMetadataItem("INTERLEAVE", "BAND", "IMAGE_STRUCTURE");
  GDALMajorObject::SetMetadataItem("COMPRESSION", s.info.exact != 0 ? "Trivelet, lossless" : "Trivelet",
                                   "IMAGE_STRUCTURE");
  if (s.info.has_bound != 0 && s.info.exact == 0)
    GDALMajorObject::SetMetadataItem("MAX_ERROR", CPLSPrintf("%.17g", s.info.max_error), "IMAGE_STRUCTURE");
  return true;
}

GDALDataset* Dataset::open(GDALOpenInfo* info) {
  if (identify(info) == 0 || info->fpL == nullptr) return nullptr;
  if (info->eAccess == GA_Update) {
    complain(info->pszFilename, "the driver Trivelet cannot change files; copy to a new one");
    return nullptr;
  }
  auto stream = std::make_shared<Stream>(info->pszFilename, info->fpL);
  info->fpL = nullptr;
  tvl_volume_decode_params p;
  tvl_volume_decode_params_init(&p, sizeof p);
  if (!stream->open(p)) return nullptr;
  auto dataset = std::make_unique<Dataset>();
  if (!dataset->begin(stream, 0)) return nullptr;
  const int levels = stream->info.prediction != 0 ? 0 : stream->stream.spatial_levels;
  for (p.reduce = 1; p.reduce <= levels && stream->open(p, true) && stream->part.slices == stream->whole.slices;
       ++p.reduce) {
    auto smaller = std::make_unique<Dataset>();
    if (!smaller->begin(stream, p.reduce)) break;
    dataset->overviews_.push_back(std::move(smaller));
  }
  dataset->SetDescription(info->pszFilename);
  dataset->TryLoadXML();
  dataset->oOvManager.Initialize(dataset.get(), info->pszFilename);
  return dataset.release();
}

/// Rows of the bands that are copied, one after the other.
struct Copy {
  GDALDataset* from;
  GDALDataType type;
  GDALProgressFunc progress;
  void* progress_data;
  std::uint64_t given = 0;
  bool failed = false;
};

int give_slice(void* user, std::uint64_t number, void* slice) {
  auto& copy = *static_cast<Copy*>(user);
  const int width = copy.from->GetRasterXSize(), height = copy.from->GetRasterYSize();
  GDALRasterBand* band = copy.from->GetRasterBand(static_cast<int>(number) + 1);
  // Slices are asked for twice.
  const double part = static_cast<double>(++copy.given) / (2.0 * copy.from->GetRasterCount());
  copy.failed =
      band->RasterIO(GF_Read, 0, 0, width, height, slice, width, height, copy.type, 0, 0, nullptr) != CE_None ||
      copy.progress(std::min(part, 1.0), nullptr, copy.progress_data) == 0;
  return copy.failed ? 1 : 0;
}

/// Sets `value` to the option, if it is there; false for what is no number.
bool number_option(char** options, const char* key, double& value) {
  const char* text = CSLFetchNameValue(options, key);
  if (!text) return true;
  char* end = nullptr;
  value = CPLStrtod(text, &end);
  return end != text && *end == 0 && std::isfinite(value);
}

/// Sets `value` to the place of the option among `names`; false for another one.
bool choice_option(char** options, const char* key, const char* names, std::int32_t& value) {
  const char* text = CSLFetchNameValue(options, key);
  if (!text) return true;
  const CPLStringList list(CSLTokenizeString2(names, ",", 0));
  const int found = list.FindString(text);
  value = found;
  return found >= 0;
}

bool read_options(const std::string& name, char** options, tvl_volume_params& p) {
  double threads = 0;
  const char* bad = !number_option(options, "MAX_ERROR", p.max_error)                                  ? "MAX_ERROR"
                    : !number_option(options, "QUALITY", p.quality)                                    ? "QUALITY"
                    : !number_option(options, "PSNR", p.psnr)                                          ? "PSNR"
                    : !number_option(options, "NUM_THREADS", threads) || threads < 0 || threads > 1024 ? "NUM_THREADS"
                    : !choice_option(options, "TRANSFORM", "AUTO,WAVELET,PREDICTION", p.transform)     ? "TRANSFORM"
                    : !choice_option(options, "EFFORT", "FAST,MEDIUM,SLOW", p.effort)                  ? "EFFORT"
                                                                                                       : nullptr;
  p.threads = static_cast<std::int32_t>(threads);
  if (bad) complain(name, std::string("the option ") + bad + " is '" + CSLFetchNameValue(options, bad) + "'");
  return bad == nullptr;
}

/// Encodes to a file of another name, which is renamed when it is whole.
bool encode(const std::string& name, const tvl_volume& volume, const tvl_volume_params& params, Copy& copy) {
  const std::string temporary = name + ".part";
  VSILFILE* file = VSIFOpenL(temporary.c_str(), "wb");
  if (!file) {
    complain(temporary, "the file cannot be written");
    return false;
  }
  tvl_sink sink;
  tvl_sink_init(&sink, sizeof sink);
  sink.write = write_file, sink.user = file;
  tvl_encoder* encoder = tvl_encoder_new();
  const tvl_result result = tvl_encoder_write_volume(encoder, &volume, &params, nullptr, give_slice, &copy, &sink);
  const bool written = VSIFCloseL(file) == 0;
  // Of a callback that failed GDAL was told already.
  if (result != TVL_OK && !copy.failed) complain(name, tvl_encoder_error(encoder));
  tvl_encoder_free(encoder);
  const bool good = result == TVL_OK && written && VSIRename(temporary.c_str(), name.c_str()) == 0;
  if (!good) VSIUnlink(temporary.c_str());
  if (result == TVL_OK && !good) complain(name, "the file cannot be written");
  return good;
}

GDALDataset* Dataset::create_copy(const char* name, GDALDataset* from, int strict, char** options,
                                  GDALProgressFunc progress, void* progress_data) {
  const int bands = from->GetRasterCount();
  GDALDataType type = bands > 0 ? from->GetRasterBand(1)->GetRasterDataType() : GDT_Unknown;
  for (int i = 2; i <= bands; ++i) type = GDALDataTypeUnion(type, from->GetRasterBand(i)->GetRasterDataType());
  if (to_trivelet(type) < 0) {
    complain(name, bands == 0 ? "there are no bands"
                              : std::string("bands of ") + GDALGetDataTypeName(type) + " are not coded");
    return nullptr;
  }
  if (from->GetRasterXSize() > 65536 || from->GetRasterYSize() > 65536) {
    complain(name, "it has " + std::to_string(from->GetRasterXSize()) + "x" + std::to_string(from->GetRasterYSize()) +
                       " pixels; a side has at most 65536");
    return nullptr;
  }
  (void)strict;
  tvl_volume volume;
  tvl_volume_init(&volume, sizeof volume);
  volume.type = to_trivelet(type);
  volume.width = from->GetRasterXSize(), volume.height = from->GetRasterYSize();
  volume.slices = static_cast<std::uint64_t>(bands);
#ifndef CPL_LSB
  volume.big_endian = 1;
#endif
  tvl_volume_params params;
  tvl_volume_params_init(&params, sizeof params);
  if (!read_options(name, options, params)) return nullptr;
  int has_nodata = 0;
  const double nodata = from->GetRasterBand(1)->GetNoDataValue(&has_nodata);
  const bool lossy = params.max_error > 0 || params.quality >= 0 || params.psnr >= 0;
  if (has_nodata != 0 && lossy && (type == GDT_Float32 || type == GDT_Float64))
    params.fill_values = &nodata, params.fill_count = 1;
  Copy copy = {from, type, progress, progress_data};
  if (!encode(name, volume, params, copy)) return nullptr;
  progress(1.0, nullptr, progress_data);
  GDALOpenInfo info(name, GA_ReadOnly);
  auto* made = static_cast<GDALPamDataset*>(open(&info));
  if (made) made->CloneInfo(from, GCIF_PAM_DEFAULT);
  return made;
}

}  // namespace

void GDALRegister_Trivelet() {
  if (!GDAL_CHECK_VERSION("Trivelet") || GDALGetDriverByName("Trivelet")) return;
  auto driver = std::make_unique<GDALDriver>();
  driver->SetDescription("Trivelet");
  driver->SetMetadataItem(GDAL_DCAP_RASTER, "YES");
  driver->SetMetadataItem(GDAL_DMD_LONGNAME, "Trivelet volumes");
  driver->SetMetadataItem(GDAL_DMD_EXTENSION, "tvl");
  driver->SetMetadataItem(GDAL_DCAP_VIRTUALIO, "YES");
  driver->SetMetadataItem(GDAL_DMD_CREATIONDATATYPES, "Byte UInt16 Int16 UInt32 Int32 UInt64 Int64 Float32 Float64");
  driver->SetMetadataItem(GDAL_DMD_CREATIONOPTIONLIST, R"(<CreationOptionList>
  <Option name='MAX_ERROR' type='float' description='No value errs by more; without this and the next two: lossless'/>
  <Option name='QUALITY' type='float' description='0 to 100'/>
  <Option name='PSNR' type='float' description='dB'/>
  <Option name='TRANSFORM' type='string-select' default='AUTO' description='Windows of wavelets are read alone'>
    <Value>AUTO</Value><Value>WAVELET</Value><Value>PREDICTION</Value></Option>
  <Option name='EFFORT' type='string-select' default='MEDIUM'>
    <Value>FAST</Value><Value>MEDIUM</Value><Value>SLOW</Value></Option>
  <Option name='NUM_THREADS' type='int' default='0' description='0: one for each core'/>
</CreationOptionList>)");
  driver->pfnIdentify = Dataset::identify;
  driver->pfnOpen = Dataset::open;
  driver->pfnCreateCopy = Dataset::create_copy;
  GetGDALDriverManager()->RegisterDriver(driver.release());
}
