// The ITK ImageIO: programs that use ITK read and write .tvl volumes if ITK_AUTOLOAD_PATH names the folder of this
// library.
//
// Volumes have 2 to 4 axes and 1 to 4 scalars a voxel. Only the requested region is read and decoded. Slope and
// intercept of the original header are applied, which gives floats. Output is lossless unless SetCompressor is called
// with "MAX_ERROR=2", "QUALITY=70", "PSNR=50", "BPP=1" or "RATIO=10". The stream keeps a NIfTI header (or NRRD where
// NIfTI lacks the voxel type), so that the program can restore such a file.

#include <itkImageIOBase.h>
#include <itkObjectFactoryBase.h>
#include <itkVersion.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/adapters.h"
#include "io/volume/volume_io.h"
#include "trivelet/streams.h"
#include "trivelet/volume.h"

// Only headers are read, so the adapters of FFmpeg and GDCM are not linked (io/adapters.cpp).
namespace trivelet::io {
const FfmpegAdapter* ffmpeg_adapter(const std::string&) { return nullptr; }
bool have_ffmpeg() { return false; }
const GdcmAdapter* gdcm_adapter(const std::string&) { return nullptr; }
}  // namespace trivelet::io

namespace {

using Component = itk::IOComponentEnum;
using trivelet::VoxelType;

struct TypePair {
  VoxelType ours;
  Component theirs;
};
constexpr std::array<TypePair, trivelet::kVoxelTypes> kTypes = {{{VoxelType::kU8, Component::UCHAR},
                                                                 {VoxelType::kI8, Component::CHAR},
                                                                 {VoxelType::kU16, Component::USHORT},
                                                                 {VoxelType::kI16, Component::SHORT},
                                                                 {VoxelType::kU32, Component::UINT},
                                                                 {VoxelType::kI32, Component::INT},
                                                                 {VoxelType::kU64, Component::ULONGLONG},
                                                                 {VoxelType::kI64, Component::LONGLONG},
                                                                 {VoxelType::kF32, Component::FLOAT},
                                                                 {VoxelType::kF64, Component::DOUBLE}}};

/// On this platform long has 8 bytes.
std::optional<VoxelType> type_of(Component component) {
  if (component == Component::ULONG) component = Component::ULONGLONG;
  if (component == Component::LONG) component = Component::LONGLONG;
  for (const TypePair& pair : kTypes)
    if (pair.theirs == component) return pair.ours;
  return std::nullopt;
}

/// ITK voxels in memory, together with a header for the stream.
class Slices final : public trivelet::SliceSource {
 public:
  Slices(const trivelet::VolumeDescription& description, const void* voxels, std::vector<std::uint8_t> envelope)
      : memory_(description, static_cast<const std::byte*>(voxels)), envelope_(std::move(envelope)) {}
  const trivelet::VolumeDescription& description() const override { return memory_.description(); }
  void read(std::byte* slice) override { memory_.read(slice); }
  void rewind() override { memory_.rewind(); }
  std::vector<std::uint8_t> envelope() override { return envelope_; }

 private:
  trivelet::MemorySlices memory_;
  std::vector<std::uint8_t> envelope_;
};

/// Parses "MAX_ERROR=2" and the like; false for other texts.
bool parse_compressor(const std::string& text, trivelet::VolumeEncoderParams& params) {
  if (text.empty() || text == "LOSSLESS") return true;
  const std::size_t sign = text.find('=');
  if (sign == std::string::npos) return false;
  std::size_t read = 0;
  double value = 0;
  try {
    value = std::stod(text.substr(sign + 1), &read);
  } catch (const std::exception&) {
    return false;
  }
  if (read != text.size() - sign - 1) return false;
  const std::string name = text.substr(0, sign);
  if (name == "MAX_ERROR")
    params.max_error = value;
  else if (name == "QUALITY")
    params.quality = value;
  else if (name == "PSNR")
    params.psnr = value;
  else if (name == "BPP")
    params.bits_per_voxel = value;
  else if (name == "RATIO")
    params.ratio = value;
  else
    return false;
  return true;
}

/// Converts stored scalars to ITK's: in the machine's byte order, or with slope and intercept.
void convert(const std::byte* stored, std::size_t scalars, const trivelet::VoxelFormat& format,
             const trivelet::io::VolumeInfo& meaning, Component component, std::byte* out) {
  const std::size_t bytes = trivelet::bytes_of(format.type);
  if (meaning.slope == 1 && meaning.intercept == 0) {
    std::memcpy(out, stored, scalars * bytes);
    if (format.big_endian && bytes > 1 && std::endian::native == std::endian::little)
      for (std::size_t i = 0; i < scalars; ++i) std::reverse(out + i * bytes, out + (i + 1) * bytes);
    return;
  }
  for (std::size_t i = 0; i < scalars; ++i) {
    const double value =
        trivelet::scalar_value(stored + i * bytes, format.type, format.big_endian) * meaning.slope + meaning.intercept;
    if (component == Component::DOUBLE) {
      std::memcpy(out + i * sizeof value, &value, sizeof value);
    } else {
      const auto single = static_cast<float>(value);
      std::memcpy(out + i * sizeof single, &single, sizeof single);
    }
  }
}

}  // namespace

