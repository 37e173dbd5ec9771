// The closed loop of predicted keys on the device (key_coding.h). Bound: memory, a few passes over a frame.
#include "gpu/pipeline/key_coding.h"

#include <algorithm>

#include "codec/entropy/dense/rounding.h"
#include "codec/rate/coding_cost.h"
#include "codec/transform/lifting.h"
#include "codec/transform/quantiser.h"
#include "gpu/pipeline/rounding.h"

namespace trivelet::gpu {
namespace {

constexpr unsigned kKeyThreads = 128;

unsigned key_blocks(std::size_t count) { return static_cast<unsigned>((count + kKeyThreads - 1) / kKeyThreads); }

/// A subband becomes what a decoder of all layers makes of it. A row for each blockIdx.y.
__global__ void reconstruct_kernel(float* coefficients, CoefficientLayout::Band band, float step, float inverse,
                                   float offset) {
  const std::size_t x = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (x >= static_cast<std::size_t>(band.shape.width)) return;
  for (int y = static_cast<int>(blockIdx.y); y < band.shape.height; y += static_cast<int>(gridDim.y)) {
    float& c = coefficients[band.origin + static_cast<std::size_t>(y) * band.row_stride + x];
    const auto m = static_cast<std::int32_t>(limited_magnitude(c, inverse));
    const float v = (static_cast<float>(m) + offset) * step;
    c = m == 0 ? 0.0f : c < 0 ? -v : v;
  }
}

/// The decoded key: what became of its difference, and its prediction.
__global__ void decoded_key_kernel(const float* values, const std::int32_t* own, const std::int32_t* difference,
                                   std::size_t count, std::int32_t* out) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i >= count) return;
  const std::int32_t v = clamp_round(values[i] * (1 << kMotionFraction), -kMotionLargest, kMotionLargest);
  out[i] = wrap_add(v, wrap_sub(own[i], difference[i]));
}

}  // namespace

DeviceKeyCoding::DeviceKeyCoding(const StreamHeader& header)
    : header_(header),
      frame_(std::make_unique<GopShape>(header.describe_gop(1, GopKey::kFirst), Reduction{}, 1, false, setup_)) {
  if (header.lossless)
    integer_ = std::make_unique<GopTransforms<std::int32_t>>(*frame_);
  else
    real_ = std::make_unique<GopTransforms<float>>(*frame_);
  origin_.push_back(0);
  for (const Shape& s : frame_->shapes) origin_.push_back(origin_.back() + s.samples());
  const auto most = static_cast<std::size_t>((header.gop_frames >> header.least_levels()) + 1);
  keys_ = DeviceBuffer<std::int32_t>(checked_mul(samples(), most));
  differences_ = DeviceBuffer<std::int32_t>(keys_.size());
  pair_ = DeviceBuffer<std::int32_t>(2 * samples());
  values_ = DeviceBuffer<std::int32_t>(samples());
  coefficients_ = DeviceBuffer<std::int32_t>(frame_->coefficient_origin.back());
  rounded_ = DeviceBuffer<std::int32_t>(coefficients_.size());
  steps_ = DeviceBuffer<float>(frame_->step_origin.back() + 1);
  for (DeviceBuffer<std::int32_t>* b : {&coefficients_, &rounded_})  // rows are padded
    check(cudaMemsetAsync(b->data(), 0, b->size() * sizeof(std::int32_t), setup_.get()), "cudaMemsetAsync");
  setup_.synchronize();
}

std::size_t DeviceKeyCoding::device_bytes() const {
  return sizeof(std::int32_t) * (keys_.size() + differences_.size() + pair_.size() + values_.size() +
                                 coefficients_.size() + rounded_.size() + steps_.size()) +
         frame_->device_bytes() + (real_ ? real_->device_bytes() : 0) + (integer_ ? integer_->device_bytes() : 0) +
         tiles_.size() * sizeof(CodingTile) + sums_.size() * sizeof(unsigned long long);
}