namespace itk {

class TriveletImageIO : public ImageIOBase {
 public:
  ITK_DISALLOW_COPY_AND_MOVE(TriveletImageIO);
  using Self = TriveletImageIO;
  using Superclass = ImageIOBase;
  using Pointer = SmartPointer<Self>;
  itkNewMacro(Self);
  itkTypeMacro(TriveletImageIO, ImageIOBase);

  bool SupportsDimension(unsigned long dimensions) override { return dimensions >= 1 && dimensions <= 4; }
  bool CanStreamRead() override { return true; }

  bool CanReadFile(const char* name) override {
    try {
      trivelet::FileSource source(name);
      const trivelet::VolumeDecoder decoder(source, {});
      return true;
    } catch (const trivelet::Error&) {
      return false;
    }
  }

  void ReadImageInformation() override {
    try {
      trivelet::FileSource source(m_FileName);
      const trivelet::VolumeDecoder decoder(source, {});
      Describe(decoder.info());
    } catch (const trivelet::Error& error) {
      itkExceptionMacro(<< m_FileName << ": " << error.what());
    }
  }

  /// Returns the requested region with all axes of the file.
  ImageIORegion GenerateStreamableReadRegionFromRequestedRegion(const ImageIORegion& requested) const override {
    ImageIORegion region(this->GetNumberOfDimensions());
    for (unsigned int axis = 0; axis < this->GetNumberOfDimensions(); ++axis) {
      const bool asked = m_UseStreamedReading && axis < requested.GetImageDimension();
      region.SetIndex(axis, asked ? requested.GetIndex(axis) : 0);
      region.SetSize(axis, asked ? requested.GetSize(axis) : m_UseStreamedReading ? 1 : this->GetDimensions(axis));
    }
    return region;
  }

  void Read(void* buffer) override {
    try {
      std::array<std::uint64_t, 4> first = {}, extent = {1, 1, 1, 1};
      for (unsigned int axis = 0; axis < std::min(4u, m_IORegion.GetImageDimension()); ++axis) {
        first[axis] = static_cast<std::uint64_t>(m_IORegion.GetIndex(axis));
        extent[axis] = m_IORegion.GetSize(axis);
      }
      trivelet::VolumeDecoderParams params;
      params.region = {first[0], first[1], first[2], extent[0], extent[1], extent[2]};
      trivelet::FileSource source(m_FileName);
      trivelet::VolumeDecoder decoder(source, params);
      const trivelet::io::VolumeInfo meaning = Meaning(decoder.info());
      const trivelet::VolumeDescription& output = decoder.output();
      std::vector<std::byte> slice(output.slice_bytes());
      const std::size_t scalars = slice.size() / trivelet::bytes_of(output.voxel.type);
      auto* out = static_cast<std::byte*>(buffer);
      // Volumes before the requested ones are decoded as well.
      for (std::uint64_t n = 0; n < (first[3] + extent[3]) * output.slices; ++n) {
        if (!decoder.read(slice.data())) itkExceptionMacro(<< m_FileName << ": the stream ends early");
        if (n < first[3] * output.slices) continue;
        convert(slice.data(), scalars, output.voxel, meaning, m_ComponentType, out);
        out += scalars * this->GetComponentSize();
      }
    } catch (const trivelet::Error& error) {
      itkExceptionMacro(<< m_FileName << ": " << error.what());
    }
  }

  bool CanWriteFile(const char* name) override { return this->HasSupportedWriteExtension(name, true); }
  void WriteImageInformation() override {}

  void Write(const void* buffer) override {
    try {
      trivelet::io::VolumeInfo info;
      const std::optional<VoxelType> type = type_of(m_ComponentType);
      if (!type || m_NumberOfComponents > trivelet::kMaxChannels)
        itkExceptionMacro(<< m_FileName << ": voxels of " << m_NumberOfComponents << " components of type "
                          << this->GetComponentTypeAsString(m_ComponentType)
                          << "; 1 to 4 integers or floats are coded");
      info.voxel = {*type, std::endian::native == std::endian::big, static_cast<int>(m_NumberOfComponents)};
      const auto extent = [this](unsigned int axis) {
        return axis < this->GetNumberOfDimensions() ? static_cast<std::uint64_t>(this->GetDimensions(axis)) : 1;
      };
      if (this->GetNumberOfDimensions() > 4 || extent(0) > 65536 || extent(1) > 65536)
        itkExceptionMacro(<< m_FileName << ": " << this->GetNumberOfDimensions() << " axes, rows of " << extent(0)
                          << ", " << extent(1) << " of them; at most 4 axes, 65536 either way");
      info.width = static_cast<int>(extent(0));
      info.height = static_cast<int>(extent(1));
      info.slices = extent(2);
      info.volumes = extent(3);
      SetPlace(info);

      trivelet::VolumeEncoderParams params;
      if (!parse_compressor(m_Asked, params))
        itkExceptionMacro(<< "the compressor '" << m_Asked
                          << "'; there are LOSSLESS, MAX_ERROR=E, QUALITY=Q, PSNR=DB, BPP=BITS and RATIO=R");
      Slices slices(info, buffer, Header(info));
      trivelet::FileSink sink(m_FileName, true);
      trivelet::encode_volume(slices, params, sink);
      sink.commit();
    } catch (const trivelet::Error& error) {
      itkExceptionMacro(<< m_FileName << ": " << error.what());
    }
  }

 protected:
  TriveletImageIO() {
    this->AddSupportedReadExtension(".tvl");
    this->AddSupportedWriteExtension(".tvl");
    this->SetCompressor("");
  }

  /// Stores the text, in capitals. Write() refuses invalid ones, since ITK expects no error here.
  void InternalSetCompressor(const std::string& compressor) override { m_Asked = compressor; }

 private:
  std::string m_Asked;

  static trivelet::io::VolumeInfo Meaning(const trivelet::VolumeStreamInfo& info) {
    trivelet::io::VolumeInfo meaning;
    if (!info.envelope.empty())
      meaning = trivelet::io::volume_info(trivelet::io::parse_envelope(info.envelope.data(), info.envelope.size()),
                                          info.volume);
    return meaning;
  }