void DeviceKeyCoding::prepare(const GopShape& shape, float step, float rounding_step) {
  if (shape_ == &shape && step_ == step && rounding_step_ == rounding_step) return;
  shape_ = &shape;
  step_ = step;
  rounding_step_ = rounding_step;
  tiles_are_there_ = false;
  bands_.clear();
  std::size_t sum = 0;
  int component = -1;
  std::vector<StepTable> steps;
  for_coding_bands(shape.header, shape.frames, [&](int c, const SubbandTable& table, std::size_t i) {
    const auto n = static_cast<std::size_t>(c);
    if (c != component) {
      steps.clear();
      steps.emplace_back(table, header_.lossless ? 1.0f : step, header_.components[n]);
      if (rounding_step > 0) steps.emplace_back(table, rounding_step, header_.components[n]);
    }
    component = c;
    const Subband& s = table.all()[i];
    const std::size_t first = sum;
    sum += static_cast<std::size_t>(s.shape.frames);
    if (s.temporal_band != 0) return;
    Band b;
    b.component = c;
    b.layout = frame_->layouts[n].band(frame_->geometry->grid(c).table().at(0, s.resolution, s.orientation));
    b.layout.origin += frame_->coefficient_origin[n];
    b.step = steps[0].step[i];
    b.inverse = steps[0].inverse[i];
    b.rounding_step = steps.back().step[i];
    b.rounding_inverse = steps.back().inverse[i];
    b.lambda = rounding_lambda(s, table.decomposition());
    b.sum = first;
    bands_.push_back(b);
  });
}

// Pieces of a key, for its sums. Not while others are used.
void DeviceKeyCoding::prepare_sums(int keys, const Stream& stream) {
  const std::size_t count = 4 * bands_.size() * static_cast<std::size_t>(keys);
  make_room(sums_, host_sums_, count);
  check(cudaMemsetAsync(sums_.data(), 0, count * sizeof *sums_.data(), stream.get()), "cudaMemsetAsync");
  summed_ = keys;
  if (tiles_are_there_) return;
  std::vector<CodingTile> tiles;
  for (std::size_t i = 0; i < bands_.size(); ++i)
    add_coding_tiles(bands_[i].layout, bands_[i].layout.origin, bands_[i].inverse, i, tiles);
  tile_count_ = tiles.size();
  make_room(tiles_, host_tiles_, tiles.size());
  std::copy(tiles.begin(), tiles.end(), host_tiles_.data());
  copy(tiles_.data(), host_tiles_.data(), tile_count_, cudaMemcpyHostToDevice, stream);
  tiles_are_there_ = true;
}

// Makes the coefficients of a key.
void DeviceKeyCoding::transform(const std::int32_t* from, const Stream& stream) {
  const int components = static_cast<int>(header_.components.size());
  if (!integer_) {
    copy(values_.data(), from, samples(), cudaMemcpyDeviceToDevice, stream);
    DeviceMotion::to_floats(values_.data(), samples(), stream);
  }
  for (int c = 0; c < components; ++c) {
    const std::size_t at = origin_[static_cast<std::size_t>(c)];
    if (integer_)
      integer_->forward(from + at, c, coefficients_.data(), steps_.data(), stream);
    else
      real_->forward(reinterpret_cast<const float*>(values_.data()) + at, c, coefficients(), steps_.data(), stream);
  }
}

void DeviceKeyCoding::sum(int kind, int number, int keys, const Stream& stream) {
  unsigned long long* to = sums_.data() + 2 * bands_.size() * static_cast<std::size_t>(kind * keys + number);
  if (integer_)
    sum_coding_tiles(tiles_.data(), tile_count_, coefficients_.data(), to, stream);
  else
    sum_coding_tiles(tiles_.data(), tile_count_, coefficients(), to, stream);
}

void DeviceKeyCoding::round(const Stream& stream) {
  if (rounding_step_ == 0) return;
  for (const Band& b : bands_)
    round_band(b.layout, coefficients(), reinterpret_cast<float*>(rounded_.data()), b.rounding_step, b.rounding_inverse,
               b.lambda, stream);
  std::swap(coefficients_, rounded_);
}

// What a decoder makes of a component of the key that was transformed last.
void DeviceKeyCoding::decode(const std::int32_t* own, const std::int32_t* difference, int component, std::int32_t* out,
                             const Stream& stream) {
  const auto c = static_cast<std::size_t>(component);
  for (const Band& b : bands_)
    if (b.component == component)
      launch("reconstruct_kernel", reconstruct_kernel,
             dim3(key_blocks(static_cast<std::size_t>(b.layout.shape.width)),
                  static_cast<unsigned>(std::min(b.layout.shape.height, 65535))),
             dim3(kKeyThreads), 0, stream.get(), coefficients(), b.layout, b.step, b.inverse,
             reconstruction_offset(header_.centroid, 0));
  auto* const values = reinterpret_cast<float*>(values_.data()) + origin_[c];
  real_->inverse(static_cast<const float*>(coefficients()), steps_.data(), component, values, stream);
  const std::size_t count = origin_[c + 1] - origin_[c];
  launch("decoded_key_kernel", decoded_key_kernel, dim3(key_blocks(count)), dim3(kKeyThreads), 0, stream.get(),
         static_cast<const float*>(values), own + origin_[c], difference + origin_[c], count, out);
}

void DeviceKeyCoding::predict(const MotionOfGop& motion, DeviceMotion& lifting, bool sums, const Stream& stream) {
  const int keys = motion.places.keys(), components = static_cast<int>(header_.components.size());
  if (sums) prepare_sums(keys, stream);
  const auto move = [&](std::int32_t* to, const std::int32_t* from, int c) {
    const auto n = static_cast<std::size_t>(c);
    copy(to, from, origin_[n + 1] - origin_[n], cudaMemcpyDeviceToDevice, stream);
  };
  const auto pair_of = [&](int c) { return pair_.data() + 2 * origin_[static_cast<std::size_t>(c)]; };
  const auto own_of = [&](int c) {
    const auto n = static_cast<std::size_t>(c);
    return pair_of(c) + (origin_[n + 1] - origin_[n]);
  };
  for (int i = 0; i < keys; ++i) {
    const int place = motion.places.key_place(i);
    const bool predicted = place > 0 && motion.places.has(place - (1 << motion.places.levels));
    for (int c = 0; c < components; ++c) {
      const std::size_t at = origin_[static_cast<std::size_t>(c)];
      if (i == 0 && motion.places.key == GopKey::kOpen) move(pair_of(c), lifting.low_key_before(c), c);
      move(own_of(c), key(keys_, i) + at, c);
      if (predicted) lifting.predict_key(*shape_, motion, c, place, pair_of(c), stream);
      move(key(differences_, i) + at, own_of(c), c);
    }
    const bool last = i + 1 == keys;
    if (last && !sums) return;
    transform(key(differences_, i), stream);
    if (sums) sum(0, i, keys, stream);
    if (last) break;
    if (!integer_) round(stream);
    if (sums) sum(1, i, keys, stream);
    for (int c = 0; c < components; ++c)
      if (integer_)
        move(pair_of(c), key(keys_, i) + origin_[static_cast<std::size_t>(c)], c);
      else
        decode(key(keys_, i), key(differences_, i), c, pair_of(c), stream);
  }
  copy(host_sums_.data(), sums_.data(), 4 * bands_.size() * static_cast<std::size_t>(keys), cudaMemcpyDeviceToHost,
       stream);
}

void DeviceKeyCoding::finish(const MotionOfGop& motion, DeviceMotion& lifting, const Stream& stream) {
  const int keys = motion.places.keys(), components = static_cast<int>(header_.components.size());
  DeviceBuffer<std::int32_t>& coded = motion.predicts_keys ? differences_ : keys_;
  for (int i = 0; motion.predicts_keys && i < keys; ++i)
    for (int c = 0; c < components; ++c)
      lifting.set_frame(*shape_, motion, c, motion.places.key_place(i),
                        key(differences_, i) + origin_[static_cast<std::size_t>(c)], stream);
  if (integer_ || !motion.places.ends_with_key() || keys == 0) return;  // of lossless streams it is there
  transform(key(coded, keys - 1), stream);
  round(stream);
  for (int c = 0; c < components; ++c)
    decode(key(keys_, keys - 1), key(coded, keys - 1), c, lifting.low_key(c), stream);
}

bool DeviceKeyCoding::pays(std::vector<CodingSums>& sums, const GopMotion& motion) const {
  std::vector<CodingSums> alone(sums.size()), predicted(sums.size());
  const auto of = [&](int kind, int number, std::size_t band) {
    const unsigned long long* s =
        host_sums_.data() + 2 * (bands_.size() * static_cast<std::size_t>(kind * summed_ + number) + band);
    return CodingSums{s[0], s[1]};
  };
  for (std::size_t b = 0; b < bands_.size(); ++b)
    for (int i = 0; i < summed_; ++i) {
      const std::size_t at = bands_[b].sum + static_cast<std::size_t>(i);
      alone[at] = sums[at];
      predicted[at] = of(0, i, b);
    }
  const auto cost = [&](const std::vector<CodingSums>& all) {
    return coding_cost(shape_->header, shape_->frames, {}, step_, all);
  };
  const double section = cost_of_bytes(header_, motion.sections.front().size(), step_);
  if (!prediction_pays(cost(predicted) + section, cost(alone), motion.keys_in_place)) return false;
  for (std::size_t b = 0; b < bands_.size(); ++b)
    for (int i = 0; i < summed_; ++i)
      sums[bands_[b].sum + static_cast<std::size_t>(i)] = of(i + 1 < summed_ ? 1 : 0, i, b);
  return true;
}

}  // namespace trivelet::gpu