  void Describe(const trivelet::VolumeStreamInfo& info) {
    const trivelet::VolumeDescription& volume = info.volume;
    const trivelet::io::VolumeInfo meaning = Meaning(info);
    const std::array<std::uint64_t, 4> extents = {static_cast<std::uint64_t>(volume.width),
                                                  static_cast<std::uint64_t>(volume.height), volume.slices,
                                                  volume.volumes};
    const unsigned int axes = volume.volumes > 1 ? 4 : volume.slices > 1 ? 3 : 2;
    this->SetNumberOfDimensions(axes);
    for (unsigned int axis = 0; axis < axes; ++axis) {
      this->SetDimensions(axis, extents[axis]);
      this->SetSpacing(axis, meaning.spacing[axis]);
      this->SetOrigin(axis, 0);
    }
    // Our coordinates go right, front and top; ITK's go left, back and top.
    const unsigned int places = std::min(axes, 3u);
    bool within = meaning.has_affine;  // of a single slice: its plane may be rotated out of the two axes
    for (unsigned int axis = 0; axis < places && places < 3; ++axis) within = within && meaning.affine[8 + axis] == 0;
    for (unsigned int axis = 0; axis < places && meaning.has_affine; ++axis) {
      const std::array<double, 3> column = {-meaning.affine[axis], -meaning.affine[4 + axis], meaning.affine[8 + axis]};
      const double length = std::hypot(column[0], column[1], column[2]);
      if (length > 0) this->SetSpacing(axis, length);
      this->SetOrigin(axis, (axis < 2 ? -1 : 1) * meaning.affine[4 * axis + 3]);
      std::vector<double> direction(axes, 0);
      direction[axis] = 1;
      if (within && length > 0)
        std::transform(column.begin(), column.begin() + places, direction.begin(),
                       [length](double c) { return c / length; });
      this->SetDirection(axis, direction);
    }
    const int channels = volume.voxel.channels;
    m_NumberOfComponents = static_cast<unsigned int>(channels);
    const bool colours = volume.voxel.type == VoxelType::kU8 && channels >= 3;
    m_PixelType = channels == 1 ? IOPixelEnum::SCALAR
                  : !colours    ? IOPixelEnum::VECTOR
                                : (channels == 3 ? IOPixelEnum::RGB : IOPixelEnum::RGBA);
    m_ComponentType = kTypes[static_cast<std::size_t>(volume.voxel.type)].theirs;
    if (meaning.slope != 1 || meaning.intercept != 0)
      m_ComponentType = trivelet::bytes_of(volume.voxel.type) > 2 && volume.voxel.type != VoxelType::kF32
                            ? Component::DOUBLE
                            : Component::FLOAT;
  }

  /// Spacing, origin and directions, as Describe() reads them.
  void SetPlace(trivelet::io::VolumeInfo& info) const {
    const unsigned int axes = this->GetNumberOfDimensions();
    for (unsigned int axis = 0; axis < axes; ++axis) info.spacing[axis] = this->GetSpacing(axis);
    info.has_affine = true;
    for (unsigned int axis = 0; axis < 3; ++axis) {
      const std::vector<double> direction = axis < axes ? this->GetDirection(axis) : std::vector<double>{0, 0, 1};
      for (unsigned int i = 0; i < 3; ++i)
        info.affine[4 * i + axis] = (i < 2 ? -1 : 1) * (i < direction.size() ? direction[i] : 0) * info.spacing[axis];
      info.affine[4 * axis + 3] = axis < axes ? (axis < 2 ? -1 : 1) * this->GetOrigin(axis) : 0;
    }
  }

  static std::vector<std::uint8_t> Header(const trivelet::io::VolumeInfo& info) {
    try {
      return trivelet::io::serialise(trivelet::io::make_envelope(info, "nii"));
    } catch (const trivelet::Error& error) {
      if (error.kind() != trivelet::ErrorKind::kUnsupported) throw;
      return trivelet::io::serialise(trivelet::io::make_envelope(info, "nrrd"));
    }
  }
};

class TriveletImageIOFactory : public ObjectFactoryBase {
 public:
  ITK_DISALLOW_COPY_AND_MOVE(TriveletImageIOFactory);
  using Self = TriveletImageIOFactory;
  using Superclass = ObjectFactoryBase;
  using Pointer = SmartPointer<Self>;
  itkFactorylessNewMacro(Self);
  itkTypeMacro(TriveletImageIOFactory, ObjectFactoryBase);

  const char* GetITKSourceVersion() const override { return ITK_SOURCE_VERSION; }
  const char* GetDescription() const override { return "Trivelet volumes (.tvl)"; }

 protected:
  TriveletImageIOFactory() {
    this->RegisterOverride("itkImageIOBase", "itkTriveletImageIO", "Trivelet volumes (.tvl)", true,
                           CreateObjectFunction<TriveletImageIO>::New());
  }
};

}  // namespace itk

/// The entry point for ITK. The caller owns the result.
extern "C" __attribute__((visibility("default"))) itk::ObjectFactoryBase* itkLoad() {
  static const itk::TriveletImageIOFactory::Pointer factory = itk::TriveletImageIOFactory::New();
  return factory.GetPointer();
}
